"""Work in progress: a job has a ticket; a ticket has runs, one per child process."""

import marshal
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from redqueen.errors import RedQueenError
from redqueen.verifier import machine
from redqueen.verifier.channel import Channel
from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Mode, Outcome, Result, Status
from redqueen.verifier.machine import Retries
from redqueen.verifier.replies import KillReason, agree, lone_deaths
from redqueen.verifier.zygotes import ChildExit, Flavour, Zygote

_MAX_PARSED_CHARS = 2000
_TICK_FACTOR, _TICK_SLACK_S = 1.15, 0.035
"""How far ticks may be ahead of the exact clock: they charge whoever runs when they come. Where they are further ahead,
the run is repeated, which costs more than this slack."""
_LEFT_TO_CHILD = re.compile(r"[{]|set\(\)|inf|nan")


class Recipient(Protocol):
    """Who waits for the outcomes of jobs, by their places."""

    def add(self, index: int, outcome: Outcome) -> None: ...

    def refuse(self, index: int, error: RedQueenError) -> None:
        """There will be no outcome."""
        ...


@dataclass(slots=True, kw_only=True)
class Ticket:
    job: Job
    index: int
    recipient: Recipient
    results: list[tuple[Result, ...] | None]
    repeated: set[int] = field(default_factory=set)
    """The runs that were repeated because their end was in doubt."""
    cpu_s: float = 0.0
    user_s: float = 0.0
    fault: str | None = None
    """What the machine did to the run of it that was given up."""
    failed: bool = False

    @classmethod
    def of(cls, job: Job, index: int, recipient: Recipient) -> Self:
        return cls(job=job, index=index, recipient=recipient, results=[None] * job.seeds)

    def add(self, order: int, results: tuple[Result, ...], tier: str) -> Sequence[int]:
        """Returns the runs to repeat; where there are none, the last run answers."""
        self.results[order] = results
        runs = tuple(results for results in self.results if results is not None)
        if len(runs) < len(self.results):
            return ()
        doubtful = [order for order in lone_deaths(runs) if order not in self.repeated]
        if not doubtful:
            self.answer(agree(runs), tier, runs)
        return doubtful

    def answer(self, results: tuple[Result, ...], tier: str, runs: tuple[tuple[Result, ...], ...] = ()) -> None:
        cpu_ms, user_ms = (round(1000 * seconds, 3) for seconds in (self.cpu_s, self.user_s))
        outcome = Outcome(results=results, tier=tier, cpu_ms=cpu_ms, runs=runs, user_ms=user_ms, fault=self.fault)
        self.recipient.add(self.index, outcome)

    def fail(self, error: RedQueenError) -> None:
        """Once, though none of its runs may find a zygote."""
        if not self.failed:
            self.failed = True
            self.recipient.refuse(self.index, error)


@dataclass(slots=True, eq=False, kw_only=True)
class GuestRun:
    """One child process, waiting or running."""

    ticket: Ticket
    flavour: Flavour
    order: int
    """0 for the first run of a job. Every other run takes the calls in reverse."""
    time_factor: int = 1
    """Of its time limits: more than one where its end was in doubt."""
    retries: Retries | None = None
    zygote_deaths: int = 0
    """Zygotes that died under it."""
    number: int = 0
    token: str = ""
    zygote: Zygote | None = None
    channel: Channel | None = None
    exit: ChildExit | None = None
    started: float = 0.0
    killed_for: KillReason | None = None

    @property
    def user_limit_s(self) -> float:
        """Of user time, as ticks count it."""
        return self.time_factor * (_TICK_FACTOR * self.ticket.job.limits.cpu_s + _TICK_SLACK_S)

    @property
    def cpu_limit_s(self) -> float:
        """Of user and kernel time: wide, because the kernel's part grows with the machine's load."""
        return self.time_factor * (2.0 * self.ticket.job.limits.cpu_s + 1.0)

    @property
    def alone(self) -> bool:
        """Whether it has a zygote to itself: after a second death under it, whose fault that was has to show."""
        return self.zygote_deaths >= 2

    @property
    def greedy(self) -> bool:
        """Whether it had more than half of the memory that it may have."""
        return self.exit is not None and self.exit.most_kb > self.ticket.job.limits.memory_mb << 9

    @property
    def reverse_calls(self) -> bool:
        return self.order % 2 == 1

    def fault(self, results: Sequence[Result]) -> str | None:
        """How the machine failed it, if it did."""
        if results[0].status is Status.FAULT:
            if self.killed_for is KillReason.OVERDUE:
                return "a program gets no CPU time"
            return "a program was killed from outside, as when memory runs out, or could not be started"
        short = any(result.status is Status.MEMORY for result in results)
        return "memory is short" if short and machine.memory_refused(self.ticket.job.limits.memory_mb) else None

    def payload(self) -> bytes:
        """Limits and job for the child. The token marks a reply as intended; it proves nothing."""
        job, limits = self.ticket.job, self.ticket.job.limits
        texts = job.texts[::-1] if self.reverse_calls else job.texts
        wire_limits = wire.WireLimits(_timer(self.user_limit_s), _timer(self.cpu_limit_s), limits.memory_mb << 20)
        wire_job = wire.WireJob(
            token=self.token,
            mode=str(job.mode),
            source=job.source,
            texts=tuple(map(_parsed, texts)) if job.mode is Mode.CALLS else texts,
            entry=job.entry,
            stdin=job.stdin,
            modules=job.modules,
            value_chars=limits.value_chars,
            stdout_bytes=limits.stdout_bytes,
        )
        return marshal.dumps((tuple(wire_limits), tuple(wire_job)))


def _parsed(text: str) -> object:
    """Canonical arguments, which most are, as values: parsing touches more of a child's pages than its whole call.
    Sets, which marshal reorders, and `inf` and `nan`, which are no literals, are left to the child."""
    if len(text) > _MAX_PARSED_CHARS or _LEFT_TO_CHILD.search(text):
        return text
    try:
        return literals.parse_arguments(text)
    except literals.NotCanonical:
        return text


def _timer(seconds: float) -> bytes:
    whole, nanoseconds = divmod(int(seconds * 1_000_000_000), 1_000_000_000)
    return struct.pack("=qqqq", 0, 0, whole, nanoseconds)
