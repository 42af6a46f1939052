"""Jobs, outcomes and errors as plain tuples, and back: what passes between a verifier and its shards."""

from functools import cache
from typing import Any, NamedTuple

from redqueen.errors import InputError, MachineError, RedQueenError, UserError, VerifierFault
from redqueen.verifier.checkers import Checker
from redqueen.verifier.jobs import Job, Limits, Mode, Outcome, Result, Status
from redqueen.verifier.zygotes import Greeting

Packed = tuple[Any, ...]
"""Nothing but plain values, in tuples."""
_STATUSES = {status.value: status for status in Status}


class Report(NamedTuple):
    """What a shard says of itself, and the answers that it has since it last did."""

    answers: tuple[tuple[int, Packed | None, Packed | None], ...] = ()
    """By the job's number: an outcome, or the error that fails the call."""
    zygotes: tuple[tuple[int, ...], int] | None = None
    """The process ids of those that are ready, and how many there are when none is being replaced; None: as before."""
    greeting: Packed | None = None
    """Of the first zygote, once: the shard takes jobs from now on."""
    failure: Packed | None = None
    """Why it cannot go on."""
    refused: str | None = None
    """Why the machine does not have its tier."""


def pack_job(job: Job) -> Packed:
    limits, checker = job.limits, job.checker and (job.checker.file, job.checker.imports, job.checker.data)
    return (
        *(job.mode.value, job.source, job.texts, job.entry, job.stdin, job.modules, job.numpy, job.seeds, checker),
        *(float(limits.cpu_s), limits.memory_mb, limits.value_chars, limits.stdout_bytes),
    )


def unpack_job(packed: Packed) -> Job:
    mode, source, texts, entry, stdin, modules, numpy, seeds, checker, *limits = packed
    return Job(
        mode=Mode(mode),
        source=source,
        texts=texts,
        entry=entry,
        stdin=stdin,
        modules=modules,
        numpy=numpy,
        seeds=seeds,
        limits=Limits(*limits),
        checker=checker and _checker(*checker),
    )


_checker = cache(Checker)
"""A shard meets the same few again and again."""


def pack_outcome(outcome: Outcome) -> Packed:
    runs = tuple(map(_pack_results, outcome.runs))
    results = _pack_results(outcome.results)
    # Nearly always the runs agree: then the results are told once.
    return None if runs and results == runs[0] else results, runs, outcome.cpu_ms, outcome.user_ms, outcome.fault


def unpack_outcome(packed: Packed, tier: str) -> Outcome:
    results, packed_runs, cpu_ms, user_ms, fault = packed
    runs = tuple(map(_unpack_results, packed_runs))
    return Outcome(
        results=runs[0] if results is None else _unpack_results(results),
        tier=tier,
        cpu_ms=cpu_ms,
        runs=runs,
        user_ms=user_ms,
        fault=fault,
    )


def _pack_results(results: tuple[Result, ...]) -> Packed:
    return tuple([(result.status.value, result.value, result.exception) for result in results])


def _unpack_results(packed: Packed) -> tuple[Result, ...]:
    return tuple([Result(_STATUSES[status], value, exception) for status, value, exception in packed])


def pack_error(error: RedQueenError) -> Packed:
    if isinstance(error, UserError):
        return isinstance(error, InputError), error.what, error.mend
    return (str(error),)


def unpack_error(packed: Packed) -> RedQueenError:
    """One that says how to mend it is about a checker's file, or else the machine's: a supervisor has no others."""
    if len(packed) == 1:
        return VerifierFault(*packed)
    about_a_file, what, mend = packed
    return InputError(what, mend) if about_a_file else MachineError(what, mend)


def pack_greeting(greeting: Greeting) -> Packed:
    return greeting.inner_pid, dict(greeting.namespaces)


def unpack_greeting(packed: Packed) -> Greeting:
    return Greeting(*packed)
