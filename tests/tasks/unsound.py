"""Arithmetic, broken in one place each time: what `redqueen check` must find, and nothing else."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arithmetic import SEEDS, Arithmetic, Numbers, Sum, Sums

from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict, malformed
from redqueen.verifier import Verifier

CORRECT, WRONG = Verdict(grade=Grade.CORRECT), Verdict(grade=Grade.WRONG)


class Broken(Arithmetic):
    """Arithmetic with another kind."""

    kind: type[Sums] = Sums

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Sums]:
        return {"sum": self.kind()}


class _CutPays(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        return await super().grade([replace(attempt, cut=False) for attempt in attempts], verifier)


class CutPays(Broken):
    kind = _CutPays


class _ProseIsWrong(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        verdicts = await super().grade(attempts, verifier)
        return [WRONG if verdict.reason is Reason.NO_ANSWER else verdict for verdict in verdicts]


class ProseIsWrong(Broken):
    kind = _ProseIsWrong


class _LargeAreRefused(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        verdicts = await super().grade(attempts, verifier)
        return [
            WRONG if verdict.correct and attempt.task.answer > 1_000 else verdict
            for attempt, verdict in zip(attempts, verdicts, strict=True)
        ]


class LargeAreRefused(Broken):
    kind = _LargeAreRefused


class _EchoPays(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        verdicts = await super().grade(attempts, verifier)
        return [
            CORRECT if self.solve_prompt(attempt.task).messages[-1]["content"] in attempt.text else verdict
            for attempt, verdict in zip(attempts, verdicts, strict=True)
        ]


class EchoPays(Broken):
    kind = _EchoPays


class _Evaluated(Sums):
    """Pastes the answer into code."""

    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        verdicts = await super().grade(attempts, verifier)
        return [
            CORRECT if ") or (True" in attempt.text else verdict
            for attempt, verdict in zip(attempts, verdicts, strict=True)
        ]


class Evaluated(Broken):
    kind = _Evaluated


class OftenAThousand(Arithmetic):
    """A tenth of the tasks have one answer."""

    seeds = tuple(Sum("sum", (n, 10, 1_000 - 10 * n) if n % 10 == 0 else (n, n + 3, 2 * n)) for n in range(10, 70))


class _Tells(Sums):
    def solve_prompt(self, task: Sum) -> Prompt:
        asked = super().solve_prompt(task).messages[-1]["content"]
        return Prompt(({"role": "user", "content": f"{_sentence(task)}\n{asked}"},))


def _sentence(task: Any) -> str:
    return f"All in all it is {task.answer}"


class Tells(Broken):
    kind = _Tells

    async def answers(self, tasks: Sequence[Any], verifier: Verifier) -> list[str | None]:
        return [_sentence(task) for task in tasks]


class _Unordered(Sums):
    def solve_prompt(self, task: Sum) -> Prompt:
        words = " ".join({"add", "carry", "multiply", "shift", "subtract", "borrow"})
        return Prompt(({"role": "user", "content": f"{words}: {super().solve_prompt(task).messages[-1]['content']}"},))


class Unordered(Broken):
    kind = _Unordered


class _Counts(Sums):
    """Python refuses to make a number of more than 4,300 digits."""

    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        for attempt in attempts:
            [int(word) for word in attempt.text.split() if word.isdecimal()]
        return await super().grade(attempts, verifier)


class Counts(Broken):
    kind = _Counts


class _ReadsNothing(Sums):
    def parse_proposal(self, text: str, context: Mapping[str, str]) -> Numbers | Rejection:
        return super().parse_proposal(text, context) if text.isprintable() or "\n" in text else None  # pyright: ignore


class ReadsNothing(Broken):
    kind = _ReadsNothing


@dataclass(frozen=True)
class Labelled(Sum):
    unit: str = ""

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in super().record().items() if name != "unit"}


class _Labels(Sums):
    task_type = Labelled


class Labels(Broken):
    kind = _Labels
    seeds = tuple(Labelled("sum", seed.numbers, "apples") for seed in SEEDS)


class OfThisObject(Sum):
    @property
    def near_key(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"seed {self.id}" if any(self is seed for seed in ByIdentity.seeds) else self.id


class _ByIdentity(Sums):
    task_type = OfThisObject


class ByIdentity(Broken):
    kind = _ByIdentity
    seeds = tuple(OfThisObject("sum", seed.numbers) for seed in SEEDS)


class OfOneId(Sum):
    @property
    def id(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"{min(self.answer, 800):012}"


class _OneId(Sums):
    task_type = OfOneId


class OneId(Broken):
    """Six of its tasks are the same to everybody who goes by their ids."""

    kind = _OneId
    seeds = tuple(OfOneId("sum", seed.numbers) for seed in SEEDS)


class InTwoLines(Sum):
    descriptor = "a sum\nof products"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]


class _InTwoLines(Sums):
    task_type = InTwoLines


class TwoLines(Broken):
    kind = _InTwoLines
    seeds = tuple(InTwoLines("sum", seed.numbers) for seed in SEEDS)


class _Sleeps(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        if len(attempts) == 1 and attempts[0].task == SEEDS[0] and attempts[0].text == str(SEEDS[0].answer):
            time.sleep(1.1)
        return await super().grade(attempts, verifier)


class Sleeps(Broken):
    kind = _Sleeps


class Unanswered(Arithmetic):
    async def answers(self, tasks: Sequence[Any], verifier: Verifier) -> list[str | None]:
        return [None] * len(tasks)


class Few(Arithmetic):
    seeds = SEEDS[:5]


class _Raises(Sums):
    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        if any("hard" in attempt.text for attempt in attempts):
            raise LookupError("prose")
        return await super().grade(attempts, verifier)


class Raises(Broken):
    kind = _Raises


class _Tight(Sums):
    """Takes an answer as a whole, and nothing else."""

    async def grade(self, attempts: Sequence[Attempt[Sum]], verifier: Verifier) -> list[Verdict]:
        verdicts = await super().grade(attempts, verifier)
        return [
            verdict if verdict.reason is Reason.CUT or attempt.text == str(attempt.task.answer) else _NONE
            for attempt, verdict in zip(attempts, verdicts, strict=True)
        ]


_NONE = malformed(Rejection(Reason.NO_ANSWER))


class Tight(Broken):
    kind = _Tight
