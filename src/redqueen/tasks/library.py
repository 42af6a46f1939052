"""Programs from the user's own files: seeds that teachers begin from, exams, and programs that no task may have.

    seeds        .jsonl, one object a line: {"program": "def f(n): ...", "input": "3, [1, 2]"}, or "inputs" with a list
    exams        the same with "kind", a "band" (any label; the kind when left out) and, for code_f, a "message"
    held out     .py, one program a file; .jsonl with "program", "code" or "canonical_solution", which may be the
                 continuation of "prompt" (HumanEval), and with "entry_point" where the function is not the last one

A .jsonl file may be packed (.jsonl.gz). A seed or an exam task that is wrong is an error: its author can mend it. A
held-out program that cannot be compared is counted and said, since nobody mends a benchmark.
"""

import ast
import gzip
import json
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.code import CodeFamily
from redqueen.tasks.code.blocks import call_arguments
from redqueen.tasks.code.key import part_keys
from redqueen.tasks.code.plain import plain_message, read_plain
from redqueen.tasks.code.program import MAX_DEPTH, tree_depth
from redqueen.tasks.code.task import CodeDraft, CodeTask
from redqueen.tasks.protocol import Kind, Rejection
from redqueen.verifier import Verifier

_SEED_FORM = 'a seed is {"program": "def f(n): ...", "input": "3"}, the input as between the parentheses of a call'
_EXAM_FORM = 'an exam task is {"kind": "code_o", "program": "def f(n): ...", "input": "3", "band": "easy"}'
_KINDS_OF_FILE = "give a .jsonl or a .jsonl.gz (held-out programs may also be .py)"
_HELD_OUT_FIELDS = ("program", "code", "canonical_solution")


@dataclass(frozen=True, slots=True)
class Seed:
    """A program and an input as they stand in a file, not run yet."""

    where: str
    """File and line."""
    program: str
    given: str


@dataclass(frozen=True, slots=True)
class ExamDraft:
    """A task of an exam as it stands in a file, not run yet."""

    where: str
    """File and line."""
    draft: CodeDraft
    band: str


@dataclass(frozen=True, slots=True)
class ExamTask:
    """A task that is the same for everybody and every time."""

    task: CodeTask
    band: str
    """What tasks it is reported with."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What is held out, as keys."""

    keys: frozenset[str] = frozenset()
    programs: int = 0
    """How many can be told again."""
    unreadable: int = 0
    """How many cannot: they are no Python of this version, or have no function."""


def read_seeds(path: Path) -> list[Seed]:
    """The seeds of a file; one with several inputs is shown with any one of them."""
    seeds = [seed for where, row in _rows(path) for seed in _seeds(where, row)]
    if not seeds:
        raise InputError(f"{path}: no seed in it", _SEED_FORM)
    return seeds


def _seeds(where: str, row: dict[str, Any]) -> Iterator[Seed]:
    program, inputs = _program_and_inputs(where, row, _SEED_FORM)
    yield from (Seed(where, program, given) for given in inputs)


def _program_and_inputs(where: str, row: dict[str, Any], form: str) -> tuple[str, tuple[str, ...]]:
    program, inputs = row.get("program"), row.get("inputs", [row["input"]] if "input" in row else [])
    if not isinstance(program, str):
        raise InputError(f"{where}: no text under 'program'", form)
    if not isinstance(inputs, list) or not inputs or not all(isinstance(each, str) and each for each in inputs):
        raise InputError(f"{where}: no text under 'input', and no list of texts under 'inputs'", form)
    plain = read_plain(program)
    if isinstance(plain, Rejection):
        raise InputError(f"{where}: the program is refused: {_why(plain)}", "it must keep the contract of all programs")
    return plain, tuple(map(call_arguments, inputs))


async def validated_seeds(
    seeds: Sequence[Seed], kind: Kind[CodeDraft, CodeTask], verifier: Verifier
) -> tuple[CodeTask, ...]:
    """The seeds as tasks of a kind that has one input, run and found sound as a teacher's proposals are."""
    tasks = await kind.validate([CodeDraft(kind.name, seed.program, (seed.given,)) for seed in seeds], verifier)
    for seed, task in zip(seeds, tasks, strict=True):
        if isinstance(task, Rejection):
            raise InputError(f"{seed.where}: the seed is refused: {_why(task)}", "mend it or leave it out")
    return tuple(task for task in tasks if isinstance(task, CodeTask))


