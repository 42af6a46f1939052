"""Asking a checker, code of ours in a guest, about texts of a model: many in one process, alone where that fails.

What a checker says: of a proposal a dict, which has a "reason" and a "detail" where it is refused; of an answer
"correct", "wrong", or a list of reason and detail where it is none.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from redqueen.tasks.blocks import read_answer
from redqueen.tasks.protocol import Attempt, Draft, TaskT
from redqueen.tasks.verdicts import CUT_ATTEMPT, NOT_JUDGED_ATTEMPT, Grade, Reason, Rejection, Verdict, malformed
from redqueen.verifier import Checker, Job, Limits, Result, Status, Verifier
from redqueen.verifier.guest import literals

TOGETHER = 16
"""Calls in one process: starting it takes longer than most of them."""


async def ask(
    checker: Checker,
    function: str,
    calls: Sequence[tuple[str, ...]],
    verifier: Verifier,
    *,
    together: int = TOGETHER,
    limits: Limits | None = None,
) -> list[Any]:
    """What the function says to each call, equal ones asked once; its `Result` where it said nothing. A call that
    takes its process along takes nobody else: the others are asked again, alone."""
    different = list(dict.fromkeys(calls))
    batches = _evenly(different, -(-len(different) // together))
    said = await _ask(checker, function, batches, verifier, limits)
    alone = [[call] for call in different if len(batches[0]) > 1 and said[call].status is not Status.OK]
    if alone:
        said |= await _ask(checker, function, alone, verifier, limits)
    return [_value(said[call]) for call in calls]


def _evenly(calls: Sequence[tuple[str, ...]], parts: int) -> list[Sequence[tuple[str, ...]]]:
    """In so many parts of about one size: none is waited for when the others have ended."""
    ends = [len(calls) * part // parts for part in range(parts + 1)]
    return [calls[begin:end] for begin, end in pairwise(ends)]


async def _ask(
    checker: Checker,
    function: str,
    batches: Sequence[Sequence[tuple[str, ...]]],
    verifier: Verifier,
    limits: Limits | None,
) -> dict[tuple[str, ...], Result]:
    outcomes = await verifier.run([Job.check(checker, function, batch, limits=limits) for batch in batches])
    answers: Mapping[tuple[str, ...], Result] = {
        call: result
        for batch, outcome in zip(batches, outcomes, strict=True)
        for call, result in zip(batch, outcome.results, strict=True)
    }
    return dict(answers)


def _value(result: Result) -> Any:
    return literals.parse(result.value) if result.status is Status.OK and result.value is not None else result


def refused(draft: Draft, said: Any) -> Rejection | None:
    """Why the checker takes the draft for no task; None where it takes it."""
    if isinstance(said, Result):
        if said.status is Status.FAULT:
            return draft.rejected(Reason.NOT_JUDGED, "the machine failed its check")
        return draft.rejected(Reason.TOO_COMPLEX, f"its check did not end well: {said.status}")
    return draft.rejected(Reason(said["reason"]), said["detail"]) if "reason" in said else None


async def grade(
    checker: Checker,
    function: str,
    attempts: Sequence[Attempt[TaskT]],
    label: str,
    shown: Callable[[TaskT], str],
    verifier: Verifier,
    *,
    limits: Limits | None = None,
) -> list[Verdict]:
    """What the function says to what each task shows and the block with this label of each attempt."""
    read = [reading(attempt, label) for attempt in attempts]
    calls = {at: (shown(attempts[at].task), text) for at, text in enumerate(read) if isinstance(text, str)}
    said = await ask(checker, function, list(calls.values()), verifier, limits=limits) if calls else []
    judged = {at: verdict_of(one) for at, one in zip(calls, said, strict=True)}
    return [judged[at] if isinstance(answer, str) else answer for at, answer in enumerate(read)]


def reading(attempt: Attempt[Any], label: str, *, fenced: bool = False) -> str | Verdict:
    """The value in an attempt: its block with this label, and unless it has to be `fenced`, what stands for one."""
    if attempt.cut:
        return CUT_ATTEMPT
    answer = read_answer(attempt.text, label)
    if isinstance(answer, Rejection):
        return malformed(answer)
    value = (answer.part(label) or "").strip() if fenced else answer.value(label)
    return value or malformed(Rejection(Reason.NO_ANSWER, f"no {label}"))


def verdict_of(said: Any) -> Verdict:
    """What a checker says to an answer, as a verdict."""
    if isinstance(said, Result):
        if said.status is Status.FAULT:
            return NOT_JUDGED_ATTEMPT
        return malformed(Rejection(Reason.NO_ANSWER, "it cannot be read"), said.status)
    if isinstance(said, list):
        return malformed(Rejection(Reason(said[0]), said[1]), Status.OK)
    return Verdict(grade=Grade.CORRECT if said == "correct" else Grade.WRONG, status=Status.OK)
