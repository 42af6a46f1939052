"""The code family: tasks about small Python programs.

    code_o   predict what a program returns        code_i   find an input that gives the output
    code_f   write the function from examples

A kind is one file with one class and one line in `CodeFamily.kinds`. What they share: `blocks` (from a text to its
fenced parts), `unfenced` (answers without them), `program` and `names` (what a program may be and reach for), `plain`
(without remarks), `order` (what a set's order may reach), `running` (the way to the verifier), `key` (near-duplicates),
`prompts`, `brief` (what these ask teachers for), `seeds`. About programs: `unused` (what is there for nothing),
`complexity`, `descriptor` (types of problem), `cells` (the grid of coverage), `behaviour`, `shortcut` (answers that
need no reasoning), `files` (the user's own).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from redqueen.engine.known import EMBEDDED
from redqueen.tasks.code.behaviour import behaviours
from redqueen.tasks.code.cells import cell
from redqueen.tasks.code.code_f import CodeF
from redqueen.tasks.code.code_i import CodeI
from redqueen.tasks.code.code_o import CodeO
from redqueen.tasks.code.files import read_drafts, read_held_out
from redqueen.tasks.code.prompts import right_answer
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.shortcut import shortcuts
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft, CodeTask
from redqueen.tasks.protocol import Complexity, Family, Form, HeldOut, Kind, Task
from redqueen.verifier import Limits, Verifier


@dataclass(frozen=True)
class CodeFamily(Family):
    """The kinds, with one set of limits, and all that is to be known of programs."""

    limits: Limits = DEFAULT_LIMITS
    unfenced: bool = False
    """Students' answers are also read without their fenced block (`unfenced`)."""
    briefs: bool = True
    """Prompts say what a task is to be about (`brief`), unless they are short."""
    seeds = SEEDS
    seed_kind = "code_o"

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Kind[Any, Any]]:
        briefs = self.briefs and form is not Form.SHORT
        return {
            "code_o": CodeO(form, self.limits, self.unfenced, briefs),
            "code_i": CodeI(form, self.limits, self.unfenced, briefs),
            "code_f": CodeF(form, self.limits, self.unfenced),
        }

    def reading_unfenced(self) -> Self:
        return replace(self, unfenced=True)

    def without_briefs(self) -> Self:
        return replace(self, briefs=False)

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[CodeDraft]:
        return read_drafts(row, kind.name)

    def seed_files(self) -> Mapping[str, Path]:
        """What bases that come with the package were trained on."""
        return {name: base.seeds for name, base in EMBEDDED.items()}

    def exams(self) -> Mapping[str, Path]:
        """`functions`, small ones in everyday Python, and those of bases that come with the package."""
        own = {name: base.exam for name, base in EMBEDDED.items() if base.exam.is_file()}
        return {"functions": Path(__file__).with_name("functions.jsonl"), **own}

    def held_out(self, path: Path) -> HeldOut:
        return read_held_out(path)

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        return cell(kind, descriptor, complexity)

    async def behaviours(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return await behaviours(tasks, verifier)

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [right_answer(task) if isinstance(task, CodeTask) else None for task in tasks]

    async def shortcuts(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return await shortcuts(tasks, self.limits, verifier)


FAMILY = CodeFamily()

__all__ = ["FAMILY", "SEEDS", "CodeDraft", "CodeF", "CodeFamily", "CodeI", "CodeO", "CodeTask"]
