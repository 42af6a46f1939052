"""Arithmetic, a whole task family: a teacher gives three numbers, a student is asked for a * b + c.

Any text with three numbers is a proposal, and the last number of a text is its answer. Nothing that a model wrote is
evaluated, and nothing is run: the verifier is not needed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.protocol import Attempt, Draft, Family, Form, Prompt, Task
from redqueen.tasks.verdicts import CUT_ATTEMPT, Grade, Reason, Rejection, Verdict, malformed
from redqueen.verifier import Verifier


@dataclass(frozen=True)
class Numbers(Draft):
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Sum(Task):
    numbers: tuple[int, ...]

    @property
    def answer(self) -> int:
        a, b, c = self.numbers
        return a * b + c


class Sums:
    """One kind of task."""

    name = "sum"
    title = "work out a sum"
    task_type = Sum

    def propose_prompt(self, references: Sequence[Sum], rng: Random) -> Prompt:
        shown = "\n".join(" ".join(map(str, task.numbers)) for task in rng.sample([*references, *SEEDS], 2))
        return _ask(f"{shown}\nWrite three other numbers.")

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> Numbers | Rejection:
        numbers = tuple(int(number) for number in re.findall("[0-9]{1,3}", text)[:3])
        if len(numbers) < 3:
            return Rejection(Reason.TOO_FEW_INPUTS, f"{len(numbers)} numbers of three")
        return Numbers(self.name, numbers)

    async def validate(self, drafts: Sequence[Numbers], verifier: Verifier) -> list[Sum | Rejection]:
        return [Sum(draft.kind, draft.numbers) for draft in drafts]

    def solve_prompt(self, task: Sum) -> Prompt:
        a, b, c = task.numbers
        return _ask(f"{a} * {b} + {c} =")

    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        return [CUT_ATTEMPT if attempt.cut else _judge(attempt) for attempt in attempts]


def _judge(attempt: Attempt[Sum]) -> Verdict:
    numbers = re.findall("[0-9]+", attempt.text)
    if not numbers:
        return malformed(Rejection(Reason.NO_ANSWER, "no number"))
    return Verdict(grade=Grade.CORRECT if numbers[-1] == str(attempt.task.answer) else Grade.WRONG)


def _ask(text: str) -> Prompt:
    return Prompt(({"role": "user", "content": text},))


SEEDS = tuple(Sum("sum", (n, n + 3, 2 * n)) for n in range(2, 32))


class Arithmetic(Family):
    """Sums of small numbers."""

    seeds = SEEDS

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Sums]:
        return {"sum": Sums()}

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [str(task.answer) if isinstance(task, Sum) else None for task in tasks]
