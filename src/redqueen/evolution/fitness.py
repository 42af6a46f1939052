"""The fitness of a role's members, for breeding and for survival.

One is a function (`Measure`). A member that has played nothing that counts gets the mean of those that have.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redqueen.population.board import Board
from redqueen.population.members import MemberId, Population, Role


@dataclass(frozen=True, slots=True)
class Fitness:
    breeding: float
    survival: float


Measure = Callable[[Population, Role, Board], dict[MemberId, Fitness]]
"""The board holds what was played since the last event."""


def rating(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """The lower bound for breeding, so that parents are surely good; the mean for survival."""
    return {member.id: Fitness(member.rating.lower, member.rating.mu) for member in population.of(role)}


def reward(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """The mean reward since the last replacement."""
    rewards: dict[MemberId, list[float]] = {}
    for meeting in board.meetings:
        id, value = meeting.student, meeting.student_reward
        if role is Role.TEACHER:
            id, value = meeting.teacher, meeting.teacher_reward
        if value is not None:
            rewards.setdefault(id, []).append(value)
    return _means(population, role, rewards)


def rate(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """A student's solve rate or a teacher's stump rate, the mean over opponents.

    Tasks that nobody solved are left out. Where none remain, the teacher has stumped nobody, as in a match, and the
    student had nothing to solve.
    """
    rates: dict[MemberId, list[float]] = {}
    for (teacher, student), solved in board.possible_rates().items():
        if role is Role.TEACHER:
            rates.setdefault(teacher, []).append(0.0 if solved is None else 1 - solved)
        elif solved is not None:
            rates.setdefault(student, []).append(solved)
    return _means(population, role, rates)


def _means(population: Population, role: Role, values: Mapping[MemberId, Sequence[float]]) -> dict[MemberId, Fitness]:
    means = {member.id: statistics.fmean(values[member.id]) for member in population.of(role) if member.id in values}
    unknown = statistics.fmean(means.values()) if means else 0.0
    fitness = {member.id: means.get(member.id, unknown) for member in population.of(role)}
    return {id: Fitness(value, value) for id, value in fitness.items()}
