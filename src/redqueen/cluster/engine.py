"""An engine whose members live in shards on workers, which may be lost and replaced while it runs.

The engine's thread is the driver: it forms every shard's batch, of that shard alone, so the number of workers and what
becomes of them changes nothing in the result. The driver itself has the base's tokenizer and modules, and no weights of
it; what happened to members since they were last read is in the shards' ledgers.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from redqueen.cluster.hands import Job, WorkerEvent, WorkerNow
from redqueen.cluster.ledger import Ledger, Update
from redqueen.cluster.links import Workers
from redqueen.cluster.members import ShardedMembers
from redqueen.cluster.placement import grouped, shard_of, shard_of_prompt
from redqueen.cluster.staff import Staff
from redqueen.cluster.worker import Opening
from redqueen.engine.adaptable import adaptable, fused_groups, llama_family
from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.call_queue import Kind
from redqueen.engine.flops import ModelSize
from redqueen.engine.memory import Shape
from redqueen.engine.protocol import (
    MemberId,
    Recipe,
    Sample,
    SampleRequest,
    Score,
    ScoreRequest,
    Trajectory,
    UpdateStats,
)
from redqueen.engine.queued import QueuedEngine
from redqueen.engine.streams import EVERY, Call, Streams
from redqueen.errors import Fault, InputError, UserError
from redqueen.settings.models import EngineConfig

POLL_S = 0.02
"""How long the driver waits for answers until it looks who else asks."""
R = TypeVar("R", SampleRequest, ScoreRequest)


class ClusterEngine(QueuedEngine):
    """Implements `Engine` over workers, which it ends when it is closed."""

    def __init__(
        self,
        base: Base,
        workers: Workers,
        settings: EngineConfig,
        *,
        members: Sequence[MemberId],
        shards: int,
        count: int,
        sharing: int = 1,
        patience_s: float,
        seed: int = 0,
        trains: bool = True,
    ) -> None:
        """`base` may be without weights. `count` workers are started, `sharing` of them on one device."""
        self.base, self.device = base, torch.device("cpu")
        model = base.model
        shape = Shape.of(model, fast=llama_family(model) is None)
        groups = fused_groups(model, adaptable(model, settings.target_modules))
        alpha = 2.0 * settings.rank if settings.alpha is None else settings.alpha
        self.bank = Bank(
            groups,
            rank=settings.rank,
            alpha=alpha,
            members=(),
            device=self.device,
            dtype=torch.float32,
            seed=seed,
            trains=trains,
        )
        attention, adapter = shape.layers * shape.heads * shape.dim, self.bank.parameters_per_member
        self.size = ModelSize.of(model, attention=attention, adapter=adapter)
        self._workers, self._shards = workers, shards
        ledgers = [Ledger() for _ in range(shards)]
        opening = Opening(
            engine=settings.model_dump(),
            seed=seed,
            room=_room(members, shards, count),
            sharing=sharing,
            threads=torch.get_num_threads(),
            trains=trains,
        )
        try:
            self._staff = Staff(workers, ledgers, opening, count=count, patience_s=patience_s)
        except BaseException:
            workers.close()
            raise
        staff = self._staff
        self.computes_on, self.device_type, self.dtype = staff.computes_on, staff.device, staff.dtype
        self.norms = staff.norms
        held = ShardedMembers(self._staff, self.bank)
        for member in members:
            held.write(member, held.fresh())
        super().__init__(held, exact=self._staff.exact)

    @property
    def homes(self) -> list[str | None]:
        """The worker of each shard, by name."""
        return self._staff.homes

    @property
    def workers(self) -> list[WorkerNow]:
        """Those that are here. Anybody may ask at any time."""
        return self._staff.now

    @property
    def events(self) -> Sequence[WorkerEvent]:
        """All so far; it only grows."""
        return self._staff.events

    def close(self) -> None:
        super().close()
        self._workers.close()

    def run(self, kind: Kind, items: Any, recipe: Recipe | None) -> Any:
        if kind == "sample":
            try:
                return self._sample(items)
            except BaseException as error:
                items.fail(error)
                raise
        if kind == "score":
            return self._score(items)
        assert recipe is not None
        return self._update(items, recipe)

    def _sample(self, streams: Streams) -> None:
        step, under_way = 0, list[_Sampling]()
        while True:
            taken = streams.take(step, len(under_way))
            # Chains may join at every look, where batches may depend on the time.
            step += EVERY
            if not taken and not under_way:
                return
            for batch in [taken] if self.exact else [[call] for call in taken]:
                under_way += self._send(batch)
            if any(not each.job.done for each in under_way):
                self._staff.wait(POLL_S)
            for each in [each for each in under_way if each.job.done]:
                under_way.remove(each)
                each.tell(streams)

    def _send(self, calls: Sequence[Call]) -> "list[_Sampling]":
        """Ask what these calls ask, in one batch for each shard."""
        parts: dict[int, list[_Part]] = defaultdict(list)
        for call in calls:
            for shard, places in self._places(call.requests).items():
                parts[shard].append(_Part(call, places))
        jobs = []
        for shard, own in sorted(parts.items()):
            asked = [[part.call.requests[place] for place in part.places] for part in own]
            job = Job(shard, "sample", (asked,), size=sum(map(len, asked)))
            self._staff.send(job)
            jobs.append(_Sampling(job, own))
        return jobs

    def _score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        places = self._places(requests)
        asked = {shard: [requests[place] for place in own] for shard, own in places.items()}
        jobs = [Job(shard, "score", (own,), size=len(own)) for shard, own in asked.items()]
        scores: dict[int, Score] = {}
        for own, answer in zip(places.values(), self._staff.ask(jobs), strict=True):
            scores |= zip(own, answer, strict=True)
        return [scores[place] for place in range(len(requests))]

    def _update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        by_shard = grouped((shard_of(trajectory.member, self._shards), trajectory) for trajectory in batch)
        jobs = []
        for shard, own in sorted(by_shard.items()):
            update = Update(tuple(own), recipe)
            jobs.append(Job(shard, "update", (update,), size=len(own), update=update))
        try:
            answers = self._staff.ask(jobs)
        except InputError as error:
            # Other shards have learnt already: nobody may try again.
            raise Fault(f"an update was refused: {error}") from error
        stats = {member: own for answer in answers for member, own in answer.items()}
        return {member: stats[member] for member in dict.fromkeys(trajectory.member for trajectory in batch)}

    def _places(self, requests: Sequence[R]) -> Mapping[int, list[int]]:
        """The places of the requests that go to each shard."""
        return grouped((self._shard(request), place) for place, request in enumerate(requests))

    def _shard(self, request: SampleRequest | ScoreRequest) -> int:
        if request.member is None:
            return shard_of_prompt(request.prompt, self._shards)
        return shard_of(request.member, self._shards)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one shard is asked of a call."""

    call: Call
    places: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Sampling:
    job: Job
    parts: Sequence[_Part] = field(repr=False)

    def tell(self, streams: Streams) -> None:
        """Give the answers to whoever asked."""
        if self.job.error is not None:
            raise self.job.error
        answers, clock = self.job.answer
        later = time.perf_counter() - clock
        for part, answer in zip(self.parts, answers, strict=True):
            if isinstance(answer, UserError):
                if part.call.chain.call is part.call:  # no other part of it has failed
                    streams.answer(part.call, answer)
                continue
            for place, sample in zip(part.places, answer, strict=True):
                streams.done(part.call, place, _by_our_clock(sample, later))


def _by_our_clock(sample: Sample, later: float) -> Sample:
    """A worker's clock may have begun at another time."""
    began, ended = sample.seconds
    return replace(sample, seconds=(began + later, ended + later))


def _room(members: Sequence[MemberId], shards: int, count: int) -> int:
    """The most members of a worker that has its part, and one shard more: another may be lost."""
    sizes = [len(own) for own in grouped((shard_of(member, shards), member) for member in members).values()]
    part = min(shards, -(-shards // count) + (count > 1))
    return sum(sorted(sizes, reverse=True)[:part])
