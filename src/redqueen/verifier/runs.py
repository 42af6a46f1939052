"""What is on its way through the pool: a batch of tickets, a ticket of one run or more.

A ticket is one job; a run is one child process. A run knows how to write its job down for its child.
"""

import marshal
import re
import struct
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from redqueen.errors import RedQueenError
from redqueen.verifier import machine
from redqueen.verifier.channel import Channel
from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Mode, Outcome, Result, Status
from redqueen.verifier.machine import Stopped, Trouble
from redqueen.verifier.replies import agree, lone_deaths
from redqueen.verifier.zygotes import Ended, Flavour, Zygote

_READ_HERE_CHARS = 2000
_TICKS_OFF, _TICKS_OFF_S = 1.15, 0.035
"""How far ticks may be ahead of the exact clock: they find whoever runs when they come, which short programs beside a
long one seldom do. Where they are further ahead, the run is made again, which costs more than this."""
_FOR_THE_CHILD = re.compile(r"[{]|set\(\)|inf|nan")


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call and the future that gets their outcomes."""

    outcomes: list[Outcome | None]
    future: Future[list[Outcome]]
    left: int

    def take(self, index: int, outcome: Outcome) -> None:
        """The outcome of one of its jobs; the last one answers the call."""
        self.outcomes[index] = outcome
        self.left -= 1
        if self.left == 0 and not self.future.done():
            self.future.set_result([outcome for outcome in self.outcomes if outcome is not None])

    def fail(self, error: RedQueenError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, kw_only=True)
class Ticket:
    """One job on its way through."""

    job: Job
    index: int
    batch: Batch
    results: list[tuple[Result, ...] | None]
    """What each run came to, by its order."""
    doubted: set[int] = field(default_factory=set)
    """The runs that have had their second look."""
    cpu_s: float = 0.0
    own_s: float = 0.0

    def take(self, order: int, results: tuple[Result, ...], tier: str) -> Sequence[int]:
        """What one run came to. Returns the runs that want a second look; where none does, the last one answers."""
        self.results[order] = results
        runs = tuple(results for results in self.results if results is not None)
        if len(runs) < len(self.results):
            return ()
        doubtful = [order for order in lone_deaths(runs) if order not in self.doubted]
        if not doubtful:
            self.answer(agree(runs), tier, runs)
        return doubtful

    def doubt(self, order: int) -> None:
        self.results[order] = None
        self.doubted.add(order)

    def answer(self, results: tuple[Result, ...], tier: str, runs: tuple[tuple[Result, ...], ...] = ()) -> None:
        cpu_ms, own_ms = (round(1000 * seconds, 3) for seconds in (self.cpu_s, self.own_s))
        self.batch.take(self.index, Outcome(results=results, tier=tier, cpu_ms=cpu_ms, runs=runs, own_ms=own_ms))


@dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """One child process, wanted or running."""

    ticket: Ticket
    flavour: Flavour
    order: int
    """0 for the first run of a job, 1 for the second, which takes the calls in reverse, and so on in turns."""
    patience: int = 1
    """How many times its time limits it has: more than one where an end is doubted."""
    trouble: Trouble | None = None
    """What the machine has done to it."""
    losses: int = 0
    """Zygotes that died under it."""
    number: int = 0
    token: str = ""
    zygote: Zygote | None = None
    channel: Channel | None = None
    sending: bool = False
    """Its pipe did not take the whole job at once."""
    reading: bool = False
    """Its reply is being watched for."""
    ended: Ended | None = None
    started: float = 0.0
    stopped: Stopped | None = None
    """Why the host has asked for its end, if it has."""

    @property
    def own_s(self) -> float:
        """Its limit of user time, as ticks count it."""
        return self.patience * (_TICKS_OFF * self.ticket.job.limits.cpu_s + _TICKS_OFF_S)

    @property
    def all_s(self) -> float:
        """Its limit of user and kernel time: wide, because the kernel's part grows with the machine's load."""
        return self.patience * (2.0 * self.ticket.job.limits.cpu_s + 1.0)

    @property
    def backwards(self) -> bool:
        return self.order % 2 == 1

    def fault(self, results: Sequence[Result]) -> str | None:
        """What the machine did to it, if it did."""
        if results[0].status is Status.FAULT:
            if self.stopped is Stopped.OVERDUE:
                return "a program gets no CPU time"
            return "a program was killed from outside, as when memory runs out, or could not be started"
        short = any(result.status is Status.MEMORY for result in results)
        return "memory is short" if short and machine.memory_refused(self.ticket.job.limits.memory_mb) else None

    def payload(self) -> bytes:
        """The limits and the job as its child reads them. The token marks the reply as meant, it proves nothing."""
        job, limits = self.ticket.job, self.ticket.job.limits
        texts = job.texts[::-1] if self.backwards else job.texts
        shut_in = wire.Limits(
            own_limit=_timer(self.own_s),
            all_limit=_timer(self.all_s),
            memory_bytes=limits.memory_mb << 20,
        )
        asked = wire.Job(
            token=self.token,
            mode=str(job.mode),
            source=job.source,
            texts=tuple(map(_read_here, texts)) if job.mode is Mode.CALLS else texts,
            entry=job.entry,
            stdin=job.stdin,
            modules=job.modules,
            value_chars=limits.value_chars,
            stdout_bytes=limits.stdout_bytes,
        )
        return marshal.dumps((tuple(shut_in), tuple(asked)))


def _read_here(text: str) -> object:
    """Canonical arguments, which most are, as values: reading text costs a child more pages than its whole call.

    Sets, which marshal reorders, and what looks like `inf` or `nan`, which is no literal, are left to the child.
    """
    if len(text) > _READ_HERE_CHARS or _FOR_THE_CHILD.search(text):
        return text
    try:
        return literals.parse_arguments(text)
    except literals.NotCanonical:
        return text


def _timer(seconds: float) -> bytes:
    """An itimerspec that fires once."""
    whole, nanoseconds = divmod(int(seconds * 1_000_000_000), 1_000_000_000)
    return struct.pack("=qqqq", 0, 0, whole, nanoseconds)
