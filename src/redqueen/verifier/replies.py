"""From an exit status and hostile bytes to results. The host's whole reading of what a guest says.

A flood is a flood; then the exit status wins over the reply, the frame over its content, and a value counts only if
it is canonical text. How a child died is told by its signal, never by how long anything took: the timers have
different ones, no guest can send itself any, and a kill that no limit explains is the machine's doing (`fault`).
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Mode, Result, Status
from redqueen.verifier.machine import Stopped

_LINES = {status.value: status for status in (Status.TOO_LONG, Status.OPAQUE, Status.MEMORY)}
_LINE_OVERHEAD = 120
_DEATHS = frozenset({Status.TIMEOUT, Status.MEMORY, Status.CRASH, Status.VIOLATION, Status.NO_RESULT})
_SIGNALS = {
    signal.SIGVTALRM: Status.TIMEOUT,
    signal.SIGSYS: Status.VIOLATION,
    wire.NOT_STARTED: Status.FAULT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a child ended, as the kernel told its zygote, and what it had written."""

    wait_status: int
    data: bytes
    spent: bool = False
    """It has had all the CPU time that the second timer allows, which kills."""
    early: bool = False
    """It has not had its limit of CPU time yet, by the exact count: ticks find whoever runs when they come, and may
    charge a program with what others did in between."""
    stopped: Stopped | None = None
    """Why the host asked for its end, if it did."""

    @property
    def doubtful(self) -> bool:
        """Whether the machine's load may have a part in it: the time was spent in the kernel, or ticks alone say that
        it was spent."""
        if not os.WIFSIGNALED(self.wait_status):
            return False
        return (self._killed and self.spent) or self.too_soon

    @property
    def too_soon(self) -> bool:
        """Whether the first timer ended it before its time."""
        return self.early and os.WTERMSIG(self.wait_status) == signal.SIGVTALRM

    @property
    def _killed(self) -> bool:
        return os.WTERMSIG(self.wait_status) == signal.SIGKILL

    def death(self, contained: bool) -> Status | None:
        """What it died of; None if it came to its end. Where nothing contains them, guests can send signals."""
        if not os.WIFSIGNALED(self.wait_status):
            return None if self.wait_status == 0 else Status.NO_RESULT
        if not self._killed:
            return _SIGNALS.get(os.WTERMSIG(self.wait_status), Status.CRASH)
        if self.spent:
            return Status.TIMEOUT
        if contained:
            return Status.FAULT
        return Status.TIMEOUT if self.stopped else Status.CRASH


def most_bytes(job: Job) -> int:
    """The longest reply that can be right; a guest that writes more is cut off and `toolong`."""
    if job.mode is Mode.PROGRAM:
        return 12 * job.limits.stdout_bytes + 10 * _LINE_OVERHEAD
    return len(job.texts) * (job.limits.value_chars + _LINE_OVERHEAD) + 10 * _LINE_OVERHEAD


def results_wanted(job: Job) -> int:
    return 1 if job.mode is Mode.PROGRAM else len(job.texts)


def judge(job: Job, token: str, ending: Ending, contained: bool = True) -> tuple[Result, ...]:
    """The results of one child."""
    wanted = results_wanted(job)
    # First, because the host ends a flood where it happens to notice it.
    death = Status.TOO_LONG if len(ending.data) > most_bytes(job) else ending.death(contained)
    if death is not None:
        return (Result(death),) * wanted
    lines = _frame(ending.data, token)
    if lines is None or len(lines) != wanted:
        return (Result(Status.NO_RESULT),) * wanted
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


def _printed(text: str, most_bytes: int) -> Result:
    """Only a string is read here: a megabyte of keys that hash alike would take a minute to build."""
    if text[:1] not in ("'", '"'):
        return Result(Status.BAD_REPLY)
    try:
        size = len(str(literals.parse(text)).encode("utf-8", "surrogateescape"))
    except (literals.NotCanonical, UnicodeEncodeError):
        return Result(Status.BAD_REPLY)
    return Result(Status.OK, value=text) if size <= most_bytes else Result(Status.TOO_LONG)


def died(results: Sequence[Result]) -> bool:
    """Whether a run, or a call of it, came to no end of its own."""
    return any(result.status in _DEATHS for result in results)


def lone_deaths(runs: Sequence[Sequence[Result]]) -> list[int]:
    """The runs that died where another one of the same job did not: ends that ask for a second look."""
    dead = [at for at, results in enumerate(runs) if died(results)]
    return dead if len(dead) < len(runs) else []


def agree(runs: Sequence[tuple[Result, ...]]) -> tuple[Result, ...]:
    """What the runs of one job come to together. Only results that are both there can be different ones."""
    return tuple(reduce(_agree, results) for results in zip(*runs, strict=True))


def _agree(one: Result, other: Result) -> Result:
    if one == other:
        return one
    failed = [result for result in (one, other) if result.status not in (Status.OK, Status.EXCEPTION)]
    if failed:
        return failed[0]
    if one.status is other.status is Status.OK:
        assert one.value is not None and other.value is not None
        if literals.same(literals.parse(one.value), literals.parse(other.value), tolerance=0.0):
            return one
    return Result(Status.NONDETERMINISTIC)
