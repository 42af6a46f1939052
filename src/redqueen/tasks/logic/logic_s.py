"""logic_s: find values that keep all clues of a puzzle.

A teacher writes unknowns and clues; what they come to is drawn by lot where they are checked. Any assignment that keeps
all clues is right, so nothing is compared with a stored solution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from redqueen.tasks.blocks import read_answer
from redqueen.tasks.checkers import ask
from redqueen.tasks.logic.guest.logic_language import MOST_CHARS
from redqueen.tasks.logic.prompts import propose_puzzle, solve_puzzle
from redqueen.tasks.logic.seeds import SEEDS
from redqueen.tasks.logic.task import CHECKER, LIMITS, LogicDraft, LogicTask
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import (
    CUT_ATTEMPT,
    NOT_JUDGED_ATTEMPT,
    Grade,
    Reason,
    Rejection,
    Verdict,
    malformed,
)
from redqueen.verifier import Result, Status, Verifier

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
        read = [CUT_ATTEMPT if attempt.cut else read_values(attempt.text) for attempt in attempts]
        pairs = {at: (attempts[at].task.puzzle, text) for at, text in enumerate(read) if isinstance(text, str)}
        said = await ask(CHECKER, "grade", list(pairs.values()), verifier, limits=LIMITS) if pairs else []
        judged = {at: _verdict(one) for at, one in zip(pairs, said, strict=True)}
        return [judged[at] if isinstance(answer, str) else answer for at, answer in enumerate(read)]


def _task(draft: LogicDraft, said: Any) -> LogicTask | Rejection:
    if isinstance(said, Result):
        if said.status is Status.FAULT:
            return draft.rejected(Reason.NOT_JUDGED, "the machine failed its check")
        return draft.rejected(Reason.TOO_COMPLEX, f"its check did not end well: {said.status}")
    if "reason" in said:
        return draft.rejected(Reason(said["reason"]), said["detail"])
    if said["written"] in draft.shown:
        # What was drawn for it anew may look different: clues that are needed once may follow the next time.
        return draft.rejected(Reason.DUPLICATE, "a puzzle that was shown, but for names and what is drawn by lot")
    return LogicTask(draft.kind, puzzle=said["puzzle"], guesses=said["guesses"])


def read_values(text: str) -> str | Verdict:
    """The lines that a text answers with."""
    answer = read_answer(text, "answer")
    if isinstance(answer, Rejection):
        return malformed(answer)
    return answer.value("answer") or malformed(Rejection(Reason.NO_ANSWER, "no values"))


def _verdict(said: Any) -> Verdict:
    if isinstance(said, Result):
        if said.status is Status.FAULT:
            return NOT_JUDGED_ATTEMPT
        return malformed(Rejection(Reason.NO_ANSWER, "it cannot be read"), said.status)
    if isinstance(said, list):
        return malformed(Rejection(Reason(said[0]), said[1]), Status.OK)
    return Verdict(grade=Grade.CORRECT if said == "correct" else Grade.WRONG, status=Status.OK)
