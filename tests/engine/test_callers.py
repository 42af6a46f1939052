"""Several callers of one engine, and what becomes of each when another makes a mistake, gives up or goes away."""

import asyncio
import contextlib
import sys
import threading
import time
from dataclasses import replace

import pytest
import torch

from engine import tiny
from redqueen.engine import call_queue, ops, switch_interval
from redqueen.engine.local import LocalEngine, usual_rows
from redqueen.engine.protocol import Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.errors import InputError, UserError

GOOD = SampleRequest(prompt=(1, 2, 3), member="m0", key=1, max_tokens=4)
TRAJECTORY = Trajectory(member="m0", prompt=(1, 2), completion=(3, 4), logprobs=(-4.0, -4.0), advantages=1.0)
RECIPE = Recipe(lr=1e-2)


def step(opened: LocalEngine, member: str = "m0") -> int:
    state = opened.read(member, optimiser=True).optimiser
    return 0 if state is None else state.step


def test_an_update_that_was_cancelled_before_its_turn_changes_nobody():
    async def run(opened):
        first = asyncio.create_task(opened.sample([GOOD]))
        await asyncio.sleep(0)
        update = asyncio.create_task(opened.update([TRAJECTORY], RECIPE))
        await asyncio.sleep(0)
        update.cancel()
        await first
        await opened.sample([GOOD])

    with tiny.engine("llama") as opened:
        before = opened.read("m0")
        asyncio.run(run(opened))
        assert step(opened) == 0 and tiny.difference(opened.read("m0"), before) == 0


def test_what_was_asked_in_a_loop_that_has_ended_is_not_done_in_the_next():
    with tiny.engine("llama") as opened:
        loop = asyncio.new_event_loop()
        tasks = [loop.create_task(opened.sample([replace(GOOD, max_tokens=60)]))]
        loop.run_until_complete(asyncio.sleep(0.01))
        tasks.append(loop.create_task(opened.update([TRAJECTORY], RECIPE)))
        loop.run_until_complete(asyncio.sleep(0))
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False
        loop.close()
        assert len(tiny.sample(opened, [GOOD])[0].tokens) == 4
        assert step(opened) == 0


def test_a_second_loop_is_refused_and_the_first_goes_on():
    seen = []

    def other(opened):
        try:
            asyncio.run(opened.sample([GOOD]))
        except UserError as error:
            seen.append(str(error))

    async def run(opened):
        sampling = asyncio.create_task(opened.sample([replace(GOOD, max_tokens=60)]))
        await asyncio.sleep(0)
        thread = threading.Thread(target=other, args=(opened,))
        thread.start()
        thread.join()
        return await sampling

    with tiny.engine("llama") as opened:
        [sample] = asyncio.run(run(opened))
    assert len(sample.tokens) == 60
    assert seen == ["this engine is in use in another event loop; use one loop, or an engine for each"]


@pytest.mark.parametrize("bad", [None, replace(GOOD, prompt=[1, 2]), replace(GOOD, stop="abc")])
def test_whatever_one_caller_asks_the_other_is_answered(bad):
    async def run(opened):
        return await asyncio.gather(opened.sample([bad]), opened.sample([GOOD]), return_exceptions=True)

    with tiny.engine("llama") as opened:
        wrong, right = asyncio.run(run(opened))
    assert isinstance(wrong, Exception)
    assert len(right[0].tokens) == 4


def test_a_closed_engine_says_so():
    opened = tiny.engine("llama")
    opened.close()
    with pytest.raises(InputError, match="closed"):
        tiny.sample(opened, [GOOD])
    with pytest.raises(InputError, match="closed"):
        opened.read("m0")


