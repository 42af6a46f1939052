"""How sure a figure over tasks is: by resampling them, the same ones for both sides of a difference.

Tasks are what an exam or a benchmark has a sample of. A task that is easy is so for both sides, and only the difference
is of interest.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from redqueen.analysis.intervals import CONFIDENCE
from redqueen.errors import InputError

DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    """None where there is no telling: of a single task, or of a ratio whose base may solve nothing."""

    @property
    def ends(self) -> tuple[float, float | None, float | None]:
        """All three, for files."""
        return self.value, self.low, self.high


def pass_at(k: int, attempts: int, correct: int) -> float:
    """The chance that one of k attempts is right, without bias, from as many attempts or more (Chen et al. 2021)."""
    if not 1 <= k <= attempts or not 0 <= correct <= attempts:
        raise InputError(f"pass@{k} cannot be told from {correct} of {attempts} attempts", "make k attempts or more")
    return 1 - comb(attempts - correct, k) / comb(attempts, k)


def paired(more_N: NDArray[np.float64]) -> Interval:
    """The mean of a difference, task by task."""
    return between(float(more_N.mean()), resamples(len(more_N)) @ more_N, len(more_N))


def between(value: float, drawn_D: NDArray[np.float64], tasks: int) -> Interval:
    """A figure with the interval that its resamples span."""
    if tasks < 2:
        return Interval(value, None, None)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn_D, [outside, 1 - outside]).tolist()
    return Interval(value, low, high)


@lru_cache(maxsize=8)
def resamples(tasks: int) -> NDArray[np.float64]:
    """How much each task weighs in each draw: the same for everybody and every time."""
    return np.random.default_rng(0).multinomial(tasks, np.full(tasks, 1 / tasks), DRAWS) / tasks
