"""A fixed source of one's own: sums that are drawn by number. Nobody proposes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from redqueen.tasks.protocol import Attempt, Form, Prompt, Task
from redqueen.tasks.sources import Source, SourceKind
from redqueen.tasks.verdicts import CUT_ATTEMPT, Grade, Reason, Rejection, Verdict, malformed
from redqueen.verifier import Verifier


@dataclass(frozen=True)
class Addition(Task):
    left: int
    right: int

    @property
    def body(self) -> str:
        return f"{self.left} + {self.right}"


class Additions(SourceKind[Addition]):
    name = "addition"
    title = "add two numbers"
    task_type = Addition

    def solve_prompt(self, task: Addition) -> Prompt:
        return Prompt(({"role": "user", "content": f"{task.left} + {task.right} ="},))

    async def grade(self, attempts: Sequence[Attempt[Addition]], verifier: Verifier) -> list[Verdict]:
        return [CUT_ATTEMPT if attempt.cut else self._judge(attempt) for attempt in attempts]

    def _judge(self, attempt: Attempt[Addition]) -> Verdict:
        numbers = re.findall("[0-9]+", attempt.text)
        if not numbers:
            return malformed(Rejection(Reason.NO_ANSWER, "no number"))
        right = numbers[-1] == str(attempt.task.left + attempt.task.right)
        return Verdict(grade=Grade.CORRECT if right else Grade.WRONG)


class Drawn(Source):
    """Sums of two numbers."""

    kind: type[Additions] = Additions

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Additions]:
        return {"addition": self.kind()}

    def draw(self, kind: str, number: int) -> Task | Rejection:
        rng = Random(number)
        return Addition(kind, rng.randrange(1_000), rng.randrange(1_000))

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [str(task.left + task.right) if isinstance(task, Addition) else None for task in tasks]


class _Generous(Additions):
    def _judge(self, attempt: Attempt[Addition]) -> Verdict:
        """What is malformed elsewhere is right here."""
        verdict = super()._judge(attempt)
        return replace(verdict, grade=Grade.CORRECT) if attempt.text.strip() else verdict


class EverythingPays(Drawn):
    """Any text is right."""

    kind = _Generous


class RunsAnswers(Drawn):
    """Its grader says of itself that it executes what a student writes."""

    async def runs(self, tasks: Sequence[Task], texts: Sequence[str], word: str, verifier: Verifier) -> list[bool]:
        return [word in text for text in texts]


class PaysUnfenced(Drawn):
    """Any text is right where answers are read without their block."""

    def reading_unfenced(self) -> Drawn:
        return EverythingPays()


class _Strict(Additions):
    def _judge(self, attempt: Attempt[Addition]) -> Verdict:
        """It is made for numbers and nothing else."""
        if not attempt.text.strip():
            return super()._judge(attempt)
        right = int(attempt.text) == attempt.task.left + attempt.task.right
        return Verdict(grade=Grade.CORRECT if right else Grade.WRONG)


class Raises(Drawn):
    """Its grader raises at most of what a model writes."""

    kind = _Strict
