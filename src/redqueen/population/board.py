"""What has been played: one meeting for every kind of every match.

A board is a value, like the population. It counts tasks and attempts, not rates, so that any set of meetings adds up.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property

from redqueen.population.members import MemberId
from redqueen.population.ratings import MatchResult

Pair = tuple[MemberId, MemberId]
"""Teacher and student."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """One kind's part in a match."""

    step: int
    match: int
    """Its place among the step's matches; a teacher with a panel of several students plays a match with each."""
    teacher: MemberId
    student: MemberId
    kind: str
    tasks: int
    """Valid tasks."""
    unsolved: int
    """Tasks that nobody in the panel solved."""
    attempts: int
    unsolved_attempts: int
    solved: int
    """Attempts that succeeded."""
    foretold: float
    """The solve rate that the ratings before the step predict."""
    result: MatchResult
    """Who won by this kind alone."""
    match_result: MatchResult
    """Who won the match over all its kinds, which is what ratings are updated by."""
    teacher_reward: float | None = None
    student_reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTally:
    """Sums over the meetings of a pair."""

    matches: int = 0
    student_wins: int = 0
    draws: int = 0
    teacher_wins: int = 0
    tasks: int = 0
    unsolved: int = 0
    attempts: int = 0
    unsolved_attempts: int = 0
    solved: int = 0

    @property
    def solve_rate(self) -> float | None:
        """Over all valid tasks; None without an attempt."""
        return self.solved / self.attempts if self.attempts else None

    def __add__(self, other: "PairTally") -> "PairTally":
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(PairTally)}
        return PairTally(**sums)


@dataclass(frozen=True)
class Board:
    """All meetings, in the order in which they were played."""

    meetings: tuple[Meeting, ...] = ()

    def add(self, meetings: Iterable[Meeting]) -> "Board":
        return Board((*self.meetings, *meetings))

    def since(self, step: int) -> "Board":
        return Board(tuple(meeting for meeting in self.meetings if meeting.step >= step))

    def possible_rates(self) -> dict[Pair, float | None]:
        """The solve rate of each pair over the tasks that somebody solved; None without any."""
        solved: Counter[Pair] = Counter()
        attempts: Counter[Pair] = Counter()
        for meeting in self.meetings:
            pair = meeting.teacher, meeting.student
            solved[pair] += meeting.solved
            attempts[pair] += meeting.attempts - meeting.unsolved_attempts
        return {pair: solved[pair] / count if count else None for pair, count in attempts.items()}

    def met(self, teacher: MemberId, student: MemberId) -> int:
        """How many matches these two have played."""
        return self._matches[teacher, student]

    @cached_property
    def _matches(self) -> Counter[Pair]:
        # A match has a meeting for each kind.
        return Counter(
            {(meeting.step, meeting.match): (meeting.teacher, meeting.student) for meeting in self.meetings}.values()
        )
