"""How varied a population is at one step: its members by role, and the tasks of each of its teachers.

A snapshot is plain figures, so that it can be recorded, drawn and watched (`measure.watch`). Teachers and students are
measured apart: the two roles always differ, and that would hide that one of them has collapsed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from redqueen.analysis.distance import effective_size, mean_distance, weight_distances
from redqueen.population.members import MemberId, Population, Role
from redqueen.tasks.protocol import Task

ENOUGH_TASKS = 32
"""Fewer say little: with n tasks of k types the entropy comes out about (k - 1) / (1.4 n) bits too low, which is 0.2
bits here for ten types."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far apart the members of one role are."""

    members: int
    effective_size: float
    """By the cosines of their weights: from 1 to `members`."""
    weight_distance: float
    """Mean over all pairs."""


@dataclass(frozen=True, slots=True)
class Variety:
    """How varied a teacher's recent tasks are."""

    tasks: int
    kinds_bits: float
    """Entropy of their kinds."""
    descriptors_bits: float
    """Entropy of what type of problem they are, in the kind where it is lowest (of those with enough tasks): a kind
    whose problems are handed to the teacher, as in code_f, must not hide that its own are all of one type."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """A population at one step."""

    step: int
    roles: Mapping[Role, Spread]
    teachers: Mapping[MemberId, Variety]


def take(
    step: int,
    population: Population,
    cosine_N_N: Tensor,
    tasks: Mapping[MemberId, Sequence[Task]],
) -> Diversity:
    """A snapshot. The matrix is in the order of the population's members (`weight_cosines`); `tasks` are each teacher's
    recent ones, and a teacher without any is left out."""
    spreads = {}
    for role in Role:
        places = [place for place, member in enumerate(population.members) if member.role is role]
        if not places:
            continue
        spreads[role] = spread(cosine_N_N[places][:, places])
    return Diversity(step, spreads, {teacher: variety(given) for teacher, given in tasks.items() if given})


def spread(cosine_N_N: Tensor) -> Spread:
    """Of the members that this matrix is about."""
    return Spread(len(cosine_N_N), effective_size(cosine_N_N), mean_distance(weight_distances(cosine_N_N)))


def variety(tasks: Sequence[Task]) -> Variety:
    kinds: dict[str, list[str]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task.descriptor)
    enough = [entropy(descriptors) for descriptors in kinds.values() if len(descriptors) >= ENOUGH_TASKS]
    everything = entropy(task.descriptor for task in tasks)
    return Variety(len(tasks), entropy(task.kind for task in tasks), min(enough, default=everything))


def entropy(labels: Iterable[str]) -> float:
    """In bits: 0 if all are the same, n if 2^n labels are equally frequent."""
    counts = Counter(labels).values()
    total = sum(counts)
    return math.fsum(count / total * math.log2(total / count) for count in counts)
