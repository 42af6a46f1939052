"""The thread that keeps every core busy: queues runs, hands them to zygotes, collects their ends.

All state of the pool lives in this one thread; other threads only append to `_inbox` and wake it. A zygote that dies is
replaced, and the runs that it had are started again elsewhere under a new number and with new pipes, so that no job is
lost and none is answered twice.
"""

import contextlib
import math
import selectors
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future

from redqueen.errors import VerifierFault
from redqueen.verifier import zygotes
from redqueen.verifier.channel import Channel
from redqueen.verifier.jobs import MAX_SOURCE_CHARS, Job, Outcome, Result, Status
from redqueen.verifier.replies import Ending, agree, judge, most_bytes, results_wanted
from redqueen.verifier.runs import Batch, Run, Ticket
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Flavour, Modules, Zygote, available_cores, modules_for

IN_FLIGHT_PER_CORE = 16
"""Infinite loops hold a place for their whole CPU limit; with this many places the others still get through."""
_TRIES = 10
"""Zygotes that one run may lose before it is called a crash."""
_FAILED_STARTS = 4
"""Zygotes in a row that may die before they are ready."""
_CHECK_EVERY_S = 0.25
_START_S = 30.0
"""How long a zygote may take to get ready."""
_CLOSED = "the verifier was closed"
_GRACE_S = 3.0
"""How long after a run's wall-clock limit, which the kernel enforces, the host steps in itself."""


