"""What a race was like at its beginning and at its end: every measure step by step, and its mean over a quarter.

`redqueen compare` and the summary of a run are both made of these, so that a figure is the same wherever it stands.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise

from redqueen.analysis.intervals import Estimate, estimate
from redqueen.runs.metrics import COMPUTE, FLOPS, LR, RACE, Metric
from redqueen.runs.store import Store

BLOCKS = 5
"""That a quarter of a single run is cut into."""
BLOCK_STEPS = 2
"""A block of fewer would be a step, whose neighbours tell the same."""


MANY = 1e10
"""From here on numbers are shown with their exponents."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of one run."""

    value: float
    blocks: tuple[float, ...] = ()
    """The same over blocks of its steps; empty where it has none."""

    @property
    def estimate(self) -> Estimate:
        estimated = estimate([self.value], self.blocks)
        assert estimated is not None
        return estimated


@dataclass(frozen=True, slots=True)
class Series:
    """One measure, step by step."""

    steps: Mapping[int, tuple[float, float]]
    """By step, a sum and what it is divided by; steps without anything to measure are left out."""

    def mean(self, steps: Iterable[int]) -> float | None:
        """Over those of the steps that have it."""
        pairs = [self.steps[step] for step in steps if step in self.steps]
        whole = math.fsum(divisor for _, divisor in pairs)
        return math.fsum(total for total, _ in pairs) / whole if whole else None

    def over(self, steps: range) -> Figure | None:
        """The mean over these steps, and over blocks of them where there are enough."""
        value = self.mean(steps)
        if value is None:
            return None
        if len(steps) < BLOCKS * BLOCK_STEPS:
            return Figure(value)
        bounds = [steps.start + len(steps) * number // BLOCKS for number in range(BLOCKS + 1)]
        blocks = (self.mean(range(start, end)) for start, end in pairwise(bounds))
        return Figure(value, tuple(mean for mean in blocks if mean is not None))

    def total(self, steps: range | None = None) -> float | None:
        values = [value for step, (value, _) in self.steps.items() if steps is None or step in steps]
        return math.fsum(values) if values else None

    def at(self, step: int) -> float | None:
        """What a measure that only grows has come to by then."""
        known = max((recorded for recorded in self.steps if recorded <= step), default=None)
        return None if known is None else self.steps[known][0]


def quarters(steps: int) -> tuple[range, range]:
    """The first quarter of so many steps and the last; of a very short race its first step and its last."""
    quarter = max(steps // 4, 1)
    return range(1, quarter + 1), range(steps - quarter + 1, steps + 1)


def series(store: Store, metric: Metric, subject: str = RACE) -> Series:
    """A metric over all kinds. Values that are not finite, as of a step that broke down, are left out."""
    values = {row.step: row.value for row in store.metrics(metric, subject, "")}
    return Series({step: (value, 1) for step, value in values.items() if math.isfinite(value)})


def learning_rate(store: Store, adapters: Collection[str], until: int | None = None) -> float | None:
    """The highest that these adapters had up to a step, or in all; None where they were never updated."""
    rows = (row for row in store.metrics(LR, kind="") if row.subject in adapters)
    return max((row.value for row in rows if until is None or row.step <= until), default=None)


def by_subject(store: Store, metric: Metric) -> dict[str, Series]:
    """The same of everybody who has it, read at once."""
    values: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    for row in store.metrics(metric, kind=""):
        if math.isfinite(row.value):
            values[row.subject][row.step] = row.value, 1
    return {subject: Series(steps) for subject, steps in values.items()}


def solve_rates(store: Store) -> dict[str, Series]:
    """By kind, over all attempts of a step but for replays; under "" that of all kinds."""
    counts: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    meetings = ((meeting.step, meeting.kind, meeting.solved, meeting.attempts) for meeting in store.meetings())
    for step, kind, right, made in chain(meetings, store.item_counts()):
        for each in ("", kind):
            solved, attempts = counts[each].get(step, (0, 0))
            counts[each][step] = solved + right, attempts + made
    return {kind: Series(steps) for kind, steps in counts.items()}


def compute(store: Store, steps: range | None = None) -> dict[Metric, float]:
    """What the race used up, or these steps of it, in units that do not depend on the machine."""
    totals = {metric: series(store, metric).total(steps) for metric in COMPUTE}
    return {metric: total for metric, total in totals.items() if total is not None}


def flops(store: Store, until: int | None = None) -> int:
    """The race's floating-point operations up to a step, or all: exactly, since a race may end by them."""
    return sum(int(row.value) for row in store.metrics(FLOPS, RACE, "") if until is None or row.step <= until)


def flops_known(store: Store) -> bool:
    """Whether they were counted in every step, as older versions did not."""
    return len(list(store.metrics(FLOPS, RACE, ""))) == store.last_step()


def seconds(store: Store) -> dict[str, float]:
    """By phase, the longest first."""
    phases: dict[str, list[float]] = defaultdict(list)
    for timing in store.timings():
        phases[timing.phase].append(timing.seconds)
    return dict(sorted(((phase, math.fsum(spans)) for phase, spans in phases.items()), key=lambda item: -item[1]))


def count_text(value: float | None) -> str:
    """`12,345`, or `1.23e+15` of what nobody counts by hand."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) < MANY else f"{value:.3g}"


def shown(value: Estimate | None) -> str:
    """`0.405 ±0.064` over seeds, `0.420 ~0.020` over blocks, or the mean alone."""
    if value is None:
        return "-"
    digits = 3 if abs(value.mean) < 10 else 1
    mean = f"{value.mean:,.{digits}f}"
    return mean if value.half is None else f"{mean} {'±' if value.over == 'seeds' else '~'}{value.half:,.{digits}f}"
