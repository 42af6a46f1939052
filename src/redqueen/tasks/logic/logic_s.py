"""logic_s: find values that keep all clues of a puzzle.

A teacher writes unknowns and clues; what they come to is drawn by lot where they are checked. Any assignment that keeps
all clues is right, so nothing is compared with a stored solution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from redqueen.tasks.blocks import read_answer
from redqueen.tasks.checkers import ask, grade, refused
from redqueen.tasks.logic.guest.logic_language import MOST_CHARS
from redqueen.tasks.logic.prompts import propose_puzzle, solve_puzzle
from redqueen.tasks.logic.seeds import SEEDS
from redqueen.tasks.logic.task import CHECKER, LIMITS, LogicDraft, LogicTask
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import Reason, Rejection, Verdict
from redqueen.verifier import Verifier

TOGETHER = 4
"""Puzzles that are checked in one process: it takes about as long to start as a search does, and a step's puzzles
should keep all cores busy."""


@dataclass(frozen=True)
class LogicS:
    """Unknowns and clues are given; values are wanted."""

    form: Form = Form.LONG
    name = "logic_s"
    title = "find values that keep all clues"
    task_type = LogicTask

    def propose_prompt(self, references: Sequence[LogicTask], rng: Random) -> Prompt:
        return propose_puzzle(self.form, references or SEEDS, rng)

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> LogicDraft | Rejection:
        answer = read_answer(text, "puzzle")
        if isinstance(answer, Rejection):
            return answer
        puzzle = answer.part("puzzle")
        if puzzle is None or not puzzle.strip():
            return Rejection(Reason.NO_PUZZLE, "no fenced puzzle")
        if len(puzzle) > MOST_CHARS:
            return Rejection(Reason.PROGRAM_TOO_LONG, f"more than {MOST_CHARS} characters")
        return LogicDraft(self.name, puzzle.strip("\n"), shown=tuple(context.get("shown", "").split()))

    async def validate(self, drafts: Sequence[LogicDraft], verifier: Verifier) -> list[LogicTask | Rejection]:
        found: dict[LogicDraft, LogicTask | Rejection] = {}
        for function, kept in (("validate", False), ("inspect", True)):
            own = [draft for draft in drafts if draft.as_it_stands is kept]
            calls = [(draft.puzzle,) for draft in own]
            said = await ask(CHECKER, function, calls, verifier, together=TOGETHER, limits=LIMITS) if own else []
            found |= {draft: _task(draft, one) for draft, one in zip(own, said, strict=True)}
        return [found[draft] for draft in drafts]

    def solve_prompt(self, task: LogicTask) -> Prompt:
        return solve_puzzle(self.form, task.puzzle)

    async def grade(self, attempts: Sequence[Attempt[LogicTask]], verifier: Verifier) -> list[Verdict]:
        return await grade(CHECKER, "grade", attempts, "answer", lambda task: task.puzzle, verifier, limits=LIMITS)


def _task(draft: LogicDraft, said: Any) -> LogicTask | Rejection:
    if (rejection := refused(draft, said)) is not None:
        return rejection
    if said["written"] in draft.shown:
        # What was drawn for it anew may look different: clues that are needed once may follow the next time.
        return draft.rejected(Reason.DUPLICATE, "a puzzle that was shown, but for names and what is drawn by lot")
    return LogicTask(draft.kind, puzzle=said["puzzle"], guesses=said["guesses"])
