"""What HumanEval+ and MBPP+ have in common: EvalPlus' test scripts, and programs reduced to the function asked for.

A script holds its inputs as a literal list. It is parsed, never run: the expected results are what the benchmark's own
solution returns in the verifier, cached by the content of the row.
"""

import ast
import asyncio
import hashlib
import json
import marshal
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from redqueen.engine.disk_cache import cache
from redqueen.evals.code import Oracle, Tests, judge, reference
from redqueen.evals.extraction import fenced
from redqueen.evals.protocol import Grade, Item, Published, Row, Suite
from redqueen.runs.atomic import put_in_place
from redqueen.verifier import Job, Limits, Status, Verifier
from redqueen.verifier.guest import literals

_FORM = 2
"""The version of the cache's format."""
_UNSPLIT_BASE = 8
"""How many base tests are assumed where it is not known."""
_CONSTANTS = {"inf": math.inf, "nan": math.nan}
_TIDY = Limits(cpu_s=5, memory_mb=512, value_chars=500_000)
# Runs in a guest. What a model writes around its function (examples, assertions) is not part of the answer.
_TIDIER = """
import ast

KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)

def f(text, entry):
    lines = text.split("\\n")
    starts = [0] + [n for n, line in enumerate(lines) if line.startswith(("def ", "import ", "from ", "class ", "@"))]
    for start in starts[:50]:
        for end in range(len(lines), start, -1):
            try:
                tree = ast.parse("\\n".join(lines[start:end]))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            kept = [node for node in tree.body if isinstance(node, KEPT)]
            if any(entry in defined(node) for node in kept):
                return "\\n".join(part for part in cut(kept, lines[start:end], entry))
            break
    return None

def defined(node):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {node.name}

def cut(kept, lines, entry):
    wanted, reached = [entry], set()
    used = [(defined(node), {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}) for node in kept]
    while wanted:
        name = wanted.pop()
        if name not in reached:
            reached.add(name)
            wanted += [other for names, uses in used if name in names for other in uses]
    for node, (names, _) in zip(kept, used):
        if not names or names & reached:
            first = min([node.lineno] + [each.lineno for each in getattr(node, "decorator_list", ())])
            yield "\\n".join(lines[first - 1 : node.end_lineno])
"""


