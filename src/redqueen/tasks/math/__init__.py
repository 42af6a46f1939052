"""The mathematics family: texts with one whole number as their answer, whose numbers are drawn by lot.

    math_w   work out what a story in controlled English asks for
    math_n   work out what a puzzle with unknowns and clues asks for

`guest/` reads, draws, solves and grades stories, all in guests of the verifier; puzzles are checked by
`redqueen_numbers` beside the logic family's checker. `task` has the data, `whole` what both kinds do alike.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.files import read_rows
from redqueen.tasks.logic.guest import logic_language
from redqueen.tasks.math.guest.stories import keys, reading
from redqueen.tasks.math.math_n import MathN
from redqueen.tasks.math.math_w import MathW
from redqueen.tasks.math.number_seeds import NUMBER_SEEDS
from redqueen.tasks.math.task import MathDraft, NumberTask, ProblemTask, StoryTask
from redqueen.tasks.math.word_seeds import WORD_SEEDS
from redqueen.tasks.protocol import Complexity, Draft, Family, Form, HeldOut, Kind, Task
from redqueen.tasks.wording import fenced
from redqueen.verifier import Verifier

SEEDS = (*WORD_SEEDS, *NUMBER_SEEDS)
BANDS: dict[str, Callable[[Complexity], str]] = {
    "math_w": partial(Complexity.bands, variables=(2, 3, 5), lines=(3, 4, 6), cyclomatic=(4, 7, 12)),
    "math_n": partial(Complexity.bands, variables=(3, 4, 6), lines=(3, 4, 6), cyclomatic=(9, 25, 65)),
}
"""The highest value of each band but the last, by kind."""
_FIELDS = {"math_w": "story", "math_n": "problem"}
_FORMS = {
    "math_w": '{"kind": "math_w", "story": "Ann has 12 apples. ... How many apples does Ben have?"}',
    "math_n": '{"kind": "math_n", "problem": "a, b in 1..9, different\\na * b == 24\\n...\\nask 10 * a + b"}',
}


class MathFamily(Family):
    """Stories and puzzles with a number as their answer, and all that is to be known of them."""

    seeds = SEEDS

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Kind[Any, Any]]:
        return {"math_w": MathW(form), "math_n": MathN(form)}

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[Draft]:
        field = _FIELDS[kind.name]
        text = row.get(field)
        if not isinstance(text, str):
            raise InputError(f"no text under {field!r}", f"a row is {_FORMS[kind.name]}")
        return [MathDraft(kind.name, text, as_it_stands=True)]

    def exams(self) -> Mapping[str, Path]:
        return {name: Path(__file__).with_name(f"{name}.jsonl") for name in ("words", "numbers")}

    def held_out(self, path: Path) -> HeldOut:
        """The keys of a file's stories and puzzles, as they stand there."""
        if path.suffix == ".py":
            return HeldOut()
        found, rows = set[str](), 0
        for _, row in read_rows(path):
            for field in _FIELDS.values():
                if isinstance(text := row.get(field), str):
                    rows += 1
                    found |= _keys(field, text)
        return HeldOut(frozenset(found), rows, rows - len(found))

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        """By sorts of sentences or clues, and by how large it is: `math_w/compare+times/v1l0c2`."""
        return f"{kind}/{descriptor}/{BANDS[kind](complexity)}"

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [fenced("answer", str(task.answer)) if isinstance(task, NumberTask) else None for task in tasks]


def _keys(field: str, text: str) -> set[str]:
    try:
        if field == "story":
            return {keys.structure(*reading.read(text))}
        return {logic_language.asking_figures(text)["structure"]}
    except (reading.Refused, logic_language.Refused):
        return set()


FAMILY = MathFamily()

__all__ = ["FAMILY", "SEEDS", "MathDraft", "MathFamily", "MathN", "MathW", "ProblemTask", "StoryTask"]
