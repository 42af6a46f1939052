"""The same in processes: what a race sees of an engine whose base is split, and what it sees when a part is lost."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest
import torch

from redqueen.engine.base import load
from redqueen.engine.local import LocalEngine
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import Engine, Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.engine.split.leader import SplitEngine
from redqueen.engine.split.told import Turn
from redqueen.errors import InputError, MachineError

CPU = torch.device("cpu")
OPTIONS = {"members": ["ada", "eve"], "rank": 8, "rows": 32}
REQUESTS = [SampleRequest(prompt=tuple(range(5, 30)), member="ada", key=key, max_tokens=40) for key in range(16)]
RECIPE = Recipe(lr=1e-4)


@pytest.fixture(scope="module")
def split() -> Iterator[SplitEngine]:
    with SplitEngine("pico", 2, device=CPU, dtype=torch.float32, **OPTIONS) as engine:
        yield engine


@pytest.fixture(scope="module")
def whole() -> Iterator[LocalEngine]:
    with LocalEngine(load("pico", device=CPU, dtype=torch.float32), **OPTIONS) as engine:
        yield engine


def trajectory(
    prompt: tuple[int, ...], completion: tuple[int, ...], logprobs: tuple[float, ...], advantage: float
) -> Trajectory:
    return Trajectory(member="ada", prompt=prompt, completion=completion, logprobs=logprobs, advantages=advantage)


def trained(engine: Engine) -> tuple[list[tuple[int, ...]], list[float]]:
    """The texts of a member, and its log-probabilities of them after a step on them."""

    async def run() -> tuple[list[tuple[int, ...]], list[float]]:
        samples = await engine.sample(REQUESTS)
        texts = list(zip(REQUESTS, samples, strict=True))
        batch = [
            trajectory(request.prompt, sample.tokens, sample.logprobs, (-1.0) ** at)
            for at, (request, sample) in enumerate(texts)
        ]
        await engine.update(batch, RECIPE)
        scores = await engine.score(
            [ScoreRequest(prompt=r.prompt, completion=s.tokens, member="ada") for r, s in texts]
        )
        return [sample.tokens for sample in samples], [each for score in scores for each in score.logprobs]

    return asyncio.run(run())


def test_two_processes_sample_train_and_score_as_one(split, whole):
    tokens, logprobs = trained(split)
    same_tokens, same_logprobs = trained(whole)

    assert tokens == same_tokens
    assert logprobs == pytest.approx(same_logprobs, abs=1e-4)
    ours, theirs = split.read("ada").factors, whole.read("ada").factors
    for name, pair in ours.items():
        for one, other in zip(pair, theirs[name], strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-5)
    assert any(pair[1].abs().max() > 5e-5 for pair in ours.values()), "the member has learnt something"


def test_members_are_written_and_removed_in_all_processes(split, whole):
    """What a follower does not know of shows at once: all compare what they have sampled."""
    state = split.read("ada")
    split.write("new", state)
    requests = [SampleRequest(prompt=(5, 6, 7), member=member, key=1, max_tokens=20) for member in ("ada", "new")]

    ada, new = asyncio.run(split.sample(requests))

    assert ada.tokens == new.tokens
    split.remove("new")
    assert "new" not in split.members
    with pytest.raises(InputError, match="new"):
        asyncio.run(split.sample(requests))
    assert asyncio.run(split.sample(requests[:1]))[0].tokens == ada.tokens


def test_batches_are_as_large_in_all_processes(split):
    """Each has its own memory, and sums over batches of other sizes would never come."""
    before, least = split.limits, Limits(64, 96, 640)
    split.agree(least)
    try:
        assert len(asyncio.run(split.sample(REQUESTS))) == len(REQUESTS)
        scored = [ScoreRequest(prompt=request.prompt, completion=(5, 6, 7), member="ada") for request in REQUESTS]
        assert len(asyncio.run(split.score(scored))) == len(REQUESTS)
    finally:
        split.agree(before)


def test_a_mistake_of_the_caller_changes_nothing(split):
    broken = [trajectory((5, 6), (7, 8), (-1.0,), 1.0)]
    with pytest.raises(InputError, match="log-probabilities"):
        asyncio.run(split.update(broken, RECIPE))
    assert len(asyncio.run(split.sample(REQUESTS))) == len(REQUESTS)


@pytest.mark.parametrize("when", ["at rest", "at work"])
def test_a_process_that_is_killed_ends_the_engine_with_one_line(when):
    with SplitEngine("pico", 2, device=CPU, dtype=torch.float32, **OPTIONS) as engine:
        [process] = engine.followers.processes

        async def sample_and_kill() -> None:
            asking = asyncio.ensure_future(engine.sample(REQUESTS * 8))
            if when == "at work":
                await asyncio.sleep(0.3)
            os.kill(process.pid, signal.SIGKILL)
            await asking

        start = time.monotonic()
        with pytest.raises(InputError, match="a process with a part of the base has ended"):
            asyncio.run(sample_and_kill())
        assert time.monotonic() - start < 30
        with pytest.raises(InputError, match="a process with a part of the base has ended"):
            asyncio.run(engine.sample(REQUESTS))
    assert process.returncode == -signal.SIGKILL


def test_processes_that_find_different_results_go_no_further():
    with SplitEngine("pico", 2, device=CPU, dtype=torch.float32, **OPTIONS) as engine:
        engine.followers.tell(Turn("score", [], None))
        with pytest.raises(MachineError, match="have computed different results; use devices of one kind"):
            engine.followers.compare(b"what nobody found")
        assert engine.followers.processes[0].poll() is not None


def test_no_process_stays_behind():
    with SplitEngine("pico", 2, device=CPU, dtype=torch.float32, **OPTIONS) as engine:
        [process] = engine.followers.processes
        assert process.poll() is None
    assert process.returncode == 0


def test_what_cannot_be_split_is_refused_before_it_is_loaded_twice():
    with pytest.raises(InputError, match="cannot be split into 3 equal parts"):
        SplitEngine("pico", 3, device=CPU, dtype=torch.float32, **OPTIONS)
