"""From answers to figures: accuracies with what they gain on the base, and how sure that is.

Intervals come from resampling tasks (`measure/resampling.py`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from redqueen.analysis.resampling import Interval, between, paired, pass_at, resamples
from redqueen.exam.exam import Answers
from redqueen.tasks.library import ExamTask

Scores: TypeAlias = NDArray[np.float64]
"""One row for each task, one column for each figure, in the order of `Figures`: scores_N_F."""
_SAMPLED, _GREEDY, _PASS_AT_K, _WELL_FORMED, _TOKENS = range(5)


@dataclass(frozen=True, slots=True)
class Figures:
    """How good somebody is."""

    sampled: float
    """The share of attempts that are right."""
    greedy: float
    """The same at temperature 0, one attempt for each task."""
    pass_at_k: float
    """The share of tasks that one of k attempts solves."""
    well_formed: float
    """The share of attempts that could be judged."""
    tokens: float
    """Of an attempt."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Somebody beside the base, on the same tasks."""

    sampled: Interval
    greedy: Interval
    pass_at_k: Interval
    """Differences: above 0 is better than the base."""
    ratio: Interval | None
    """Of the sampled accuracies; None where the base solves nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some tasks of an exam."""

    band: str | None
    kind: str | None
    """None for all."""
    places: tuple[int, ...]


def parts(tasks: Sequence[ExamTask]) -> list[Part]:
    """All tasks, those of each band, of each kind, and of each kind in each band, where that makes a difference."""
    bands = in_order(each.band for each in tasks)
    kinds = list(dict.fromkeys(each.task.kind for each in tasks))
    wanted: list[tuple[str | None, str | None]] = [(None, None)]
    wanted += [(band, None) for band in bands] + [(None, kind) for kind in kinds]
    wanted += [(band, kind) for band in bands for kind in kinds]
    found: list[Part] = []
    for band, kind in wanted:
        places = tuple(
            place
            for place, each in enumerate(tasks)
            if (band is None or band == each.band) and (kind is None or kind == each.task.kind)
        )
        named_alone = band is None or kind is None
        if places and (named_alone or all(places != each.places for each in found)):
            found.append(Part(band, kind, places))
    return found


def in_order(bands: Iterable[str]) -> list[str]:
    """Each once: numbers by their size, words after them as they come."""
    return sorted(dict.fromkeys(bands), key=lambda band: int(band) if band.isdecimal() else math.inf)


def scores(*answers: Answers, k: int | None = None) -> Scores:
    """Task by task; of several examinees their mean. k is the number of attempts when left out."""
    return np.mean([_scores(each, each.attempts if k is None else k) for each in answers], axis=0)


def _scores(answers: Answers, k: int) -> Scores:
    passed = [pass_at(k, answers.attempts, correct) for correct in answers.correct]
    counts_3_N = np.array([answers.correct, answers.well_formed, answers.tokens]) / answers.attempts
    return np.stack([counts_3_N[0], answers.greedy, passed, counts_3_N[1], counts_3_N[2]], axis=1, dtype=np.float64)


def figures(scores_N_F: Scores) -> Figures:
    return Figures(*scores_N_F.mean(axis=0).tolist())


def gain(ours_N_F: Scores, base_N_F: Scores) -> Gain:
    """What we have on the base, task by task."""
    more_N_F = ours_N_F - base_N_F
    sampled, greedy, passed = (paired(more_N_F[:, at]) for at in (_SAMPLED, _GREEDY, _PASS_AT_K))
    return Gain(sampled, greedy, passed, _ratio(ours_N_F[:, _SAMPLED], base_N_F[:, _SAMPLED]))


def _ratio(ours_N: NDArray[np.float64], base_N: NDArray[np.float64]) -> Interval | None:
    if not base_N.any():
        return None
    value = float(ours_N.mean() / base_N.mean())
    weights_D_N = resamples(len(base_N))
    below_D = weights_D_N @ base_N
    if not below_D.all():
        return Interval(value, None, None)
    return between(value, weights_D_N @ ours_N / below_D, len(base_N))
