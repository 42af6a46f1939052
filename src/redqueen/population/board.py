"""What has been played: one meeting for every kind of every match, and tallies over them.

A board is a value, like the population. It counts tasks and attempts, not rates, so that tallies over any set of
meetings add up.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property

from redqueen.population.members import MemberId
from redqueen.population.ratings import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """One kind's part in a match."""

    step: int
    match: int
    """Its place among the step's matches; what a teacher plays with several students at once is as many matches."""
    teacher: MemberId
    student: MemberId
    kind: str
    tasks: int
    """The valid ones."""
    unsolved: int
    """Tasks that nobody of the panel solved."""
    attempts: int
    unsolved_attempts: int
    """Those spent on unsolved tasks."""
    solved: int
    """Attempts that succeeded."""
    foretold: float
    """The solve rate that the ratings before the step expect."""
    result: Result
    """Who won by this kind alone."""
    match_result: Result
    """Who won the match, over all its kinds: what the ratings have seen."""
    teacher_reward: float | None = None
    """The mean over the teacher's proposals, invalid ones included; None without any."""
    student_reward: float | None = None
    """The mean over the student's attempts; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums over meetings."""

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

    @property
    def possible_rate(self) -> float | None:
        """Over the tasks that somebody solved; None without any."""
        attempts = self.attempts - self.unsolved_attempts
        return self.solved / attempts if attempts else None

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(Tally)})


@dataclass(frozen=True)
class Board:
    """All meetings, in the order in which they were played."""

    meetings: tuple[Meeting, ...] = ()

    def add(self, meetings: Iterable[Meeting]) -> "Board":
        return Board((*self.meetings, *meetings))

    def since(self, step: int) -> "Board":
        """The meetings of this step and of those after it."""
        return Board(tuple(meeting for meeting in self.meetings if meeting.step >= step))

    def pairs(self) -> dict[tuple[MemberId, MemberId], Tally]:
        """By (teacher, student); a match counts once, however many kinds it has."""
        tallies: dict[tuple[MemberId, MemberId], Tally] = {}
        seen: set[tuple[int, int]] = set()
        for meeting in self.meetings:
            match = meeting.step, meeting.match
            tally = _tally(meeting, None if match in seen else meeting.match_result)
            seen.add(match)
            pair = meeting.teacher, meeting.student
            tallies[pair] = tallies.get(pair, Tally()) + tally
        return tallies

    def met(self, teacher: MemberId, student: MemberId) -> int:
        """How many matches these two have played."""
        return self._met.get((teacher, student), 0)

    @cached_property
    def _met(self) -> dict[tuple[MemberId, MemberId], int]:
        matches = {(meeting.step, meeting.match): (meeting.teacher, meeting.student) for meeting in self.meetings}
        return Counter(matches.values())


def _tally(meeting: Meeting, result: Result | None) -> Tally:
    return Tally(
        matches=int(result is not None),
        student_wins=int(result is Result.STUDENT),
        draws=int(result is Result.DRAW),
        teacher_wins=int(result is Result.TEACHER),
        tasks=meeting.tasks,
        unsolved=meeting.unsolved,
        attempts=meeting.attempts,
        unsolved_attempts=meeting.unsolved_attempts,
        solved=meeting.solved,
    )
