"""What goes into the verifier and what comes out of it.

An outcome has one result per call, with the value as canonical literal text: nothing that a program made becomes a live
object here unless `literals.parse` rebuilds it from plain values.
"""

import cmath
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from redqueen.verifier.checkers import MATH_VERIFY, Checker
from redqueen.verifier.guest import literals

MAX_SOURCE_CHARS = 1_000_000
"""A job's texts together; a longer job is refused before it reaches a guest."""
_MAX_ARGUMENT_CHARS = 10 * MAX_SOURCE_CHARS
"""A longer job is `toolong` as any is; this only keeps its text within reason."""

HASH_SEEDS = (1, 2, 84, 29, 105, 47, 40, 3)
"""In the order in which a job uses them; fixed, so that a verdict is the same tomorrow. Under the first two about half
of all sets of two strings have the same order. No two letters, digits or short words have it under all of them."""
USUAL_SEEDS, MOST_SEEDS = 2, len(HASH_SEEDS)
MAX_SECONDS = 86_400
MAX_MEMORY_MB = 1 << 20


class Status(StrEnum):
    OK = "ok"
    EXCEPTION = "exc"
    """A clean exception; its class name is in `Result.exception`."""
    TIMEOUT = "timeout"
    """It used up its time, or waits for what cannot come."""
    MEMORY = "memory"
    """It wanted more than its limit."""
    CRASH = "crash"
    """Killed by a signal of its own making (a null pointer, a C stack that ran out), contained."""
    VIOLATION = "violation"
    """Killed by the system-call filter."""
    TOO_LONG = "toolong"
    """The result, the printed text or the job is over its limit; nothing is ever truncated."""
    OPAQUE = "opaque"
    """The result is not a plain value (exactly None, bool, int, float, complex, str, bytes, list, tuple, dict, set)."""
    NO_RESULT = "noresult"
    """The process ended without a well-formed reply."""
    NONDETERMINISTIC = "nondet"
    """Two runs under different hash seeds, address layouts and call orders disagree."""
    BAD_REPLY = "badreply"
    """A well-formed reply whose content is not canonical."""
    FAULT = "fault"
    """The machine failed it, time and again: killed from outside, or never started. It says nothing about the program,
    and no program can cause it."""


