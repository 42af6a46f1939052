"""The logic family: puzzles with unknowns, clues and a secret that is drawn by lot.

    logic_s   find values that keep all clues

`guest/` reads, draws, searches and grades, all in guests of the verifier. `task` has the data, `prompts` the words,
`seeds` what a race begins with.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.checkers import ask
from redqueen.tasks.files import read_rows
from redqueen.tasks.logic.guest import logic_language
from redqueen.tasks.logic.logic_s import LogicS
from redqueen.tasks.logic.seeds import SEEDS
from redqueen.tasks.logic.task import CHECKER, LIMITS, LogicDraft, LogicTask
from redqueen.tasks.protocol import Complexity, Draft, Family, Form, HeldOut, Kind, Task
from redqueen.tasks.wording import fenced
from redqueen.verifier import Result, Verifier

UNKNOWNS, CLUES, GUESSES = (4, 6, 8), (4, 6, 9), (5, 13, 33)
"""The highest value of each band but the last; of guesses with one more."""
_FORM = '{"kind": "logic_s", "puzzle": "Ann, Bob in 1..9, different\\nAnn < Bob\\n..."}'


class LogicFamily(Family):
    """Puzzles, and all that is to be known of them."""

    seeds = SEEDS
    seed_kind = "logic_s"

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Kind[Any, Any]]:
        return {"logic_s": LogicS(form)}

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[Draft]:
        return [LogicDraft(kind.name, _puzzle(row), as_it_stands=True)]

    def exams(self) -> Mapping[str, Path]:
        return {"puzzles": Path(__file__).with_name("puzzles.jsonl")}

    def held_out(self, path: Path) -> HeldOut:
        """The keys of a file's puzzles, as they stand there."""
        if path.suffix == ".py":
            return HeldOut()
        keys, rows = set[str](), 0
        for _, row in read_rows(path):
            if not isinstance(row.get("puzzle"), str):
                continue
            rows += 1
            try:
                keys.add(logic_language.figures(row["puzzle"])["structure"])
            except logic_language.Refused:
                continue
        return HeldOut(frozenset(keys), rows, rows - len(keys))

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        """By sorts of clues and of unknowns, and by how large it is: `logic_s/order+sum/numbers/v1l0c2`."""
        return f"{kind}/{descriptor}/{complexity.bands(variables=UNKNOWNS, lines=CLUES, cyclomatic=GUESSES)}"

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        puzzles = [(task.puzzle,) for task in tasks if isinstance(task, LogicTask)]
        solutions = await ask(CHECKER, "solve", puzzles, verifier, limits=LIMITS) if puzzles else []
        return [None if isinstance(lines, Result) else fenced("answer", lines) for lines in solutions]


def _puzzle(row: Mapping[str, Any]) -> str:
    if not isinstance(row.get("puzzle"), str):
        raise InputError("no text under 'puzzle'", f"a row is {_FORM}")
    return row["puzzle"]


FAMILY = LogicFamily()

__all__ = ["FAMILY", "SEEDS", "LogicDraft", "LogicFamily", "LogicS", "LogicTask"]
