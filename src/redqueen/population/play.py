"""From a step's outcomes to new ratings and to meetings for the board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.errors import InputError
from redqueen.population.board import Meeting
from redqueen.population.members import MemberId, Population
from redqueen.population.ratings import expected, rate
from redqueen.population.results import Rule, TaskScore, judge


@dataclass(frozen=True, slots=True)
class KindOutcome:
    scores: tuple[TaskScore, ...] = ()
    """One for each valid task."""
    teacher_reward: float | None = None
    """The mean over the teacher's proposals, invalid ones included; None without any."""
    student_reward: float | None = None
    """The mean over the student's attempts; None without any."""


@dataclass(frozen=True, slots=True)
class MatchOutcome:
    """The outcome of one teacher's tasks with one student."""

    teacher: MemberId
    student: MemberId
    kinds: Mapping[str, KindOutcome]
    """Every kind that the teacher was asked for, including those without a valid proposal."""


def play(
    population: Population, step: int, outcomes: Sequence[MatchOutcome], rule: Rule
) -> tuple[Population, list[Meeting]]:
    """The population with its ratings after a step, and the meetings for the board.

    All outcomes are judged by the ratings before the step, by which the matches were made. The ratings then change in
    the order of the outcomes.
    """
    before = {member.id: member.rating for member in population.members}
    after = dict(before)
    meetings: list[Meeting] = []
    for match, outcome in enumerate(outcomes):
        teacher, student = outcome.teacher, outcome.student
        for id in (teacher, student):
            population.member(id)
        if not outcome.kinds:
            raise InputError(f"{teacher} and {student} played no kind", "name every kind that was asked for")
        foretold = expected(before[student], before[teacher])
        everything = [score for part in outcome.kinds.values() for score in part.scores]
        result = judge(foretold, everything, rule)
        after[student], after[teacher] = rate(after[student], after[teacher], result)
        for kind, part in outcome.kinds.items():
            meetings.append(
                Meeting(
                    step=step,
                    match=match,
                    teacher=teacher,
                    student=student,
                    kind=kind,
                    tasks=len(part.scores),
                    unsolved=sum(score.unsolved for score in part.scores),
                    attempts=sum(score.attempts for score in part.scores),
                    unsolved_attempts=sum(score.attempts for score in part.scores if score.unsolved),
                    solved=sum(score.solved for score in part.scores),
                    foretold=foretold,
                    result=judge(foretold, part.scores, rule),
                    match_result=result,
                    teacher_reward=part.teacher_reward,
                    student_reward=part.student_reward,
                )
            )
    return population.rated(after), meetings
