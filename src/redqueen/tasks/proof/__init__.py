"""The proof family: chains of references to the lemmas of a Metamath database, and the theorems that they prove.

    proof_f   find a proof of a goal
    proof_o   say what the last line of a proof says

`guest/` has the kernel, which derives, draws and grades in guests of the verifier. `task` has the data, `prompts` the
words, `seeds` what a race begins with, `source` the database: the package's own, or a user's (`proof:FILE.mm`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.files import read_rows
from redqueen.tasks.proof.guest.metamath_kernel import judging
from redqueen.tasks.proof.proof_f import ProofF
from redqueen.tasks.proof.proof_o import ProofO
from redqueen.tasks.proof.seeds import seeds_of
from redqueen.tasks.proof.source import PACKAGE, Source
from redqueen.tasks.proof.task import ProofDraft, ProofTask
from redqueen.tasks.protocol import Complexity, Draft, Family, Form, HeldOut, Kind, Task
from redqueen.tasks.wording import fenced
from redqueen.verifier import Verifier

STEPS, VARIABLES = (2, 3, 5), (3, 5, 7)
"""The highest value of each band but the last."""
_FORM = '{"kind": "proof_f", "proof": "1 given\\n2 con3i 1\\n3 orim1i 2"}'


@dataclass(frozen=True)
class ProofFamily(Family):
    """Proofs, and all that is to be known of them."""

    source: Source
    seeds: Sequence[Task]

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Kind[Any, Any]]:
        seeds = tuple(seed for seed in self.seeds if isinstance(seed, ProofTask))
        return {kind.name: kind(form, self.source, seeds) for kind in (ProofF, ProofO)}

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[Draft]:
        return [ProofDraft(kind.name, _proof(row), as_it_stands=True)]

    def exams(self) -> Mapping[str, Path]:
        return self.source.exams

    def held_out(self, path: Path) -> HeldOut:
        """The keys of the theorems that a file's proofs prove."""
        if path.suffix == ".py":
            return HeldOut()
        keys, rows, unreadable = set[str](), 0, 0
        for _, row in read_rows(path):
            if not isinstance(row.get("proof"), str):
                continue
            rows += 1
            said = judging.judged(self.source.library, "proof_f", row["proof"], loosely=True)
            if "steps" in said:
                keys.add(ProofTask.found("proof_f", said).near_key)
            else:
                unreadable += 1
        return HeldOut(frozenset(keys), rows, unreadable)

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        """By the goal's sign, and by how large it is: `proof_f/wi/given/l1v2`."""
        return f"{kind}/{descriptor}/{complexity.bands(lines=STEPS, variables=VARIABLES)}"

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [_answer(task) if isinstance(task, ProofTask) else None for task in tasks]


def _answer(task: ProofTask) -> str:
    return fenced("proof", task.steps) if task.kind == "proof_f" else fenced("formula", task.goal)


def _proof(row: Mapping[str, Any]) -> str:
    if not isinstance(row.get("proof"), str):
        raise InputError("no text under 'proof'", f"a row is {_FORM}")
    return row["proof"]


def of_file(path: Path) -> ProofFamily:
    """The family of a user's own database, read at once: what is wrong with it is said before anything starts."""
    return _of(Source(path.resolve()))


@cache
def _of(source: Source) -> ProofFamily:
    return ProofFamily(source, seeds_of(source))


FAMILY = _of(PACKAGE)

__all__ = ["FAMILY", "ProofDraft", "ProofF", "ProofFamily", "ProofO", "ProofTask", "of_file"]
