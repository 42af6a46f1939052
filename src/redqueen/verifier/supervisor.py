"""What keeps cores busy: queues runs, hands them to zygotes, collects their ends.

It is used by one thread: that of a `LocalDesk`, or the only one of a shard. A run that the machine failed, by its own
end or by that of its zygote, is started again under a new number and with new pipes, so that no job is lost and none is
answered twice; one that it fails time and again is a `fault`. An end that load may have caused is checked by another
run.
"""

import contextlib
import errno
import itertools
import math
import selectors
import time
from collections import deque
from collections.abc import Sequence

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import checkers, jobs, machine
from redqueen.verifier.channel import Channel
from redqueen.verifier.checkers import Checker
from redqueen.verifier.jobs import MAX_SOURCE_CHARS, Result, Status
from redqueen.verifier.replies import Ending, KillReason, judge, max_reply_bytes, result_count
from redqueen.verifier.runs import GuestRun, Ticket
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygote_pool import ZygotePool
from redqueen.verifier.zygotes import Flavour, Modules, Zygote, available_cores, flavour_for

IN_FLIGHT_PER_CORE = 16
"""Infinite loops hold a slot for their whole CPU limit; with this many slots the others still get through."""
_PER_ZYGOTE = 128
"""Runs in a zygote at once: as many messages as it may lag behind."""
_MAX_ZYGOTE_DEATHS = 10
"""Under one run, where nothing else explains them, before it is called a crash."""
_CHECK_EVERY_S = 0.25
_STUCK_S = 60.0
"""A run that takes this much longer than it may under full load is stuck somewhere in the machine."""
_GRACE_S = 3.0
"""How long a zygote may take to kill a run."""


def slots(workers: int) -> int:
    """Runs at once with so many workers."""
    return IN_FLIGHT_PER_CORE * max(2, workers)


