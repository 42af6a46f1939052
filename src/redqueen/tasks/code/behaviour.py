"""What programs do: their results on fixed inputs of many types.

Two programs that differ in words, layout or style do the same, and longer texts are no gain.
"""

import builtins
import hashlib
from collections.abc import Sequence
from itertools import product

from redqueen.tasks.code.program import parse_source, required
from redqueen.tasks.code.task import CodeTask
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import Job, Limits, Outcome, Result, Status, Verifier

# The values are small: a program whose time grows with them should come to an end all the same. Any change of a probe
# changes all behaviours, and figures of earlier runs can no longer be compared with later ones.
_ONE = (
    "0", "1", "2", "7", "12", "25", "-3", "2.5", "''", "'a'", "'abcab'", "'Hello World 12'", "'10110'", "'([)]{}'",
    "[]", "[4]", "[3, 1, 2, 1]", "[-5, 0, 8, 5, 13]", "[0.5, 1.5]", "['b', 'a', 'bb']", "[[1, 2], [3, 4]]",
    "[[], [5], 'x']", "[(2, 'b'), (1, 'a')]", "(1, 2, 3)", "((1, 2), (3, 4))", "('7', '8')", "{'a': 1, 'b': 2}",
    "{3: [1]}", "{1, 2}", "None",
)  # fmt: skip
_TWO = (
    "1", "3", "-2", "10", "2.5", "'abcab'", "'b'", "[3, 1, 2, 1]", "['b', 'a']", "[[1, 2], [3, 4]]", "{'a': 2, 'b': 1}",
)  # fmt: skip
_MORE = ("3", "8", "'ab'", "[3, 1, 2]", "{'a': 1}")
_LIMITS = Limits(cpu_s=0.2, value_chars=2_000)


async def behaviours(tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
    """What each task's program does, as a hash of its results on the probes; one job for each distinct program.

    None for a task without a program, for a program that returned a value on no probe (none of them fits it, which
    says nothing about it) and for one that did not come to an end on all of them.
    """
    calls = {program: _probes(program) for program in map(_program, tasks) if program is not None}
    jobs = {program: Job.calls(program, probes, seeds=1, limits=_LIMITS) for program, probes in calls.items() if probes}
    outcomes = await verifier.run(list(jobs.values()))
    by_program = {program: _behaviour(outcome) for program, outcome in zip(jobs, outcomes, strict=True)}
    return [None if program is None else by_program.get(program) for program in map(_program, tasks)]


def _program(task: Task) -> str | None:
    return task.program if isinstance(task, CodeTask) else None


def _probes(program: str) -> list[str]:
    """The arguments of every call; none for what is not a function `f`."""
    tree = parse_source(program)
    names = [] if isinstance(tree, Rejection) else required(tree)
    if not names:
        return []
    if len(names) == 1:
        values = [(value,) for value in _ONE]
    elif len(names) == 2:
        values = list(product(_TWO, _TWO))
    else:
        # All types in the first three places, the last of them also in those that follow.
        values = [(*three, *(three[2:] * (len(names) - 3))) for three in product(_MORE, repeat=3)]
    return [", ".join(name + value for name, value in zip(names, given, strict=True)) for given in values]


def _behaviour(outcome: Outcome) -> str | None:
    if all(result.status is not Status.OK for result in outcome.results):
        return None
    text = "\n".join(map(_word, outcome.results))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _word(result: Result) -> str:
    """A result's verdict, without the name of an exception of the program's own: names are not what it does."""
    own = result.status is Status.EXCEPTION and not hasattr(builtins, result.exception or "")
    return "exc" if own else result.verdict
