"""Everybody meets everybody in turn, without chance.

Seats are numbered, and a teacher begins at its own number, so that teachers who know nobody want different students.
"""

from collections.abc import Sequence
from random import Random

from redqueen.population.board import Board
from redqueen.population.members import Member


def choose(teacher: Member, pool: Sequence[Member], board: Board, rng: Random) -> Member:
    """The student whom the teacher has met least often; of several the first from its own seat on, round the table."""
    own = _number(teacher)

    def place(student: Member) -> tuple[int, bool, int]:
        number = _number(student)
        return board.met(teacher.id, student.id), number < own, number

    return min(pool, key=place)


def _number(member: Member) -> int:
    return int(member.seat[1:])
