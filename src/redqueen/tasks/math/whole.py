"""What both kinds do alike: a text is proposed in one block, and one whole number answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redqueen.tasks.blocks import read_answer
from redqueen.tasks.checkers import ask, grade, refused
from redqueen.tasks.math.guest.stories.forms import MOST_CHARS
from redqueen.tasks.math.task import LIMITS, STORIES, MathDraft, NumberTask
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Reason, Rejection, Verdict
from redqueen.verifier import Checker, Verifier

TOGETHER = 4
"""Texts that are checked in one process: it takes about as long to start as a check does, and a step's texts should
keep all cores busy."""


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A kind without its words: what it is called, who checks it, what its tasks are made of."""

    name: str
    label: str
    """Of the block that a teacher writes, and the field of a file's rows."""
    checker: Checker
    task_type: type[NumberTask]
    lacking: Reason
    """Why a proposal without that block is refused."""

    def parse(self, text: str, context: Mapping[str, str]) -> MathDraft | Rejection:
        answer = read_answer(text, self.label)
        if isinstance(answer, Rejection):
            return answer
        part = answer.part(self.label)
        if part is None or not part.strip():
            return Rejection(self.lacking, f"no fenced {self.label}")
        if len(part) > MOST_CHARS:
            return Rejection(Reason.PROGRAM_TOO_LONG, f"more than {MOST_CHARS} characters")
        return MathDraft(self.name, part.strip(), shown=tuple(context.get("shown", "").split()))

    async def validate(self, drafts: Sequence[MathDraft], verifier: Verifier) -> list[Any]:
        found: dict[MathDraft, NumberTask | Rejection] = {}
        for function, kept in (("validate", False), ("inspect", True)):
            own = [draft for draft in drafts if draft.as_it_stands is kept]
            calls = [(draft.text,) for draft in own]
            said = await ask(self.checker, function, calls, verifier, together=TOGETHER, limits=LIMITS) if own else []
            found |= {draft: self._task(draft, one) for draft, one in zip(own, said, strict=True)}
        return [found[draft] for draft in drafts]

    def _task(self, draft: MathDraft, said: Any) -> NumberTask | Rejection:
        if (rejection := refused(draft, said)) is not None:
            return rejection
        task = self.task_type(kind=draft.kind, text=said["text"], answer=said["answer"], steps=said["steps"])
        if not draft.as_it_stands and {said["written"], task.near_key} & set(draft.shown):
            # What was drawn for it anew may look different: what is needed once may follow the next time.
            return draft.rejected(Reason.DUPLICATE, "one that was shown, but for names and what is drawn by lot")
        return task


async def grade_number(attempts: Sequence[Attempt[Any]], verifier: Verifier) -> list[Verdict]:
    """Whole numbers are read in a guest, since a model wrote them, and compared exactly."""
    return await grade(STORIES, "grade", attempts, "answer", lambda task: str(task.answer), verifier, limits=LIMITS)
