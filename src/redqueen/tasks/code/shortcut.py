"""Answers that need no reasoning, and the tasks that they solve.

    code_i   copy (the shown output as the input, or beside small constants), wrapped, unwrapped, constant
    code_o   argument (the output is one), first or last (element of one), constant
    code_f   argument, first, last: for all hidden pairs, as the shown ones may stand in a table

A student that is paid for such answers learns to give them, whatever the program says.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from redqueen.tasks.code.program import parse_source, required
from redqueen.tasks.code.running import call_job, died, gives
from redqueen.tasks.code.task import MAX_INPUT_CHARS, CodeTask
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import Limits, Verifier
from redqueen.verifier.guest import literals

_CONSTANT = "constant"
_FILLERS = ("0", "1", "''", "[]")
_INPUTS = (*_FILLERS, "-1", "2", "'a'", "[0]", "[1]", "()", "{}", "True", "False")
"""Constants that are tried for a single parameter; several get a filler each."""
_MOST_PLACES = 3
"""Parameters that the output is put in the place of."""
_OUTPUTS = frozenset({"True", "False", "0", "1", "-1", "0.0", "''", "[]", "()", "{}", "set()"})
_WAYS: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "argument": lambda value: [value],
    "first": lambda value: value[:1] if isinstance(value, str | list | tuple) else [],
    "last": lambda value: value[-1:] if isinstance(value, str | list | tuple) else [],
}
"""What is taken from an argument, by name: one value, or none where it has no elements."""


async def shortcuts(tasks: Sequence[Task], limits: Limits, verifier: Verifier) -> list[str | None]:
    """For each task the first way that solves it. Only code_i runs anything: all its inputs in one job."""
    of_code = [task for task in tasks if isinstance(task, CodeTask)]
    found = {task: _in_sight(task) for task in of_code if task.kind in ("code_o", "code_f")}
    found |= await _tried({task: _inputs(task) for task in of_code if task.kind == "code_i"}, limits, verifier)
    return [found.get(task) if isinstance(task, CodeTask) else None for task in tasks]


def copies(task: CodeTask) -> frozenset[str]:
    """The answers, in canonical text, that give back what is shown: code_o's arguments; code_i's output as it stands,
    wrapped or unwrapped."""
    if task.kind == "code_i":
        return frozenset(given for given, way in _inputs(task).items() if way != _CONSTANT)
    if task.kind == "code_o":
        return frozenset(map(_text, _arguments(task.inputs[0])))
    return frozenset()


def _in_sight(task: CodeTask) -> str | None:
    """How each output that is asked for can be had from its arguments, or without them."""
    outputs = [literals.parse(output) for output in task.outputs[task.shown :]]
    calls = [_arguments(given) for given in task.inputs[task.shown :]]
    for way, taken in _WAYS.items():
        for values in zip(*calls, strict=False):  # those in one place of all calls
            if all(
                any(literals.same(one, output) for one in taken(value))
                for value, output in zip(values, outputs, strict=True)
            ):
                return way
    return _CONSTANT if task.kind == "code_o" and task.outputs[0] in _OUTPUTS else None


async def _tried(
    inputs: Mapping[CodeTask, Mapping[str, str]], limits: Limits, verifier: Verifier
) -> dict[CodeTask, str | None]:
    """Of each task's inputs, the name of the first that gives its output."""
    tried = {task: list(given) for task, given in inputs.items() if given}
    jobs = [call_job(task.program, given, limits, seeds=1) for task, given in tried.items()]
    results = {task: outcome.results for task, outcome in zip(tried, await verifier.run(jobs), strict=True)}
    # An input on which the program does not end takes the others with it: then each is tried by itself.
    alone = [(task, given) for task, own in results.items() if died(own) for given in tried[task]]
    outcomes = await verifier.run([call_job(task.program, [given], limits, seeds=1) for task, given in alone])
    by_itself = {pair: outcome.results[0] for pair, outcome in zip(alone, outcomes, strict=True)}
    return {
        task: next(
            (
                inputs[task][given]
                for given, result in zip(tried[task], own, strict=True)
                if gives(by_itself.get((task, given), result), task.outputs[0])
            ),
            None,
        )
        for task, own in results.items()
    }


def _inputs(task: CodeTask) -> dict[str, str]:
    """Inputs that nobody needs the program for, with the name of each, the likeliest first."""
    tree = parse_source(task.program)
    names = [] if isinstance(tree, Rejection) else required(tree)
    output, size = task.outputs[0], len(names)
    ways = [("copy", [output] * size)]
    ways += [("wrapped", [wrapped] * size) for wrapped in (f"[{output}]", f"({output},)")]
    value = literals.parse(output)
    if isinstance(value, list | tuple) and len(value) == size:
        ways.append(("unwrapped", list(map(_text, value))))
    if size > 1:
        ways += [
            ("copy", [output if at == place else filler for at in range(size)])
            for place in range(min(size, _MOST_PLACES))
            for filler in _FILLERS
        ]
    ways += [(_CONSTANT, [constant] * size) for constant in (_INPUTS if size == 1 else _FILLERS)]
    inputs: dict[str, str] = {}
    for way, values in ways:
        given = ", ".join(name + text for name, text in zip(names, values, strict=True))
        if 0 < len(given) <= MAX_INPUT_CHARS:
            inputs.setdefault(given, way)
    return inputs


def _arguments(given: str) -> list[Any]:
    positional, keywords = literals.parse_arguments(given)
    return list(chain(positional, keywords.values()))


def _text(value: Any) -> str:
    return literals.encode(value, MAX_INPUT_CHARS)
