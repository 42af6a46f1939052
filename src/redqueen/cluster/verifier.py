"""A verifier whose programs run on the driver's cores and on those of other machines, which may be lost.

A job goes to whoever has least to do for its cores, and its outcome is the same wherever that is. What somebody had who
is lost is done by others, and at the last by the driver's own pool: no race ends for want of a machine.
"""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, partial
from typing import Any, Self

from redqueen.cluster.hands import WorkerEvent
from redqueen.cluster.links import Link, Lost
from redqueen.cluster.patience import AGAIN_S, MOST_LOSSES, START_S, beat_s, is_silent
from redqueen.cluster.verifier_worker import VerifierGreeting
from redqueen.cluster.versions import checker_versions, verifier_versions
from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError, MachineError, RedQueenError, VerifierFault
from redqueen.verifier import Job, LocalVerifier, Outcome, Tier
from redqueen.verifier.desk import Batch, Desk
from redqueen.verifier.errands import Errand, Taker, Waiting
from redqueen.verifier.parcels import Packed, pack_job, unpack_outcome
from redqueen.verifier.pool import require
from redqueen.verifier.supervisor import slots

PORTION = 8
"""Jobs that travel together, at most. They are of one call, which waits for all of them anyway."""
AHEAD = 2
"""Times what a pool can have in work, so that it finds more when it has answered."""
_versions = cache(checker_versions)


class RemotePool(Taker):
    """The driver's view of a verifier elsewhere. It takes jobs from its greeting on."""

    def __init__(self, link: Link, vain: int) -> None:
        super().__init__(0)
        self.link = link
        self.vain = vain
        """Verifiers in its place that were lost, one after the other, before they answered anything."""
        self.asked: float | None = None
        """When it was asked whether it is there, if it has not answered."""
        self.place = ""
        """Where it runs, once that is known."""

    def greeted(self, greeting: VerifierGreeting) -> None:
        self.slots = AHEAD * slots(greeting.workers)
        self.place = f"on {greeting.machine}, process {greeting.process}"
        self.ready = True


