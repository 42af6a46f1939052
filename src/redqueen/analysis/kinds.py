"""What became of each kind's proposals and tasks over some steps: the figures by which families are told apart."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import fmean

from redqueen.runs import metrics
from redqueen.runs.metrics import RACE
from redqueen.runs.store import Store

MOST_REASONS = 3
"""Of a kind's rejections, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFigures:
    """Of one kind; None where nothing is known of it."""

    kind: str
    proposals: int
    valid: float | None
    """Proposals that became tasks."""
    rejected: tuple[tuple[str, float], ...]
    """The commonest reasons, each with its share of all proposals."""
    solve_rate: float | None
    guess_rate: float | None
    """Tasks whose answer is the commonest one of recent tasks: the mean of the steps, each by itself."""
    cells: float | None
    """Of structures, ever filled by the last step."""
    checks_a_second: float | None
    """Proposals and attempts that were checked, over the seconds in which any was."""


def by_kind(store: Store, kinds: tuple[str, ...], since: int) -> list[KindFigures]:
    """From this step to the last one, in the order of the kinds."""
    rejected: dict[str, Counter[str]] = defaultdict(Counter)
    tasks = Counter[str]()
    for kind, reason, count in store.proposals(since):
        if reason is None:
            tasks[kind] += count
        else:
            rejected[kind][reason] += count
    rates = {kind: solved / attempts for kind, solved, attempts in store.solved(since) if attempts}
    guesses, cells = _values(store, metrics.GUESS_RATE, since), _values(store, metrics.COVERAGE, since)
    texts, seconds = Counter[str](), defaultdict[str, float](float)
    for row in store.timelines(since):
        for kind, (checked, ms) in row.timeline.get("checks", {}).items():
            texts[kind] += checked
            seconds[kind] += ms / 1000
    found = []
    for kind in kinds:
        proposals = tasks[kind] + rejected[kind].total()
        found.append(
            KindFigures(
                kind=kind,
                proposals=proposals,
                valid=tasks[kind] / proposals if proposals else None,
                rejected=tuple((why, n / proposals) for why, n in rejected[kind].most_common(MOST_REASONS)),
                solve_rate=rates.get(kind),
                guess_rate=fmean(guesses[kind]) if guesses[kind] else None,
                cells=cells[kind][-1] if cells[kind] else None,
                checks_a_second=texts[kind] / seconds[kind] if seconds[kind] else None,
            )
        )
    return found


def _values(store: Store, metric: metrics.Metric, since: int) -> dict[str, list[float]]:
    """By kind, in the order of the steps."""
    values: dict[str, list[float]] = defaultdict(list)
    for subject, kind, _, value in store.figures(metric, since - 1, RACE):
        if subject == RACE and kind and value is not None and math.isfinite(value):
            values[kind].append(value)
    return values
