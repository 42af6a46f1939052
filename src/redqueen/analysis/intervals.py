"""Means with their 95 % intervals, by Student's t: a few runs are all that anybody can afford."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

CONFIDENCE = 0.95
Over = Literal["seeds", "blocks"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and how sure it is."""

    mean: float
    half: float | None
    """Half of the interval; None where there is nothing to take one from."""
    over: Over | None
    """What the interval is over: runs of other seeds, or blocks of one run's steps, which say nothing of other seeds
    and, because steps follow from each other, too little even of this one."""
    values: tuple[float, ...]
    """One for each seed."""


def estimate(values: Sequence[float], blocks: Sequence[float] = ()) -> Estimate | None:
    """Over seeds where there are two or more; of a single one over its blocks. None without a value."""
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(values) > 1:
        return Estimate(mean, half_width(values), "seeds", tuple(values))
    if len(blocks) > 1:
        return Estimate(mean, half_width(blocks), "blocks", tuple(values))
    return Estimate(mean, None, None, tuple(values))


def half_width(values: Sequence[float]) -> float:
    """Of the interval around the mean of two values or more."""
    return student_t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def band(values: Sequence[float]) -> float:
    """Half of what a curve shows around the mean of two values or more: the interval, but of two values from one to the
    other, since an interval thirteen times as wide would leave nothing else to see."""
    return abs(values[0] - values[1]) / 2 if len(values) == 2 else half_width(values)


@cache
def student_t(freedom: int, share: float = CONFIDENCE) -> float:
    """How many standard errors to either side hold this share of Student's distribution."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < share:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """The share of the distribution between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for number in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (number - 1) / number
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
