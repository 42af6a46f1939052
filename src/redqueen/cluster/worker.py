"""A worker: an engine with the members of the shards that are at home on it.

Every call brings what the worker lacks of a shard's ledger, so that calls may come in any order, and again. On a CPU
calls have their turns and a batch is of one shard alone, which keeps races equal bit for bit; on a GPU shards share
batches as races do.
"""

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from redqueen.cluster.ledger import Entry, Remove, Update, Write
from redqueen.cluster.links import WorkerMemory
from redqueen.cluster.packed import Packed, pack, unpack
from redqueen.cluster.versions import refuse_versions, versions
from redqueen.engine import memory
from redqueen.engine.local import LocalEngine
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import Ask, Chain, MemberId, Sample, SampleRequest, Score, ScoreRequest, UpdateStats
from redqueen.engine.split.group import Lost as PartLost
from redqueen.errors import UserError
from redqueen.resources import most_memory, open_engine, place
from redqueen.settings.models import EngineConfig


def memory_of(engine: EngineConfig, sharing: int, workers: int) -> WorkerMemory:
    """What a worker would find here that is one of so many on its device, and of so many on the machine."""
    device, dtype = place(engine)
    size = memory.available(device) if sharing == 1 else memory.share(device, sharing)
    if (most := most_memory(engine, device)) is not None:
        size = min(size, most)
    host = memory.share(torch.device("cpu"), workers)
    return WorkerMemory(device.type, str(dtype).removeprefix("torch."), size, host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a worker's engine is opened with."""

    engine: Mapping[str, Any]
    """The settings' section, as plain values."""
    seed: int
    room: int
    """Members that there must be memory for."""
    sharing: int
    """Workers that share a device's memory."""
    threads: int
    """torch's: sums depend on it."""
    trains: bool
    """Members are trained; otherwise no memory is kept for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    machine: str
    process: int
    device: str
    """cpu or cuda."""
    exact: bool
    """Batches do not depend on the time."""
    computes_on: str
    dtype: torch.dtype
    limits: Limits
    norms: Mapping[str, float]
    """Of the base's weights that members adapt, by module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Where a shard must stand before a call is answered."""

    shard: int
    epoch: int
    start: int | None
    """The number of the first of `entries`; None begins the shard anew."""
    end: int
    entries: Sequence[Entry]


@dataclass(slots=True)
class _Shard:
    epoch: int
    end: int
    members: set[MemberId] = field(default_factory=set)


class Worker:
    """Its methods are called from one event loop."""

    def __init__(self) -> None:
        self._engine: LocalEngine | None = None
        self._shards: dict[int, _Shard] = {}
        self._turn = asyncio.Condition()

    async def open(self, theirs: Mapping[str, str], opening: Opening) -> Greeting:
        refuse_versions(theirs, versions(opening.engine["quantise"]))
        self._engine = engine = await asyncio.to_thread(self.load, opening)
        return Greeting(
            machine=platform.node(),
            process=os.getpid(),
            device=engine.device.type,
            exact=engine.exact,
            computes_on=engine.computes_on,
            dtype=engine.dtype,
            limits=engine.limits,
            norms=engine.norms,
        )

    def load(self, opening: Opening) -> LocalEngine:
        torch.set_num_threads(opening.threads)
        settings = EngineConfig(**opening.engine)
        return open_engine(settings, [], opening.seed, opening.sharing, room=opening.room, trains=opening.trains)

    async def agree(self, limits: Limits) -> None:
        self.engine.agree(limits)

    @property
    def engine(self) -> LocalEngine:
        assert self._engine is not None, "a worker is opened first"
        return self._engine

    async def beat(self) -> None:
        """It is there."""

    async def sample(
        self, brief: Brief, calls: Sequence[Sequence[SampleRequest]]
    ) -> tuple[list[list[Sample] | UserError], float]:
        """An answer for each call, and this machine's `time.perf_counter` by which samples are timed."""

        def chain_of(requests: Sequence[SampleRequest]) -> Chain[list[Sample] | UserError]:
            async def chain(ask: Ask) -> list[Sample] | UserError:
                try:
                    return await ask(requests)
                except PartLost:
                    raise
                except UserError as error:
                    return error

            return chain

        async with self._standing(brief):
            answers = await self.engine.stream([chain_of(requests) for requests in calls])
        return answers, time.perf_counter()

    async def score(self, brief: Brief, requests: Sequence[ScoreRequest]) -> list[Score]:
        async with self._standing(brief):
            return await self.engine.score(requests)

    async def update(self, brief: Brief, update: Update) -> dict[MemberId, UpdateStats]:
        async with self._standing(brief) as shard:
            stats = await self.engine.update(update.batch, update.recipe)
            shard.end += 1
        return stats

    async def take(self, brief: Brief, members: Sequence[MemberId], optimiser: bool) -> list[Packed]:
        async with self._standing(brief):
            return await asyncio.to_thread(self._packed, members, optimiser)

    async def drop(self, number: int, epoch: int) -> None:
        """A shard that is at home elsewhere from this epoch on."""
        async with self._turn:
            shard = self._shards.get(number)
            if shard is not None and shard.epoch < epoch:
                await self._clear(number)

    async def close(self) -> None:
        if self._engine is not None:
            await asyncio.to_thread(self._engine.close)

    @asynccontextmanager
    async def _standing(self, brief: Brief) -> AsyncIterator[_Shard]:
        async with self._turn:
            shard = await self._followed(brief)
            if self.engine.exact:
                yield shard
                return
        yield shard

    async def _followed(self, brief: Brief) -> _Shard:
        """The shard, with all that the brief says."""
        if brief.start is None:
            await self._clear(brief.shard)
            shard = self._shards[brief.shard] = _Shard(brief.epoch, 0)
        else:
            await self._turn.wait_for(lambda: self._stands_at(brief))
            shard = self._shards[brief.shard]
        for entry in brief.entries:
            match entry:
                case Write():
                    await asyncio.to_thread(self._write, entry)
                    shard.members.add(entry.member)
                case Remove():
                    await asyncio.to_thread(self.engine.remove, entry.member)
                    shard.members.remove(entry.member)
                case Update():
                    await self.engine.update(entry.batch, entry.recipe)
        shard.end = brief.end
        self._turn.notify_all()
        return shard

    def _stands_at(self, brief: Brief) -> bool:
        shard = self._shards.get(brief.shard)
        return shard is not None and shard.epoch == brief.epoch and shard.end == brief.start

    async def _clear(self, number: int) -> None:
        if (shard := self._shards.pop(number, None)) is not None:
            for member in shard.members:
                await asyncio.to_thread(self.engine.remove, member)

    # The engine's thread may be at work for long, and the loop must go on answering that the worker is there.

    def _write(self, entry: Write) -> None:
        self.engine.write(entry.member, unpack(entry.state, self.engine.bank))

    def _packed(self, members: Sequence[MemberId], optimiser: bool) -> list[Packed]:
        states = {member: self.engine.read(member, optimiser=optimiser) for member in members}
        return [pack(member, state, self.engine.bank) for member, state in states.items()]
