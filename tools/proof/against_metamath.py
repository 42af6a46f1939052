"""New theorems judged by others: the kernel's check of stored proofs, and the program metamath where it is installed.

    python tools/proof/against_metamath.py --theorems 2000 [--database FILE.mm]

Random chains of references that the kernel accepts are written down as Metamath proofs, every symbol of them, and
appended to the database. Both must accept all. The first shares nothing with unification, the second nothing at all
with this package (Debian: apt install metamath).
"""

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from written import theorem_of, written

from redqueen.tasks.proof.compose import task_by_lot
from redqueen.tasks.proof.guest.metamath_kernel.database import read
from redqueen.tasks.proof.guest.metamath_kernel.stored import BadProof, verify
from redqueen.tasks.proof.source import PACKED, Source

SIZES = (2, 3, 4, 5, 6)
_DONE = "All proofs in the database were verified"


def theorems(source: Source, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Labels, and scopes with a theorem each."""
    rng, library = Random(seed), source.library
    made = 0
    while made < count:
        said = task_by_lot(library, "proof_f", rng, rng.choice(SIZES), library.short)
        if said is not None:
            made += 1
            label = f"new{made}"
            yield label, written(library, theorem_of(library, said["steps"]), label)


def refused_by_kernel(text: str, labels: list[str]) -> list[str]:
    """The theorems whose proofs the check of stored proofs does not accept, and why."""
    database, refused = read(text), []
    for label in labels:
        try:
            verify(database, database.statements[label])
        except BadProof as error:
            refused.append(f"{label}: {error}")
    return refused


def said_by_metamath(text: str) -> str:
    """What the program says that is wrong with a database; nothing where it accepts all."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "all.mm"
        file.write_text(text, "ascii")
        words = ["metamath", f"read '{file}'", "verify proof *", "exit"]
        ended = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=600)
    wrong = [line for line in ended.stdout.splitlines() if line.startswith(("?", "!")) or "rror:" in line]
    return "" if _DONE in ended.stdout and not wrong else "\n".join(wrong[:5]) or ended.stdout[-500:]


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("ascii")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--theorems", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", type=Path, default=PACKED)
    options = parser.parse_args()
    made = list(theorems(Source(options.database.resolve()), options.theorems, options.seed))
    text = text_of(options.database) + "\n" + "".join(scope for _, scope in made)
    start = time.perf_counter()
    refused = refused_by_kernel(text, [label for label, _ in made])
    print(f"{len(made) - len(refused):,} of {len(made):,} new theorems accepted by the check of stored proofs", end=" ")
    print(f"({time.perf_counter() - start:.1f} s)", *refused[:5], sep="\n" if refused else "")
    if shutil.which("metamath") is None:
        print("metamath is not installed: the other half was left out")
        sys.exit(bool(refused))
    wrong = said_by_metamath(text)
    print(f"metamath: {wrong or f'accepts all {len(made):,}, and the database'}")
    sys.exit(bool(refused or wrong))


if __name__ == "__main__":
    main()