class Supervisor(threading.Thread):
    """See the module's text. `submit` and `stop` may be called from any thread."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str]) -> None:
        super().__init__(name="redqueen-verifier", daemon=True)
        self.tier = tier
        self._workers = workers
        self._preload = preload
        self._cores = available_cores()
        self._places = IN_FLIGHT_PER_CORE * max(2, workers)
        self._door = threading.Lock()
        self._shut = False
        """Guarded by `_door`: nothing more is taken in, and the sockets that wake the thread are closed."""
        self._inbox: deque[list[Ticket]] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_end, self._awake_end = socket.socketpair()
        self._awake_end.setblocking(False)
        self._wake_end.setblocking(False)
        self._selector.register(self._awake_end, selectors.EVENT_READ, None)
        self._zygotes: list[Zygote] = []
        self._waiting: dict[Flavour, deque[Run]] = {}
        self._running: dict[int, Run] = {}
        self._last_number = 0
        self._failed_starts: Counter[Flavour] = Counter()
        self._open: set[Batch] = set()
        """Batches that have no answer yet."""
        self._next_check = 0.0
        self._stopping = False
        self._failure: str | None = None
        self.first_ready = threading.Event()
        """Set when the first zygote is ready or cannot be had; `refused` then says why."""
        self.refused: str | None = None
        self.first_zygote: Zygote | None = None

    # From any thread.

    def submit(self, jobs: Sequence[Job]) -> Future[list[Outcome]]:
        """Queue a batch; the future gets its outcomes in the jobs' order."""
        future: Future[list[Outcome]] = Future()
        future.set_running_or_notify_cancel()  # a batch under way runs to its end
        batch = Batch([None] * len(jobs), future, len(jobs))
        if not jobs:
            future.set_result([])
            return future
        tickets = [Ticket(job, at, batch, [None] * (1 + job.twice)) for at, job in enumerate(jobs)]
        with self._door:
            if self._shut:
                future.set_exception(VerifierFault(self._failure or _CLOSED))
            else:
                self._inbox.append(tickets)
                self._wake()
        return future

    def stop(self) -> None:
        """End all zygotes; batches that are still under way fail."""
        with self._door:
            self._stopping = True
            if not self._shut:
                self._wake()
        self.join()

    def abandon(self) -> None:
        """In a forked child: close what was inherited and leave the parent's zygotes alone."""
        for zygote in self._zygotes:
            zygote.control.close()
            zygote.process.returncode = 0  # not ours to wait for
        for run in self._running.values():
            if run.channel is not None:
                run.channel.close()
        self._selector.close()
        self._wake_end.close()
        self._awake_end.close()

    def zygote_pids(self) -> list[int]:
        """Process ids of the zygotes that are up."""
        return [zygote.process.pid for zygote in list(self._zygotes) if zygote.ready]

    def zygotes_wanted(self) -> int:
        """How many there are when none is being replaced."""
        return len({zygote.flavour for zygote in list(self._zygotes)}) * self._workers

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes it as well
            self._wake_end.send(b"x")

    # In the thread.

    def run(self) -> None:
        try:
            self._want(Flavour(zygotes.HASH_SEEDS[0], Modules.CORE))
            while not self._stopping and self._failure is None:
                self._turn()
        except Exception as error:
            self.refused = self._failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._shut_down()

    def _turn(self) -> None:
        idle = not self._running and all(zygote.ready for zygote in self._zygotes)
        for key, events in self._selector.select(None if idle else _CHECK_EVERY_S):
            if key.data is None:
                self._take_inbox()
            elif isinstance(key.data, Zygote):
                self._hear(key.data)
            else:
                self._serve(key.data, events)
        self._start_runs()
        self._check_deadlines()

    def _take_inbox(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._awake_end.recv(4096)
        while self._inbox:
            tickets = self._inbox.popleft()
            self._open.add(tickets[0].batch)
            for ticket in tickets:
                self._queue(ticket)

    def _queue(self, ticket: Ticket) -> None:
        job = ticket.job
        size = len(job.source) + len(job.stdin) + sum(map(len, job.texts)) + sum(len(text) for _, text in job.modules)
        if size > MAX_SOURCE_CHARS:
            too_long = (Result(Status.TOO_LONG),) * results_wanted(job)
            self._finish(ticket, too_long)
            return
        modules = modules_for(job)
        for order in range(len(ticket.results)):
            flavour = Flavour(zygotes.HASH_SEEDS[order], modules)
            self._want(flavour)
            self._waiting.setdefault(flavour, deque()).append(Run(ticket, flavour, order))

    def _want(self, flavour: Flavour) -> None:
        """Have as many zygotes of a flavour as there are workers."""
        have = sum(zygote.flavour == flavour for zygote in self._zygotes)
        for _ in range(have, self._workers):
            zygote = Zygote(flavour, self.tier, self._preload)
            self._zygotes.append(zygote)
            self._selector.register(zygote.control, selectors.EVENT_READ, zygote)

    def _hear(self, zygote: Zygote) -> None:
        try:
            for ended in zygote.hear():
                run = self._running.get(ended.run)
                if run is not None:
                    run.ended = ended
                    self._conclude(run)
        except BlockingIOError:
            return
        except ConnectionError as error:
            self._lose(zygote, str(error))
            return
        if zygote.refused:
            self._lose(zygote, zygote.refused)
        elif zygote.ready:
            self._failed_starts[zygote.flavour] = 0
            self.first_zygote = self.first_zygote or zygote
            self.first_ready.set()

    def _lose(self, zygote: Zygote, why: str) -> None:
        """Replace a zygote and start its runs again."""
        self._zygotes.remove(zygote)
        self._selector.unregister(zygote.control)
        zygote.close()
        if not zygote.ready:
            self._failed_starts[zygote.flavour] += 1
        for run in [self._running[number] for number in zygote.runs]:
            self._forget(run)
            if run.tries < _TRIES:
                self._waiting.setdefault(run.flavour, deque()).appendleft(
                    Run(run.ticket, run.flavour, run.order, tries=run.tries)
                )
            else:
                self._settle(run, (Result(Status.CRASH),) * results_wanted(run.ticket.job), 0.0)
        if not self.first_ready.is_set():
            self.refused = self._failure = why
            self.first_ready.set()
        elif self._failed_starts[zygote.flavour] >= _FAILED_STARTS:
            self._give_up(zygote.flavour, why)
        else:
            self._want(zygote.flavour)

    def _give_up(self, flavour: Flavour, why: str) -> None:
        """Fail the jobs that need a kind of zygote that does not start; the next such job tries again."""
        self._failed_starts[flavour] = 0
        for run in self._waiting.pop(flavour, ()):
            self._fail(run.ticket.batch, f"no zygote with {flavour.modules} modules starts: {why}")

    def _fail(self, batch: Batch, why: str) -> None:
        if batch in self._open:
            self._open.remove(batch)
            batch.future.set_exception(VerifierFault(why))

    def _start_runs(self) -> None:
        """Fill the free places, the flavours in turns: a long queue for one must not hold up the others."""
        ready: dict[Flavour, list[Zygote]] = {}
        for zygote in self._zygotes:
            if zygote.ready and self._waiting.get(zygote.flavour):
                ready.setdefault(zygote.flavour, []).append(zygote)
        while ready and len(self._running) < self._places:
            for flavour in list(ready):
                if not self._waiting[flavour]:
                    del ready[flavour]
                elif len(self._running) < self._places:
                    run = self._waiting[flavour].popleft()
                    self._start(run, min(ready[flavour], key=lambda zygote: len(zygote.runs)))

    def _start(self, run: Run, zygote: Zygote) -> None:
        self._last_number += 1
        run.number, run.zygote, run.tries = self._last_number, zygote, run.tries + 1
        run.token = f"{run.number:016x}"
        run.wall_s = self._wall_limit(run.ticket.job)
        payload = run.payload()
        run.channel = Channel(payload, most_bytes(run.ticket.job))
        run.started = time.monotonic()
        self._running[run.number] = run
        with contextlib.suppress(OSError):  # a dying zygote is about to be heard of
            zygote.start_run(run.number, len(payload), run.channel.theirs)
        run.channel.let_go()
        run.reading = True
        self._selector.register(run.channel.reply_fd, selectors.EVENT_READ, run)
        if not run.channel.send():
            run.sending = True
            self._selector.register(run.channel.job_fd, selectors.EVENT_WRITE, run)

    def _wall_limit(self, job: Job) -> float:
        """The job's own, or enough for its CPU time with every place taken and as much load again from elsewhere."""
        if job.limits.wall_s is not None:
            return job.limits.wall_s
        return 2.0 * job.limits.cpu_s * math.ceil(self._places / self._cores) + 1.0

    def _serve(self, run: Run, events: int) -> None:
        if run.channel is None:
            return
        if events & selectors.EVENT_WRITE and run.channel.send():
            self._stop_sending(run)
        if events & selectors.EVENT_READ and run.channel.receive():
            self._stop_reading(run)

    def _stop_sending(self, run: Run) -> None:
        if run.sending and run.channel is not None:
            self._selector.unregister(run.channel.job_fd)
            run.sending = False

    def _stop_reading(self, run: Run) -> None:
        if run.reading and run.channel is not None:
            self._selector.unregister(run.channel.reply_fd)
            run.reading = False

    def _conclude(self, run: Run) -> None:
        """Judge a run whose child is dead: all that it wrote is here, or in its pipe."""
        assert run.channel is not None and run.ended is not None
        run.channel.drain()
        wall_s = time.monotonic() - run.started
        ending = Ending(run.ended.wait_status, run.ended.cpu_s, wall_s, bytes(run.channel.received))
        results = judge(run.ticket.job, run.token, run.wall_s, ending)
        self._forget(run)
        self._settle(run, results[::-1] if run.order else results, run.ended.cpu_s)

    def _settle(self, run: Run, results: tuple[Result, ...], cpu_s: float) -> None:
        ticket = run.ticket
        ticket.results[run.order] = results
        ticket.cpu_s += cpu_s
        done = [results for results in ticket.results if results is not None]
        if len(done) == len(ticket.results):
            self._finish(ticket, done[0] if len(done) == 1 else agree(done[0], done[1]))

    def _finish(self, ticket: Ticket, results: tuple[Result, ...]) -> None:
        batch = ticket.batch
        batch.outcomes[ticket.index] = Outcome(results, self.tier, round(1000 * ticket.cpu_s, 3))
        batch.left -= 1
        if batch.left == 0 and batch in self._open:
            self._open.remove(batch)
            batch.future.set_result([outcome for outcome in batch.outcomes if outcome is not None])

    def _forget(self, run: Run) -> None:
        self._running.pop(run.number, None)
        if run.zygote is not None:
            run.zygote.runs.discard(run.number)
        if run.channel is not None:
            self._stop_sending(run)
            self._stop_reading(run)
            run.channel.close()
            run.channel = None

    def _check_deadlines(self) -> None:
        """Step in where the kernel's timers did not: first kill the child, then the zygote that doesn't answer."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_EVERY_S
        for zygote in [zygote for zygote in self._zygotes if not zygote.ready and now - zygote.started > _START_S]:
            self._lose(zygote, f"not ready after {_START_S:g} seconds")
        for run in list(self._running.values()):
            late = now - run.started - run.wall_s - _GRACE_S
            if late > _GRACE_S and run.zygote is not None and run.zygote in self._zygotes:
                self._lose(run.zygote, "a zygote did not answer")
            elif late > 0 and run.zygote is not None:
                with contextlib.suppress(OSError):  # a zygote that is gone is heard of elsewhere
                    run.zygote.kill_run(run.number)

    def _shut_down(self) -> None:
        with self._door:
            self._shut = True
            self._wake_end.close()
            self._awake_end.close()
        why = self._failure or _CLOSED
        for zygote in self._zygotes:
            zygote.close()
        for run in self._running.values():
            if run.channel is not None:
                run.channel.close()
        self._selector.close()
        self.first_ready.set()
        for tickets in self._inbox:
            self._open.add(tickets[0].batch)
        for batch in list(self._open):
            self._fail(batch, why)
