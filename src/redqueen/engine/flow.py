"""Samples that are checked while others are still sampled.

A batch depends on its requests alone, and a check gives the same answer whenever it is made; only its start depends on
the time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from redqueen.engine.protocol import Engine, Sample, SampleRequest

T = TypeVar("T")
Check = Callable[[int, Sequence[Sample]], Awaitable[T]]
"""Called with a group's index and its samples."""


@dataclass(frozen=True, slots=True)
class Checked(Generic[T]):
    """Samples, and the checks of their groups, which may still run."""

    samples: tuple[Sample, ...]
    checks: tuple[asyncio.Task[T], ...]

    async def results(self) -> list[T]:
        try:
            return list(await asyncio.gather(*self.checks))
        finally:
            self.drop()

    def drop(self) -> None:
        for check in self.checks:
            check.cancel()


async def sample_and_check(
    engine: Engine, requests: Sequence[SampleRequest], groups: Sequence[Sequence[int]], check: Check[T]
) -> Checked[T]:
    """One batch of samples; each group of them, given by indices, is checked as soon as its last sample has ended."""
    loop = asyncio.get_running_loop()
    group_of = {index: group for group, indices in enumerate(groups) for index in indices}
    unfinished = [set(indices) for indices in groups]
    samples: dict[int, Sample] = {}
    checks: dict[int, asyncio.Task[T]] = {}

    async def start(group: int) -> T:
        return await check(group, [samples[index] for index in groups[group]])

    def done(index: int, sample: Sample) -> None:
        if index in samples:
            return
        samples[index] = sample
        group = group_of[index]
        unfinished[group].discard(index)
        if not unfinished[group]:
            checks[group] = loop.create_task(start(group))

    try:
        await engine.sample(requests, done)
    except BaseException:
        for task in checks.values():
            task.cancel()
        raise
    # The samples that were checked: an engine that had to start again may have returned others.
    return Checked(
        tuple(samples[index] for index in range(len(requests))), tuple(checks[group] for group in range(len(groups)))
    )