def test_a_member_has_one_factor_of_the_learning_rate():
    with tiny.engine("llama") as opened:
        for batch, says in (
            ([TRAJECTORY, replace(TRAJECTORY, lr_factor=0.5)], "different factors"),
            ([replace(TRAJECTORY, lr_factor=float("nan"))], "cannot be multiplied by nan"),
        ):
            with pytest.raises(InputError, match=says):
                tiny.update(opened, batch, RECIPE)


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(lr=float("nan")),
        Recipe(lr=-1.0),
        Recipe(lr=1e-3, eps=0.0),
        Recipe(lr=1e-3, betas=(1.0, 0.9)),
        Recipe(lr=1e-3, normaliser=0.0),
        Recipe(lr=1e-3, max_grad_norm=0.0),
        Recipe(lr=1e-3, ratio_cap=float("inf")),
    ],
)
def test_a_recipe_that_would_destroy_a_member_is_refused(recipe):
    with tiny.engine("llama") as opened:
        before = opened.read("m0")
        with pytest.raises(InputError, match="a recipe's"):
            tiny.update(opened, [TRAJECTORY], recipe)
        assert tiny.difference(opened.read("m0"), before) == 0


@pytest.mark.parametrize("options", [{"rows": 0}, {"rows": -2}, {"members": "ada"}, {"members": ["a", "a"]}])
def test_an_engine_that_cannot_be_is_refused(options):
    with pytest.raises(InputError):
        LocalEngine(tiny.base("llama"), **{"members": ["a"], "rank": 4, "memory_bytes": 1 << 30, **options})


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_texts_as_long_as_the_base_allows_need_no_position_beyond(architecture):
    base = tiny.base(architecture, max_position_embeddings=100)
    with tiny.engine(base) as opened:
        whole = tuple(range(1, 100))
        assert len(tiny.sample(opened, [replace(GOOD, prompt=whole, max_tokens=1)])[0].tokens) == 1
        assert (
            len(tiny.score(opened, [ScoreRequest(prompt=whole[:1], completion=whole, member="m0")])[0].logprobs) == 99
        )


def test_a_call_that_fails_half_way_leaves_nothing_to_the_next(monkeypatch):
    with tiny.engine("llama") as opened:
        right = tiny.sample(opened, [GOOD])[0].tokens
        state = opened.read("m1")
        factors = {name: (a * float("nan"), b) for name, (a, b) in state.factors.items()}
        opened.write("m1", replace(state, factors=factors))
        drawn = []

        def fail(*args):
            drawn.append(1)
            if len(drawn) == 3:
                raise ValueError("in the middle")
            return sample(*args)

        sample = ops.sample
        monkeypatch.setattr(ops, "sample", fail)
        with pytest.raises(ValueError, match="in the middle"):
            tiny.sample(opened, [replace(GOOD, member="m1", max_tokens=20)] * 4)
        monkeypatch.setattr(ops, "sample", sample)
        assert [one.tokens for one in tiny.sample(opened, [GOOD] * 4)] == [right] * 4


def test_the_largest_random_number_draws_no_impossible_token():
    """This key's number rounds to 1 where float32 is given more bits than it has."""
    logits_R_V = torch.full((1, 50), -200.0)
    logits_R_V[0, 7] = 0.0
    key_R = torch.tensor([13696288941778812732 - (1 << 64)])
    token_R, _ = ops.sample(logits_R_V, torch.ones(1), key_R, torch.zeros(1, dtype=torch.int64))
    assert token_R.tolist() == [7]


def test_a_rotary_embedding_that_depends_on_the_neighbours_is_refused():
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    with pytest.raises(InputError, match="neighbours"):
        tiny.engine(tiny.base("llama", rope_parameters=rope))


def test_a_sequence_that_never_fits_is_named_and_does_not_slow_the_others(monkeypatch):
    with tiny.engine("llama") as opened:
        micro, hidden = opened.trainer.micro_tokens, opened.body.hidden

        def small(token_N, *args, **options):
            if len(token_N) > 40:
                raise torch.OutOfMemoryError("no room")
            return hidden(token_N, *args, **options)

        monkeypatch.setattr(opened.body, "hidden", small)
        with pytest.raises(InputError, match="a sequence of 64 tokens does not fit"):
            tiny.score(opened, [ScoreRequest(prompt=(1,), completion=(2,) * 63)])
        assert opened.trainer.micro_tokens == micro


