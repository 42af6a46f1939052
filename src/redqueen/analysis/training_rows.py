"""What a race's students wrote, in the forms that other trainers take: JSON lines of chat messages.

`sft` has right attempts, `dpo` pairs of a right and a wrong one at the same task. Attempts of the race are samples at
its temperature; a task that nobody solved has no row, nor, as a pair, has one that everybody solved.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from redqueen.errors import InputError
from redqueen.runs.atomic import put_in_place
from redqueen.runs.rows import TaskRow
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.verdicts import Grade

As = Literal["sft", "dpo"]


def write(path: Path, store: Store, settings: Config, tasks: Iterable[TaskRow], form: As) -> int:
    """Write the rows of these tasks, each task once, to a file that is not there yet; how many rows there are."""
    if path.suffix != ".jsonl":
        raise InputError(f"{path} is of no known format", "use a name that ends in .jsonl")
    if path.exists():
        raise InputError(f"{path} is there already", "name another file, or remove it")
    asked = settings.tasks
    families = Families.of(asked.families, asked.form, unfenced=asked.unfenced)
    count = 0
    try:
        with put_in_place(path) as aside, aside.open("w", encoding="ascii") as file:
            for row in rows(store, families, tasks, form):
                file.write(json.dumps(row) + "\n")
                count += 1
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}", "name another file") from None
    return count


def rows(store: Store, families: Families, tasks: Iterable[TaskRow], form: As) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for row in tasks:
        if row.id in seen:
            continue
        seen.add(row.id)
        prompt = [dict(message) for message in _prompt(families, row)]
        texts: dict[str, list[str]] = {grade: [] for grade in Grade}
        for attempt in store.attempts(row.step, row.place):
            if attempt.text not in texts[attempt.grade]:
                texts[attempt.grade].append(attempt.text)
        right, wrong = texts[Grade.CORRECT], [*texts[Grade.WRONG], *texts[Grade.MALFORMED]]
        if form == "sft":
            yield from ({"messages": [*prompt, _said(text)]} for text in right)
            continue
        for better, worse in zip(right, wrong, strict=False):
            yield {"prompt": prompt, "chosen": [_said(better)], "rejected": [_said(worse)]}


def _prompt(families: Families, row: TaskRow) -> Iterable[Any]:
    if row.kind not in families.kinds:
        raise InputError(f"none of the run's families has the kind {row.kind}", "leave it out with --kind")
    return families.kinds[row.kind].solve_prompt(families.restore(row.record)).messages


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}
