"""Fixed sources: families without teachers, whose items are drawn by number.

A source says what its items are and grades answers to them. Students train on its items; nobody proposes one, and no
match or rating goes by them. `gym` has the generators of reasoning-gym, `environments` the tasksets of verifiers.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Generic

from redqueen.errors import Fault, InputError, RedQueenError
from redqueen.plugins import one_line
from redqueen.tasks.checkers import verdict_of
from redqueen.tasks.protocol import Attempt, Draft, Family, Kind, Prompt, Task, TaskT
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.verifier import Result, Status, Verifier

NUMBERS = 2**31
"""An item's number is from 0 and below this: seeds of most generators are no larger."""


class Source(Family):
    """A family without teachers."""

    seeds: Sequence[Task] = ()

    @abstractmethod
    def draw(self, kind: str, number: int) -> Task | Rejection:
        """The item with this number (from 0, below `NUMBERS`): for one number the same item in every process, whatever
        was drawn before. A rejection where there is none."""

    async def runs(self, tasks: Sequence[Task], texts: Sequence[str], word: str, verifier: Verifier) -> list[bool]:
        """For each task whether grading this text as its answer executes code with the word in it: then an answer could
        judge itself. A source whose graders are its own, and execute nothing, need not say so."""
        return [False] * len(tasks)

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[Draft]:
        raise InputError(f"{kind.name} is a source's kind", "its items are drawn by number: leave it out of files")


class SourceKind(ABC, Generic[TaskT]):
    """A kind that no teacher is asked for. It puts its items to students and grades what they answer."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def task_type(self) -> type[TaskT]: ...

    @abstractmethod
    def solve_prompt(self, task: TaskT) -> Prompt:
        """As `Kind.solve_prompt`."""

    @abstractmethod
    async def grade(self, attempts: Sequence[Attempt[TaskT]], verifier: Verifier) -> list[Verdict]:
        """As `Kind.grade`."""

    def propose_prompt(self, references: Sequence[TaskT], rng: Random) -> Prompt:
        raise Fault(f"a teacher is asked for {self.name}, whose items are drawn")

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> Draft | Rejection:
        return Rejection(Reason.NO_PROGRAM, f"nobody proposes {self.name}")

    async def validate(self, drafts: Sequence[Draft], verifier: Verifier) -> list[TaskT | Rejection]:
        return [draft.rejected(Reason.NO_PROGRAM, f"nobody proposes {self.name}") for draft in drafts]


async def graded(kind: Kind[Any, Any], attempts: Sequence[Attempt[Any]], verifier: Verifier) -> list[Verdict]:
    """The verdicts of a kind. A source's grader is seldom made for whatever a model may write: an answer at which it
    raises is wrong, and others are graded all the same."""
    try:
        return await kind.grade(attempts, verifier)
    except RedQueenError:
        raise
    except Exception as error:
        if not isinstance(kind, SourceKind):
            raise
        if len(attempts) == 1:
            return [_wrong(one_line(error))]
    return [verdict for attempt in attempts for verdict in await graded(kind, [attempt], verifier)]


def verdict_on(said: Any) -> Verdict:
    """What a checker says to an answer, as a verdict, where the grader that it asks is a package's."""
    if isinstance(said, Result) and said.status is Status.EXCEPTION:
        return _wrong(said.exception or "", said.status)
    return verdict_of(said)


def _wrong(error: str, status: Status | None = None) -> Verdict:
    detail = ascii(f"its grader raises {error}")[1:-1]
    return Verdict(grade=Grade.WRONG, reason=Reason.RAISES, status=status, detail=detail)
