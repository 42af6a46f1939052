"""Calls that depend on each other join the batch that runs, and on a CPU the time they take changes nothing."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
import torch

from engine import tiny
from redqueen.engine.local import LocalEngine
from redqueen.engine.namespaced import NamespacedEngine
from redqueen.engine.protocol import Ask, Chain, Recipe, Sample, SampleRequest, Trajectory
from redqueen.engine.scheduler import Scheduler
from redqueen.engine.streams import EVERY, Between, Call, Stream, Streams
from redqueen.errors import InputError

GOOD = SampleRequest(prompt=(1, 2, 3), member="m0", key=1, max_tokens=4)
Chained = list[list[Sample]]


def request(number: int, *, prompt: int, limit: int) -> SampleRequest:
    return SampleRequest(
        prompt=tiny.tokens(Random(number), prompt), member=f"m{number % 3}", key=number, max_tokens=limit
    )


def first(number: int) -> list[SampleRequest]:
    return [request(100 * number + at, prompt=5 + number, limit=[3, 40, 11, 25][number % 4]) for at in range(2)]


def then(number: int) -> list[SampleRequest]:
    """Longer prompts and limits than anything before."""
    return [request(1000 + 100 * number + at, prompt=20 + 3 * number, limit=50 - number) for at in range(3)]


def chain(number: int, pause: Callable[[int], float] = lambda _: 0.0) -> Chain[Chained]:
    async def asks(ask: Ask) -> Chained:
        begun = await ask(first(number))
        await asyncio.sleep(pause(number))
        return [begun, await ask(then(number)) if number % 3 else []]

    return asks


def streamed(opened: LocalEngine, pause: Callable[[int], float] = lambda _: 0.0, count: int = 9) -> list[Chained]:
    return asyncio.run(opened.stream([chain(number, pause) for number in range(count)]))


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
@pytest.mark.parametrize("rows", [4, 64])
@pytest.mark.parametrize("exact", [True, False])
def test_what_follows_is_what_it_would_be_alone(architecture, rows, exact):
    with tiny.engine(architecture, rows=rows) as opened:
        opened._calls._exact = exact
        for number, (begun, after) in enumerate(streamed(opened)):
            alone = tiny.sample(opened, first(number)), tiny.sample(opened, then(number)) if number % 3 else []
            for ours, theirs in zip((begun, after), alone, strict=True):
                assert [one.tokens for one in ours] == [one.tokens for one in theirs]
                for one, other in zip(ours, theirs, strict=True):
                    assert one.logprobs == pytest.approx(other.logprobs, abs=5e-5)


def test_how_long_a_chain_thinks_changes_no_bit():
    """Rounding depends on who is in a batch."""
    with tiny.engine("llama", rows=64) as opened:
        quick = streamed(opened)
        for slow in (lambda number: 0.05 * number, lambda number: 0.4 - 0.05 * number):
            assert streamed(opened, slow) == quick


def test_a_batch_that_takes_what_is_there_has_the_same_tokens():
    with tiny.engine("llama", rows=64) as opened:
        wanted = [[one.tokens for part in parts for one in part] for parts in streamed(opened)]
        opened._calls._exact = False
        for pause in (lambda _: 0.0, lambda number: 0.02 * number):
            assert [[one.tokens for part in parts for one in part] for parts in streamed(opened, pause)] == wanted


@pytest.mark.parametrize("exact", [True, False])
def test_what_follows_begins_before_the_others_have_ended_unless_batches_must_be_the_same(exact):
    with tiny.engine("llama", rows=64) as opened:
        opened._calls._exact = exact
        chains = streamed(opened)
    longest = max(one.seconds[1] for begun, _ in chains for one in begun)
    assert (min(one.seconds[0] for _, after in chains for one in after) < longest) is not exact
    assert all(began < ended for chained in chains for part in chained for began, ended in [s.seconds for s in part])


def turns(opened: LocalEngine, monkeypatch) -> list[int]:
    seen: list[int] = []
    run = opened.sampler.run
    monkeypatch.setattr(type(opened.sampler), "run", lambda _, streams: seen.append(1) or run(streams))
    return seen


def test_another_caller_joins_the_batch_that_runs(monkeypatch):
    async def both(opened):
        started = asyncio.Event()

        async def long(ask: Ask) -> list[Sample]:
            await ask([GOOD])
            started.set()
            return await ask([replace(GOOD, max_tokens=60)])

        async def late() -> list[Sample]:
            await started.wait()
            return await opened.sample([replace(GOOD, key=5)])

        return await asyncio.gather(opened.stream([long]), late())

    with tiny.engine("llama") as opened:
        seen = turns(opened, monkeypatch)
        [[whole]], [joined] = asyncio.run(both(opened))
        assert len(seen) == 1 and len(whole.tokens) == 60
        assert tiny.sample(opened, [replace(GOOD, key=5)])[0].tokens == joined.tokens


def test_whoever_waits_for_an_update_does_not_wait_for_those_that_come_later(monkeypatch):
    row = Trajectory(member="m0", prompt=(1, 2), completion=(3, 4), logprobs=(-4.0, -4.0), advantages=1.0)

    async def all_of(opened, ended: list[str]):
        started = asyncio.Event()

        async def long(ask: Ask) -> None:
            await ask([GOOD])
            started.set()
            await ask([replace(GOOD, max_tokens=60)])
            ended.append("long")

        async def learn() -> None:
            await started.wait()
            await opened.update([row], Recipe(lr=1e-3))
            ended.append("update")

        async def late() -> None:
            await started.wait()
            await asyncio.sleep(0)
            await opened.sample([GOOD])
            ended.append("late")

        await asyncio.gather(opened.stream([long]), learn(), late())

    with tiny.engine("llama") as opened:
        ended: list[str] = []
        asyncio.run(all_of(opened, ended))
    assert ended == ["long", "update", "late"]


def test_weights_are_read_and_written_while_a_batch_waits():
    """Races that share an engine do so at any time, in the event loop that chains need."""

    async def reads(ask: Ask) -> list[Sample]:
        await ask([GOOD])
        for number in range(9):
            opened.write(f"new{number}", opened.read("m1"))
        return await ask([replace(GOOD, member="new8")])

    async def long(ask: Ask) -> list[Sample]:
        return await ask([replace(GOOD, max_tokens=60)])

    with tiny.engine("llama") as opened:
        wanted = tiny.sample(opened, [replace(GOOD, max_tokens=60)])
        [[ours], [beside]] = asyncio.run(opened.stream([reads, long]))
        assert ours.tokens == tiny.sample(opened, [replace(GOOD, member="m1")])[0].tokens
        assert beside.tokens == wanted[0].tokens
        with pytest.raises(InputError, match="no member"):
            opened.read("nobody")


def test_a_chain_that_asks_for_nonsense_harms_nobody_else():
    async def bad(ask: Ask) -> str:
        await ask([GOOD])
        with pytest.raises(InputError, match="does not know"):
            await ask([replace(GOOD, prompt=(10**6,))])
        with pytest.raises(InputError, match="empty prompt"):
            await ask([GOOD, replace(GOOD, prompt=())])
        return "refused twice"

    async def good(ask: Ask) -> list[Sample]:
        return await ask([replace(GOOD, max_tokens=30)])

    async def both(opened):
        return await opened.stream([bad, good])

    with tiny.engine("llama") as opened:
        said, [sample] = asyncio.run(both(opened))
        assert said == "refused twice" and len(sample.tokens) == 30


def test_a_chain_that_fails_ends_its_stream_and_the_engine_goes_on():
    async def fails(ask: Ask) -> None:
        await ask([GOOD])
        raise ZeroDivisionError

    async def waits(ask: Ask) -> None:
        await ask([GOOD])
        await asyncio.sleep(600)

    async def long(ask: Ask) -> None:
        await ask([replace(GOOD, max_tokens=60)])

    with tiny.engine("llama") as opened:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(opened.stream([fails, waits, long]))
        assert len(tiny.sample(opened, [GOOD])[0].tokens) == 4


def test_nobody_waits_for_a_chain_whose_loop_has_ended():
    async def waits(ask: Ask) -> None:
        await ask([GOOD])
        await asyncio.sleep(600)

    with tiny.engine("llama") as opened:
        loop = asyncio.new_event_loop()
        task = loop.create_task(opened.stream([waits]))
        loop.run_until_complete(asyncio.sleep(0.2))
        for one in asyncio.all_tasks(loop):
            one._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
        loop.close()
        assert len(tiny.sample(opened, [GOOD])[0].tokens) == 4
        assert not task.done()


@pytest.mark.parametrize("exact", [True, False])
def test_what_does_not_fit_beside_the_others_waits_for_their_end(exact):
    with tiny.engine("llama", rows=64) as opened:
        opened._calls._exact = exact
        wanted = [[one.tokens for part in parts for one in part] for parts in streamed(opened)]
        opened.sampler.backend.drop()
        opened.sampler.max_cache_tokens = 112
        assert [[one.tokens for part in parts for one in part] for parts in streamed(opened)] == wanted


@pytest.mark.parametrize("exact", [True, False])
def test_memory_that_runs_out_under_a_stream_changes_no_token(monkeypatch, capsys, exact):
    with tiny.engine("llama", rows=64) as opened:
        opened._calls._exact = exact
        wanted = [[one.tokens for part in parts for one in part] for parts in streamed(opened)]
        launch, launched = Scheduler._launch, []

        def full(self: Scheduler):
            launched.append(1)
            if len(launched) in (5, 30):
                raise torch.OutOfMemoryError("no room")
            return launch(self)

        monkeypatch.setattr(Scheduler, "_launch", full)
        assert [[one.tokens for part in parts for one in part] for parts in streamed(opened)] == wanted
    assert capsys.readouterr().err.count("out of memory; sampling again") == 2


def test_a_namespace_names_what_chains_ask_for():
    with tiny.engine("llama") as opened:
        opened.write("a/m0", opened.read("m2"))
        [[ours]] = asyncio.run(NamespacedEngine(opened, "a/").stream([lambda ask: ask([GOOD])]))
        assert ours == tiny.sample(opened, [replace(GOOD, member="a/m0")])[0]


def test_an_engine_that_is_closed_under_a_chain_lets_everybody_go():
    async def lead() -> str:
        opened = tiny.engine("llama")

        async def long(ask: Ask) -> list[Sample]:
            await ask([GOOD])
            return await ask([replace(GOOD, max_tokens=60)])

        async def thinks(ask: Ask) -> None:
            await ask([GOOD])
            await asyncio.sleep(600)

        stream = asyncio.create_task(opened.stream([long, thinks]))
        await asyncio.sleep(0.3)
        opened.close()
        with pytest.raises(InputError) as raised:
            await stream
        return str(raised.value)

    assert "closed" in asyncio.run(lead())


def test_a_chain_asks_for_one_thing_at_a_time():
    async def greedy(ask: Ask) -> None:
        await asyncio.gather(ask([GOOD]), ask([GOOD]))

    with tiny.engine("llama") as opened, pytest.raises(RuntimeError, match="one thing at a time"):
        asyncio.run(opened.stream([greedy]))


def test_no_chains_are_no_work_and_a_closed_engine_says_so():
    opened = tiny.engine("llama")
    assert asyncio.run(opened.stream([])) == []
    opened.close()
    with pytest.raises(InputError, match="closed"):
        streamed(opened)


@pytest.mark.parametrize("steps", range(1, 5))
def test_a_batch_takes_in_more_after_eight_steps_however_many_a_launch_has(steps):
    async def lead() -> None:
        changed = threading.Condition()
        stream = Stream(1, changed)
        streams = Streams([stream], changed, Between(changed), exact=False)
        [chain] = stream.chains

        def taken(step: int, rows: int) -> bool:
            chain.call, chain.taken = Call(chain, [GOOD], stream.loop.create_future()), False
            return bool(streams.take(step, rows))

        assert taken(0, 0)
        took = [0, *(step for step in range(steps, 100, steps) if taken(step, 5))]
        wait = -(-EVERY // steps) * steps
        assert took == list(range(0, 100, wait))
        assert not taken(took[-1] + 1, 5)
        assert taken(2, 5), "a turn that starts again counts its steps anew"
        assert not taken(3, 5)

    asyncio.run(lead())
