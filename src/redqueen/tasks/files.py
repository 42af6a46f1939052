"""Tasks from the user's own files: seeds that teachers begin from, exams, and what no task may have.

A file has one object a line (.jsonl, or packed .jsonl.gz). What a row says is its family's business (`Family.drafts`);
a row of an exam also has its "kind" and a "band" (any label; by default the kind). A seed or an exam task that is
wrong is an error: its author can mend it.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.errors import InputError, did_you_mean
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Draft, HeldOut, Task
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import StrictVerifier, Verifier


@dataclass(frozen=True, slots=True)
class FileDraft:
    """A task as it stands in a file, not run yet."""

    where: str
    """File and line."""
    draft: Draft
    band: str = ""


@dataclass(frozen=True, slots=True)
class ExamTask:
    """A task that is the same for everybody and every time."""

    task: Task
    band: str
    """What tasks it is reported with."""
    shortcut: str | None = None
    """How it is solved without reasoning, if it can be."""


def read_seeds(path: Path, families: Families) -> list[FileDraft]:
    """The seeds of a file."""
    seeds: list[FileDraft] = []
    for where, row in read_rows(path):
        seeds += [FileDraft(where, draft) for draft in _drafts(where, row, families, families.kind_of_seed(row))]
    if not seeds:
        raise InputError(f"{path}: no seed in it", "put one object on each line")
    return seeds


def read_exam(path: Path, families: Families) -> list[FileDraft]:
    """The tasks of an exam."""
    drafts: list[FileDraft] = []
    for where, row in read_rows(path):
        kind = row.get("kind")
        band = row.get("band", kind)
        row_drafts = _drafts(where, row, families, kind)
        if not isinstance(band, str) or not band:
            raise InputError(f"{where}: no text under 'band'", "give it a label, or leave it out")
        drafts += [FileDraft(where, draft, band) for draft in row_drafts]
    if not drafts:
        raise InputError(f"{path}: no task in it", "put one object on each line")
    return drafts


def _drafts(where: str, row: dict[str, Any], families: Families, kind: object) -> Sequence[Draft]:
    if not isinstance(kind, str) or kind not in families.kinds:
        raise InputError(f"{where}: no kind of task under 'kind'", f"the kinds are {', '.join(families.kinds)}")
    try:
        return families.of_kind(kind).drafts(row, families.kinds[kind])
    except InputError as error:
        raise InputError(f"{where}: {error.what}", error.mend) from None


def exam_file(name: str, families: Families) -> Path:
    """The families' exam of this name, or else the file."""
    exams, path = families.exams, Path(name)
    if name not in exams and not path.suffix and not path.exists():
        names = f"{', '.join(exams)} or " if exams else ""
        mend = did_you_mean(name, exams, f"use {names}a .jsonl file")
        raise InputError(f"there is no exam {name}, and no such file", mend)
    return exams.get(name, path)


def usual_exam(base: str, families: Families) -> Path:
    """What members of this base are examined with when nobody names an exam."""
    exams = families.exams
    if not exams:
        raise InputError(
            "the task families have no exam of their own", "name a .jsonl file of tasks (exam --tasks, study --exam)"
        )
    return exams.get(base) or next(iter(exams.values()))


async def validated_seeds(seeds: Sequence[FileDraft], families: Families, verifier: Verifier) -> tuple[Task, ...]:
    """The seeds, run and found sound as a teacher's proposals are."""
    return tuple(await _validated("seed", seeds, families, verifier))


async def validated_exam(drafts: Sequence[FileDraft], families: Families, verifier: Verifier) -> tuple[ExamTask, ...]:
    """The tasks, run and found sound as a teacher's proposals are; none of them twice. Those with a shortcut stay, and
    say so."""
    where_first: dict[str, str] = {}
    exam: list[ExamTask] = []
    tasks = await _validated("task", drafts, families, verifier)
    shortcuts = await families.shortcuts(tasks, StrictVerifier(verifier))
    for draft, task, shortcut in zip(drafts, tasks, shortcuts, strict=True):
        if task.id in where_first:
            # It would count twice, and the intervals would take it for two.
            raise InputError(f"{draft.where}: the same task as in {where_first[task.id]}", "leave one of them out")
        where_first[task.id] = draft.where
        exam.append(ExamTask(task, draft.band, shortcut))
    return tuple(exam)


async def _validated(noun: str, drafts: Sequence[FileDraft], families: Families, verifier: Verifier) -> list[Task]:
    results: dict[int, Task | Rejection] = {}
    for kind in dict.fromkeys(draft.draft.kind for draft in drafts):
        places = [place for place, draft in enumerate(drafts) if draft.draft.kind == kind]
        tasks = await families.kinds[kind].validate([drafts[place].draft for place in places], StrictVerifier(verifier))
        results.update(zip(places, tasks, strict=True))
    for place, draft in enumerate(drafts):
        result = results[place]
        if isinstance(result, Rejection):
            raise InputError(f"{draft.where}: the {noun} is refused: {result.why}", "mend it or leave it out")
    return [task for place in range(len(drafts)) if isinstance(task := results[place], Task)]


def read_held_out(paths: Sequence[Path], families: Families) -> HeldOut:
    """What all these files keep out."""
    files: list[HeldOut] = []
    for path in paths:
        of_path, errors = list[HeldOut](), list[InputError]()
        for family in families.families:
            try:
                of_path.append(family.held_out(path))
            except InputError as error:
                errors.append(error)
        # What is no file of one family may be one of another.
        if not any(held_out.keys for held_out in of_path):
            nothing = InputError(f"{path}: nothing in it that tasks.families could hold out", "leave it out")
            raise errors[0] if errors else nothing
        files += of_path
    keys = frozenset[str]().union(*(file.keys for file in files))
    return HeldOut(keys, sum(file.programs for file in files), sum(file.unreadable for file in files))


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a .jsonl file, each with where it stands; blank lines are skipped."""
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(
            f"{path}: not a kind of file that is read here",
            "give a .jsonl or a .jsonl.gz (held-out programs may also be .py)",
        )
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON: {error}", "put one object on each line") from error
        if not isinstance(row, dict):
            raise InputError(f"{where}: not an object", "put one object on each line")
        yield where, row


def read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "give a file that can be read") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "give a whole file in UTF-8") from error
