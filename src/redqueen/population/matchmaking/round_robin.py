"""Everybody meets everybody in turn, without chance.

A teacher begins at the student with its own seat number, so that teachers begin with different students.
"""

from collections.abc import Sequence
from random import Random

from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker
from redqueen.population.members import Member


def choose(teacher: Member, pool: Sequence[Member], board: Board, rng: Random) -> Member:
    """The student whom the teacher has met least often; of several the first from its own seat on, round the table."""

    def order(student: Member) -> tuple[int, bool, int]:
        number = student.seat_number
        return board.met(teacher.id, student.id), number < teacher.seat_number, number

    return min(pool, key=order)


MAKER = Maker(choose)
