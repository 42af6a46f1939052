"""Proofs with something wrong in them: how many does the kernel accept as proofs of the same statement?

    python tools/proof/mutants.py --mutants 10000 [--database FILE.mm]

Half of them are stored proofs of the database with one label replaced, dropped, doubled, or in its neighbour's place,
judged by the check of stored proofs. The other half are chains of references with one label or reference replaced, or
two references in each other's place, judged as a student's answer is. A mutant that is a proof after all, as one with
another lemma of the same statement is, is told apart by writing it down symbol by symbol for the check of stored
proofs; those that this refuses are wrongly accepted.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from against_metamath import refused_by_kernel, text_of
from written import theorem_of, written

from redqueen.tasks.proof.compose import task_by_lot
from redqueen.tasks.proof.guest.metamath_kernel.database import Database, Statement
from redqueen.tasks.proof.guest.metamath_kernel.library import Library, distinct
from redqueen.tasks.proof.guest.metamath_kernel.steps import Refused, read, write
from redqueen.tasks.proof.guest.metamath_kernel.stored import BadProof, steps_of, verify
from redqueen.tasks.proof.guest.metamath_kernel.terms import Fuel, OutOfFuel, match
from redqueen.tasks.proof.guest.metamath_kernel.theorem import proof_of
from redqueen.tasks.proof.source import PACKED, Source

Stored = list[tuple[str, Any]]
Steps = list[tuple[str | None, tuple[int, ...]]]
_SIZES = (2, 3, 4, 5, 6)


def stored_mutants(database: Database, count: int, rng: Random) -> Iterator[tuple[Statement, Stored]]:
    """Stored proofs, with one thing wrong in each."""
    proved = [each for each in database.assertions if each.kind == "$p"]
    labels = list(database.statements)
    made = 0
    while made < count:
        statement = rng.choice(proved)
        proof = steps_of(statement)
        at = rng.randrange(len(proof))
        mutant = rng.choice([
            [*proof[:at], ("label", rng.choice(labels)), *proof[at + 1 :]],
            [*proof[:at], *proof[at + 1 :]],
            [*proof[:at], proof[at], *proof[at:]],
            [*proof[:at], *reversed(proof[at : at + 2]), *proof[at + 2 :]],
        ])  # fmt: skip
        # What nothing uses may be saved or not: that changes no proof.
        if [step for step in mutant if step[0] != "save"] != [step for step in proof if step[0] != "save"]:
            made += 1
            yield statement, mutant


def chain_mutants(library: Library, count: int, rng: Random) -> Iterator[tuple[dict[str, Any], Steps]]:
    """Tasks, and their proofs with one thing wrong in each."""
    by_hyps: dict[int, list[str]] = {}
    for lemma in library.lemmas.values():
        by_hyps.setdefault(len(lemma.hyps), []).append(lemma.label)
    made = 0
    while made < count:
        task = task_by_lot(library, "proof_f", rng, rng.choice(_SIZES), library.short)
        for _ in range(20 if task else 0):
            steps: Steps = read(task["steps"])
            mutant = _changed(library, steps, by_hyps, rng)
            if mutant != steps and made < count:
                made += 1
                yield task, mutant


def _changed(library: Library, steps: Steps, by_hyps: dict[int, list[str]], rng: Random) -> Steps:
    at = rng.choice([at for at, (label, _) in enumerate(steps) if label is not None])
    label, places = steps[at]
    assert label is not None, "premises are not changed"
    if not places or rng.random() < 0.5:
        step = rng.choice(by_hyps[len(library.lemmas[label].hyps)]), places
    elif len(places) > 1 and rng.random() < 0.5:
        step = label, tuple(rng.sample(places, len(places)))
    else:
        which = rng.randrange(len(places))
        step = label, (*places[:which], rng.randrange(at), *places[which + 1 :])
    return [*steps[:at], step, *steps[at + 1 :]]


def accepted(library: Library, task: dict[str, Any], steps: Steps) -> bool:
    """Whether a student with this answer would be paid, if all lemmas were listed."""
    try:
        return proof_of(library, steps, *_stated(library, task), Fuel())
    except (Refused, OutOfFuel):
        return False


def _stated(library: Library, task: dict[str, Any]) -> tuple[list[Any], Any, set[tuple[str, ...]]]:
    """Premises, goal and distinct pairs, as trees and names."""
    premises, goal = [library.read(text) for text in task["premises"]], library.read(task["goal"])
    return premises, goal, {tuple(pair.split()) for pair in task["distinct"]}


def is_instance(library: Library, task: dict[str, Any], steps: Steps) -> bool:
    """Whether the task's theorem is an instance of what the steps prove most generally, by matching alone."""
    theorem, (premises, goal, apart) = theorem_of(library, write(steps)), _stated(library, task)
    meant: dict[int, Any] = {}
    patterns = [*theorem.premises, theorem.goal]
    if not all(match(one, other, meant, Fuel()) for one, other in zip(patterns, [*premises, goal], strict=True)):
        return False
    pairs = [pair for pair in theorem.apart if meant.keys() >= set(pair)]
    return all(distinct(meant[one], meant[other], apart) for one, other in pairs)


@dataclass(frozen=True)
class Found:
    """What became of the mutants."""

    stored: int
    chains: int
    stored_accepted: list[str]
    chains_accepted: list[str]
    wrongly: list[str]
    """Of those chains, what the check of stored proofs refuses, or what proves something else."""


def run(source: Source, count: int, seed: int) -> Found:
    library, rng = source.library, Random(seed)
    half = count // 2
    stored, chains, scopes, wrongly = list[str](), list[str](), list[str](), list[str]()
    for statement, proof in stored_mutants(library.database, half, rng):
        try:
            verify(library.database, statement, proof)
        except BadProof:
            continue
        stored.append(f"{statement.label}: {' '.join(str(value) for what, value in proof if what != 'save')}")
    for task, steps in chain_mutants(library, count - half, rng):
        if accepted(library, task, steps):
            label = f"mutant{len(chains)}"
            chains.append(f"{task['steps']!r} as {write(steps)!r}")
            scopes.append(written(library, theorem_of(library, write(steps)), label))
            if not is_instance(library, task, steps):
                wrongly.append(chains[-1])
    text = text_of(source.path) + "\n" + "".join(scopes)
    wrongly += refused_by_kernel(text, [f"mutant{at}" for at in range(len(chains))])
    return Found(half, count - half, stored, chains, wrongly)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", type=Path, default=PACKED)
    options = parser.parse_args()
    found = run(Source(options.database.resolve()), options.mutants, options.seed)
    print(f"stored proofs: {len(found.stored_accepted):,} of {found.stored:,} mutants accepted", *found.stored_accepted,
          sep="\n")  # fmt: skip
    print(f"chains: {len(found.chains_accepted):,} of {found.chains:,} mutants accepted", *found.chains_accepted[:20],
          sep="\n")  # fmt: skip
    print(f"of these, no proofs of the statement: {len(found.wrongly):,}", *found.wrongly, sep="\n")
    sys.exit(bool(found.wrongly))


if __name__ == "__main__":
    main()
