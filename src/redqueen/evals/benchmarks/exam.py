"""An exam: a benchmark whose items are tasks of the kinds that a race trains, judged by the kinds' own graders."""

from collections.abc import Mapping, Sequence
from typing import Any

from redqueen.errors import InputError
from redqueen.evals.protocol import Grade, Item, Prompt, Prompts, Reply
from redqueen.tasks.files import ExamTask
from redqueen.tasks.protocol import Attempt, Kind
from redqueen.verifier import Verifier


class Exam:
    """Tasks that were run and found sound. The answer in a reply is the whole of it, where it keeps the contract."""

    name = "exam"
    title = "exam"

    def __init__(
        self, tasks: Sequence[ExamTask], kinds: Mapping[str, Kind[Any, Any]], void: set[str] | None = None
    ) -> None:
        """`void` gets the ids of tasks that do not return their own output again; without it they are refused."""
        self._kinds, self._void = kinds, void
        self._tasks = {exam_task.task.id: exam_task.task for exam_task in tasks}
        self.items = tuple(
            Item(
                exam_task.task.id,
                {"band": exam_task.band, "kind": exam_task.task.kind, "shortcut": exam_task.shortcut is not None},
            )
            for exam_task in tasks
        )

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        task = self._tasks[item.id]
        return Prompt.of(self._kinds[task.kind].solve_prompt(task).messages)

    async def judge(self, replies: Sequence[Reply], prompts: Prompts, verifier: Verifier) -> list[Grade]:
        """All replies must be to one item: what is right for it is worked out once for all of them."""
        task = self._tasks[replies[0].item.id]
        attempts = [Attempt(task, reply.text, reply.cut) for reply in replies]
        verdicts = await self._kinds[task.kind].grade(attempts, verifier)
        if any(verdict.void for verdict in verdicts) and self._void is not None:
            self._void.add(task.id)
        elif any(verdict.void for verdict in verdicts):
            first, *_ = (task.body or self.prompt(replies[0].item, prompts).text).splitlines()
            raise InputError(
                f"the exam's task {task.id[:12]} ({first}...) does not return its own output again",
                "take it out: it can tell one run from another",
            )
        return [
            Grade(
                correct=verdict.correct,
                why="" if verdict.correct else str(verdict.reason or verdict.grade),
                answer=reply.text if verdict.well_formed else None,
            )
            for reply, verdict in zip(replies, verdicts, strict=True)
        ]
