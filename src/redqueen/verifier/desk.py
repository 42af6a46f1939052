"""Where jobs are handed in, from any thread, and outcomes given back: one thread, and the runs are done behind it.

All state lives in that thread; other threads only append to `_inbox` and wake it.
"""

import contextlib
import selectors
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import machine
from redqueen.verifier.jobs import Job, Outcome
from redqueen.verifier.runs import Ticket
from redqueen.verifier.supervisor import Supervisor
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Greeting

_CLOSED = "the verifier was closed"


@dataclass(slots=True, eq=False, kw_only=True)
class Batch:
    """The jobs of one call and the future that gets their outcomes."""

    jobs: Sequence[Job]
    future: Future[list[Outcome]]
    outcomes: list[Outcome | None] = field(init=False)
    left: int = field(init=False)
    failed: bool = False

    def __post_init__(self) -> None:
        self.left = len(self.jobs)
        self.outcomes = [None] * self.left

    def add(self, index: int, outcome: Outcome) -> None:
        """The last outcome answers the call."""
        self.outcomes[index] = outcome
        self.left -= 1
        if self.left == 0 and not self.future.done():
            self.future.set_result([outcome for outcome in self.outcomes if outcome is not None])

    def refuse(self, index: int, error: RedQueenError) -> None:
        """A call with a job that has no outcome has none."""
        self.fail(error)

    def fail(self, error: RedQueenError) -> None:
        self.failed = True
        if not self.future.done():
            self.future.set_exception(error)


class Desk(threading.Thread, ABC):
    """`submit` and `stop` may be called from any thread."""

    def __init__(self, tier: Tier, name: str = "redqueen-verifier") -> None:
        super().__init__(name=name, daemon=True)
        self.tier = tier
        self._lock = threading.Lock()
        self._closed = False
        """Guarded by `_lock`: nothing more is accepted, and the sockets that wake the thread are closed."""
        self._stopping = False
        self._inbox: deque[Batch] = deque()
        self._open: set[Batch] = set()
        """Batches that may have no answer yet."""
        self._selector = selectors.DefaultSelector()
        self._wake_end, self._awake_end = socket.socketpair()
        self._awake_end.setblocking(False)
        self._wake_end.setblocking(False)
        self._selector.register(self._awake_end, selectors.EVENT_READ, self._read_inbox)
        self.failure: RedQueenError | None = None
        """Why it cannot go on, if it cannot."""
        self.first_ready = threading.Event()
        """Set when it takes jobs, or cannot; `failure` then says why."""

    # From any thread.

    def submit(self, jobs: Sequence[Job]) -> Future[list[Outcome]]:
        """Queue a batch; the future gets its outcomes in the jobs' order."""
        future: Future[list[Outcome]] = Future()
        future.set_running_or_notify_cancel()  # a batch under way runs to its end
        if not jobs:
            future.set_result([])
            return future
        batch = Batch(jobs=tuple(jobs), future=future)
        with self._lock:
            if self._closed:
                future.set_exception(self.failure or VerifierFault(_CLOSED))
            else:
                self._inbox.append(batch)
                self._wake()
        return future

    def stop(self) -> None:
        """End all that runs; batches under way fail."""
        with self._lock:
            self._stopping = True
            if not self._closed:
                self._wake()
        self.join()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes it as well
            self._wake_end.send(b"x")

    # In the thread.

    def run(self) -> None:
        try:
            self._begin()
            while not self._stopping and self.failure is None:
                self._turn()
        except OSError as error:
            self.failure = machine.exhausted(error)
        except Exception as error:
            self.failure = VerifierFault(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._shut_down()

    def _read_inbox(self, events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._awake_end.recv(4096)
        self._open = {batch for batch in self._open if batch.left and not batch.failed}
        while self._inbox:
            batch = self._inbox.popleft()
            self._open.add(batch)
            self._take(batch)

    def _shut_down(self) -> None:
        with self._lock:
            self._closed = True
            self._wake_end.close()
            self._awake_end.close()
        self._end()
        self._selector.close()
        self.first_ready.set()
        for batch in (*self._open, *self._inbox):
            batch.fail(self.failure or VerifierFault(_CLOSED))

    @abstractmethod
    def _begin(self) -> None:
        """Start what runs jobs."""

    @abstractmethod
    def _turn(self) -> None:
        """Wait for events of the selector and do what they ask for."""

    @abstractmethod
    def _take(self, batch: Batch) -> None:
        """Have its jobs run, some time."""

    @abstractmethod
    def _end(self) -> None:
        """End every process."""


class ZygoteDesk(Desk):
    """With zygotes of this machine. `zygote_pids` and `zygote_count` may be called from any thread."""

    def __init__(self, tier: Tier) -> None:
        super().__init__(tier)
        self.refused: str | None = None
        """Why the machine does not have the tier, if it does not."""
        self.greeting: Greeting | None = None
        """Of the first zygote."""

    @abstractmethod
    def zygote_pids(self) -> list[int]:
        """Of those that are ready."""

    @abstractmethod
    def zygote_count(self) -> int:
        """How many there are when none is being replaced."""

    def abandon(self) -> None:
        """In a forked child: close what was inherited and leave the parent's processes alone."""
        self._abandon()
        self._selector.close()
        self._wake_end.close()
        self._awake_end.close()

    def _greeted(self, greeting: Greeting) -> None:
        """The first zygote is ready."""
        self.greeting = self.greeting or greeting
        self.first_ready.set()

    @abstractmethod
    def _abandon(self) -> None:
        """In a forked child: close what belongs to the parent's processes."""


class LocalDesk(ZygoteDesk):
    """For few workers: their supervisor is in this thread."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str]) -> None:
        super().__init__(tier)
        self._supervisor = Supervisor(tier, workers, preload, self._selector)

    def zygote_pids(self) -> list[int]:
        return self._supervisor.zygotes.ready_pids()

    def zygote_count(self) -> int:
        return self._supervisor.zygotes.full_size()

    def _begin(self) -> None:
        self._supervisor.begin()
        self._look()

    def _turn(self) -> None:
        self._supervisor.turn()
        self._look()

    def _look(self) -> None:
        """What has become of the supervisor is known to all threads."""
        supervisor = self._supervisor
        self.failure, self.refused = supervisor.failure, supervisor.refused
        if self.greeting is None and supervisor.first_zygote is not None and supervisor.first_zygote.greeting:
            self._greeted(supervisor.first_zygote.greeting)

    def _take(self, batch: Batch) -> None:
        for index, job in enumerate(batch.jobs):
            self._supervisor.take(Ticket.of(job, index, batch))

    def _end(self) -> None:
        self._supervisor.close()

    def _abandon(self) -> None:
        self._supervisor.abandon()
