"""Prioritised fictitious self-play: balanced pairs are preferred, since both sides learn most from them."""

import sys
from collections.abc import Sequence
from random import Random

from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker
from redqueen.population.members import Member
from redqueen.population.ratings import expected


def choose(teacher: Member, pool: Sequence[Member], board: Board, rng: Random) -> Member:
    """A student, with weight p (1 - p) where p is how likely it is to win."""
    weights = [
        # Between members that are far apart both factors round to zero, and somebody must play.
        expected(student.rating, teacher.rating) * expected(teacher.rating, student.rating) + sys.float_info.min
        for student in pool
    ]
    return rng.choices(pool, weights)[0]


MAKER = Maker(choose)
