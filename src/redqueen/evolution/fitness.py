"""How good the members of a role are, in the two ways that evolution asks: to breed, and to stay.

To add one, write a function and name it in `FITNESS` and in `evolution.fitness` of the settings. Who has played
nothing that counts is as good as the mean of those who have: nothing is known against it.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from redqueen.population.board import Board, Tally
from redqueen.population.members import MemberId, Population, Role


@dataclass(frozen=True, slots=True)
class Fitness:
    """How good a member is; more is better."""

    breeding: float
    """To be a parent."""
    survival: float
    """To stay."""


Measure = Callable[[Population, Role, Board], dict[MemberId, Fitness]]
"""The fitness of a role's members; the board holds what was played since the last event."""


def rating(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """Whom to breed is a bet on what is certain, so the lower bound; whom to drop is about what is likely, the mean."""
    return {each.id: Fitness(each.rating.lower, each.rating.mu) for each in population.of(role)}


def reward(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """The mean reward over meetings."""
    rewards: dict[MemberId, list[float]] = {}
    for meeting in board.meetings:
        id, value = (
            (meeting.teacher, meeting.teacher_reward)
            if role is Role.TEACHER
            else (meeting.student, meeting.student_reward)
        )
        if value is not None:
            rewards.setdefault(id, []).append(value)
    return _both(population, role, {id: statistics.fmean(values) for id, values in rewards.items()})


def rate(population: Population, role: Role, board: Board) -> dict[MemberId, Fitness]:
    """A student's solve rate, a teacher's stump rate: the mean over opponents, so that whom one met often counts once.

    Tasks that nobody solved are left out. Where none remain, the teacher has stumped nobody, as in a match, and the
    student had nothing to solve.
    """
    rates: dict[MemberId, list[float]] = {}
    for (teacher, student), tally in board.pairs().items():
        if role is Role.TEACHER:
            rates.setdefault(teacher, []).append(_stumped(tally))
        elif tally.possible_rate is not None:
            rates.setdefault(student, []).append(tally.possible_rate)
    return _both(population, role, {id: statistics.fmean(values) for id, values in rates.items()})


FITNESS: dict[str, Measure] = {"rating": rating, "reward": reward, "rate": rate}


def _stumped(tally: Tally) -> float:
    return 0.0 if tally.possible_rate is None else 1 - tally.possible_rate


def _both(population: Population, role: Role, values: Mapping[MemberId, float]) -> dict[MemberId, Fitness]:
    ids = [each.id for each in population.of(role)]
    unknown = _mean(values[id] for id in ids if id in values)
    return {id: Fitness(values.get(id, unknown), values.get(id, unknown)) for id in ids}


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else 0.0
