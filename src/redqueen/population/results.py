"""Who won a match: the share of attempts that succeeded against the share that the ratings foretold.

Two rules. `paper` compares the plain rate, so a teacher of impossible tasks wins matches. `ours` leaves out the tasks
that nobody solved and those that are hard in a trivial way, and calls it a draw if chance explains the difference.
Leaving tasks out raises the rate of the rest (with eight attempts on equal tasks from 0.5 to 0.502, from 0.2 to 0.24):
it favours students, the weak ones most, so it blurs differences at low rates but does not reverse them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from redqueen.population.ratings import MatchResult

Rule = Literal["ours", "paper"]


@dataclass(frozen=True, slots=True)
class TaskScore:
    solved: int
    attempts: int
    elsewhere: int = 0
    """Solutions by other students of the panel."""
    counts: bool = True
    """Whether its difficulty counts; where not, "ours" leaves it out."""

    @property
    def unsolved(self) -> bool:
        """Nobody of the panel solved it."""
        return self.solved + self.elsewhere == 0


def judge(foretold: float, scores: Sequence[TaskScore], rule: Rule) -> MatchResult:
    """Who won; `foretold` is the solve rate that the ratings predict."""
    counted = scores if rule == "paper" else [score for score in scores if score.counts and not score.unsolved]
    attempts = sum(score.attempts for score in counted)
    if attempts == 0:
        return MatchResult.STUDENT
    lead = sum(score.solved for score in counted) / attempts - foretold
    chance = 0.0 if rule == "paper" else math.sqrt(foretold * (1 - foretold) / attempts)
    if abs(lead) <= chance:
        return MatchResult.DRAW
    return MatchResult.STUDENT if lead > 0 else MatchResult.TEACHER
