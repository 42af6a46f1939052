"""LiveCodeBench: problems of programming contests, solved by whole programs or by a method of a class.

Official scores include private tests. Where a file has only the public ones, the score reads some points higher, and
the report says so.
"""

import asyncio
import base64
import binascii
import hashlib
import io
import json
import pickle
import re
import zlib
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from redqueen.evals.extraction import fenced
from redqueen.evals.protocol import Grade, Hub, Item, Prompt, Prompts, Published, Row, Suite
from redqueen.verifier import Job, Limits, Result, Status, Verifier
from redqueen.verifier.guest import literals

RELEASES = ("v1", "v2", "v3", "v4", "v5")
"""The releases that Absolute Zero, and the paper after it, were measured on."""
SECONDS = 6.0
"""Of a test."""
# The contests' own judges offer these without being asked.
_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "typing",
)  # fmt: skip
_GIVEN = "".join(f"from {module} import *\n" for module in (*_MODULES, "builtins")) + (
    f"import {', '.join(_MODULES)}, threading\n"
    # Programs start a thread for its deeper stack. A guest has a single one, which is deep enough.
    "threading.Thread.start = lambda self: self.run()\n"
    "threading.Thread.join = lambda self, timeout=None: None\n"
    "threading.stack_size = lambda *size: 0\n"
)
_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)
_LIMITS = Limits(cpu_s=SECONDS, memory_mb=2048, value_chars=2_000_000, stdout_bytes=2_000_000)


class LiveCodeBench(Published):
    name = "livecodebench"
    title = "LiveCodeBench"
    suite: Suite = "code"
    rows = 1_055
    sha256 = "dfaab4be56af5b09"
    hub = Hub(
        repository="livecodebench/code_generation_lite", config="release_v5", split="test", rows=880,
        files=("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl"),
    )  # fmt: skip
    tokens = 1_536
    graded = "releases v1-v5"

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        about = json.loads(row["metadata"]) if row.get("metadata") else {}
        return {
            "id": f"lcb/{row['question_id']}",
            "prompt": row["question_content"],
            "starter_code": row["starter_code"],
            "func_name": about.get("func_name"),
            "release": RELEASES[-1],
            "public_tests": json.loads(row["public_test_cases"]) + _private(row["private_test_cases"]),
            "extra_tests": [],
            "whole": True,
        }

    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        items = []
        for row in rows:
            tests = self.tests(row)
            if not all(set(test) >= {"input", "output", "testtype"} for test in tests):
                raise ValueError("a test lacks its input, output or type")
            if row["release"] in RELEASES and tests:
                items.append(Item(row["id"], row))
        return items

    def graded_of(self, items: Sequence[Item]) -> str:
        """Rows from the hub have all tests; others the public ones, and some of them validated further ones."""
        if all(item.row.get("whole") for item in items):
            return f"public and private tests, {self.graded}"
        more = sum(len(self.tests(item.row)) > len(item.row["public_tests"]) for item in items)
        tests = f"public tests, and validated further ones of {more:,} of {len(items):,} tasks" if more else ""
        return f"{tests or 'public tests only'}, {self.graded}: reads higher than the official score"

    def tests(self, row: Row) -> list[Row]:
        return [*row["public_tests"], *(test for test in row["extra_tests"] if test.get("validated"))]

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        row = item.row
        if row["starter_code"]:
            how = f"Fill in this class, and keep its names:\n```python\n{row['starter_code'].strip()}\n```"
        else:
            how = "Write a program that reads its input from standard input and prints its answer to standard output."
        problem = f"{row['prompt'].strip()}\n\n{how}"
        if prompts is Prompts.CHAT:
            return Prompt(text=f"{problem}\n\nReply with the whole solution in one Python code block.")
        return Prompt(text=f"# A problem\n\n{problem}\n\n# Its solution in Python\n\n```python\n", stop=("\n```",))

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        if prompts is Prompts.RAW:
            return text if text.strip() else None
        blocks = fenced(text)
        return blocks[-1] if blocks and blocks[-1].strip() else None

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        return list(await asyncio.gather(*(self._grade(item, text, verifier) for item, text in answers)))

    async def _grade(self, item: Item, program: str | None, verifier: Verifier) -> Grade:
        if program is None:
            return Grade(correct=False, why="no answer")
        row, verdicts, why = item.row, [], ""
        # Members vote by their programs' results on the public tests; further tests are for those who pass these.
        public = len(row["public_tests"])
        tests = self.tests(row)
        for wave in (tests[:1], tests[1:public], tests[public:]):
            # A program that times out on the first test would on the others.
            if why == Status.TIMEOUT or (why and len(verdicts) == public):
                break
            outcomes = await verifier.run([_job(program, row, test) for test in wave]) if wave else []
            for test, outcome in zip(wave, outcomes, strict=True):
                result = outcome.results[0]
                verdicts += [result.verdict] if len(verdicts) < public else []
                why = why or _fault(test, result)
        vote = hashlib.sha256("\n".join(verdicts).encode()).hexdigest()[:16]
        returned = any(verdict.startswith("ok:") for verdict in verdicts)
        return Grade(correct=not why, vote=vote if returned else None, why=why)


def _job(program: str, row: Row, test: Row) -> Job:
    numpy = "numpy" in program
    first = "".join(_FUTURE.findall(program))  # which must stand before all else
    program = first + _GIVEN + _FUTURE.sub("", program)
    if test["testtype"] == "stdin":
        return Job.program(program, test["input"], numpy=numpy, seeds=1, limits=_LIMITS)
    arguments = ", ".join(literals.encode(json.loads(line), 1_000_000) for line in test["input"].split("\n") if line)
    source = f"{program}\nredqueen_call = Solution().{row['func_name']}\n"
    return Job.calls(source, [arguments], entry="redqueen_call", numpy=numpy, seeds=1, limits=_LIMITS)


def _fault(test: Row, result: Result) -> str:
    if result.status is not Status.OK or result.value is None:
        return result.verdict
    value = literals.parse(result.value)
    if test["testtype"] == "stdin" and isinstance(value, str):
        return "" if _same_lines(value, test["output"]) else "wrong output"
    return "" if _listed(value) == json.loads(test["output"]) else "wrong result"


def _listed(value: Any) -> Any:
    """Tuples as lists, which JSON has instead."""
    return list(map(_listed, value)) if isinstance(value, (list, tuple)) else value


def _same_lines(printed: str, expected: str) -> bool:
    lines, right = (text.strip().split("\n") for text in (printed, expected))
    return len(lines) == len(right) and all(_same_line(a.strip(), b.strip()) for a, b in zip(lines, right, strict=True))


def _same_line(line: str, right: str) -> bool:
    if line == right:
        return True
    try:
        return list(map(Decimal, line.split())) == list(map(Decimal, right.split()))
    except InvalidOperation:
        return False


class _TextOnly(pickle.Unpickler):
    """Reads a pickled text. Every import is refused, so nothing can be called."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"it wants {module_name}.{global_name}")


def _private(packed: str) -> Iterable[Row]:
    """The tests that the hub keeps packed."""
    try:
        if packed.startswith("["):
            return json.loads(packed)
        return json.loads(_TextOnly(io.BytesIO(zlib.decompress(base64.b64decode(packed)))).load())
    except (binascii.Error, zlib.error, pickle.UnpicklingError, ValueError, TypeError) as error:
        raise ValueError(f"its private tests cannot be read: {error}") from None
