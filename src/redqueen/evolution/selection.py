"""Who breeds: from the members' values to parents.

To add one, write its two functions and name it in `SELECTION` and in `evolution.selection` of the settings. `adjust`
sees a whole role and changes what its values mean, for death as for breeding; `pick` draws parents among survivors.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from random import Random

from redqueen.errors import ConfigError
from redqueen.population.members import MemberId

Values = Mapping[MemberId, float]
Distances = Mapping[tuple[MemberId, MemberId], float]
"""How far apart two members are, 0 for the same; each pair once, in either order."""

TOURNAMENT = 3
"""Who enters a tournament: enough that the better ones usually win, few enough that the second best often do."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A way to choose parents."""

    adjust: Callable[[Values, Distances | None], dict[MemberId, float]]
    """The role's values as selection sees them."""
    pick: Callable[[Values, int, float, Random], list[MemberId]]
    """So many different parents (or all, where there are fewer), given the share of a role that counts as its top."""


def as_they_are(values: Values, distances: Distances | None) -> dict[MemberId, float]:
    return dict(values)


def truncation(values: Values, count: int, share: float, rng: Random) -> list[MemberId]:
    """Any of the best, equally likely: the top share, but two at least."""
    best = ranked(values)[: max(2, math.ceil(share * len(values)))]
    return rng.sample(best, min(count, len(best)))


def tournament(values: Values, count: int, share: float, rng: Random) -> list[MemberId]:
    """Each parent is the best of a few members drawn at random."""
    left, parents = list(values), []
    while left and len(parents) < count:
        entered = rng.sample(left, min(TOURNAMENT, len(left)))
        winner = max(entered, key=lambda id: values[id])
        parents.append(winner)
        left.remove(winner)
    return parents


def shared(values: Values, distances: Distances | None) -> dict[MemberId, float]:
    """Fitness sharing: a member's rank, from the role's size for the best to 1, divided by how crowded it stands.

    Ranks, because ratings may be negative and a division would then favour crowds. Neighbours are those nearer than
    the role's mean distance, and count the more the nearer they are.
    """
    if distances is None:
        raise ConfigError(
            'evolution.selection = "sharing" needs to know how far apart members are, and nothing measured it',
            'use "truncation" or "tournament"',
        )
    between = {pair: _distance(distances, pair) for pair in combinations(values, 2)}
    radius = statistics.fmean(between.values()) if between else 0.0
    crowd = dict.fromkeys(values, 1.0)
    for (one, other), distance in between.items():
        near = max(0.0, 1 - distance / radius) if radius > 0 else 1.0
        crowd[one] += near
        crowd[other] += near
    return {id: (len(values) - place) / crowd[id] for place, id in enumerate(ranked(values))}


SELECTION: dict[str, Selection] = {
    "truncation": Selection(as_they_are, truncation),
    "tournament": Selection(as_they_are, tournament),
    "sharing": Selection(shared, truncation),
}


def ranked(values: Values) -> list[MemberId]:
    """The best first; equals in the order in which they are given."""
    return sorted(values, key=lambda id: -values[id])


def _distance(distances: Distances, pair: tuple[MemberId, MemberId]) -> float:
    known = distances.get(pair, distances.get((pair[1], pair[0])))
    if known is None:
        raise ConfigError(f"nothing says how far {pair[0]} is from {pair[1]}", "measure every pair of the role")
    return known
