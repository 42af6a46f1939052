"""The check that no proposal and no answer is waited for: a step has hundreds of each."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redqueen.tasks.protocol import Attempt
from redqueen.tasks.soundness import texts
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, ok, untried
from redqueen.tasks.soundness.material import Material
from redqueen.tasks.sources import Source
from redqueen.verifier import Verifier

SLOWEST_SECONDS = 1.0
"""Of a single validation or grading."""
DRAFTS_AT_ONCE, ATTEMPTS_AT_ONCE = 24, 192
"""What a teacher of the default settings sends in a step, and what its students do."""
_BATCHES = 4
_SINGLES = 100
_TRIES = 3
Work = Callable[[Sequence[Any]], Awaitable[object]]


async def quick_enough(material: Material, verifier: Verifier) -> Finding:
    """Validations (of a source: draws) and gradings a second in batches, and how long a single one takes; only the
    latter can fail."""
    kind, golds, family = material.kind, material.golds, material.family
    if not golds and not material.drafts:
        return untried("nothing to time")
    attempts = [
        Attempt(task, golds[(at + step) % len(golds)][1]) for step in range(8) for at, (task, _) in enumerate(golds)
    ]
    odd = [Attempt(task, texts.in_the_form_of(gold, text)) for task, gold in golds[:1] for text in texts.INJECTIONS]

    def validate(drafts: Sequence[Any]) -> Awaitable[object]:
        return kind.validate(drafts, verifier)

    async def draw(numbers: Sequence[int]) -> object:
        return [family.draw(kind.name, number) for number in numbers] if isinstance(family, Source) else []

    noun, make, made = (
        ("draw", draw, range(DRAFTS_AT_ONCE)) if material.drawn else ("validation", validate, material.drafts)
    )

    def grade(attempts: Sequence[Any]) -> Awaitable[object]:
        return kind.grade(attempts, verifier)

    validated = await _rate(make, made, DRAFTS_AT_ONCE)
    graded = await _rate(grade, attempts, ATTEMPTS_AT_ONCE)
    validations = await _each(make, made[:_SINGLES])
    gradings = await _each(grade, [*attempts[:_SINGLES], *odd])
    values = {
        f"{noun}s_a_second": round(validated, 1), "grades_a_second": round(graded, 1),
        f"{noun}_99_ms": _at(validations, 0.99), f"{noun}_worst_ms": _at(validations, 1),
        "grade_99_ms": _at(gradings, 0.99), "grade_worst_ms": _at(gradings, 1),
    }  # fmt: skip
    figure = f"{_whole(validated)}/s, {_whole(graded)}/s"
    slow = [(seconds, thing) for seconds, thing in (*validations, *gradings) if seconds > SLOWEST_SECONDS]
    if not slow:
        return ok(figure, values)
    seconds, thing = max(slow, key=lambda pair: pair[0])
    what = f"{len(slow):,} single {noun}s or gradings take over {SLOWEST_SECONDS:g} s"
    example = f"{seconds:.1f} s for {excerpt(thing)}"
    mend = "do less in this process, and what runs for long in the verifier, under limits"
    return failed(figure, what, example=example, mend=mend, values=values)


def _whole(rate: float) -> str:
    return f"{rate:,.0f}" if rate else "-"


async def _rate(work: Work, things: Sequence[Any], at_once: int) -> float:
    """How many a second, in batches; 0 where there are none."""
    things = things[: _BATCHES * at_once]
    start = time.perf_counter()
    for at in range(0, len(things), at_once):
        await work(things[at : at + at_once])
    return len(things) / (time.perf_counter() - start) if things else 0.0


async def _each(work: Work, things: Sequence[Any]) -> list[tuple[float, Any]]:
    """The seconds that each takes alone. What is slow is tried again: a busy machine is no fault of the family's."""
    took: list[tuple[float, Any]] = []
    for thing in things:
        best = float("inf")
        for _ in range(_TRIES):
            start = time.perf_counter()
            await work([thing])
            best = min(best, time.perf_counter() - start)
            if best <= SLOWEST_SECONDS:
                break
        took.append((best, thing))
    return took


def _at(took: Sequence[tuple[float, Any]], share: float) -> float:
    """Milliseconds that this share of them stays within."""
    seconds = sorted(seconds for seconds, _ in took)
    return round(1_000 * seconds[max(0, int(share * len(seconds) + 0.5) - 1)], 1) if seconds else 0.0
