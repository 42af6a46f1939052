"""A namespace of an engine: several races share one base, each with members of its own names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from redqueen.engine.protocol import (
    Chain,
    Engine,
    MemberId,
    MemberState,
    Recipe,
    Sample,
    SampleRequest,
    Score,
    ScoreRequest,
    Trajectory,
    UpdateStats,
)

T = TypeVar("T")


class NamespacedEngine:
    """Implements `Engine` on a shared engine, where a race's member `t0` is called `PREFIXt0`."""

    def __init__(self, engine: Engine, prefix: str) -> None:
        self._engine, self._prefix = engine, prefix

    def name(self, member: MemberId) -> MemberId:
        """The member's name in the shared engine."""
        return self._prefix + member

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        return await self._engine.sample(self._renamed(requests))

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        def here(chain: Chain[T]) -> Chain[T]:
            return lambda ask: chain(lambda requests: ask(self._renamed(requests)))

        return await self._engine.stream([here(chain) for chain in chains])

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        renamed = [replace(trajectory, member=self.name(trajectory.member)) for trajectory in batch]
        by_member = await self._engine.update(renamed, recipe)
        return {member.removeprefix(self._prefix): stats for member, stats in by_member.items()}

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        return await self._engine.score([replace(request, member=self._named(request.member)) for request in requests])

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        return self._engine.read(self.name(member), optimiser=optimiser)

    def look(self, members: Sequence[MemberId], make: Callable[[Sequence[MemberState]], T]) -> T:
        return self._engine.look([self.name(member) for member in members], make)

    def write(self, member: MemberId, state: MemberState) -> None:
        self._engine.write(self.name(member), state)

    def fresh(self) -> MemberState:
        return self._engine.fresh()

    def remove(self, member: MemberId) -> None:
        self._engine.remove(self.name(member))

    def _renamed(self, requests: Sequence[SampleRequest]) -> list[SampleRequest]:
        return [replace(request, member=self._named(request.member)) for request in requests]

    def _named(self, member: MemberId | None) -> MemberId | None:
        return None if member is None else self.name(member)
