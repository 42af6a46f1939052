"""Any student, equally likely: the control that shows what prioritised matches are worth."""

from collections.abc import Sequence
from random import Random

from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker
from redqueen.population.members import Member


def choose(teacher: Member, pool: Sequence[Member], board: Board, rng: Random) -> Member:
    return rng.choice(pool)


MAKER = Maker(choose)
