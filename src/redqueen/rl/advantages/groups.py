"""What estimators work on: rewarded sequences, and the groups in which they are compared.

Means and deviations are those of `statistics`, which are exact until they are rounded once: a group that agrees is
then centred to exactly 0.0, whatever its reward and size, and the order of the sequences changes no bit.
"""

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from redqueen.errors import Fault

FLOOR = 0.1
"""The least deviation that rewards are divided by: below it they hardly differ, and dividing would blow noise up."""


@dataclass(frozen=True, slots=True)
class Rewarded:
    """One sampled sequence of one member."""

    role: str
    """"teacher" or "student", as which it was sampled."""
    kind: str
    """Of its task."""
    group: Hashable
    """Shared by the sequences of one prompt: a student's attempts on a task, a teacher's proposals. Names need to
    differ within a role and kind only."""
    reward: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.reward):
            raise Fault(f"a {self.role}'s reward is {self.reward}")


def by_prompt(one: Rewarded) -> Hashable:
    return (one.role, one.kind, one.group)


def by_kind(one: Rewarded) -> Hashable:
    return (one.role, one.kind)


def within(
    sequences: Sequence[Rewarded], keys: Iterable[Hashable], compare: Callable[[list[float]], list[float]]
) -> list[float]:
    """What `compare` makes of the rewards of each group, back in the order of the sequences; `keys` says who is in
    which."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    values = [0.0] * len(sequences)
    for indices in groups.values():
        for index, value in zip(indices, compare([sequences[i].reward for i in indices]), strict=True):
            values[index] = value
    return values


def centred(rewards: Sequence[float]) -> list[float]:
    """r - mean."""
    mean = statistics.mean(rewards)
    return [reward - mean for reward in rewards]


def deviation(values: Sequence[float]) -> float:
    """The population's standard deviation, about the mean: divided by n, not by n - 1."""
    return statistics.pstdev(values)
