"""Asking a checker, code of ours in a guest, about texts of a model: many in one process, alone where that fails."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    batches = [different[at : at + together] for at in range(0, len(different), together)]
    said = await _ask(checker, function, batches, verifier, limits)
    alone = [[call] for call in different if len(batches[0]) > 1 and said[call].status is not Status.OK]
    if alone:
        said |= await _ask(checker, function, alone, verifier, limits)
    return [_value(said[call]) for call in calls]


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
