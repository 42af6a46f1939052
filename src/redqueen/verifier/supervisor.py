"""The thread that keeps every core busy: queues runs, hands them to zygotes, collects their ends.

All state of the pool lives in this one thread; other threads only append to `_inbox` and wake it. A run that the
machine failed, by its own end or by that of its zygote, is started again under a new number and with new pipes, so that
no job is lost and none is answered twice; an end that the machine may have had a part in is looked at a second time.
"""

import contextlib
import errno
import itertools
import math
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import jobs, machine
from redqueen.verifier.channel import Channel
from redqueen.verifier.jobs import MAX_SOURCE_CHARS, Job, Outcome, Result, Status
from redqueen.verifier.machine import Stopped
from redqueen.verifier.nursery import Nursery
from redqueen.verifier.replies import Ending, judge, most_bytes, results_wanted
from redqueen.verifier.runs import Batch, Run, Ticket
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Flavour, Modules, Zygote, available_cores, modules_for

IN_FLIGHT_PER_CORE = 16
"""Infinite loops hold a place for their whole CPU limit; with this many places the others still get through."""
_PER_ZYGOTE = 128
"""Runs that are started in a zygote at once: so many messages it can be behind with."""
_LOSSES = 10
"""Zygotes that one run may lose, with memory enough, before it is called a crash."""
_CHECK_EVERY_S = 0.25
_STUCK_S = 60.0
"""A run that still has not ended so long after its CPU time, with every place taken and as much load again from
elsewhere, is stuck somewhere in the machine."""
_GRACE_S = 3.0
"""How long a zygote may take to end a run."""
_CLOSED = "the verifier was closed"


