"""Proofs by lot from the package's own database: the exam of the proof family, and its seeds.

    python tools/proof/proofs.py exam > src/redqueen/tasks/proof/proofs.jsonl
    python tools/proof/proofs.py seeds > src/redqueen/tasks/proof/seeds.jsonl
    python tools/proof/proofs.py exam --database ql.mm > ql.jsonl

`exam` writes 30 proofs of each kind in each of four bands, by the steps that are needed; beside a database of yours,
under its name, they are its exam. `seeds` writes the records of 24 proofs of each kind that refer to well-known lemmas
of set.mm. The same ones come every time.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from redqueen.tasks.proof.compose import task_by_lot
from redqueen.tasks.proof.guest.metamath_kernel.library import Lemma
from redqueen.tasks.proof.seeds import KINDS, seeds_of
from redqueen.tasks.proof.source import PACKED, Source
from redqueen.tasks.proof.task import ProofTask

BANDS = {"1": (2, 2), "2": (3, 3), "3": (4, 5), "4": (6, 9)}
"""The fewest and the most steps of each."""
OF_A_BAND = 30
SEED_SIZES = (2, 2, 3, 3, 4, 5)
OF_A_SIZE = 4
MOST_CHARS = 110
"""Of a seed's theorem: it is the first that teachers see."""
KNOWN = """
3adant1 3adant3 3exp 3imp 3jca 3simpa a1d a1i adantl adantr anbi1i anbi2i ancom ancoms ancrd ancri anim12i anim1i
anim2i biantru bicomi biimpi biimpri bitr2i bitr3i bitr4i bitri com12 con1i con2i con3d con3i con4d con4i ex expd
expdimp expimpd id imbi1i imbi2i imdistani imim12i imim1i imim2i imp imp31 impbii impcom impd intnanr jaoi jca jcai
mp2 mp2an mpan mpan2 mpand mpbi mpbir mpd mpi nanbi1 notbii notnot notnotr olc olcd olci orbi1i orbi2i orc orcd orci
orcom orim12i orim1i orim2i peirce pm2.21 pm2.24 pm2.43i pm2.61i pm2.65i pm3.2 pm5.32i simpl simpld simplr simpr
simprd syl syl2an syl3an syl5 syl6 sylan sylbi sylbir syld sylib sylibr xor3
"""


def drawn(
    source: Source, kind: str, rng: Random, size: int, lemmas: Sequence[Lemma], taken: set[str]
) -> Iterator[ProofTask]:
    """Tasks of so many steps, each of another theorem."""
    while True:
        said = task_by_lot(source.library, kind, rng, size, lemmas)
        if said is not None and (task := ProofTask.found(kind, said)).near_key not in taken:
            taken.add(task.near_key)
            yield task


def exam(source: Source) -> Iterator[Mapping[str, Any]]:
    rng, taken = Random(1879), {seed.near_key for seed in seeds_of(source)}
    for band, (fewest, most) in BANDS.items():
        for kind in KINDS:
            for number in range(OF_A_BAND):
                size = fewest + number % (most - fewest + 1)
                task = next(drawn(source, kind, rng, size, source.library.short, taken))
                yield {"kind": kind, "band": band, "proof": task.steps}


def seeds(source: Source) -> Iterator[Mapping[str, Any]]:
    rng, taken, library = Random(1910), set[str](), source.library
    known = [library.lemmas[label] for label in KNOWN.split() if label in library.lemmas]
    for kind in KINDS:
        for size in SEED_SIZES:
            of_size = (task for task in drawn(source, kind, rng, size, known, taken) if len(task.theorem) <= MOST_CHARS)
            for _ in range(OF_A_SIZE):
                yield next(of_size).record()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["exam", "seeds"])
    parser.add_argument("--database", type=Path, default=PACKED)
    options = parser.parse_args()
    source = Source(options.database.resolve())
    for row in exam(source) if options.what == "exam" else seeds(source):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
