"""What teachers wrote, by ten steps: shares of a race's tasks of `code_o` and `code_i`, in %.

    python tools/evals/teachers.py RUN...

A RUN is a run's folder, or its records.sqlite alone.
"""

import json
import sqlite3
import sys
from collections import Counter, defaultdict
from pathlib import Path

from redqueen.tasks.code.unused import unused

STEPS = 10
FIRSTS = {"'": "text", '"': "text", "[": "list", "{": "dict", "(": "tuple"}


def shares(records: Path) -> dict[int, Counter[str]]:
    """Of each ten steps how many tasks there are, and how many of them have what."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    query = "select step, record from tasks where kind in ('code_o', 'code_i')"
    for step, record in sqlite3.connect(f"file:{records}?mode=ro", uri=True).execute(query):
        task = json.loads(record)
        output = task["outputs"][0]
        here = counts[(step - 1) // STEPS]
        here["tasks"] += 1
        here["string in the input"] += "'" in task["inputs"][0]
        here["something twice or unused"] += unused(task["program"]) is not None
        returned = "truth value" if output in ("True", "False") else FIRSTS.get(output[0], "number")
        here[f"returns {returned}"] += 1
    return counts


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        counts = shares(path if path.is_file() else path / "records.sqlite")
        print(name)
        for what in ("string in the input", "something twice or unused", "returns number"):
            print(f"  {what:28}", *(f"{100 * here[what] / here['tasks']:4.0f}" for _, here in sorted(counts.items())))


if __name__ == "__main__":
    main()
