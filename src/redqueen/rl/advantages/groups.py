"""The groups in which estimators compare rollouts.

Means and deviations are those of `statistics`, which are exact until they are rounded once: a group that agrees is
then centred to exactly 0.0, whatever its reward and size, and the order of the rollouts changes no bit.
"""

import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence

from redqueen.rl.rollout import Rollout

FLOOR = 0.1
"""The least deviation that rewards are divided by: below it they hardly differ, and dividing would blow noise up."""


def by_prompt(one: Rollout) -> Hashable:
    return (one.role, one.kind, one.group)


def by_kind(one: Rollout) -> Hashable:
    return (one.role, one.kind)


def within(
    rollouts: Sequence[Rollout], keys: Iterable[Hashable], compare: Callable[[list[float]], list[float]]
) -> list[float]:
    """What `compare` makes of the rewards of each group, back in the order of the rollouts; `keys` says who is in
    which."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    values = [0.0] * len(rollouts)
    for indices in groups.values():
        for index, value in zip(indices, compare([rollouts[i].reward for i in indices]), strict=True):
            values[index] = value
    return values


def centred(rewards: Sequence[float]) -> list[float]:
    """r - mean."""
    mean = statistics.mean(rewards)
    return [reward - mean for reward in rewards]


def deviation(values: Sequence[float]) -> float:
    """The population's standard deviation, about the mean: divided by n, not by n - 1."""
    return statistics.pstdev(values)
