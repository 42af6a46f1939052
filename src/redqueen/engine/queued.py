"""What engines have in common: coroutines in front, one thread behind.

Several races can share an engine: `call_queue.py` answers their calls in shared batches, on one thread of its own,
which alone touches the members.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

import torch

from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.call_queue import CallQueue, Kind
from redqueen.engine.flops import ModelSize
from redqueen.engine.protocol import (
    Ask,
    Chain,
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


class Members(Protocol):
    """The members that an engine holds, wherever they are; a bank is one."""

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState: ...

    def views(self, members: Sequence[MemberId]) -> list[MemberState]:
        """Without their optimisers, to look at."""
        ...

    def write(self, member: MemberId, state: MemberState) -> None: ...

    def fresh(self) -> MemberState: ...

    def remove(self, member: MemberId) -> None: ...


class QueuedEngine(ABC):
    """Implements `Engine` over `run`, which does the work of a turn. Close it, or use it in a `with` statement."""

    base: Base
    """Its weights are for the engine alone, which may have them elsewhere."""
    bank: Bank
    """How members are laid out; those of this process are in it."""
    size: ModelSize
    norms: Mapping[str, float]
    """Of the base's weights that members adapt, by module (Frobenius)."""
    device: torch.device
    """Of this process: where the algebra of weights is done."""
    dtype: torch.dtype
    computes_on: str
    """The devices that sample and train, by their names."""
    device_type: str
    """The same by kind: cpu or cuda."""

    def __init__(self, members: Members, *, exact: bool) -> None:
        """`exact`: batches do not depend on the time."""
        self.exact = exact
        self._held = members
        self._calls = CallQueue(self.run, exact=exact)

    @abstractmethod
    def run(self, kind: Kind, items: Any, recipe: Recipe | None) -> Any:
        """One turn, on the engine's thread; that of sampling gets its `Streams`."""

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        async def chain(ask: Ask) -> list[Sample]:
            return await ask(requests)

        [samples] = await self.stream([chain])
        return samples

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        return await self._calls.stream(chains)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        return await self._calls.call("score", requests)

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        return await self._calls.call("update", batch, recipe)

    def shared(self) -> AbstractContextManager[None]:
        """For each of several races in step: while they are within, a turn waits a little until all have called, since
        one batch for all takes hardly longer than that of one."""
        return self._calls.shared()

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        return self._calls.on_thread(self._held.read, member, optimiser=optimiser)

    def look(self, members: Sequence[MemberId], make: Callable[[Sequence[MemberState]], T]) -> T:
        return self._calls.on_thread(lambda: make(self._held.views(members)))

    def write(self, member: MemberId, state: MemberState) -> None:
        self._calls.on_thread(self._held.write, member, state)

    def fresh(self) -> MemberState:
        return self._calls.on_thread(self._held.fresh)

    def remove(self, member: MemberId) -> None:
        self._calls.on_thread(self._held.remove, member)

    def close(self) -> None:
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
