"""The code family's way to the verifier: texts read as literals, drafts run, values compared.

Model text is read inside a guest, many texts to a job since nothing of theirs is executed. Values come back as
canonical text and are compared here; what a program should return never enters a guest.
"""

import cmath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from redqueen.tasks.blocks import is_text
from redqueen.tasks.code.evidence import AS_GRADED, VALIDATED, agreed, shown
from redqueen.tasks.code.order import seeds_for
from redqueen.tasks.code.program import brackets_nest, parameters, parse_source
from redqueen.tasks.code.task import MAX_ANSWER_CHARS, MAX_INPUT_CHARS, MAX_OUTPUT_CHARS, CodeDraft, CodeTask
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import USUAL_SEEDS, Job, Limits, Outcome, Result, Status, Verifier
from redqueen.verifier.guest import literals

_TEXTS_PER_JOB = 64
_STRING = re.compile(r"""'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+\"""", re.DOTALL)
_MOST_CHARS = 4 * MAX_OUTPUT_CHARS + 100
"""Of a result in any guest: room for whatever may be right."""
_REASONS = {
    Status.EXCEPTION: Reason.RAISES,
    Status.TIMEOUT: Reason.TIMEOUT,
    Status.MEMORY: Reason.MEMORY,
    Status.CRASH: Reason.CRASH,
    Status.VIOLATION: Reason.VIOLATION,
    Status.TOO_LONG: Reason.OUTPUT_TOO_LONG,
    Status.OPAQUE: Reason.NOT_PLAIN,
    Status.NO_RESULT: Reason.NO_RESULT,
    Status.BAD_REPLY: Reason.NO_RESULT,
    Status.NONDETERMINISTIC: Reason.NONDETERMINISTIC,
    Status.FAULT: Reason.NOT_JUDGED,
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A draft with its inputs in canonical text, and what its program returned for each."""

    draft: CodeDraft
    outputs: tuple[str, ...]

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        """Why it is no task, with what its runs gave before these."""
        gave = agreed(self.draft.inputs, [f"ok:{output}" for output in self.outputs])
        return self.draft.rejected(reason, detail, (*gave, *runs))


async def read_literals(texts: Iterable[str], verifier: Verifier) -> dict[str, str | Rejection]:
    """The canonical text of each literal."""
    read = await _read(texts, MAX_ANSWER_CHARS, Reason.ANSWER_TOO_LONG, Job.literals, verifier)
    return {text: result if isinstance(result, Rejection) else result.value or "" for text, result in read.items()}


async def read_inputs(texts: Iterable[str], verifier: Verifier) -> dict[str, str | Rejection]:
    """The canonical text of each call's arguments."""
    read = await _read(texts, MAX_ANSWER_CHARS, Reason.INPUT_TOO_LONG, Job.arguments, verifier)
    return {text: result if isinstance(result, Rejection) else _input(result) for text, result in read.items()}


def _input(result: Result) -> str | Rejection:
    text = result.value or ""
    if not text:
        return Rejection(Reason.NO_INPUT, "no arguments")
    if len(text) > MAX_INPUT_CHARS:
        return Rejection(Reason.INPUT_TOO_LONG, f"more than {MAX_INPUT_CHARS} characters in canonical text")
    if not is_finite(literals.parse_arguments(text)):
        return Rejection(Reason.NOT_FINITE, "an input that is infinite")  # `1e999`
    return text


async def _read(
    texts: Iterable[str],
    max_chars: int,
    too_long: Reason,
    make_job: Callable[..., Job],
    verifier: Verifier,
) -> dict[str, Result | Rejection]:
    read: dict[str, Result | Rejection] = {}
    pending: list[str] = []
    for text in dict.fromkeys(texts):
        refused = _refuse(text, max_chars, too_long)
        if refused is None:
            pending.append(text)
        else:
            read[text] = refused
    limits = Limits(value_chars=max_chars)
    batches = [pending[i : i + _TEXTS_PER_JOB] for i in range(0, len(pending), _TEXTS_PER_JOB)]
    outcomes = await verifier.run([make_job(batch, limits=limits) for batch in batches])
    alone: list[str] = []
    for batch, outcome in zip(batches, outcomes, strict=True):
        if len(batch) > 1 and died(outcome.results):
            alone += batch
        else:
            read.update(zip(batch, map(_readable, outcome.results), strict=True))
    if alone:  # one text took its neighbours with it
        outcomes = await verifier.run([make_job([text], limits=limits) for text in alone])
        read.update((text, _readable(outcome.results[0])) for text, outcome in zip(alone, outcomes, strict=True))
    return read


def _refuse(text: str, max_chars: int, too_long: Reason) -> Rejection | None:
    if len(text) > max_chars:
        return Rejection(too_long, f"more than {max_chars} characters")
    if not is_text(text):
        return Rejection(Reason.NOT_TEXT, "a lone surrogate or a NUL")
    if brackets_nest(_STRING.sub("''", text), literals.MAX_DEPTH):  # a guest reads it: too little said costs nothing
        return Rejection(Reason.TOO_DEEP, f"brackets nested deeper than {literals.MAX_DEPTH}")
    return None


def died(results: Sequence[Result]) -> bool:
    """Whether one of the texts of a job took the others with it."""
    return results[0].status not in (Status.OK, Status.EXCEPTION) and len({result.status for result in results}) == 1


def _readable(result: Result) -> Result | Rejection:
    if result.status is Status.OK:
        return result
    if result.status is Status.FAULT:
        return Rejection(Reason.NOT_JUDGED)
    return Rejection(Reason.NOT_LITERAL, result.exception or result.status.value)


async def run_drafts(drafts: Sequence[CodeDraft], limits: Limits, verifier: Verifier) -> list[Ran | Rejection]:
    """Every draft's program on its inputs, each distinct draft once."""
    read = await read_inputs((text for draft in drafts for text in draft.inputs), verifier)
    readied = {draft: _canonical(draft, read) for draft in drafts}
    ready = [draft for draft in dict.fromkeys(readied.values()) if isinstance(draft, CodeDraft)]
    # Half of the time that an attempt gets: a program that barely validates would fail its own truth on a busy day.
    tight = replace(limits, cpu_s=limits.cpu_s / 2)
    outcomes = await verifier.run(
        [
            call_job(draft.program, _at_least_two(draft.inputs), tight, seeds_for(draft.program, draft.inputs))
            for draft in ready
        ]
    )
    ran = {draft: _ran(draft, outcome) for draft, outcome in zip(ready, outcomes, strict=True)}
    ran |= await _as_graded([result for result in ran.values() if isinstance(result, Ran)], limits, verifier)
    return [
        canonical if isinstance(canonical, Rejection) else ran[canonical]
        for canonical in (readied[draft] for draft in drafts)
    ]


async def _as_graded(ran: Sequence[Ran], limits: Limits, verifier: Verifier) -> dict[CodeDraft, Rejection]:
    """The drafts whose program comes to something else when it is called as a grader calls it.

    A program can tell one run from another, by the order of a set of strings for one, and so be steady only while it is
    validated. This run has the grader's limits and number of calls, and the inputs in another order.
    """
    orders = [sorted(range(len(run.outputs)), key=run.draft.inputs.__getitem__) for run in ran]
    calls = [[run.draft.inputs[at] for at in order] for run, order in zip(ran, orders, strict=True)]
    jobs = [call_job(run.draft.program, inputs, limits) for run, inputs in zip(ran, calls, strict=True)]
    changed: dict[CodeDraft, Rejection] = {}
    for validated, order, inputs, outcome in zip(ran, orders, calls, await verifier.run(jobs), strict=True):
        why = _refusal(outcome.results)
        if why is None and [result.value for result in outcome.results] != [validated.outputs[at] for at in order]:
            why = Reason.NONDETERMINISTIC, "other results when called as a grader calls it"
        if why is not None:
            changed[validated.draft] = validated.rejected(*why, shown(AS_GRADED, inputs, outcome))
    return changed


def call_job(program: str, inputs: Sequence[str], limits: Limits, seeds: int = USUAL_SEEDS) -> Job:
    """A program on its inputs, for whatever purpose: what a program could read of its own job, such as how long a
    result may be, must tell it neither whether it is being graded nor anything of what it should return."""
    return Job.calls(program, inputs, seeds=seeds, limits=_roomy(limits))


@lru_cache
def _roomy(limits: Limits) -> Limits:
    return replace(limits, value_chars=_MOST_CHARS)


def refuse_unanswerable(
    tasks: Sequence[CodeTask | Rejection], readable: Mapping[CodeTask, bool | None]
) -> list[CodeTask | Rejection]:
    """The tasks without those whose truth the grader's own reader does not give back: a `</think>` in a string for one
    ends a thought. None: it could not be read for the machine's sake."""
    refusals = {
        False: (Reason.UNANSWERABLE, "the right answer is not read as right"),
        None: (Reason.NOT_JUDGED, "the right answer could not be read"),
    }
    return [
        task if isinstance(task, Rejection) or readable[task] else task.rejected(*refusals[readable[task]])
        for task in tasks
    ]


def _at_least_two(inputs: tuple[str, ...]) -> tuple[str, ...]:
    """A program that keeps state between calls shows it, since the second run makes the calls in opposite order."""
    return inputs * 2 if len(inputs) == 1 else inputs


def _canonical(draft: CodeDraft, read: dict[str, str | Rejection]) -> CodeDraft | Rejection:
    """The draft with canonical inputs, and without those that make the same call as an earlier one."""
    tree = parse_source(draft.program) if len(draft.inputs) > 1 else None
    if isinstance(tree, Rejection):
        return draft.rejected(tree.reason, tree.detail)
    names = parameters(tree) if tree else []
    inputs: list[str] = []
    calls: list[dict[str, Any]] = []
    for text in draft.inputs:
        canonical = read[text]
        if isinstance(canonical, Rejection):
            return draft.rejected(canonical.reason, canonical.detail)
        call = _call(canonical, names)
        if call not in calls:  # by Python's equality: a table with 1 for its key also answers 1.0 and True
            inputs.append(canonical)
            calls.append(call)
    return replace(draft, inputs=tuple(inputs))


def _call(canonical: str, names: Sequence[str]) -> dict[str, Any]:
    """The arguments by parameter, so that `5` and `n=5` are one call."""
    arguments, keywords = literals.parse_arguments(canonical)
    positions = [*names, *(f"*{place}" for place in range(len(arguments)))]
    return {**dict(zip(positions, arguments, strict=False)), **keywords}


def _ran(draft: CodeDraft, outcome: Outcome) -> Ran | Rejection:
    why = _refusal(outcome.results)
    if why is not None:
        return draft.rejected(*why, shown(VALIDATED, _at_least_two(draft.inputs), outcome))
    return Ran(draft, tuple(result.value or "" for result in outcome.results[: len(draft.inputs)]))


def _refusal(results: Sequence[Result]) -> tuple[Reason, str] | None:
    """Why these cannot be asked for."""
    for result in results:
        if result.status is not Status.OK or result.value is None:
            reason = Reason.SYNTAX if refused_by_compiler(result) else _REASONS[result.status]
            return reason, result.exception or ""
        if len(result.value) > MAX_OUTPUT_CHARS:
            return Reason.OUTPUT_TOO_LONG, f"more than {MAX_OUTPUT_CHARS} characters in canonical text"
        if not is_finite(literals.parse(result.value)):
            return Reason.NOT_FINITE, "a result that is infinite or not a number"
    return None


def refused_by_compiler(result: Result) -> bool:
    """What Python's parser accepts its compiler may still refuse, a `return` outside a function for one."""
    return result.exception == "SyntaxError"


def is_finite(value: object) -> bool:
    """Whether no number in a plain value is infinite or not a number."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set):
            pending += item
        elif isinstance(item, float | complex) and not cmath.isfinite(item):
            return False
    return True


def gives(result: Result, expected: str) -> bool:
    """Whether a run's value is the expected one: by type, floats within the tolerance."""
    return result.status is Status.OK and result.value is not None and same_text(result.value, expected)


def same_text(one: str, other: str) -> bool:
    """Whether two canonical texts are of the same value: by type, floats within the tolerance."""
    return one == other or literals.same(literals.parse(one), literals.parse(other))
