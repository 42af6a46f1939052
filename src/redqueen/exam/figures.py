"""From answers to figures: accuracies with what they gain on the base, and how sure that is.

Tasks are what an exam has a sample of, so intervals come from resampling tasks. Both sides get the same resample: a
task that is easy is so for both, and only the difference is of interest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from redqueen.errors import InputError
from redqueen.exam.exam import Answers
from redqueen.runs.intervals import CONFIDENCE
from redqueen.tasks.library import ExamTask

DRAWS = 2_000
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
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    """None where there is no telling: of a single task, or of a ratio whose base may solve nothing."""


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
    bands = list(dict.fromkeys(each.band for each in tasks))
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


def pass_at(k: int, attempts: int, correct: int) -> float:
    """The chance that one of k attempts is right, without bias, from as many attempts or more (Chen et al. 2021)."""
    if not 1 <= k <= attempts or not 0 <= correct <= attempts:
        raise InputError(f"pass@{k} cannot be told from {correct} of {attempts} attempts", "make k attempts or more")
    return 1 - comb(attempts - correct, k) / comb(attempts, k)


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
    drawn_D_F = _resamples(len(more_N_F)) @ more_N_F
    sampled, greedy, passed = (
        _interval(float(more_N_F[:, at].mean()), drawn_D_F[:, at], len(more_N_F))
        for at in (_SAMPLED, _GREEDY, _PASS_AT_K)
    )
    return Gain(sampled, greedy, passed, _ratio(ours_N_F[:, _SAMPLED], base_N_F[:, _SAMPLED]))


def _ratio(ours_N: NDArray[np.float64], base_N: NDArray[np.float64]) -> Interval | None:
    if not base_N.any():
        return None
    value = float(ours_N.mean() / base_N.mean())
    weights_D_N = _resamples(len(base_N))
    below_D = weights_D_N @ base_N
    if not below_D.all():
        return Interval(value, None, None)
    return _interval(value, weights_D_N @ ours_N / below_D, len(base_N))


def _interval(value: float, drawn_D: NDArray[np.float64], tasks: int) -> Interval:
    if tasks < 2:
        return Interval(value, None, None)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn_D, [outside, 1 - outside]).tolist()
    return Interval(value, low, high)


@lru_cache(maxsize=8)
def _resamples(tasks: int) -> NDArray[np.float64]:
    """How much each task weighs in each draw: the same for everybody and every time."""
    return np.random.default_rng(0).multinomial(tasks, np.full(tasks, 1 / tasks), DRAWS) / tasks
