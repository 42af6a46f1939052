"""The verifier on this machine: the strongest tier that it has, a warm pool, jobs in, outcomes out."""

import asyncio
import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Protocol, Self

from redqueen.errors import InputError, IsolationError, VerifierFault
from redqueen.verifier import checkers
from redqueen.verifier.desk import LocalDesk, ZygoteDesk
from redqueen.verifier.jobs import Job, Outcome, Status
from redqueen.verifier.machine import Retries, not_judged
from redqueen.verifier.sharded_desk import ShardedDesk
from redqueen.verifier.tiers import AvailableTier, Refusal, Tier, canary_jobs, failed_canaries, mend, unsupported
from redqueen.verifier.zygotes import PRELOAD, available_cores, numpy_paths

WORKERS_PER_SHARD = 4
"""One supervisor keeps about twice as many busy. Up to this many are supervised in this process."""
_SLOW_START_S = 10.0
"""A start that takes longer prints a line."""


class Verifier(Protocol):
    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """One outcome per job, in the jobs' order."""
        ...


class OpenVerifier(Verifier, Protocol):
    """One that somebody has opened, and closes."""

    @property
    def tier(self) -> Tier: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class StrictVerifier:
    """For work that needs every verdict: a job that the machine failed time and again is an error."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        return every_verdict(await self._verifier.run(jobs))


def every_verdict(outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, if each of them is about its program."""
    faults = [outcome for outcome in outcomes if outcome.status is Status.FAULT]
    if faults:
        programs = "a program" if len(outcomes) == 1 else f"{len(faults)} of {len(outcomes)} programs"
        raise not_judged(programs, faults[0].fault)
    return outcomes


def require(jobs: Sequence[Job]) -> None:
    """Refuse jobs that need what this machine does not have."""
    if any(job.numpy for job in jobs) and not numpy_paths():
        raise InputError("a program needs numpy, which is not installed", "run `pip install numpy`")
    for checker in {job.checker for job in jobs if job.checker is not None}:
        checkers.require(checker)


class LocalVerifier:
    """A pool of warm zygotes on this machine. Close it, or use it as a context manager.

    Safe to use from several threads and event loops at once. After a fork, the child's copy starts a pool of its own
    when it is first used.
    """

    def __init__(
        self,
        *,
        tier: Tier | None = None,
        minimum: Tier = Tier.SECCOMP,
        run_unprotected: bool = False,
        workers: int | None = None,
        preload: Sequence[str] = PRELOAD,
    ) -> None:
        """`tier` None takes the strongest that this machine has; `preload` lists what programs may import.

        `run_unprotected` runs programs without isolation where there is none: they can then read, change and send
        whatever the user can.
        """
        self._tiers = [Tier(tier)] if tier else [Tier.FULL, Tier.SECCOMP, *([Tier.NONE] if run_unprotected else [])]
        self._minimum = Tier.NONE if run_unprotected else Tier(minimum)
        if workers is not None and workers < 1:
            raise ValueError("a pool has at least one worker")
        self._workers = workers or available_cores()
        self._preload = tuple(preload)
        self.refusals: tuple[Refusal, ...] = ()
        """The stronger tiers that this machine does not have."""
        self._closed = False
        self._starting = threading.Lock()
        self._desk: ZygoteDesk | None = self._start()
        _alive.add(self)

    @property
    def tier(self) -> Tier:
        return self._pool().tier

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run a batch on all cores; one outcome per job, in the jobs' order."""
        return await asyncio.wrap_future(self.submit(jobs))

    def run_sync(self, jobs: Sequence[Job]) -> list[Outcome]:
        """`run` for callers without an event loop."""
        return self.submit(jobs).result()

    def submit(self, jobs: Sequence[Job]) -> Future[list[Outcome]]:
        require(jobs)
        return self._pool().submit(jobs)

    @property
    def workers(self) -> int:
        """Programs that run at the same time."""
        return self._workers

    def zygote_pids(self) -> list[int]:
        return self._pool().zygote_pids()

    def zygote_count(self) -> int:
        """How many there are when none is being replaced."""
        return self._pool().zygote_count()

    def close(self) -> None:
        """End the pool; batches under way fail with VerifierFault."""
        with self._starting:
            desk, self._desk = self._desk, None
            self._closed = True
        if desk is not None:
            desk.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pool(self) -> ZygoteDesk:
        with self._starting:
            if self._closed:
                raise VerifierFault("the verifier was closed")
            if self._desk is None or not self._desk.is_alive():
                self._desk = self._start()
            return self._desk

    def _start(self) -> ZygoteDesk:
        tiers = [tier for tier in self._tiers if tier.strength >= self._minimum.strength]
        desk, self.refusals = _find(tiers, self._workers, self._preload)
        if desk is not None:
            return desk
        reasons = "; ".join(f"{refusal.tier}: {refusal.why}" for refusal in self.refusals)
        raise IsolationError(
            f"programs cannot be isolated as asked ({reasons or f'the minimum is {self._minimum}'})",
            f"{self.refusals[-1].mend if self.refusals else 'lower verifier.minimum'}, or insist with "
            "`--verifier.run-unprotected true`: model-written programs can then read, change and send whatever you can",
        )

    def _after_fork(self) -> None:
        """In a forked child the threads are gone and the zygotes are the parent's."""
        self._starting = threading.Lock()
        desk, self._desk = self._desk, None
        if desk is not None:
            desk.abandon()