class Supervisor:
    """All runs of some workers. Whoever owns it may watch further descriptors with its selector, each with a `Handler`
    as data."""

    def __init__(
        self, tier: Tier, workers: int, preload: Sequence[str], selector: selectors.BaseSelector, supervisors: int = 1
    ) -> None:
        """It is one of so many `supervisors` that share the machine's cores."""
        self.tier = tier
        self._cores = available_cores() / supervisors
        self._slots = self._max_slots = slots(workers)
        """Runs at once: fewer while memory is short."""
        self._selector = selector
        self.zygotes = ZygotePool(tier, workers, preload, selector)
        self._waiting: dict[Flavour, deque[GuestRun]] = {}
        self._retrying: list[tuple[float, GuestRun]] = []
        """Runs that the machine failed, and when each is tried again."""
        self._running: dict[int, GuestRun] = {}
        self._numbers = itertools.count(1)
        self._next_check = 0.0
        self.failure: RedQueenError | None = None
        """Why it cannot go on, if it cannot."""
        self.refused: str | None = None
        """Why the first zygote could not isolate itself, where that is the failure."""
        self.first_zygote: Zygote | None = None
        """The first that was ready."""

    @property
    def busy(self) -> bool:
        """Whether a run is under way or about to be."""
        return bool(self._running or self._retrying or any(self._waiting.values()))

    def begin(self) -> None:
        """Start the zygotes that every job needs."""
        self._ensure_zygotes(Flavour(jobs.HASH_SEEDS[0], Modules.CORE))

    def turn(self, most_s: float | None = None) -> None:
        """Wait until something happens, for no longer than that, and do what it asks for."""
        idle = not self._running and not self._retrying and self.zygotes.settled
        limits = [seconds for seconds in (most_s, None if idle else _CHECK_EVERY_S) if seconds is not None]
        for key, events in self._selector.select(min(limits, default=None)):
            if isinstance(key.data, GuestRun):
                self._transfer(key.data, events)
            elif isinstance(key.data, Zygote):
                self._read_zygote(key.data)
            else:
                key.data(events)
        self._start_runs()
        self._check_deadlines()

    def close(self) -> None:
        """End all zygotes and with them what runs; nobody is answered."""
        self.zygotes.close()
        self._close_channels()

    def abandon(self) -> None:
        """In a forked child: close what was inherited and leave the parent's zygotes alone."""
        for zygote in self.zygotes.all:
            zygote.control.close()
            zygote.process.returncode = 0  # not ours to wait for
        self._close_channels()

    def take(self, ticket: Ticket) -> None:
        """Have its job run; the ticket gets the results, or an error."""
        job = ticket.job
        size = len(job.source) + len(job.stdin) + sum(map(len, job.texts)) + sum(len(text) for _, text in job.modules)
        if size > MAX_SOURCE_CHARS:
            ticket.answer((Result(Status.TOO_LONG),) * result_count(job), self.tier)
            return
        for order in range(len(ticket.results)):
            self._enqueue(GuestRun(ticket=ticket, flavour=flavour_for(job, order), order=order))

    def _enqueue(self, run: GuestRun, first: bool = False) -> None:
        self._ensure_zygotes(run.flavour)
        queue = self._waiting.setdefault(run.flavour, deque())
        queue.appendleft(run) if first else queue.append(run)

    def _ensure_zygotes(self, flavour: Flavour) -> None:
        """Start zygotes of a flavour, now or later. Our own limit of open files does not change by waiting."""
        try:
            self.zygotes.ensure(flavour)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            self._start_failed(flavour, error.strerror or str(error), refused=False)

    def _read_zygote(self, zygote: Zygote) -> None:
        if zygote not in self.zygotes.all:
            return  # removed by what was read just before
        try:
            for child_exit in zygote.receive():
                run = self._running.get(child_exit.run)
                if run is not None:
                    run.exit = child_exit
                    self._conclude(run)
        except BlockingIOError:
            return
        except ConnectionError as error:
            self._replace(zygote, str(error))
            return
        if zygote.why is not None:
            self._replace(zygote, zygote.why)
        elif zygote.ready:
            self.zygotes.forget_failures(zygote.flavour)
            self.first_zygote = self.first_zygote or zygote

    def _replace(self, zygote: Zygote, why: str) -> None:
        self.zygotes.remove(zygote)
        for run in [self._running[number] for number in zygote.runs]:
            self._retry(run, why, zygote_died=zygote.dead)
        checker = zygote.flavour.checker
        if zygote.broken and checker is not None:
            self._refuse(checker, why)
        elif zygote.ready or self._start_failed(zygote.flavour, why, refused=zygote.refused):
            self._ensure_zygotes(zygote.flavour)

    def _start_failed(self, flavour: Flavour, why: str, refused: bool) -> bool:
        """Whether to try again. If not, the jobs that need such a zygote fail; the next such job tries anew."""
        error = self.zygotes.failed(flavour, why, refused)
        if refused and self.first_zygote is None:
            self.refused = why
            error = VerifierFault(why)
        if error is None:
            return True
        if self.first_zygote is None:
            self.failure = error
        self._fail_waiting(flavour, error)
        return False

    def _refuse(self, checker: Checker, why: str) -> None:
        """A checker cannot be loaded: nobody waits for it any longer, nor for what else was about to load that file."""
        for zygote in [each for each in self.zygotes.all if each.flavour.checker == checker and not each.ready]:
            self.zygotes.remove(zygote)
        for flavour in [each for each in self._waiting if each.checker == checker]:
            self._fail_waiting(flavour, checkers.broken(checker, why))

    def _fail_waiting(self, flavour: Flavour, error: RedQueenError) -> None:
        for run in self._waiting.pop(flavour, ()):
            run.ticket.fail(error)

    def _retry(self, run: GuestRun, why: str, zygote_died: bool = False) -> None:
        """Start a run that the machine failed once more, after a pause, for as long as failures are tolerated."""
        self._release(run)
        retries = run.retries or machine.Retries.start(self.zygotes.idle_deaths)
        deaths = run.zygote_deaths + zygote_died
        again = GuestRun(
            ticket=run.ticket,
            flavour=run.flavour,
            order=run.order,
            time_factor=run.time_factor,
            retries=retries,
            zygote_deaths=deaths,
        )
        pause = retries.next_pause()
        explained = retries.out_of_memory or self.zygotes.idle_deaths != retries.idle_deaths
        if deaths >= _MAX_ZYGOTE_DEATHS and not explained:
            self._settle(run, (Result(Status.CRASH),) * result_count(run.ticket.job))
        elif pause is None:
            self._give_up(run, retries, why)
        elif zygote_died and deaths < _MAX_ZYGOTE_DEATHS:
            self._enqueue(again, first=True)
        else:
            self._slots = max(1, self._slots // 2)  # memory may be enough for fewer
            self._retrying.append((time.monotonic() + pause, again))

    def _give_up(self, run: GuestRun, retries: machine.Retries, why: str) -> None:
        """Where memory is short, a program must not be able to choose by what it takes that it is not judged."""
        job = run.ticket.job
        if machine.memory_refused(job.limits.memory_mb):
            run.ticket.fail(retries.error(why))  # no program gets what it may have
            return
        status = Status.MEMORY if run.greedy and retries.out_of_memory else Status.FAULT
        if status is Status.FAULT:
            run.ticket.fault = why
        self._settle(run, (Result(status),) * result_count(job))

    def _start_runs(self) -> None:
        """Fill the free slots, the flavours in turns: a long queue for one must not hold up the others."""
        now = time.monotonic()
        due = [run for when, run in self._retrying if when <= now]
        self._retrying = [(when, run) for when, run in self._retrying if when > now]
        for run in due:
            self._enqueue(run)
        ready: dict[Flavour, list[Zygote]] = {}
        for zygote in self.zygotes.all:
            if zygote.ready and self._waiting.get(zygote.flavour) and self._has_room(zygote):
                ready.setdefault(zygote.flavour, []).append(zygote)
        while ready and len(self._running) < self._slots:
            for flavour in list(ready):
                zygote = min(ready[flavour], key=lambda zygote: len(zygote.runs))
                queue = self._waiting[flavour]
                if not queue or (queue[0].alone and zygote.runs):
                    del ready[flavour]
                elif len(self._running) < self._slots:
                    run = queue.popleft()
                    self._start(run, zygote)
                    if run.alone:
                        ready[flavour].remove(zygote)
                        if not ready[flavour]:
                            del ready[flavour]

    def _has_room(self, zygote: Zygote) -> bool:
        return len(zygote.runs) < _PER_ZYGOTE and not any(self._running[number].alone for number in zygote.runs)

    def _start(self, run: GuestRun, zygote: Zygote) -> None:
        run.number, run.zygote = next(self._numbers), zygote
        run.token = f"{run.number:016x}"
        payload = run.payload()
        try:
            run.channel = Channel(payload, max_reply_bytes(run.ticket.job))
        except OSError:
            if not self._running:
                raise
            self._slots = len(self._running)  # no descriptors for more at a time
            self._enqueue(run, first=True)
            return
        run.started = time.monotonic()
        self._running[run.number] = run
        with contextlib.suppress(OSError):  # a dying zygote is about to be noticed
            zygote.start_run(run.number, len(payload), run.channel.child_fds)
        run.channel.close_child_ends()
        self._selector.register(run.channel.reply_fd, selectors.EVENT_READ, run)
        if not run.channel.send():
            self._selector.register(run.channel.job_fd, selectors.EVENT_WRITE, run)

    def _transfer(self, run: GuestRun, events: int) -> None:
        channel = run.channel
        if channel is None:
            return
        if events & selectors.EVENT_WRITE and channel.send():
            self._unwatch(channel.job_fd)
        if events & selectors.EVENT_READ and channel.receive():
            self._unwatch(channel.reply_fd)
        elif channel.flooded:
            self._unwatch(channel.reply_fd)
            self._kill(run, KillReason.FLOOD)

    def _unwatch(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def _conclude(self, run: GuestRun) -> None:
        """Judge a run whose child is dead: all that it wrote is here, or in its pipe."""
        assert run.channel is not None and run.exit is not None
        run.channel.drain()
        # The kernel's own account, to the microsecond, on the clock of the timer that kills.
        spent, early = run.exit.cpu_s > 0.99 * run.cpu_limit_s, run.exit.cpu_s < run.ticket.job.limits.cpu_s
        ending = Ending(
            wait_status=run.exit.wait_status,
            data=bytes(run.channel.received),
            spent=spent,
            early=early,
            killed_for=run.killed_for,
        )
        results = judge(run.ticket.job, run.token, ending, contained=self.tier is not Tier.NONE)
        self._release(run)
        self._slots = min(self._slots + 1, self._max_slots)
        fault = run.fault(results)
        if fault is not None:
            self._retry(run, fault)
        elif ending.too_soon or (ending.doubtful and run.time_factor == 1):
            self._repeat(run.ticket, run.order, run.time_factor)
        else:
            run.ticket.cpu_s += run.exit.cpu_s
            run.ticket.user_s += run.exit.user_s
            self._settle(run, results[::-1] if run.reverse_calls else results)

    def _settle(self, run: GuestRun, results: tuple[Result, ...]) -> None:
        for order in run.ticket.add(run.order, results, self.tier):
            self._repeat(run.ticket, order)

    def _repeat(self, ticket: Ticket, order: int, time_factor: int = 1) -> None:
        """Run it again with twice the limits, because load may have caused its end."""
        ticket.results[order] = None
        ticket.repeated.add(order)
        flavour = flavour_for(ticket.job, order)
        self._enqueue(GuestRun(ticket=ticket, flavour=flavour, order=order, time_factor=2 * time_factor))

    def _release(self, run: GuestRun) -> None:
        self._running.pop(run.number, None)
        if run.zygote is not None:
            run.zygote.runs.discard(run.number)
        if run.channel is not None:
            self._unwatch(run.channel.job_fd)
            self._unwatch(run.channel.reply_fd)
            run.channel.close()
            run.channel = None

    def _check_deadlines(self) -> None:
        """Step in where the kernel's timers do not: first kill the child, then the zygote that does not answer."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_EVERY_S
        for zygote in self.zygotes.overdue():
            self._replace(zygote, "not ready after a minute")
        for flavour in self.zygotes.due():
            self._ensure_zygotes(flavour)
        for run in list(self._running.values()):
            late = now - run.started - self._max_duration(run)
            if late > _GRACE_S and run.zygote is not None and run.zygote in self.zygotes.all:
                self._replace(run.zygote, "a zygote did not answer")
            elif late > 0:
                self._kill(run, KillReason.OVERDUE)

    def _max_duration(self, run: GuestRun) -> float:
        """With every slot taken and as much load again from elsewhere, and then some."""
        return _STUCK_S + 2.0 * run.cpu_limit_s * math.ceil(self._slots / self._cores)

    def _kill(self, run: GuestRun, reason: KillReason) -> None:
        run.killed_for = run.killed_for or reason
        if run.zygote is not None:
            with contextlib.suppress(OSError):  # a dead zygote is noticed elsewhere
                run.zygote.kill_run(run.number)

    def _close_channels(self) -> None:
        for run in self._running.values():
            if run.channel is not None:
                run.channel.close()
