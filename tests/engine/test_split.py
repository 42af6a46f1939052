"""A base whose weights are split over processes computes what the whole base computes."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import tiny
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.engine.split.part import Part, Sum
from redqueen.errors import InputError

CPU = torch.device("cpu")
RECIPE = Recipe(lr=0.01)


class Threads:
    """Parts of a base as threads of this process."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._there: list[Any] = [None] * size
        self._barrier = threading.Barrier(size, timeout=60)

    def connected(self, rank: int) -> Sum:
        def sum_(x: Tensor) -> None:
            self._there[rank] = x.clone()
            self._barrier.wait()
            total = torch.stack(self._there).sum(0)
            self._barrier.wait()
            x.copy_(total)

        return sum_

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(work, range(self.size)))


def parts(architecture: str, size: int, dtype: torch.dtype, **options: Any) -> tuple[Threads, list[LocalEngine]]:
    threads = Threads(size)

    def opened(rank: int) -> LocalEngine:
        part = Part(rank=rank, size=size, device=CPU, connect=lambda: threads.connected(rank))
        return tiny.engine(tiny.base(architecture, dtype, **options), part=part)

    return threads, threads.each(opened)


def requests() -> list[ScoreRequest]:
    return [
        ScoreRequest(member=member, prompt=(5, 9, at), completion=tuple(range(at, at + 12)), hidden=True)
        for at, member in enumerate((None, "m0", "m1", "m0", "m2"))
    ]


def trajectories() -> list[Trajectory]:
    return [
        Trajectory(
            member=member, prompt=(7, 3, at), completion=tuple(range(20 + at, 40)),
            logprobs=(-3.0,) * (20 - at), advantages=0.5 - at % 2,
        )
        for at, member in enumerate(("m0", "m1", "m0", "m1"))
    ]  # fmt: skip


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("architecture", tiny.FAST)
def test_scores_updates_and_texts_are_those_of_the_whole_base(architecture, size):
    """With four processes two of them have the same head of keys; biases of what is summed count once."""
    whole = tiny.engine(architecture, torch.float64)
    threads, split = parts(architecture, size, torch.float64)
    sampled = [SampleRequest(member="m1", prompt=(4, 8), max_tokens=20, key=key) for key in range(4)]

    expected = whole.run("score", requests(), None)
    for scores in threads.each(lambda rank: split[rank].run("score", requests(), None)):
        for score, same in zip(scores, expected, strict=True):
            assert score.logprobs == pytest.approx(same.logprobs, abs=1e-9)
            assert torch.allclose(score.hidden, same.hidden, atol=1e-6)
    stats = whole.run("update", trajectories(), RECIPE)
    for found in threads.each(lambda rank: split[rank].run("update", trajectories(), RECIPE)):
        assert found["m0"].grad_norm == pytest.approx(stats["m0"].grad_norm, rel=1e-9)
    for member in ("m0", "m1"):
        state = whole.read(member, optimiser=True)
        first, *others = [engine.read(member, optimiser=True) for engine in split]
        assert state.optimiser is not None and first.optimiser is not None
        for name, pair in state.factors.items():
            for ours, theirs in zip(pair, first.factors[name], strict=True):
                assert torch.allclose(ours, theirs, atol=1e-9)
            for ours, theirs in zip(state.optimiser.exp_avg[name], first.optimiser.exp_avg[name], strict=True):
                assert torch.allclose(ours, theirs, atol=1e-12)
            for other in others:
                assert all(map(torch.equal, other.factors[name], first.factors[name])), "all have the same member"
    texts = threads.each(lambda rank: asyncio.run(split[rank].sample(sampled)))
    assert [[sample.tokens for sample in each] for each in texts] == [
        [sample.tokens for sample in asyncio.run(whole.sample(sampled))]
    ] * size
    for engine in (whole, *split):
        engine.close()


def test_each_process_has_its_part_of_the_wide_layers():
    _, split = parts("llama", 2, torch.float32)
    whole = tiny.engine("llama")

    shapes = [engine.body.blocks[0].qkv.dense_O_I.shape for engine in split]  # pyright: ignore[reportAttributeAccessIssue]

    assert shapes == [(32, 32)] * 2
    assert [engine.plan.cache_token * 2 for engine in split] == [whole.plan.cache_token] * 2
    assert all(engine.plan.weights < 0.7 * whole.plan.weights for engine in split)
    assert all(engine.size == whole.size for engine in split), "operations are counted for the whole base"


@pytest.mark.parametrize(
    ("architecture", "size", "message"),
    [
        ("gemma2", 2, "only bases of the Llama family can be split"),
        ("llama", 3, "cannot be split into 3 equal parts"),
        ("llama", 8, "cannot be split into 8 equal parts"),
    ],
)
def test_what_cannot_be_split_is_refused(architecture, size, message):
    part = Part(rank=0, size=size, device=CPU, connect=lambda: pytest.fail("nobody is asked to connect"))
    with pytest.raises(InputError, match=message):
        tiny.engine(architecture, part=part)
