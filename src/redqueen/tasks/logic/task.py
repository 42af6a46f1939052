"""The data of the logic family."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from redqueen.tasks.logic.guest import logic_language
from redqueen.tasks.protocol import Complexity, Draft, Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Checker, Limits

CHECKER = Checker(str(Path(__file__).parent / "guest" / "redqueen_logic.py"))
LIMITS = Limits(cpu_s=1.0)
"""Of a process. What a puzzle may cost is counted in steps of the search, so that it never comes to this."""


@dataclass(frozen=True)
class LogicDraft(Draft):
    """A puzzle as its teacher wrote it: its clues need not fit together."""

    puzzle: str
    as_it_stands: bool = False
    """It is of a file: nothing is drawn and nothing mended."""
    shown: tuple[str, ...] = ()
    """The structures of the puzzles that its teacher was shown."""

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.puzzle, runs)


@dataclass(frozen=True, kw_only=True)
class LogicTask(Task):
    """A puzzle with clues that all hold for some assignment, each needed. No solution is kept."""

    puzzle: str
    """In canonical text."""
    guesses: int
    """Values that a search tries where several are left, until it has found all solutions."""

    @cached_property
    def near_key(self) -> str:
        """Of what its teacher wrote: blind to names, layout, the order of clues, and to what is worked out by lot."""
        return self._figures["structure"]

    @cached_property
    def descriptor(self) -> str:
        return self._figures["descriptor"]

    @cached_property
    def complexity(self) -> Complexity:
        """The depth of the deepest clue, one more than the guesses, the clues and the unknowns."""
        own = self._figures
        return Complexity(own["deepest"], 1 + self.guesses, own["clues"], own["unknowns"])

    @property
    def body(self) -> str:
        return self.puzzle

    @property
    def question(self) -> str:
        return "which values keep all clues?"

    @property
    def answer_chars(self) -> int:
        return self._figures["answer_chars"]

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.puzzle, runs)

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return logic_language.figures(self.puzzle)
