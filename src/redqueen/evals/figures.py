"""From answers to figures: accuracies, what they gain on others, and how sure that is.

Intervals come from resampling items, the same ones for both sides (`analysis/resampling.py`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from redqueen.analysis.resampling import Interval, between, paired, pass_at, resamples
from redqueen.evals.answers import GREEDY, Answer, AnswerId
from redqueen.evals.protocol import Item

Vector: TypeAlias = NDArray[np.float64]
"""One number for each item: scores_N."""
Scores: TypeAlias = NDArray[np.float64]
"""One row for each item, one column for each figure, in the order of `Figures`: scores_N_F."""
_SAMPLED, _GREEDY, _PASS_AT_K, _WELL_FORMED, _TOKENS = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one subject made of a benchmark: a place for each item, in the benchmark's order."""

    attempts: int
    """At each item, beside the greedy one."""
    correct: tuple[int, ...]
    """How many of the attempts were right."""
    greedy: tuple[bool, ...]
    """Whether the attempt at temperature 0 was."""
    well_formed: tuple[int, ...]
    """How many of the attempts had an answer that could be read."""
    tokens: tuple[int, ...]
    """Of all attempts together, the greedy one left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How good somebody is."""

    sampled: float
    """The share of attempts that are right."""
    greedy: float
    """The same at temperature 0, one attempt for each item."""
    pass_at_k: float
    """The share of items that one of k attempts solves."""
    well_formed: float
    """The share of attempts that could be judged."""
    tokens: float
    """Of an attempt."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Somebody beside the base, on the same items."""

    sampled: Interval
    greedy: Interval
    pass_at_k: Interval
    """Differences: above 0 is better than the base."""
    ratio: Interval | None
    """Of the sampled accuracies; None where the base solves nothing."""


