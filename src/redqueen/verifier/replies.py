"""From an exit status and hostile bytes to results: all that the host reads of what a guest says.

A flood comes first. Then the exit status wins over the reply, the frame over its content, and a value counts only if it
is canonical text. How a child died is told by its signal, never by a duration: each timer has a signal of its own, no
guest can send itself any, and a kill that no limit explains is a failure of the machine (`fault`), which is retried.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce

from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Mode, Result, Status

_LINES = {status.value: status for status in (Status.TOO_LONG, Status.OPAQUE, Status.MEMORY)}
_LINE_OVERHEAD = 120
_DEATHS = frozenset({Status.TIMEOUT, Status.MEMORY, Status.CRASH, Status.VIOLATION, Status.NO_RESULT})
_SIGNALS = {
    signal.SIGVTALRM: Status.TIMEOUT,
    signal.SIGSYS: Status.VIOLATION,
    wire.NOT_STARTED: Status.FAULT,
}


class KillReason(Enum):
    FLOOD = auto()
    """It writes more than any valid reply."""
    OVERDUE = auto()
    """The machine has not let it end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a child ended, as the kernel told its zygote, and what it had written."""

    wait_status: int
    data: bytes
    spent: bool = False
    """It has used all the CPU time that the second timer allows, which kills."""
    early: bool = False
    """By the exact clock it has not used its limit of CPU time yet: ticks may charge it with what others did."""
    killed_for: KillReason | None = None

    @property
    def doubtful(self) -> bool:
        """Whether load may have caused it: the time went to the kernel, or only ticks say that it was used."""
        if not os.WIFSIGNALED(self.wait_status):
            return False
        return (self._killed and self.spent) or self.too_soon

    @property
    def too_soon(self) -> bool:
        """Whether the first timer fired before the program had used its time."""
        return self.early and os.WTERMSIG(self.wait_status) == signal.SIGVTALRM

    @property
    def _killed(self) -> bool:
        return os.WTERMSIG(self.wait_status) == signal.SIGKILL

    def death(self, contained: bool) -> Status | None:
        """What it died of; None if it came to its end. An uncontained guest can send itself signals."""
        if not os.WIFSIGNALED(self.wait_status):
            return None if self.wait_status == 0 else Status.NO_RESULT
        if not self._killed:
            return _SIGNALS.get(os.WTERMSIG(self.wait_status), Status.CRASH)
        if self.spent:
            return Status.TIMEOUT
        if contained:
            return Status.FAULT
        return Status.TIMEOUT if self.killed_for else Status.CRASH


def max_reply_bytes(job: Job) -> int:
    """Of the longest valid reply; a guest that writes more is cut off and `toolong`."""
    if job.mode is Mode.PROGRAM:
        return 12 * job.limits.stdout_bytes + 10 * _LINE_OVERHEAD
    return len(job.texts) * (job.limits.value_chars + _LINE_OVERHEAD) + 10 * _LINE_OVERHEAD


def result_count(job: Job) -> int:
    return 1 if job.mode is Mode.PROGRAM else len(job.texts)


def judge(job: Job, token: str, ending: Ending, contained: bool = True) -> tuple[Result, ...]:
    count = result_count(job)
    # First, because the host ends a flood where it happens to notice it.
    death = Status.TOO_LONG if len(ending.data) > max_reply_bytes(job) else ending.death(contained)
    if death is not None:
        return (Result(death),) * count
    lines = _frame(ending.data, token)
    if lines is None or len(lines) != count:
        return (Result(Status.NO_RESULT),) * count
    return tuple(_result(line, job) for line in lines)


def _frame(data: bytes, token: str) -> list[str] | None:
    """The lines between the token and the end mark, or None when that is not what was written."""
    head, tail = f"{token}\n".encode(), b"\nend\n"
    if not data.startswith(head) or not data.endswith(tail) or not data.isascii():
        return None
    return data[len(head) : -len(tail)].decode("ascii").split("\n") if len(data) > len(head) + len(tail) - 1 else []


def _result(line: str, job: Job) -> Result:
    kind, _, text = line.partition(" ")
    if line in _LINES:
        return Result(_LINES[line])
    if kind == "exc":
        named = text.isidentifier() and len(text) <= 100
        return Result(Status.EXCEPTION, exception=text if named else "badname")
    if kind != "ok":
        return Result(Status.BAD_REPLY)
    if job.mode is Mode.PROGRAM:
        return _printed(text, job.limits.stdout_bytes)
    if len(text) > job.limits.value_chars:
        return Result(Status.TOO_LONG)
    try:
        (literals.parse_arguments if job.mode is Mode.ARGUMENTS else literals.parse)(text)
    except literals.NotCanonical:
        return Result(Status.BAD_REPLY)
    return Result(Status.OK, value=text)


def _printed(text: str, max_bytes: int) -> Result:
    """Only a string is read here: a megabyte of keys that hash alike would take a minute to build."""
    if text[:1] not in ("'", '"'):
        return Result(Status.BAD_REPLY)
    try:
        size = len(str(literals.parse(text)).encode("utf-8", "surrogateescape"))
    except (literals.NotCanonical, UnicodeEncodeError):
        return Result(Status.BAD_REPLY)
    return Result(Status.OK, value=text) if size <= max_bytes else Result(Status.TOO_LONG)


def lone_deaths(runs: Sequence[Sequence[Result]]) -> list[int]:
    """The runs that died where another run of the same job did not, which are checked by another run."""
    dead = [at for at, results in enumerate(runs) if any(result.status in _DEATHS for result in results)]
    return dead if len(dead) < len(runs) else []


def agree(runs: Sequence[tuple[Result, ...]]) -> tuple[Result, ...]:
    """The results of a job from those of its runs. Only two results that are both there can disagree."""
    return tuple(reduce(_agree, results) for results in zip(*runs, strict=True))


def _agree(first: Result, second: Result) -> Result:
    if first == second:
        return first
    failed = [result for result in (first, second) if result.status not in (Status.OK, Status.EXCEPTION)]
    if failed:
        return min(failed, key=lambda result: result.status is Status.FAULT)  # what it did itself counts more
    if first.status is second.status is Status.OK:
        assert first.value is not None and second.value is not None
        if literals.same(literals.parse(first.value), literals.parse(second.value), tolerance=0.0):
            return first
    return Result(Status.NONDETERMINISTIC)
