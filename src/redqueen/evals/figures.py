"""From answers to figures: accuracies with their standard errors, gains with paired intervals, votes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redqueen.analysis.resampling import Interval, paired, pass_at
from redqueen.evals.answers import GREEDY, Answer

Vector = NDArray[np.float64]
"""One number for each task: scores_N."""


@dataclass(frozen=True, slots=True)
class Score:
    """An accuracy over the tasks of a benchmark."""

    value: float
    error: float | None
    """The standard error, over tasks; None of a single one."""
    gain: Interval | None = None
    """What it has on what it is compared with, task by task."""

    def as_json(self) -> dict[str, Any]:
        gain = {} if self.gain is None else {"gain": [self.gain.value, self.gain.low, self.gain.high]}
        return {"value": self.value, "error": self.error, **gain}


@dataclass(frozen=True, slots=True)
class Sheet:
    """One examinee's answers to one benchmark, in numbers."""

    greedy_N: Vector
    sampled_N: Vector | None
    """The share of right attempts; None where there were none."""
    passed_N: Vector | None
    """The chance that one of k is right."""
    parts_N: Mapping[str, Vector]
    """Of the greedy attempt, where every task has that part."""
    votes: tuple[str | None, ...]
    """Of the greedy attempt."""
    tokens: int
    """Of all attempts."""
    cut: float
    """The share of answers that ended at their longest."""
    unanswered: float
    """The share of which no answer could be read."""


def sheet(found: Mapping[tuple[str, str, int], Answer], who: str, items: Sequence[str], attempts: int, k: int) -> Sheet:
    greedy = [found[who, item, GREEDY] for item in items]
    sampled = [[found[who, item, number] for number in range(attempts)] for item in items]
    right = [sum(each.correct for each in some) for some in sampled]
    everything = [*greedy, *(each for some in sampled for each in some)]
    names = [name for name in greedy[0].parts if all(name in each.parts for each in greedy)]
    return Sheet(
        greedy_N=np.array([each.correct for each in greedy], np.float64),
        sampled_N=np.array(right, np.float64) / attempts if attempts else None,
        passed_N=np.array([pass_at(k, attempts, count) for count in right]) if attempts else None,
        parts_N={name: np.array([each.parts[name] for each in greedy], np.float64) for name in names},
        votes=tuple(each.vote for each in greedy),
        tokens=sum(each.tokens for each in everything),
        cut=sum(each.cut for each in everything) / len(everything),
        unanswered=sum(each.answer is None for each in everything) / len(everything),
    )


def score(mine_N: Vector, against_N: Vector | None = None) -> Score:
    count = len(mine_N)
    error = float(mine_N.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return Score(float(mine_N.mean()), error, None if against_N is None else paired(mine_N - against_N))


def majority(sheets: Sequence[Sheet]) -> Vector:
    """Whether the answer that most of them give is right; where several have as many votes, their mean."""
    right_N = []
    for place in range(len(sheets[0].votes)):
        votes = [(each.votes[place], each.greedy_N[place]) for each in sheets if each.votes[place] is not None]
        counts = Counter(vote for vote, _ in votes)
        most = max(counts.values(), default=0)
        right_N.append(np.mean([right for vote, right in votes if counts[vote] == most]) if votes else 0.0)
    return np.array(right_N, np.float64)
