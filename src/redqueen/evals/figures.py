"""From answers to figures: accuracies, gains over others, and their intervals.

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
from redqueen.evals.answers import GREEDY, TOO_LONG, Answer, AnswerId
from redqueen.evals.protocol import Item

Vector: TypeAlias = NDArray[np.float64]
"""One number for each item: scores_N."""
Scores: TypeAlias = NDArray[np.float64]
"""One row for each item, one column for each figure, in the order of `Figures`: scores_N_F."""
_SAMPLED, _GREEDY, _PASS_AT_K, _WELL_FORMED, _TOKENS = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How one subject did on a benchmark, with a value for each item in the benchmark's order."""

    attempts: int
    """At each item, beside the greedy one."""
    correct: tuple[int, ...]
    """How many of the attempts were right."""
    greedy: tuple[bool, ...]
    """Whether the attempt at temperature 0 was right."""
    well_formed: tuple[int, ...]
    """How many of the attempts had an answer that could be read."""
    tokens: tuple[int, ...]
    """Of all sampled attempts together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Means over items."""

    sampled: float
    """The share of sampled attempts that are right."""
    greedy: float
    """The same at temperature 0, one attempt for each item."""
    pass_at_k: float
    well_formed: float
    """The share of sampled attempts that could be judged."""
    tokens: float
    """Of an attempt."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Differences to the base on the same items; above 0 is better than the base."""

    sampled: Interval
    greedy: Interval
    pass_at_k: Interval
    ratio: Interval | None
    """Of the sampled accuracies; None where the base solves nothing."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    value: float
    error: float | None
    """The standard error over items; None for a single item."""
    gain: Interval | None = None
    """The paired difference to what it is compared with."""

    def as_json(self) -> dict[str, Any]:
        gain = {} if self.gain is None else {"gain": list(self.gain.ends)}
        return {"value": self.value, "error": self.error, **gain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    tally: Tally
    parts_N: Mapping[str, Vector]
    """Further verdicts on the greedy attempt, where every item has them."""
    votes: tuple[str | None, ...]
    """What the greedy attempt votes for."""
    tokens: int
    """Of all attempts."""
    cut: float
    """The share of answers that were cut off at the longest."""
    unanswered: float
    """The share of replies without an answer that could be read."""
    too_long: int = 0
    """Items that could not be asked."""


@dataclass(frozen=True, slots=True)
class Part:
    """The items of an exam of one band or kind, with or without a shortcut; None for all."""

    band: str | None
    kind: str | None
    places: tuple[int, ...]
    shortcut: bool | None = None


# Counts


def tally(answers: Mapping[AnswerId, Answer], subject: str, items: Sequence[Item], attempts: int) -> Tally:
    sampled = [[answers[subject, item.id, number] for number in range(attempts)] for item in items]
    return Tally(
        attempts=attempts,
        correct=tuple(sum(answer.correct for answer in group) for group in sampled),
        greedy=tuple(answers[subject, item.id, GREEDY].correct for item in items),
        well_formed=tuple(sum(answer.answer is not None for answer in group) for group in sampled),
        tokens=tuple(sum(answer.tokens for answer in group) for group in sampled),
    )


def sheet(answers: Mapping[AnswerId, Answer], subject: str, items: Sequence[Item], attempts: int) -> Sheet:
    greedy = [answers[subject, item.id, GREEDY] for item in items]
    every = [*greedy, *(answers[subject, item.id, number] for item in items for number in range(attempts))]
    names = [name for name in greedy[0].parts if all(name in answer.parts for answer in greedy)]
    return Sheet(
        tally=tally(answers, subject, items, attempts),
        parts_N={name: np.array([answer.parts[name] for answer in greedy], np.float64) for name in names},
        votes=tuple(answer.vote for answer in greedy),
        tokens=sum(answer.tokens for answer in every),
        cut=sum(answer.cut for answer in every) / len(every),
        unanswered=sum(answer.answer is None for answer in every) / len(every),
        too_long=sum(answer.why == TOO_LONG for answer in greedy),
    )


def parts(items: Sequence[Item]) -> list[Part]:
    """All items, those of each band, of each kind, and of each kind in each band, where that makes a difference; then
    those without a shortcut and those with one, of all kinds and of each, where there are both."""
    labels = [(item.row["band"], item.row["kind"]) for item in items]
    bands, kinds = in_order(band for band, _ in labels), list(dict.fromkeys(kind for _, kind in labels))
    pairs: list[tuple[str | None, str | None]] = [(None, None)]
    pairs += [(band, None) for band in bands] + [(None, kind) for kind in kinds]
    pairs += [(band, kind) for band in bands for kind in kinds]
    parts: list[Part] = []
    for band, kind in pairs:
        places = tuple(at for at, label in enumerate(labels) if band in (None, label[0]) and kind in (None, label[1]))
        if places and (band is None or kind is None or all(places != part.places for part in parts)):
            parts.append(Part(band, kind, places))
    for kind in (None, *(kinds if len(kinds) > 1 else ())):
        of_kind = [at for at, label in enumerate(labels) if kind in (None, label[1])]
        apart = {by: tuple(at for at in of_kind if items[at].row["shortcut"] == by) for by in (False, True)}
        if all(apart.values()):
            parts += [Part(None, kind, places, shortcut) for shortcut, places in apart.items()]
    return parts


def in_order(bands: Iterable[str]) -> list[str]:
    """Bands without duplicates: numbers by size, then words in the order given."""
    return sorted(dict.fromkeys(bands), key=lambda band: int(band) if band.isdecimal() else math.inf)


# Figures


def scores(*tallies: Tally, k: int | None = None) -> Scores:
    """Item by item; of several subjects their mean. k is the number of attempts when left out."""
    scores_T_N_F = []
    for own in tallies:
        passed = [pass_at(k or own.attempts, own.attempts, correct) for correct in own.correct]
        counts_3_N = np.array([own.correct, own.well_formed, own.tokens]) / own.attempts
        columns = [counts_3_N[0], own.greedy, passed, counts_3_N[1], counts_3_N[2]]
        scores_T_N_F.append(np.stack(columns, axis=1, dtype=np.float64))
    return np.mean(scores_T_N_F, axis=0)


def figures(scores_N_F: Scores) -> Figures:
    sampled, greedy, pass_at_k, well_formed, tokens = scores_N_F.mean(axis=0).tolist()
    return Figures(sampled=sampled, greedy=greedy, pass_at_k=pass_at_k, well_formed=well_formed, tokens=tokens)


def gain(ours_N_F: Scores, base_N_F: Scores) -> Gain:
    """Paired differences to the base."""
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


def accuracy(mine_N: Vector, against_N: Vector | None = None) -> Accuracy:
    count = len(mine_N)
    error = float(mine_N.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return Accuracy(float(mine_N.mean()), error, None if against_N is None else paired(mine_N - against_N))


def measures(sheet: Sheet, k: int) -> dict[str, Vector]:
    """By name, item by item: the greedy attempt, parts of it, and the sampled attempts."""
    own = sheet.tally
    by_name = {"greedy": np.array(own.greedy, np.float64)}
    by_name |= {f"{name} tests alone": part_N for name, part_N in sheet.parts_N.items()}
    if own.attempts:
        scores_N_F = scores(own, k=k)
        by_name[f"avg@{own.attempts}"] = scores_N_F[:, _SAMPLED]
        if k > 1:
            by_name[f"pass@{k}"] = scores_N_F[:, _PASS_AT_K]
    return by_name


def majority(sheets: Sequence[Sheet]) -> Vector:
    """Whether the answer with the most votes is right; with a tie, the mean."""
    right_N = []
    for at in range(len(sheets[0].votes)):
        votes = [(sheet.votes[at], sheet.tally.greedy[at]) for sheet in sheets if sheet.votes[at] is not None]
        counts = Counter(vote for vote, _ in votes)
        most = max(counts.values(), default=0)
        right_N.append(np.mean([right for vote, right in votes if counts[vote] == most]) if votes else 0.0)
    return np.array(right_N, np.float64)