def test_the_smaller_a_base_the_more_completions_grow_at_the_same_time_on_a_cpu():
    sizes = (10_000, 1_000_000, 4_000_000, 16_777_216, 7_000_000_000)
    assert [usual_rows("cpu", size) for size in sizes] == [1024, 1024, 268, 64, 64]
    assert usual_rows("cuda", 1_000_000) == usual_rows("cuda", 7_000_000_000) == 512


def turns(opened: LocalEngine, monkeypatch) -> list[int]:
    """How many callers each turn of the engine answers from now on."""
    seen: list[int] = []
    whole = opened._calls._turn

    def turn():
        calls = whole()
        if calls:
            seen.append(len(calls))
        return calls

    monkeypatch.setattr(opened._calls, "_turn", turn)
    return seen


@pytest.mark.parametrize(("shared", "expected"), [(False, [1, 1]), (True, [2])])
def test_races_that_share_an_engine_are_answered_together(monkeypatch, shared, expected):
    async def race(opened, key, may_ask):
        with opened.shared() if shared else contextlib.nullcontext():
            while not may_ask():
                await asyncio.sleep(0.01)
            return await opened.score([ScoreRequest(prompt=(1, 2), completion=(3 + key,), member="m0")])

    async def both(opened, seen):
        later = lambda: seen or (shared and opened._calls._waiting)  # noqa: E731
        return await asyncio.gather(race(opened, 0, lambda: True), race(opened, 5, later))

    with tiny.engine("llama") as opened:
        tiny.sample(opened, [GOOD])
        monkeypatch.setattr(call_queue, "SHARE_WAIT_S", 600.0)
        seen = turns(opened, monkeypatch)
        together = asyncio.run(both(opened, seen))
        assert seen == expected
        alone = [
            tiny.score(opened, [ScoreRequest(prompt=(1, 2), completion=(3 + key,), member="m0")]) for key in (0, 5)
        ]
        for [ours], [theirs] in zip(together, alone, strict=True):
            assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def test_nobody_waits_for_long_for_one_that_does_not_come(monkeypatch):
    with tiny.engine("llama") as opened, opened.shared(), opened.shared():
        tiny.sample(opened, [GOOD])
        monkeypatch.setattr(call_queue, "SHARE_WAIT_S", 0.2)
        start = time.monotonic()
        assert len(tiny.sample(opened, [GOOD])[0].tokens) == 4
        assert time.monotonic() - start >= 0.2


def test_nobody_waits_for_a_race_that_has_ended_or_failed(monkeypatch):
    monkeypatch.setattr(call_queue, "SHARE_WAIT_S", 1200.0)
    with tiny.engine("llama") as opened, opened.shared():
        with pytest.raises(ZeroDivisionError), opened.shared():
            _ = 1 / 0
        start = time.monotonic()
        tiny.sample(opened, [GOOD])
        assert time.monotonic() - start < 600


def test_other_threads_give_way_while_the_engine_works_and_no_longer(monkeypatch):
    before, within = sys.getswitchinterval(), []
    with tiny.engine("llama") as opened:
        run = opened.sampler.run
        monkeypatch.setattr(
            type(opened.sampler), "run", lambda _, *a: within.append(sys.getswitchinterval()) or run(*a)
        )
        tiny.sample(opened, [GOOD])
    assert within == [pytest.approx(switch_interval.SWITCH_S)] and sys.getswitchinterval() == before


def test_of_two_engines_at_work_the_last_to_end_gives_the_turns_back():
    before, one, two = sys.getswitchinterval(), contextlib.ExitStack(), contextlib.ExitStack()
    one.enter_context(switch_interval.SHORT_SWITCH_INTERVAL)
    two.enter_context(switch_interval.SHORT_SWITCH_INTERVAL)
    one.close()
    assert sys.getswitchinterval() == pytest.approx(switch_interval.SWITCH_S)
    two.close()
    assert sys.getswitchinterval() == before