@dataclass(frozen=True, slots=True)
class Score:
    """One accuracy over the items of a benchmark."""

    value: float
    error: float | None
    """The standard error, over items; None of a single one."""
    gain: Interval | None = None
    """What it has on what it is compared with, item by item."""

    def as_json(self) -> dict[str, Any]:
        gain = {} if self.gain is None else {"gain": [self.gain.value, self.gain.low, self.gain.high]}
        return {"value": self.value, "error": self.error, **gain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One subject's answers to a benchmark, with what a population votes by."""

    tally: Tally
    parts_N: Mapping[str, Vector]
    """Verdicts beside the main one of the greedy attempt, where every item has that part."""
    votes: tuple[str | None, ...]
    """Of the greedy attempt."""
    tokens: int
    """Of all attempts."""
    cut: float
    """The share of answers that ended at their longest."""
    unanswered: float
    """The share of which no answer could be read."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some items of an exam."""

    band: str | None
    kind: str | None
    """None for all."""
    places: tuple[int, ...]


# Counts


def tally(answers: Mapping[AnswerId, Answer], subject: str, items: Sequence[Item], attempts: int) -> Tally:
    sampled = [[answers[subject, item.id, number] for number in range(attempts)] for item in items]
    return Tally(
        attempts=attempts,
        correct=tuple(sum(each.correct for each in some) for some in sampled),
        greedy=tuple(answers[subject, item.id, GREEDY].correct for item in items),
        well_formed=tuple(sum(each.answer is not None for each in some) for some in sampled),
        tokens=tuple(sum(each.tokens for each in some) for some in sampled),
    )


def sheet(answers: Mapping[AnswerId, Answer], subject: str, items: Sequence[Item], attempts: int) -> Sheet:
    greedy = [answers[subject, item.id, GREEDY] for item in items]
    whole = [*greedy, *(answers[subject, item.id, number] for item in items for number in range(attempts))]
    names = [name for name in greedy[0].parts if all(name in each.parts for each in greedy)]
    return Sheet(
        tally=tally(answers, subject, items, attempts),
        parts_N={name: np.array([each.parts[name] for each in greedy], np.float64) for name in names},
        votes=tuple(each.vote for each in greedy),
        tokens=sum(each.tokens for each in whole),
        cut=sum(each.cut for each in whole) / len(whole),
        unanswered=sum(each.answer is None for each in whole) / len(whole),
    )


def parts(items: Sequence[Item]) -> list[Part]:
    """All items, those of each band, of each kind, and of each kind in each band, where that makes a difference."""
    labels = [(item.row["band"], item.row["kind"]) for item in items]
    bands, kinds = in_order(band for band, _ in labels), list(dict.fromkeys(kind for _, kind in labels))
    wanted: list[tuple[str | None, str | None]] = [(None, None)]
    wanted += [(band, None) for band in bands] + [(None, kind) for kind in kinds]
    wanted += [(band, kind) for band in bands for kind in kinds]
    found: list[Part] = []
    for band, kind in wanted:
        places = tuple(place for place, (own, its) in enumerate(labels) if band in (None, own) and kind in (None, its))
        named_alone = band is None or kind is None
        if places and (named_alone or all(places != each.places for each in found)):
            found.append(Part(band, kind, places))
    return found


def in_order(bands: Iterable[str]) -> list[str]:
    """Each once: numbers by their size, words after them as they come."""
    return sorted(dict.fromkeys(bands), key=lambda band: int(band) if band.isdecimal() else math.inf)


# Figures


def scores(*tallies: Tally, k: int | None = None) -> Scores:
    """Item by item; of several subjects their mean. k is the number of attempts when left out."""
    return np.mean([_scores(each, each.attempts if k is None else k) for each in tallies], axis=0)


def _scores(own: Tally, k: int) -> Scores:
    passed = [pass_at(k, own.attempts, correct) for correct in own.correct]
    counts_3_N = np.array([own.correct, own.well_formed, own.tokens]) / own.attempts
    return np.stack([counts_3_N[0], own.greedy, passed, counts_3_N[1], counts_3_N[2]], axis=1, dtype=np.float64)


def figures(scores_N_F: Scores) -> Figures:
    sampled, greedy, pass_at_k, well_formed, tokens = scores_N_F.mean(axis=0).tolist()
    return Figures(sampled=sampled, greedy=greedy, pass_at_k=pass_at_k, well_formed=well_formed, tokens=tokens)


def gain(ours_N_F: Scores, base_N_F: Scores) -> Gain:
    """What we have on the base, item by item."""
    more_N_F = ours_N_F - base_N_F
    sampled, greedy, passed = (paired(more_N_F[:, at]) for at in (_SAMPLED, _GREEDY, _PASS_AT_K))
    return Gain(sampled, greedy, passed, _ratio(ours_N_F[:, _SAMPLED], base_N_F[:, _SAMPLED]))


def _ratio(ours_N: Vector, base_N: Vector) -> Interval | None:
    if not base_N.any():
        return None
    value = float(ours_N.mean() / base_N.mean())
    weights_D_N = resamples(len(base_N))
    below_D = weights_D_N @ base_N
    if not below_D.all():
        return Interval(value, None, None)
    return between(value, weights_D_N @ ours_N / below_D, len(base_N))


def score(mine_N: Vector, against_N: Vector | None = None) -> Score:
    count = len(mine_N)
    error = float(mine_N.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return Score(float(mine_N.mean()), error, None if against_N is None else paired(mine_N - against_N))


def measures(of: Sheet, k: int) -> dict[str, Vector]:
    """By name, item by item: the greedy attempt, parts of it, and what sampled attempts come to."""
    own = of.tally
    found = {"greedy": np.array(own.greedy, np.float64)}
    found |= {f"{name} tests alone": part_N for name, part_N in of.parts_N.items()}
    if own.attempts:
        scores_N_F = scores(own, k=k)
        found[f"avg@{own.attempts}"] = scores_N_F[:, _SAMPLED]
        if k > 1:
            found[f"pass@{k}"] = scores_N_F[:, _PASS_AT_K]
    return found


def majority(sheets: Sequence[Sheet]) -> Vector:
    """Whether the answer that most of them give is right; where several have as many votes, their mean."""
    right_N = []
    for place in range(len(sheets[0].votes)):
        votes = [(each.votes[place], each.tally.greedy[place]) for each in sheets if each.votes[place] is not None]
        counts = Counter(vote for vote, _ in votes)
        most = max(counts.values(), default=0)
        right_N.append(np.mean([right for vote, right in votes if counts[vote] == most]) if votes else 0.0)
    return np.array(right_N, np.float64)
