"""Who breeds: from the members' fitness values to parents.

One is two functions: `adjust` changes the values of a whole role, for death as for breeding; `pick` draws parents
among survivors.
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
"""The distance of each pair of members, 0 for the same; each pair once, in either order."""

ENTRANTS = 3
"""Members in a tournament: enough that the better ones usually win, few enough that the second best often do."""


@dataclass(frozen=True, slots=True)
class Selection:
    adjust: Callable[[Values, Distances | None], Values]
    pick: Callable[[Values, int, float, Random], list[MemberId]]
    """This many different parents (or all, where there are fewer), given the share of a role that counts as its top."""


def unchanged(values: Values, distances: Distances | None) -> Values:
    return values


def truncation(values: Values, count: int, share: float, rng: Random) -> list[MemberId]:
    """Any of the top share, equally likely; two at least."""
    best = ranked(values)[: max(2, math.ceil(share * len(values)))]
    return rng.sample(best, min(count, len(best)))


def tournament(values: Values, count: int, share: float, rng: Random) -> list[MemberId]:
    """Each parent is the best of a few members drawn at random."""
    candidates, parents = list(values), []
    while candidates and len(parents) < count:
        entered = rng.sample(candidates, min(ENTRANTS, len(candidates)))
        winner = max(entered, key=lambda id: values[id])
        parents.append(winner)
        candidates.remove(winner)
    return parents


def shared(values: Values, distances: Distances | None) -> Values:
    """Fitness sharing: a member's rank, from the role's size for the best to 1, divided by its niche count.

    Ranks, because ratings may be negative and a division would then favour crowds. Neighbours are those nearer than
    the role's mean distance, and count the more the nearer they are.
    """
    if distances is None:
        raise ConfigError(
            "fitness sharing needs to know the distances of members, and nothing measures them here",
            "use another evolution.selection",
        )
    of_pairs = {
        pair: distances[pair] if pair in distances else distances[pair[1], pair[0]] for pair in combinations(values, 2)
    }
    radius = statistics.fmean(of_pairs.values()) if of_pairs else 0.0
    niche = dict.fromkeys(values, 1.0)
    for pair, distance in of_pairs.items():
        for id in pair:
            niche[id] += max(0.0, 1 - distance / radius) if radius > 0 else 1.0
    return {id: (len(values) - place) / niche[id] for place, id in enumerate(ranked(values))}


TRUNCATION = Selection(unchanged, truncation)
"""Parents are any of the best."""
TOURNAMENT = Selection(unchanged, tournament)
"""A parent is the best of three that are drawn at random."""
SHARING = Selection(shared, truncation)
"""Parents are any of the best, with crowds of similar ones marked down."""


def ranked(values: Values) -> list[MemberId]:
    """The best first; equals in the given order."""
    return sorted(values, key=lambda id: -values[id])