_alive: weakref.WeakSet[LocalVerifier] = weakref.WeakSet()


def _abandon_all() -> None:
    for verifier in list(_alive):
        verifier._after_fork()


os.register_at_fork(after_in_child=_abandon_all)


def _find(tiers: Sequence[Tier], workers: int, preload: Sequence[str]) -> tuple[ZygoteDesk | None, tuple[Refusal, ...]]:
    """A pool of the first of these tiers that works here, and why the ones before it don't."""
    refusals: list[Refusal] = []
    for tier in tiers:
        attempt = _try(tier, workers, preload)
        if isinstance(attempt, ZygoteDesk):
            return attempt, tuple(refusals)
        refusals.append(attempt)
    return None, tuple(refusals)


def _try(tier: Tier, workers: int, preload: Sequence[str]) -> ZygoteDesk | Refusal:
    """A pool of a tier, or why this machine does not have it. A machine that is slow or short of something is waited
    for: that is never a reason for a weaker tier."""
    refusal = unsupported(tier)
    if refusal is not None:
        return refusal
    desk = _desk(tier, workers, preload)
    desk.start()
    try:
        with _message_when_slow():
            why = _isolation_failure(desk)
    except BaseException:
        desk.stop()
        raise
    if why is None:
        return desk
    desk.stop()
    return Refusal(tier, why, mend(tier))


def _desk(tier: Tier, workers: int, preload: Sequence[str]) -> ZygoteDesk:
    shards = -(-workers // WORKERS_PER_SHARD)
    return LocalDesk(tier, workers, preload) if shards == 1 else ShardedDesk(tier, workers, preload, shards)


def _isolation_failure(desk: ZygoteDesk) -> str | None:
    """Why the isolation of a pool does not hold, if it doesn't; a failure of the machine is raised."""
    desk.first_ready.wait()
    if desk.refused:
        return desk.refused
    if desk.failure is not None:
        raise desk.failure
    shared = _shared_namespace(desk)
    if shared is not None or desk.tier is Tier.NONE:
        return shared
    retries = Retries.start()
    while failed := failed_canaries(every_verdict(desk.submit(canary_jobs()).result())):
        why = failed[0][0]
        # A canary that merely ran out of time says nothing about what would have stopped it.
        if any(status is not Status.TIMEOUT for _, status in failed):
            return why
        pause = retries.next_pause()
        if pause is None:
            raise retries.error(why)
        time.sleep(pause)
    return None


@contextlib.contextmanager
def _message_when_slow() -> Iterator[None]:
    line = "redqueen: the machine is busy: still starting the verifier and trying its isolation"
    timer = threading.Timer(_SLOW_START_S, lambda: print(line, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shared_namespace(desk: ZygoteDesk) -> str | None:
    """Which namespace a zygote of the full tier still shares with us, if any."""
    greeting = desk.greeting
    if desk.tier is not Tier.FULL or greeting is None:
        return None
    shared = [
        kind for kind, identity in greeting.namespaces.items() if os.readlink(f"/proc/self/ns/{kind}") == identity
    ]
    if greeting.inner_pid != 1:
        shared.append("pid")
    return f"the zygote is still in our {', '.join(shared)} namespace" if shared else None


def available_tier() -> AvailableTier:
    """Find the strongest tier of this machine by trying."""
    desk, refusals = _find([Tier.FULL, Tier.SECCOMP], 1, PRELOAD)
    if desk is None:
        return AvailableTier(Tier.NONE, refusals)
    desk.stop()
    return AvailableTier(desk.tier, refusals)