class Supervisor(threading.Thread):
    """See the module's text. `submit` and `stop` may be called from any thread."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str]) -> None:
        super().__init__(name="redqueen-verifier", daemon=True)
        self.tier = tier
        self._cores = available_cores()
        self._places = self._most_places = IN_FLIGHT_PER_CORE * max(2, workers)
        self._door = threading.Lock()
        self._shut = False
        """Guarded by `_door`: nothing more is taken in, and the sockets that wake the thread are closed."""
        self._inbox: deque[list[Ticket]] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_end, self._awake_end = socket.socketpair()
        self._awake_end.setblocking(False)
        self._wake_end.setblocking(False)
        self._selector.register(self._awake_end, selectors.EVENT_READ, None)
        self._nursery = Nursery(tier, workers, preload, self._selector)
        self._waiting: dict[Flavour, deque[Run]] = {}
        self._resting: list[tuple[float, Run]] = []
        """Runs that the machine failed, and when each is tried again."""
        self._running: dict[int, Run] = {}
        self._numbers = itertools.count(1)
        self._open: set[Batch] = set()
        """Batches that may have no answer yet."""
        self._next_check = 0.0
        self._stopping = False
        self.failure: RedQueenError | None = None
        """Why it cannot go on, if it cannot."""
        self.first_ready = threading.Event()
        """Set when the first zygote is ready or cannot be had; `refused` or `failure` then says why."""
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
        tickets = [Ticket(job=job, index=at, batch=batch, results=[None] * job.seeds) for at, job in enumerate(jobs)]
        with self._door:
            if self._shut:
                future.set_exception(self.failure or VerifierFault(_CLOSED))
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
        for zygote in self._nursery.all:
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
        return [zygote.process.pid for zygote in list(self._nursery.all) if zygote.ready]

    def zygotes_wanted(self) -> int:
        """How many there are when none is being replaced."""
        return self._nursery.wanted()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes it as well
            self._wake_end.send(b"x")

    # In the thread.

    def run(self) -> None:
        try:
            self._want(Flavour(jobs.HASH_SEEDS[0], Modules.CORE))
            while not self._stopping and self.failure is None:
                self._turn()
        except OSError as error:
            self.failure = machine.refusal(error)
        except Exception as error:
            self.failure = VerifierFault(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._shut_down()

    def _turn(self) -> None:
        idle = not self._running and not self._resting and self._nursery.settled
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
        self._open = {batch for batch in self._open if not batch.future.done()}
        while self._inbox:
            tickets = self._inbox.popleft()
            self._open.add(tickets[0].batch)
            for ticket in tickets:
                self._queue(ticket)

    def _queue(self, ticket: Ticket) -> None:
        job = ticket.job
        size = len(job.source) + len(job.stdin) + sum(map(len, job.texts)) + sum(len(text) for _, text in job.modules)
        if size > MAX_SOURCE_CHARS:
            ticket.answer((Result(Status.TOO_LONG),) * results_wanted(job), self.tier)
            return
        modules = modules_for(job)
        for order in range(len(ticket.results)):
            self._wait(Run(ticket=ticket, flavour=Flavour(jobs.HASH_SEEDS[order], modules), order=order))

    def _wait(self, run: Run, first: bool = False) -> None:
        """A run waits for a zygote of its flavour and a place."""
        self._want(run.flavour)
        queue = self._waiting.setdefault(run.flavour, deque())
        queue.appendleft(run) if first else queue.append(run)

    def _want(self, flavour: Flavour) -> None:
        """Have zygotes of a flavour, now or later. Our own limit of open files does not change by waiting."""
        try:
            self._nursery.want(flavour)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            self._not_had(flavour, error.strerror or str(error), refused=False)

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
        if zygote.why is not None:
            self._lose(zygote, zygote.why)
        elif zygote.ready:
            self._nursery.serves(zygote)
            self.first_zygote = self.first_zygote or zygote
            self.first_ready.set()

    def _lose(self, zygote: Zygote, why: str) -> None:
        """Replace a zygote and start its runs again."""
        self._nursery.lose(zygote)
        for run in [self._running[number] for number in zygote.runs]:
            self._try_again(run, why, lost=zygote.gone)
        if zygote.ready or self._not_had(zygote.flavour, why, refused=zygote.refused):
            self._want(zygote.flavour)

    def _not_had(self, flavour: Flavour, why: str, refused: bool) -> bool:
        """Whether to try again. If not, the jobs that need such a zygote fail; the next such job tries anew."""
        error = self._nursery.failed(flavour, why, refused)
        if refused and not self.first_ready.is_set():
            self.refused = why
            error = VerifierFault(why)
        if error is None:
            return True
        if not self.first_ready.is_set():
            self.failure = error
        for run in self._waiting.pop(flavour, ()):
            run.ticket.batch.fail(error)
        return False

    def _try_again(self, run: Run, why: str, lost: bool = False) -> None:
        """A run that the machine failed: once more, after a pause, for as long as we bear with it."""
        self._forget(run)
        trouble = run.trouble or machine.Trouble.begins()
        again = Run(
            ticket=run.ticket,
            flavour=run.flavour,
            order=run.order,
            patience=run.patience,
            trouble=trouble,
            losses=run.losses + lost,
        )
        pause = trouble.again()
        if again.losses >= _LOSSES and machine.kills_for_memory() == trouble.kills:
            self._settle(run, (Result(Status.CRASH),) * results_wanted(run.ticket.job))
        elif pause is None:
            run.ticket.batch.fail(trouble.error(why))
        elif lost and again.losses < _LOSSES:
            self._wait(again, first=True)
        else:
            self._places = max(1, self._places // 2)  # memory may be enough for fewer
            self._resting.append((time.monotonic() + pause, again))

    def _start_runs(self) -> None:
        """Fill the free places, the flavours in turns: a long queue for one must not hold up the others."""
        self._wake_rested()
        ready: dict[Flavour, list[Zygote]] = {}
        for zygote in self._nursery.all:
            if zygote.ready and self._waiting.get(zygote.flavour) and len(zygote.runs) < _PER_ZYGOTE:
                ready.setdefault(zygote.flavour, []).append(zygote)
        while ready and len(self._running) < self._places:
            for flavour in list(ready):
                if not self._waiting[flavour]:
                    del ready[flavour]
                elif len(self._running) < self._places:
                    run = self._waiting[flavour].popleft()
                    self._start(run, min(ready[flavour], key=lambda zygote: len(zygote.runs)))

    def _wake_rested(self) -> None:
        if self._resting:
            now = time.monotonic()
            due = [run for when, run in self._resting if when <= now]
            self._resting = [(when, run) for when, run in self._resting if when > now]
            for run in due:
                self._wait(run)

    def _start(self, run: Run, zygote: Zygote) -> None:
        run.number, run.zygote = next(self._numbers), zygote
        run.token = f"{run.number:016x}"
        payload = run.payload()
        try:
            run.channel = Channel(payload, most_bytes(run.ticket.job))
        except OSError:
            if not self._running:
                raise
            self._places = len(self._running)  # no descriptors for more at a time
            self._wait(run, first=True)
            return
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

    def _serve(self, run: Run, events: int) -> None:
        if run.channel is None:
            return
        if events & selectors.EVENT_WRITE and run.channel.send():
            self._stop_sending(run)
        if events & selectors.EVENT_READ and run.channel.receive():
            self._stop_reading(run)
        elif run.channel.flooded:
            self._stop_reading(run)
            self._end(run, Stopped.FLOOD)

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
        # The kernel's own account, to the microsecond, on the clock of the timer that kills.
        spent, early = run.ended.cpu_s > 0.99 * run.all_s, run.ended.cpu_s < run.ticket.job.limits.cpu_s
        ending = Ending(
            wait_status=run.ended.wait_status,
            data=bytes(run.channel.received),
            spent=spent,
            early=early,
            stopped=run.stopped,
        )
        results = judge(run.ticket.job, run.token, ending, contained=self.tier is not Tier.NONE)
        self._forget(run)
        self._places = min(self._places + 1, self._most_places)
        fault = run.fault(results)
        if fault is not None:
            self._try_again(run, fault)
        elif ending.too_soon or (ending.doubtful and run.patience == 1):
            self._look_again(run.ticket, run.order, run.patience)
        else:
            run.ticket.cpu_s += run.ended.cpu_s
            run.ticket.own_s += run.ended.own_s
            self._settle(run, results[::-1] if run.backwards else results)

    def _settle(self, run: Run, results: tuple[Result, ...]) -> None:
        for order in run.ticket.take(run.order, results, self.tier):
            self._look_again(run.ticket, order)

    def _look_again(self, ticket: Ticket, order: int, patience: int = 1) -> None:
        """Run it once more, with limits twice as long: its end may be the machine's doing in part."""
        ticket.doubt(order)
        self._wait(
            Run(
                ticket=ticket,
                flavour=Flavour(jobs.HASH_SEEDS[order], modules_for(ticket.job)),
                order=order,
                patience=2 * patience,
            )
        )

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
        """Step in where the kernel's timers do not: first kill the child, then the zygote that doesn't answer."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_EVERY_S
        for zygote in self._nursery.late():
            self._lose(zygote, "not ready after a minute")
        for flavour in self._nursery.due():
            self._want(flavour)
        for run in list(self._running.values()):
            late = now - run.started - self._longest(run)
            if late > _GRACE_S and run.zygote is not None and run.zygote in self._nursery.all:
                self._lose(run.zygote, "a zygote did not answer")
            elif late > 0:
                self._end(run, Stopped.OVERDUE)

    def _longest(self, run: Run) -> float:
        """How long a run may take with every place taken and as much load again from elsewhere, and then some."""
        return _STUCK_S + 2.0 * run.all_s * math.ceil(self._places / self._cores)

    def _end(self, run: Run, why: Stopped) -> None:
        run.stopped = run.stopped or why
        if run.zygote is not None:
            with contextlib.suppress(OSError):  # a zygote that is gone is heard of elsewhere
                run.zygote.kill_run(run.number)

    def _shut_down(self) -> None:
        with self._door:
            self._shut = True
            self._wake_end.close()
            self._awake_end.close()
        self._nursery.close()
        for run in self._running.values():
            if run.channel is not None:
                run.channel.close()
        self._selector.close()
        self.first_ready.set()
        for batch in (*self._open, *(tickets[0].batch for tickets in self._inbox)):
            batch.fail(self.failure or VerifierFault(_CLOSED))
