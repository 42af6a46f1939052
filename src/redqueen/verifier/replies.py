"""From an exit status and hostile bytes to results. The host's whole reading of what a guest says.

The exit status wins over the reply, the frame over its content, and a value counts only if it is canonical text.
"""

import os
import signal
from dataclasses import dataclass

from redqueen.verifier.guest import literals
from redqueen.verifier.jobs import Job, Limits, Mode, Result, Status

_LINES = {status.value: status for status in (Status.TOO_LONG, Status.OPAQUE, Status.MEMORY)}
_LINE_OVERHEAD = 120
_CPU_SLACK = 0.8
"""The CPU timer fires on scheduler ticks: a kill from this share of the limit on was the timer's."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended, as the kernel told its zygote, and what it had written."""

    wait_status: int
    cpu_s: float
    wall_s: float
    data: bytes


def most_bytes(job: Job) -> int:
    """The longest reply that can be right; a guest that writes more is cut off and `toolong`."""
    if job.mode is Mode.PROGRAM:
        return 12 * job.limits.stdout_bytes + 10 * _LINE_OVERHEAD
    return len(job.texts) * (job.limits.value_chars + _LINE_OVERHEAD) + 10 * _LINE_OVERHEAD


def results_wanted(job: Job) -> int:
    return 1 if job.mode is Mode.PROGRAM else len(job.texts)


def judge(job: Job, token: str, wall_limit_s: float, ending: Ending) -> tuple[Result, ...]:
    """The results of one child."""
    wanted = results_wanted(job)
    death = _death(ending, job.limits, wall_limit_s)
    if death is None and len(ending.data) > most_bytes(job):
        death = Status.TOO_LONG
    if death is not None:
        return (Result(death),) * wanted
    lines = _frame(ending.data, token)
    if lines is None or len(lines) != wanted:
        return (Result(Status.NO_RESULT),) * wanted
    return tuple(_result(line, job) for line in lines)


def _death(ending: Ending, limits: Limits, wall_limit_s: float) -> Status | None:
    if not os.WIFSIGNALED(ending.wait_status):
        return None if ending.wait_status == 0 else Status.NO_RESULT
    number = os.WTERMSIG(ending.wait_status)
    if number == signal.SIGSYS:
        return Status.VIOLATION
    if number != signal.SIGKILL:
        return Status.CRASH
    timed_out = ending.cpu_s >= _CPU_SLACK * limits.cpu_s or ending.wall_s >= wall_limit_s
    return Status.TIMEOUT if timed_out else Status.MEMORY


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


def agree(first: tuple[Result, ...], second: tuple[Result, ...]) -> tuple[Result, ...]:
    """What two runs of one job come to together."""
    return tuple(_agree(one, other) for one, other in zip(first, second, strict=True))


def _agree(one: Result, other: Result) -> Result:
    if one == other:
        return one
    deaths = [result for result in (one, other) if result.status not in (Status.OK, Status.EXCEPTION)]
    if deaths:
        return deaths[0]
    if one.status is other.status is Status.OK:
        assert one.value is not None and other.value is not None
        if literals.same(literals.parse(one.value), literals.parse(other.value), tolerance=0.0):
            return one
    return Result(Status.NONDETERMINISTIC)
