"""Samples that are checked while others still grow: the verifier works behind the sampler.

A batch is formed from its requests alone. Only when a check begins depends on the time, and a check gives the same
answer whenever it is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from redqueen.engine.protocol import Engine, Sample, SampleRequest

T = TypeVar("T")
Check = Callable[[int, Sequence[Sample]], Awaitable[T]]
"""A group's place and its samples."""


@dataclass(frozen=True, slots=True)
class Checked(Generic[T]):
    """Samples, and the checks of their groups, which may still be on their way."""

    samples: tuple[Sample, ...]
    checks: tuple[asyncio.Task[T], ...]

    async def results(self) -> list[T]:
        """What the checks came to, in the order of the groups."""
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
    """One batch of samples; each group of them, named by their places, is checked as soon as its last one has ended."""
    loop = asyncio.get_running_loop()
    group_of = {place: number for number, places in enumerate(groups) for place in places}
    growing = [set(places) for places in groups]
    ended: dict[int, Sample] = {}
    checks: dict[int, asyncio.Task[T]] = {}

    async def begin(number: int) -> T:
        return await check(number, [ended[place] for place in groups[number]])

    def done(place: int, sample: Sample) -> None:
        if place in ended:
            return
        ended[place] = sample
        number = group_of[place]
        growing[number].discard(place)
        if not growing[number]:
            checks[number] = loop.create_task(begin(number))

    try:
        await engine.sample(requests, done)
    except BaseException:
        for task in checks.values():
            task.cancel()
        raise
    # What was checked is what counts: an engine that had to begin anew may end otherwise.
    return Checked(
        tuple(ended[place] for place in range(len(requests))), tuple(checks[number] for number in range(len(groups)))
    )