class ClusterDesk(Desk):
    """Hands jobs to the driver's own pool and to others, in portions, and looks after the others."""

    def __init__(
        self,
        own: LocalVerifier,
        start: Callable[[], Link | None],
        *,
        count: int,
        workers: int | None,
        patience_s: float,
    ) -> None:
        """`start` begins a verifier on another machine, or returns None where none is free."""
        super().__init__(own.tier, "redqueen-verifiers")
        self._own, self._driver = own, Taker(own.workers)
        self._driver.slots *= AHEAD
        self._driver.ready = True
        self._start, self._workers, self._patience_s = start, workers, patience_s
        self.events: list[WorkerEvent] = []
        """All so far; it only grows."""
        self._waiting = Waiting()
        self._numbers = itertools.count(1)
        self._pools: list[RemotePool] = []
        self._due = [(0.0, 0)] * count
        """When the next verifiers are to be started, and how many were lost in vain in each one's place."""
        self._events: deque[Callable[[], None]] = deque()
        """Answers that other threads brought."""
        self._next_look = 0.0
        self._looked = time.monotonic()

    def _begin(self) -> None:
        self._watch()

    def _take(self, batch: Batch) -> None:
        self._waiting.put([Errand(job, index, batch) for index, job in enumerate(batch.jobs)])

    def _turn(self) -> None:
        for key, events in self._selector.select(max(0.0, self._next_look - time.monotonic())):
            key.data(events)
        while self._events:
            self._events.popleft()()
        if time.monotonic() >= self._next_look:
            self._watch()
        self._hand_out()

    def _end(self) -> None:
        for pool in self._pools:
            pool.link.end()

    def _call(self, heed: Callable[["Future[Any]"], None], answer: "Future[Any]") -> None:
        """Have the answer heeded in this thread."""
        answer.add_done_callback(lambda answer: self._put(partial(heed, answer)))

    def _put(self, event: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed:
                self._events.append(event)
                self._wake()

    def _hand_out(self) -> None:
        takers = [self._driver, *self._pools]
        portions: dict[tuple[Taker, Batch], list[int]] = {}
        for taker, errand in self._waiting.dealt(takers):
            number = next(self._numbers)
            taker.give(number, errand)
            portions.setdefault((taker, errand.batch), []).append(number)
        for (taker, batch), numbers in portions.items():
            for at in range(0, len(numbers), PORTION):
                self._send(taker, batch, numbers[at : at + PORTION])

    def _send(self, taker: Taker, batch: Batch, numbers: Sequence[int]) -> None:
        jobs = [taker.under_way[number].job for number in numbers]
        if isinstance(taker, RemotePool):
            checkers = {job.checker: _versions(job.checker) for job in jobs if job.checker is not None}
            answer = taker.link.call("run", [pack_job(job) for job in jobs], checkers)
            self._call(partial(self._answered_elsewhere, taker, batch, numbers), answer)
            return
        try:
            answer = self._own.submit(jobs)
        except RedQueenError as error:
            self._refuse(taker, batch, numbers, error)
            return
        self._call(partial(self._answered, taker, batch, numbers), answer)

    def _refuse(self, taker: Taker, batch: Batch, numbers: Sequence[int], error: RedQueenError) -> None:
        for number in numbers:
            taker.take_back(number)
        batch.fail(error)

    def _answered(self, taker: Taker, batch: Batch, numbers: Sequence[int], answer: "Future[list[Outcome]]") -> None:
        error = answer.exception()
        if error is None:
            for number, outcome in zip(numbers, answer.result(), strict=True):
                batch.add(taker.take_back(number).index, outcome)
        elif isinstance(error, RedQueenError):
            self._refuse(taker, batch, numbers, error)
        else:
            raise error

    def _answered_elsewhere(
        self, pool: RemotePool, batch: Batch, numbers: Sequence[int], answer: "Future[list[Packed]]"
    ) -> None:
        if pool not in self._pools:
            return  # what it had is done by others
        error = answer.exception()
        if isinstance(error, InputError):
            self._refuse(pool, batch, numbers, error)
        elif error is not None:
            self._lose(pool, error)
        else:
            pool.vain = 0
            for number, packed in zip(numbers, answer.result(), strict=True):
                batch.add(pool.take_back(number).index, unpack_outcome(packed, self.tier))

    def _watch(self) -> None:
        """Start verifiers that are due, and look after those who say nothing."""
        now = time.monotonic()
        if now - self._looked > 4 * beat_s(self._patience_s):
            # This process was stopped: what came in meanwhile may still be on its way.
            for pool in self._pools:
                pool.asked = None if pool.asked is None else now
        self._looked = now
        self._next_look = now + beat_s(self._patience_s)
        for when, vain in [each for each in self._due if each[0] <= now]:
            self._due.remove((when, vain))
            self._start_one(vain)
        for pool in list(self._pools):
            patience_s = self._patience_s if pool.ready else max(START_S, self._patience_s)
            if pool.asked is None:
                pool.asked = now
                self._call(partial(self._beaten, pool), pool.link.call("beat"))
            elif is_silent(pool.asked, now, patience_s):
                self._lose(pool, Lost(f"silent for {patience_s:g} s", "stopped answering"))

    def _start_one(self, vain: int) -> None:
        link = self._start()
        if link is None and not self.first_ready.is_set():
            what = "a machine that was to have a verifier has gone"
            self.failure = MachineError(what, "give the same command again, or lower cluster.verifiers")
            return
        if link is None:
            self._due.append((time.monotonic() + AGAIN_S, vain))
            return
        pool = RemotePool(link, vain)
        self._pools.append(pool)
        opened = link.call("open", verifier_versions(), self.tier, self._workers)
        self._call(partial(self._opened, pool), opened)

    def _opened(self, pool: RemotePool, answer: "Future[VerifierGreeting]") -> None:
        if pool not in self._pools:
            return
        error = answer.exception()
        if error is None:
            pool.greeted(answer.result())
            self._happened(pool, "opened", pool.place)
            if not self._due and all(other.ready for other in self._pools):
                self.first_ready.set()
        elif self.first_ready.is_set() or isinstance(error, Lost):
            self._lose(pool, error)
        else:
            self.failure = error if isinstance(error, RedQueenError) else VerifierFault(one_line(error))

    def _beaten(self, pool: RemotePool, answer: "Future[None]") -> None:
        error = answer.exception()
        if error is None:
            pool.asked = None
        elif pool in self._pools:
            self._lose(pool, error)

    def _happened(self, pool: RemotePool, what: str, cause: str) -> None:
        self.events.append(WorkerEvent(time.time(), pool.link.name, what, cause))

    def _lose(self, pool: RemotePool, error: BaseException) -> None:
        why = one_line(error)
        name = f"{pool.link.name} {pool.place}," if pool.place else pool.link.name
        self._pools.remove(pool)
        pool.link.end()
        if not self.first_ready.is_set():
            self.failure = MachineError(f"{name} could not be opened: {why}", "look at its log")
            return
        became = "failed" if pool.ready else "could not be opened"
        self._happened(pool, error.what if isinstance(error, Lost) and pool.ready else became, why)
        vain = pool.vain + 1
        if vain < MOST_LOSSES:
            self._due.append((time.monotonic() + (AGAIN_S if pool.vain else 0.0), vain))
            say(f"{name} is lost ({why}); what it had is judged by others")
        else:
            say(f"{name} is lost ({why}), as {pool.vain} before it that had judged nothing; none is started again")
        self._waiting.put_back([pool.take_back(number) for number in list(pool.under_way)], why)


class ClusterVerifier:
    """Implements `Verifier` over the driver's own pool and others, which it ends when it is closed."""

    def __init__(
        self,
        own: LocalVerifier,
        start: Callable[[], Link | None],
        leave: Callable[[], None],
        *,
        count: int,
        workers: int | None,
        patience_s: float,
    ) -> None:
        """Waits until `count` verifiers, with so many `workers` each or one for each core, are open. `leave` is called
        at the end."""
        self._own, self._leave = own, leave
        self._desk = ClusterDesk(own, start, count=count, workers=workers, patience_s=patience_s)
        self._desk.start()
        self._desk.first_ready.wait()
        if self._desk.failure is not None:
            raise self._desk.failure

    @property
    def tier(self) -> Tier:
        return self._desk.tier

    @property
    def events(self) -> Sequence[WorkerEvent]:
        """What became of verifiers elsewhere so far; it only grows."""
        return self._desk.events

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run a batch on all machines; one outcome per job, in the jobs' order."""
        require(jobs)
        return await asyncio.wrap_future(self._desk.submit(jobs))

    def close(self) -> None:
        self._desk.stop()
        self._own.close()
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
