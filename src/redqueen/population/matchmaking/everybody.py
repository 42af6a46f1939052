"""Cross-evaluation: every student attempts every teacher's tasks.

Where the panel is smaller, those who have met least come first, so that all pairs meet equally often.
"""

from collections.abc import Sequence
from random import Random

from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker
from redqueen.population.members import Member


def choose(teacher: Member, pool: Sequence[Member], board: Board, rng: Random) -> Member:
    """One of the students whom the teacher has met least often."""
    least = min(board.met(teacher.id, student.id) for student in pool)
    return rng.choice([student for student in pool if board.met(teacher.id, student.id) == least])


MAKER = Maker(choose, panel=None)
