"""What is on its way through the pool: a batch of tickets, a ticket of one run or two.

A ticket is one job; a run is one child process. A run knows how to write its job down for its child.
"""

import marshal
import re
import struct
from concurrent.futures import Future
from dataclasses import dataclass

from redqueen.verifier.channel import Channel
from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Mode, Outcome, Result
from redqueen.verifier.zygotes import Ended, Flavour, Zygote

_READ_HERE_CHARS = 2000
_FOR_THE_CHILD = re.compile(r"[{]|set\(\)|inf|nan")


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call and the future that gets their outcomes."""

    outcomes: list[Outcome | None]
    future: Future[list[Outcome]]
    left: int


@dataclass(slots=True)
class Ticket:
    """One job on its way through."""

    job: Job
    index: int
    batch: Batch
    results: list[tuple[Result, ...] | None]
    cpu_s: float = 0.0


@dataclass(slots=True, eq=False)
class Run:
    """One child process, wanted or running."""

    ticket: Ticket
    flavour: Flavour
    order: int
    """0 for the first run of a job, 1 for the second, which takes the calls in reverse."""
    number: int = 0
    token: str = ""
    tries: int = 0
    zygote: Zygote | None = None
    channel: Channel | None = None
    sending: bool = False
    """Its pipe did not take the whole job at once."""
    reading: bool = False
    """Its reply is being watched for."""
    ended: Ended | None = None
    started: float = 0.0
    wall_s: float = 0.0

    def payload(self) -> bytes:
        """The job as its child reads it. The token marks the reply as meant, it proves nothing."""
        job, limits = self.ticket.job, self.ticket.job.limits
        texts = job.texts[::-1] if self.order else job.texts
        return marshal.dumps(
            tuple(
                wire.Job(
                    token=self.token,
                    mode=str(job.mode),
                    source=job.source,
                    texts=tuple(map(_read_here, texts)) if job.mode is Mode.CALLS else texts,
                    entry=job.entry,
                    stdin=job.stdin,
                    modules=job.modules,
                    value_chars=limits.value_chars,
                    stdout_bytes=limits.stdout_bytes,
                    cpu_limit=_timer(limits.cpu_s),
                    wall_limit=_timer(self.wall_s),
                    memory_bytes=limits.memory_mb << 20,
                )
            )
        )


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