class EvalPlus(Published):
    """A benchmark of functions to write, with EvalPlus' tests."""

    suite: Suite = "code"
    tokens = 768
    graded = "EvalPlus' base and plus tests"
    oracles: ClassVar[Mapping[str, Oracle]] = {}
    """By the function that they are for."""
    not_none: ClassVar[frozenset[str]] = frozenset()
    """Functions of which only whether they return None counts."""
    extreme: ClassVar[Mapping[str, Callable[..., bool]]] = {}
    """By function, the arguments of tests that are left out: alone they take the reference seconds or gigabytes."""

    def __init__(self) -> None:
        self._ready: dict[tuple[str, ...], Tests] = {}
        self._making: dict[tuple[str, ...], asyncio.Task[Tests]] = {}

    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        """EvalPlus' own file, where it is beside, says which tests are the base ones. Scripts have no duplicates."""
        base = {row["task_id"]: len({json.dumps(inputs) for inputs in row["base_input"]}) for row in beside}
        for row in rows:
            for name in ("id", "prompt", "entry_point", "canonical_solution", "test"):
                if not isinstance(row[name], str):
                    raise ValueError(f"{name} is not a text")
        return [Item(row["id"], {**row, "base_tests": base[row["id"]]} if row["id"] in base else row) for row in rows]

    def solution(self, row: Row) -> str:
        """The benchmark's own, as a whole program."""
        return row["prompt"] + row["canonical_solution"]

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        return list(await asyncio.gather(*(self._grade(item, text, verifier) for item, text in answers)))

    async def grade_program(self, item: Item, program: str, verifier: Verifier) -> Grade:
        """A whole program, without extracting the function."""
        return await judge(program, await self.tests(item, verifier), verifier)

    async def _grade(self, item: Item, text: str | None, verifier: Verifier) -> Grade:
        if text is None:
            return Grade(correct=False, parts={"base": False} if "base_tests" in item.row else {}, why="no answer")
        program = await tidy(text, item.row["entry_point"], verifier)
        return await self.grade_program(item, text if program is None else program, verifier)

    async def tests(self, item: Item, verifier: Verifier) -> Tests:
        """The tests of a task, prepared once even if several callers wait for them."""
        key = _parts(item.row)
        if key not in self._ready:
            if key not in self._making:
                self._making[key] = asyncio.create_task(self._prepare(item.row, verifier))
            try:
                self._ready[key] = await self._making[key]
            finally:
                self._making.pop(key, None)
        return self._ready[key]

    async def _prepare(self, row: Row, verifier: Verifier) -> Tests:
        entry, base = row["entry_point"], row.get("base_tests", _UNSPLIT_BASE)
        # How values are hashed and packed differs between versions of Python.
        parts = [_FORM, platform.python_version_tuple()[:2], *_parts(row)]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        path = cache() / "bench" / "tests" / f"{digest}.bin"
        if path.is_file():
            cached = marshal.loads(path.read_bytes())
        else:
            inputs, atol = read_script(row["test"])
            extreme = self.extreme.get(entry)
            inputs = [arguments for arguments in inputs if extreme is None or not extreme(*arguments)]
            results = await reference(
                self.solution(row), entry, inputs, base=base, not_none=entry in self.not_none, verifier=verifier
            )
            cached = {"inputs": inputs, "atol": atol, **asdict(results)}
            path.parent.mkdir(parents=True, exist_ok=True)
            with put_in_place(path) as aside:
                aside.write_bytes(marshal.dumps(cached))
        return Tests(
            entry=entry,
            solution=self.solution(row),
            base=min(base, len(cached["inputs"])),
            split="base_tests" in row,
            not_none=entry in self.not_none,
            oracle=self.oracles.get(entry),
            **cached,
        )


async def tidy(text: str, entry: str, verifier: Verifier) -> str | None:
    """The function and what it needs, out of a text that may hold more; None where it is not defined."""
    [outcome] = await verifier.run([Job.calls(_TIDIER, [f"{text!r}, {entry!r}"], seeds=1, limits=_TIDY)])
    result = outcome.results[0]
    program = literals.parse(result.value) if result.status is Status.OK and result.value is not None else None
    return program if isinstance(program, str) else None


def program_in(text: str) -> str | None:
    """The last fenced block, or the whole text where there is none."""
    blocks = fenced(text)
    return blocks[-1] if blocks else text if text.strip() else None


def read_script(script: str) -> tuple[list[list[Any]], float]:
    """The arguments of a script's tests, and its tolerance."""
    inputs: list[list[Any]] = []
    atol = 0.0
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "inputs":
            inputs = [list(arguments) for arguments in _literal(node.value)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "assertion":
            atol = float(_literal(node.args[-1]))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.LtE) and "_poly" in ast.dump(node.left):
            atol = float(_literal(node.comparators[0]))
    if not inputs:
        raise ValueError("its test has no inputs")
    return inputs, atol


def _literal(node: ast.expr) -> Any:
    """The value of a literal that may contain `inf` and `nan`."""
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_literal(node.operand)
    if isinstance(node, ast.List):
        return list(map(_literal, node.elts))
    if isinstance(node, ast.Tuple):
        return tuple(map(_literal, node.elts))
    if isinstance(node, ast.Set):
        return set(map(_literal, node.elts))
    if isinstance(node, ast.Dict):
        return {_literal(k): _literal(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    return ast.literal_eval(node)


def _parts(row: Row) -> tuple[str, ...]:
    """All that the tests of a row depend on."""
    names = ("prompt", "canonical_solution", "entry_point", "test")
    return (str(row.get("base_tests")), *(row[name] for name in names))