class Mode(StrEnum):
    """What the guest does with the job's texts."""

    CALLS = "calls"
    """Execute the source, then call its entry point once per argument text."""
    PROGRAM = "program"
    """Execute the source as `__main__` with `stdin`; the result's value is what it printed."""
    LITERALS = "literals"
    """Read each text as one Python literal; no source is executed."""
    ARGUMENTS = "arguments"
    """Read each text as the arguments of a call (`1, [2, 3], n=5`); no source is executed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job. Exceeding one has a status of its own and never truncates."""

    cpu_s: float = 0.3
    """User time of one process, for the source and all calls of the job together. Kernel time has a wider limit, and
    waiting for a core does not count."""
    memory_mb: int = 256
    """Address space beyond what the warm interpreter already has."""
    value_chars: int = 20_000
    """Canonical text of one result."""
    stdout_bytes: int = 100_000
    """Bytes (in UTF-8) that the program may print, over all calls."""

    def __post_init__(self) -> None:
        if not 0.001 <= float(self.cpu_s) <= MAX_SECONDS:
            raise ValueError(f"a time limit is between 0.001 and {MAX_SECONDS} seconds")
        if not 1 <= self.memory_mb <= MAX_MEMORY_MB:
            raise ValueError(f"a memory limit is between 1 and {MAX_MEMORY_MB} MB")
        if self.value_chars < 1 or self.stdout_bytes < 0:
            raise ValueError("a size limit cannot be negative, and that of values is at least 1")
        if not all(isinstance(limit, int) for limit in (self.memory_mb, self.value_chars, self.stdout_bytes)):
            raise ValueError("a limit of memory or size is a whole number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One untrusted program and what to do with it. Make one with the constructors below."""

    mode: Mode
    source: str = ""
    texts: tuple[str, ...] = ()
    """Argument texts (CALLS, ARGUMENTS) or literal texts (LITERALS)."""
    entry: str = "f"
    stdin: str = ""
    modules: tuple[tuple[str, str], ...] = ()
    """Further source files as (module name, text): importable by the source, run in the same guest."""
    numpy: bool = False
    seeds: int = USUAL_SEEDS
    """Runs, each under a hash seed of its own, every other one with the calls in opposite order; their results must
    agree. Two are enough where there are no sets; the order of a set shows under `MOST_SEEDS`."""
    limits: Limits = field(default_factory=Limits)
    checker: Checker | None = None
    """Run in a guest that has this module, which the source then imports. `Job.check` writes that source; a program
    that a model wrote gets no checker, whose functions it could replace."""

    def __post_init__(self) -> None:
        texts = (self.source, self.entry, self.stdin, *self.texts, *(text for pair in self.modules for text in pair))
        if not all(isinstance(text, str) for text in texts) or not all(len(pair) == 2 for pair in self.modules):
            raise TypeError("a job is made of text: write arguments as in a call (`'12'`), modules as (name, source)")
        if self.numpy and self.checker:
            raise ValueError("a guest has numpy or a checker: name numpy in the checker's imports")
        if self.mode is not Mode.PROGRAM and not self.texts:
            raise ValueError(f"a job of mode {self.mode} needs at least one text")
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueError(f"a job runs under 1 to {MOST_SEEDS} hash seeds")
        if self.seeds > 1 and self.mode in (Mode.LITERALS, Mode.ARGUMENTS):
            raise ValueError("reading text has one result: only programs run under several seeds")

    @classmethod
    def calls(
        cls,
        source: str,
        arguments: Iterable[str],
        *,
        entry: str = "f",
        modules: Iterable[tuple[str, str]] = (),
        numpy: bool = False,
        seeds: int = USUAL_SEEDS,
        limits: Limits | None = None,
    ) -> "Job":
        """Execute `source`, then call `entry` once per text (`"1, [2, 3]"`, `"n=5"`), all in one process."""
        if isinstance(arguments, str):
            raise TypeError("`arguments` holds one text per call: put a single one in a list")
        return cls(
            mode=Mode.CALLS,
            source=source,
            texts=tuple(arguments),
            entry=entry,
            modules=tuple(modules),
            numpy=numpy,
            seeds=seeds,
            limits=limits or Limits(),
        )

    @classmethod
    def program(
        cls,
        source: str,
        stdin: str = "",
        *,
        modules: Iterable[tuple[str, str]] = (),
        numpy: bool = False,
        seeds: int = USUAL_SEEDS,
        limits: Limits | None = None,
    ) -> "Job":
        """Execute `source` as a whole program; the one result's value is the canonical text of what it printed."""
        return cls(
            mode=Mode.PROGRAM,
            source=source,
            entry="",
            stdin=stdin,
            modules=tuple(modules),
            numpy=numpy,
            seeds=seeds,
            limits=limits or Limits(),
        )

    @classmethod
    def literals(cls, texts: Iterable[str], *, limits: Limits | None = None) -> "Job":
        """Read texts as Python literals inside a guest: one result per text."""
        return cls(mode=Mode.LITERALS, texts=tuple(texts), seeds=1, limits=limits or Limits())

    @classmethod
    def check(
        cls,
        checker: Checker,
        function: str,
        calls: Iterable[tuple[object, ...]],
        *,
        limits: Limits | None = None,
        seeds: int = 1,
    ) -> "Job":
        """Call a checker's function with each tuple of plain values, all in one process: one result per call.

        Any string will do, whoever wrote it. A text that makes the function loop or crash takes the job's other calls
        with it, so texts of different authors belong in jobs of their own.
        """
        if not function.isidentifier():
            raise ValueError(f"a checker's function has a name, not {function!r}")
        return cls(
            mode=Mode.CALLS,
            source=f"from {checker.module} import {function} as f",
            texts=tuple(map(_arguments, calls)),
            checker=checker,
            seeds=seeds,
            limits=limits or Limits(),
        )

    @classmethod
    def answers(cls, pairs: Iterable[tuple[str, str]], *, limits: Limits) -> "Job":
        """Whether both answers of each pair, the right one first, are equal by math-verify: one result per pair."""
        return cls.check(MATH_VERIFY, "same", pairs, limits=limits)

    @classmethod
    def arguments(cls, texts: Iterable[str], *, limits: Limits | None = None) -> "Job":
        """Read texts as call arguments inside a guest: each result's value is the canonical `1, [2, 3], n=5`."""
        return cls(mode=Mode.ARGUMENTS, texts=tuple(texts), seeds=1, limits=limits or Limits())


def _arguments(call: tuple[object, ...]) -> str:
    """A call's arguments as text, which is ASCII whatever their strings hold."""
    if not isinstance(call, tuple):
        raise TypeError("each call is a tuple of arguments: one argument is `(text,)`")
    try:
        text = literals.encode_arguments(call, {}, _MAX_ARGUMENT_CHARS)
    except literals.Opaque:
        kinds = ", ".join(type(value).__name__ for value in call)
        raise TypeError(f"a checker's function gets plain values, by exact type, and not ({kinds})") from None
    except literals.TooLong:
        raise ValueError("an argument of a checker's function is too long, too deep or has too many keys") from None
    if ("inf" in text or "nan" in text) and not all(map(_is_literal, call)):
        raise ValueError("infinities and nan are no literals: give a checker's function their text")
    return text


def _is_literal(value: object) -> bool:
    """Whether a plain value can be written: no literal is an infinity or nan."""
    if isinstance(value, dict):
        return all(_is_literal(each) for item in value.items() for each in item)
    if isinstance(value, list | tuple | set):
        return all(map(_is_literal, value))
    return cmath.isfinite(value) if isinstance(value, float | complex) else True


@dataclass(frozen=True, slots=True)
class Result:
    status: Status
    value: str | None = None
    """Canonical literal text when the status is OK."""
    exception: str | None = None
    """The exception's class name when the status is EXCEPTION; `badname` when it is not an ASCII identifier."""

    @property
    def verdict(self) -> str:
        """One word for people and scripts: `ok:42`, `exc:ValueError`, `timeout`, ..."""
        if self.status is Status.OK:
            return f"ok:{self.value}"
        if self.status is Status.EXCEPTION:
            return f"exc:{self.exception}"
        return str(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    results: tuple[Result, ...]
    """One per text, or one for a program. When the process died, all of them say so."""
    tier: str
    cpu_ms: float
    """CPU time of the runs that count, their start included."""
    runs: tuple[tuple[Result, ...], ...] = ()
    """Of each run, in the order of the hash seeds; none where the job was too long to be run."""
    user_ms: float = 0.0
    """The part of the CPU time in user mode, which load does not change."""
    fault: str | None = None
    """What the machine did to it last, where a run is a `FAULT`."""

    @property
    def status(self) -> Status:
        return next((r.status for r in self.results if r.status is not Status.OK), Status.OK)
