"""Programs from the user's own files.

    seeds        {"program": "def f(n): ...", "input": "3, [1, 2]"}, or "inputs" with a list
    exams        the same with "kind", and for code_f a "message"
    held out     .py, one program a file; .jsonl with "program", "code" or "canonical_solution", which may be the
                 continuation of "prompt" (HumanEval), and with "entry_point" where the function is not the last one

A held-out program that cannot be compared is counted and said, since nobody mends a benchmark.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.code.blocks import call_arguments
from redqueen.tasks.code.key import part_keys
from redqueen.tasks.code.plain import plain_message, read_plain
from redqueen.tasks.code.program import MAX_DEPTH
from redqueen.tasks.code.task import CodeDraft
from redqueen.tasks.code.trees import nodes_and_depth
from redqueen.tasks.files import read_rows, read_text
from redqueen.tasks.protocol import HeldOut
from redqueen.tasks.verdicts import Rejection

_FORM = (
    'a seed is {"program": "def f(n): ...", "input": "3"}, the input as between the parentheses of a call; a task of '
    'an exam has "kind": "code_o" and "band": "easy" too'
)
_HELD_OUT_FIELDS = ("program", "code", "canonical_solution")


def read_drafts(row: Mapping[str, Any], kind: str) -> list[CodeDraft]:
    """A draft for each input; for code_f, which is about many inputs, one with all of them."""
    message = row.get("message", "")
    if not isinstance(message, str):
        raise InputError("no text under 'message'", _FORM)
    program, inputs = row.get("program"), row.get("inputs", [row["input"]] if "input" in row else [])
    if not isinstance(program, str):
        raise InputError("no text under 'program'", _FORM)
    if not isinstance(inputs, list) or not inputs or not all(isinstance(text, str) and text for text in inputs):
        raise InputError("no text under 'input', and no list of texts under 'inputs'", _FORM)
    plain = read_plain(program)
    if isinstance(plain, Rejection):
        raise InputError(f"the program is refused: {plain.why}", "it must keep the contract of all programs")
    given = tuple(map(call_arguments, inputs))
    together = [given] if kind == "code_f" else [(arguments,) for arguments in given]
    return [CodeDraft(kind, plain, arguments, plain_message(message)) for arguments in together]


def read_held_out(path: Path) -> HeldOut:
    """The keys of all programs in a file."""
    keys_of_programs = [_held_out_keys(*program) for program in _held_out_programs(path)]
    readable = [keys for keys in keys_of_programs if keys]
    if not readable:
        raise InputError(f"{path}: no program in it that could be held out", "give Python with functions in it")
    return HeldOut(frozenset[str]().union(*readable), len(readable), len(keys_of_programs) - len(readable))


def _held_out_programs(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """Prompt, program and entry point of each."""
    if path.suffix == ".py":
        yield "", read_text(path), None
        return
    for where, row in read_rows(path):
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
    return tree if nodes_and_depth(tree)[1] <= MAX_DEPTH else None