def read_exam(path: Path) -> list[ExamDraft]:
    """The tasks of an exam; a program with several inputs is a task for each, and for code_f one with all of them."""
    drafts = [draft for where, row in _rows(path) for draft in _exam_drafts(where, row)]
    if not drafts:
        raise InputError(f"{path}: no task in it", _EXAM_FORM)
    return drafts


def _exam_drafts(where: str, row: dict[str, Any]) -> Iterator[ExamDraft]:
    kind, message = row.get("kind"), row.get("message", "")
    band = row.get("band", kind)
    kinds = CodeFamily().kinds
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{where}: no kind of task under 'kind'", f"the kinds are {', '.join(kinds)}")
    if not isinstance(band, str) or not band or not isinstance(message, str):
        wrong = "message" if isinstance(band, str) and band else "band"
        raise InputError(f"{where}: no text under '{wrong}'", _EXAM_FORM)
    program, inputs = _program_and_inputs(where, row, _EXAM_FORM)
    each_alone = [inputs] if kind == "code_f" else [(given,) for given in inputs]
    yield from (ExamDraft(where, CodeDraft(kind, program, given, plain_message(message)), band) for given in each_alone)


async def validated_exam(drafts: Sequence[ExamDraft], verifier: Verifier) -> tuple[ExamTask, ...]:
    """The tasks, run and found sound as a teacher's proposals are; none of them twice."""
    kinds = CodeFamily().kinds
    results: dict[int, CodeTask | Rejection] = {}
    for kind in dict.fromkeys(each.draft.kind for each in drafts):
        places = [place for place, each in enumerate(drafts) if each.draft.kind == kind]
        tasks = await kinds[kind].validate([drafts[place].draft for place in places], verifier)
        results.update(zip(places, tasks, strict=True))
    found: dict[str, str] = {}
    exam: list[ExamTask] = []
    for place, each in enumerate(drafts):
        task = results[place]
        if isinstance(task, Rejection):
            raise InputError(f"{each.where}: the task is refused: {_why(task)}", "mend it or leave it out")
        if task.id in found:
            # It would count twice, and the intervals would take it for two.
            raise InputError(f"{each.where}: the same task as in {found[task.id]}", "leave one of them out")
        found[task.id] = each.where
        exam.append(ExamTask(task, each.band))
    return tuple(exam)


def _why(rejection: Rejection) -> str:
    return f"{rejection.reason} ({rejection.detail})" if rejection.detail else str(rejection.reason)


def read_held_out(paths: Sequence[Path]) -> HeldOut:
    """The keys of all programs in some files."""
    keys: set[str] = set()
    programs = unreadable = 0
    for path in paths:
        found = [_held_out_keys(*each) for each in _held_out_programs(path)]
        readable = [each for each in found if each]
        if not readable:
            raise InputError(f"{path}: no program in it that could be held out", "give Python with functions in it")
        keys.update(*readable)
        programs += len(readable)
        unreadable += len(found) - len(readable)
    return HeldOut(frozenset(keys), programs, unreadable)


def _held_out_programs(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """Prompt, program and entry point of each."""
    if path.suffix == ".py":
        yield "", _text(path), None
        return
    for where, row in _rows(path):
        program = next((row[name] for name in _HELD_OUT_FIELDS if isinstance(row.get(name), str)), None)
        if program is None:
            fields = ", ".join(map(repr, _HELD_OUT_FIELDS))
            raise InputError(f"{where}: no text under any of {fields}", "what is held out is programs")
        prompt, entry = row.get("prompt"), row.get("entry_point")
        yield prompt if isinstance(prompt, str) else "", program, entry if isinstance(entry, str) else None


def _held_out_keys(prompt: str, program: str, entry: str | None) -> frozenset[str]:
    """None of them where there is nothing to compare. A program that does not stand alone continues its prompt."""
    for source in (program, prompt + program):
        tree = _parse(source)
        functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree else []
        if tree and functions:
            last = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)][-1:]
            return part_keys(tree, entry if entry in functions else "".join(last))
    return frozenset()


def _parse(source: str) -> ast.Module | None:
    """Longer programs than a task may have are read too: a task may have a part of one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if tree_depth(tree) <= MAX_DEPTH else None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a .jsonl file, each with where it stands; blank lines are skipped."""
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"{path}: not a kind of file that is read here", _KINDS_OF_FILE)
    for number, line in enumerate(_text(path).split("\n"), 1):
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


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "give a file that can be read") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "give a whole file in UTF-8") from error
