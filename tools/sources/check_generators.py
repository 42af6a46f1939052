"""Checks every generator of reasoning-gym as `redqueen check rg:NAME` does, and says which fail and by what.

    python tools/sources/check_generators.py --tasks 100 --to checks.jsonl     all of them; goes on where it was stopped
    python tools/sources/check_generators.py --to checks.jsonl --table         the table alone, from what is there

Each generator is a line of the file as soon as it is checked. What other processes find (the check `processes`) is
asked of two of them for all generators together.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redqueen.errors import UserError
from redqueen.tasks.families import Families
from redqueen.tasks.soundness import DECISIVE, ORDER, check_family
from redqueen.tasks.soundness.material import gather
from redqueen.tasks.soundness.processes import HASH_SEEDS, TASKS, Found, Parts, parts_of
from redqueen.verifier import LocalVerifier, StrictVerifier


def generators() -> list[str]:
    """All that stand for questions of their own: `composite` mixes others."""
    from reasoning_gym.factory import DATASETS

    return sorted(DATASETS.keys() - {"composite"})


def read(path: Path) -> dict[str, dict[str, Any]]:
    """What was checked by now, by generator."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["generator"]: row for row in map(json.loads, lines)}


async def parts(names: Sequence[str], verifier: LocalVerifier, most: int) -> None:
    """What this process finds of each generator, a line each."""
    strict = StrictVerifier(verifier)
    for name in names:
        materials = await gather(Families.of([f"rg:{name}"]), strict, min(most, TASKS))
        found = {material.kind.name: await parts_of(material, strict) for material in materials}
        print(json.dumps([name, found]), flush=True)


def elsewhere(names: Sequence[str], most: int) -> dict[str, list[dict[str, Parts] | str]]:
    """What two other processes find, under other hash seeds, by generator."""
    others = [
        subprocess.Popen(
            [sys.executable, __file__, "--parts", "--tasks", str(most), *names],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in HASH_SEEDS
    ]
    found = [dict(json.loads(line) for line in other.communicate()[0].splitlines()) for other in others]
    return {name: [own.get(name, "it came to nothing") for own in found] for name in names}


def check(generator: str, verifier: LocalVerifier, most: int, others: Found) -> dict[str, Any]:
    """One generator, as a row."""
    start = time.monotonic()
    try:
        found = asyncio.run(check_family(f"rg:{generator}", verifier, most, others))
    except UserError as error:
        return {"generator": generator, "failed": {"tasks": str(error)}}
    failed = {row.check: f"{row.finding.what}; {row.finding.example}" for row in found.failures}
    seconds = round(time.monotonic() - start, 1)
    return {"generator": generator, "failed": failed, "figures": figures(found), "seconds": seconds}


def figures(found: Any) -> dict[str, str]:
    return {row.check: row.finding.figure for row in found.rows}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """What failed, by check, as Markdown."""
    by_check = {check: [name for name, row in rows.items() if check in row["failed"]] for check in ORDER}
    lines = ["| check | generators that fail it |", "|---|---|"]
    for check, names in by_check.items():
        if names:
            lines.append(f"| `{check}` | {len(names)}: {', '.join(sorted(names))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--tasks", type=int, default=100, metavar="N")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--parts", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="GENERATOR")
    given = parser.parse_args()
    if given.parts:
        with LocalVerifier(workers=1) as verifier:
            asyncio.run(parts(given.names, verifier, given.tasks))
        return
    if given.to is None:
        parser.error("say where the rows go, with --to")
    rows = read(given.to)
    left = [name for name in given.names or generators() if name not in rows]
    if left and not given.table:
        others = elsewhere(left, given.tasks)
        with LocalVerifier() as verifier, given.to.open("a", encoding="utf-8") as file:
            for name in left:
                rows[name] = check(name, verifier, given.tasks, others[name])
                print(json.dumps(rows[name]), file=file, flush=True)
                print(f"{name}: {', '.join(rows[name]['failed']) or 'passes'}", file=sys.stderr)
    failed = [name for name, row in rows.items() if row["failed"]]
    decisive = [name for name, row in rows.items() if row["failed"].keys() & set(DECISIVE)]
    print(table(rows))
    print(f"\nreasoning-gym {version('reasoning-gym')}: {len(failed)} of {len(rows)} generators fail a check,")
    print(f"{len(decisive)} of them one that `redqueen train` goes by")
    print("checks that fail together:", Counter(len(row["failed"]) for row in rows.values()).most_common())


if __name__ == "__main__":
    main()
