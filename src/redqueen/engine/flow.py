"""Samples that are checked while others are still sampled."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from redqueen.engine.protocol import Ask, Chain, Engine, Sample, SampleRequest

T = TypeVar("T")
Check = Callable[[int, Sequence[Sample]], Awaitable[T]]
"""Called with a group's index and its samples."""


@dataclass(frozen=True, slots=True)
class Checked(Generic[T]):
    """The checks of samples, which may still run."""

    checks: tuple[asyncio.Task[T], ...]

    async def results(self) -> list[T]:
        try:
            return list(await asyncio.gather(*self.checks))
        finally:
            self.drop()

    def drop(self) -> None:
        for check in self.checks:
            check.cancel()


async def sample_and_check(engine: Engine, groups: Sequence[Sequence[SampleRequest]], check: Check[T]) -> Checked[T]:
    """Samples of all groups in one batch; each group is checked as soon as its last sample has ended."""
    checks: dict[int, asyncio.Task[T]] = {}

    def chain_of(group: int) -> Chain[None]:
        async def chain(ask: Ask) -> None:
            samples = await ask(groups[group])
            checks[group] = asyncio.create_task(_started(check, group, samples))

        return chain

    try:
        await engine.stream([chain_of(group) for group in range(len(groups))])
    except BaseException:
        for task in checks.values():
            task.cancel()
        raise
    return Checked(tuple(checks[group] for group in range(len(groups))))


async def _started(check: Check[T], group: int, samples: Sequence[Sample]) -> T:
    return await check(group, samples)
