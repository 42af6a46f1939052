"""The data of the mathematics family: a story or a puzzle that comes to one whole number."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from redqueen.tasks.logic.guest import logic_language
from redqueen.tasks.math.guest.stories import keys, reading
from redqueen.tasks.protocol import Complexity, Draft, Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Checker, Limits

STORIES = Checker(str(Path(__file__).parent / "guest" / "redqueen_math.py"))
"""Reads stories, and the answers to all tasks of the family."""
PROBLEMS = Checker(str(Path(logic_language.__file__).parents[1] / "redqueen_numbers.py"))
LIMITS = Limits(cpu_s=1.0)
"""Of a process. What a text may cost is counted, in sentences, draws and steps of a search, so that it never comes to
this."""


@dataclass(frozen=True)
class MathDraft(Draft):
    """A text as its teacher wrote it: its numbers do not count."""

    text: str
    as_it_stands: bool = False
    """It is of a file: nothing is drawn and nothing left out."""
    shown: tuple[str, ...] = ()
    """The structures of what its teacher was shown."""

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.text, runs)


@dataclass(frozen=True, kw_only=True)
class NumberTask(Task, ABC):
    """What both kinds have: a text, its one right answer, and how much work it is."""

    text: str
    """In canonical form."""
    answer: int
    steps: int
    """Of a story, the calculations; of a puzzle, the values that a search tries where several are left."""

    @cached_property
    def near_key(self) -> str:
        """Of what its teacher wrote: blind to names, layout and to what is drawn by lot."""
        return self.figures["structure"]

    @cached_property
    def descriptor(self) -> str:
        return self.figures["descriptor"]

    @property
    def body(self) -> str:
        return self.text

    @property
    def answer_chars(self) -> int:
        return len(str(self.answer))

    @property
    def guess_key(self) -> str:
        return str(self.answer)

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.text, runs)

    @cached_property
    def figures(self) -> dict[str, Any]:
        """What it is known by, and how large it is."""
        return self._measured()

    @abstractmethod
    def _measured(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class StoryTask(NumberTask):
    """A word problem."""

    @cached_property
    def complexity(self) -> Complexity:
        """The events, one more than the calculations, the sentences and what somebody has of something."""
        own = self.figures
        return Complexity(1 + own["events"], 1 + self.steps, own["sentences"], own["quantities"])

    @property
    def question(self) -> str:
        return self.text.rpartition(". ")[2]

    def _measured(self) -> dict[str, Any]:
        return keys.figures(*reading.read(self.text))


@dataclass(frozen=True, kw_only=True)
class ProblemTask(NumberTask):
    """A puzzle that asks for a number."""

    @cached_property
    def complexity(self) -> Complexity:
        """The depth of the deepest clue, one more than the guesses, the clues and the unknowns."""
        own = self.figures
        return Complexity(own["deepest"], 1 + self.steps, own["clues"], own["unknowns"])

    @property
    def question(self) -> str:
        return self.text.rpartition("\n")[2]

    def _measured(self) -> dict[str, Any]:
        return logic_language.asking_figures(self.text)
