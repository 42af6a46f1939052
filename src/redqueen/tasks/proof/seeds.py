"""The proofs that a race begins with, while there is no archive yet to draw references from.

Those of the package's database lie beside this file, as records: the theorem of a proof takes the kernel to find, and a
race on programs need not wait for it (`tools/proof/proofs.py seeds` wrote them). Those of another database are drawn by
lot, the same ones every time.
"""

import json
from pathlib import Path
from random import Random

from redqueen.errors import InputError
from redqueen.tasks.proof.compose import task_by_lot
from redqueen.tasks.proof.source import Source
from redqueen.tasks.proof.task import ProofTask

KINDS = ("proof_f", "proof_o")
OF_A_KIND = 24
SIZES = (2, 2, 3, 4)
"""Steps of proofs by lot, in turn."""
_MOST_TRIES = 2_000
_OWN = Path(__file__).with_name("seeds.jsonl")


def seeds_of(source: Source) -> tuple[ProofTask, ...]:
    if not source.is_packed:
        return tuple(task for kind in KINDS for task in _by_lot(source, kind))
    rows = _OWN.read_text("ascii").splitlines()
    return tuple(ProofTask.from_record(json.loads(row)) for row in rows)


def _by_lot(source: Source, kind: str) -> list[ProofTask]:
    rng, found = Random(f"seeds {kind}"), dict[str, ProofTask]()
    for number in range(_MOST_TRIES):
        said = task_by_lot(source.library, kind, rng, SIZES[number % len(SIZES)], source.library.short)
        if said is not None:
            task = ProofTask.found(kind, said)
            found.setdefault(task.near_key, task)
        if len(found) == OF_A_KIND:
            return list(found.values())
    what = f"{source.path}: of {_MOST_TRIES:,} proofs by lot {len(found)} are tasks of the kind {kind}"
    raise InputError(f"{what}, fewer than {OF_A_KIND}", "give a database whose lemmas have more to do with each other")
