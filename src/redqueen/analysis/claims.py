"""Claims: whether the solvers of one arm are better than those of another, and what it would take to tell.

What is compared is what `redqueen eval` and `redqueen exam` found of runs: of students, or of a single agent's only
adapter. Seeds are paired.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from redqueen.analysis.intervals import Estimate, estimate, student_t
from redqueen.population.members import SOLO, Role
from redqueen.runs import benchmarks, exams

SOLVERS = (Role.STUDENT, SOLO)
"""Who is compared: the mean of a run's students, or its only adapter."""
POWER = 0.8
"""The chance with which enough seeds show a difference that is there."""
MOST_SEEDS = 999
Verdict = Literal["ahead", "behind", "not told", "one seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One arm less another on one measure."""

    measure: str
    arm: str
    against: str
    difference: Estimate
    """In shares of tasks, seed by seed."""
    steps: tuple[tuple[int, int], ...]
    """At which the two were measured, seed by seed."""

    @property
    def verdict(self) -> Verdict:
        """Whether the 95 % interval over seeds is clear of 0."""
        if self.difference.half is None:
            return "one seed"
        if abs(self.difference.mean) <= self.difference.half:
            return "not told"
        return "ahead" if self.difference.mean > 0 else "behind"

    @property
    def seeds_to_tell(self) -> int | None:
        """How many seeds would show a difference of this size, if it is there; None where that is a thousand or more,
        where there is none, or where one seed is all that there is."""
        values = self.difference.values
        return seeds_to_tell(self.difference.mean, statistics.stdev(values)) if len(values) > 1 else None

    @property
    def smallest(self) -> float | None:
        """The smallest difference that as many seeds would show."""
        values = self.difference.values
        return smallest_told(statistics.stdev(values), len(values)) if len(values) > 1 else None

    @property
    def text(self) -> str:
        """For people."""
        told: str = self.verdict
        if told == "not told":
            seeds = self.seeds_to_tell
            would = "a thousand seeds or more would" if seeds is None else f"{seeds} seeds would"
            told = f"not told: {would if self.difference.mean else 'no difference'}"
        return told if all(mine == other for mine, other in self.steps) else f"{told}; at different steps"

    def as_json(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "arm": self.arm,
            "against": self.against,
            "difference": self.difference.mean,
            "half": self.difference.half,
            "seeds": len(self.difference.values),
            "steps": self.steps,
            "verdict": self.verdict,
            "text": self.text,
            "seeds_to_tell": self.seeds_to_tell,
            "smallest_told": self.smallest,
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of a run."""

    label: str
    """For people."""
    step: int
    value: float


Accuracies = Mapping[tuple[str, ...], Measured]
"""By all that two must have in common to be compared."""


def claims(arms: Mapping[str, Mapping[int, Path]]) -> list[Claim]:
    """What each arm, by name its runs by seed, has over the first, on every measure that both have of a seed."""
    found = {arm: {seed: accuracies(run) for seed, run in runs.items()} for arm, runs in arms.items()}
    (against, first), *others = found.items() if found else [("", {})]
    return [claim for arm, own in others for claim in _of_arm(arm, own, against, first)]


def _of_arm(arm: str, own: Mapping[int, Accuracies], against: str, first: Mapping[int, Accuracies]) -> Iterator[Claim]:
    pairs = [(own[seed], first[seed]) for seed in sorted(own.keys() & first.keys())]
    for measure in dict.fromkeys(measure for mine, _ in pairs for measure in mine):
        both = [(mine[measure], other[measure]) for mine, other in pairs if measure in mine and measure in other]
        difference = estimate([mine.value - other.value for mine, other in both])
        if difference is not None:
            yield Claim(
                measure=both[0][0].label,
                arm=arm,
                against=against,
                difference=difference,
                steps=tuple((mine.step, other.step) for mine, other in both),
            )


def accuracies(run: Path) -> dict[tuple[str, ...], Measured]:
    """Of those who solve tasks, at the newest step that each was measured at."""
    found: dict[tuple[str, ...], Measured] = {
        (result.asked, result.sha256): Measured(result.asked, result.step, result.value)
        for result in benchmarks.of_roles(run)
        if result.role in (None, str(Role.STUDENT))
    }
    for result in sorted(exams.read(run), key=lambda result: result.step):
        if result.subject in SOLVERS:
            for figure, value in result.figures.items():
                label = f"exam {result.title}, {result.asked}, {result.measure(figure)}"
                found[*result.paper, figure] = Measured(label, result.step, value)
    return found


def seeds_to_tell(difference: float, deviation: float) -> int | None:
    """Pairs of races whose 95 % interval is clear of 0 with a chance of four in five, if races differ by this on
    average and pairs scatter so; None from a thousand on, and where nothing differs."""
    few, enough = 1, MOST_SEEDS
    if not difference or smallest_told(deviation, enough) > abs(difference):
        return None
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if smallest_told(deviation, middle) <= abs(difference) else (middle, enough)
    return enough


def smallest_told(deviation: float, seeds: int) -> float:
    """The smallest difference on average that so many pairs show with a chance of four in five."""
    freedom = seeds - 1
    return (student_t(freedom) + student_t(freedom, 2 * POWER - 1)) * deviation / math.sqrt(seeds)


def table(found: Sequence[Claim]) -> list[tuple[str, str, str, str]]:
    """Measure, arm, difference in points, verdict."""
    return [(claim.measure, claim.arm, _points(claim.difference), claim.text) for claim in found]


def _points(difference: Estimate) -> str:
    half = "" if difference.half is None else f" ±{100 * difference.half:.1f}"
    return f"{100 * difference.mean:+.1f}{half}"
