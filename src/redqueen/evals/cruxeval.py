"""What the CRUXEval benchmarks have in common: 800 small functions `f`, each with an input and its output.

CRUXEval-O asks for the output, CRUXEval-I for any input that gives it. The official check pastes the answer into
`assert f(INPUT) == OUTPUT` and runs that, so an answer such as `0) or (True` passes. Here an answer is never part of a
program. It is read inside a guest; for CRUXEval-I the benchmark's own function is then called with it, and what that
returns is compared outside, by Python's equality as in the official check.
"""

import ast
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from redqueen.evals.protocol import Grade, Hub, Item, Prompt, Prompts, Published, Row, Suite
from redqueen.tasks.code.program import parse_source
from redqueen.tasks.code.running import read_inputs, read_literals
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import Job, Limits, Result, Verifier
from redqueen.verifier.guest import literals

COPYABLE, UNCOPYABLE = "copyable", "uncopyable"
_FIELDS = ("id", "code", "input", "output")
_LIMITS = Limits(cpu_s=3.0, memory_mb=1024)
"""As long as the official check allows."""
_CALLED, _NAMED = "redqueen_called", "redqueen_named"
# Runs in a guest, for inputs that are no literals: `dict()`, `range(9)`, `'a-b'.split('-')`, `lambda x: x < 2`. What is
# accepted cannot reach the function that it is given to, make an object with methods of its own, or search for an
# input: no comprehensions, no attributes but methods of plain values, and a lambda only as a whole argument. Names are
# those of a second copy of the program, whose values nobody calls `f` with.
_EXPRESSIONS = f"""
import _ast
import builtins
import {_CALLED}
import {_NAMED}

PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set)
MADE = {{name: getattr(builtins, name) for name in (*(kind.__name__ for kind in PLAIN), "frozenset", "range")}}
METHODS = {{name for kind in PLAIN for name in dir(kind) if name[0] != "_"}}
SAFE = (
    _ast.Constant, _ast.List, _ast.Tuple, _ast.Set, _ast.Dict, _ast.UnaryOp, _ast.BinOp, _ast.BoolOp, _ast.Compare,
    _ast.IfExp, _ast.Subscript, _ast.Slice, _ast.unaryop, _ast.operator, _ast.boolop, _ast.cmpop, _ast.expr_context,
)

def check(node, names):
    if isinstance(node, _ast.Call):
        if isinstance(node.func, _ast.Attribute) and node.func.attr in METHODS:
            check(node.func.value, names)
        elif not (isinstance(node.func, _ast.Name) and node.func.id in MADE):
            raise ValueError("a call that is not allowed")
        children = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, _ast.Name) and node.id in names:
        children = []
    elif isinstance(node, SAFE):
        fields = [getattr(node, field) for field in node._fields]
        children = [each for field in fields for each in (field if isinstance(field, list) else [field])]
        children = [each for each in children if isinstance(each, _ast.AST)]
    else:
        raise ValueError("an expression that is not allowed")
    for child in children:
        check(child, names)

def value(node, scope):
    if isinstance(node, _ast.Lambda):
        given = node.args
        if given.vararg or given.kwarg or given.defaults or given.posonlyargs or given.kwonlyargs:
            raise ValueError("a lambda that is not allowed")
        check(node.body, {{*scope, *(each.arg for each in given.args)}})
    else:
        check(node, scope)
    return eval(compile(_ast.Expression(node), "<answer>", "eval"), {{**scope, "__builtins__": MADE}})

def f(text):
    call = compile("f(" + text + "\\n)", "<answer>", "eval", _ast.PyCF_ONLY_AST).body
    if type(call) is not _ast.Call or type(call.func) is not _ast.Name or call.func.end_col_offset != 1:
        raise ValueError("not the arguments of one call")
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("** is not allowed")
    scope = {{name: own for name, own in vars({_NAMED}).items() if name[0] != "_" and type(own) in PLAIN}}
    arguments = [value(node, scope) for node in call.args]
    keywords = {{keyword.arg: value(keyword.value, scope) for keyword in call.keywords}}
    return {_CALLED}.f(*arguments, **keywords)
"""


class CruxEval(Published):
    """The prompts are the official ones, of facebookresearch/cruxeval (MIT License, Copyright (c) 2023 Meta)."""

    folder: str | None = "cruxeval"
    suite: Suite = "execution"
    rows = 800
    sha256 = "9062d79f77f2c1c7"
    hub = Hub(repository="cruxeval-org/cruxeval", config="default", split="test", rows=800)
    examples: ClassVar[str]
    """The official prompt as far as the task."""
    thought: ClassVar[bool]
    """Whether a chain of thought comes before the answer."""

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        return {name: row[name] for name in _FIELDS}

    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        for row in rows:
            for name in _FIELDS:
                if not isinstance(row[name], str):
                    raise ValueError(f"{name} is not a text")
            try:
                ast.literal_eval(row["output"])
            except (ValueError, SyntaxError):
                raise ValueError(f"the output of {row['id']} is no literal") from None
        return [Item(row["id"], row) for row in rows]

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        asked = f"{self.examples}[PYTHON]\n{item.row['code']}\n{self.assertion(item.row)}\n[/PYTHON]\n"
        begun, stop = "[THOUGHT]\n" if self.thought else "[ANSWER]\n", ("[/ANSWER]",)
        if prompts is Prompts.RAW:
            return Prompt(text=asked + begun, stop=stop)
        return Prompt(text=asked.rstrip("\n"), prefill=begun, stop=stop)

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        _, tag, tagged = text.partition("[ANSWER]")
        if self.thought and not tag:
            return None
        return self.read((tagged if tag else text).partition("[/ANSWER]")[0].strip(), item.row) or None

    @abstractmethod
    def assertion(self, row: Row) -> str:
        """What is to be completed."""

    @abstractmethod
    def read(self, answer: str, row: Row) -> str:
        """What was filled in; "" for nothing."""


_OPERATOR = re.compile(r"(?:[^#=]|#[^\r\n]*)*==")
"""The `==` after the left side of a comparison, with the brackets and comments before it."""


@dataclass(frozen=True, slots=True)
class _Expression:
    """The one expression that an answer is, or asserts."""

    left: str
    """Of a comparison by `==` at its top, what stands before that; the whole of any other expression."""
    compared_with: str | None
    is_call: bool


def _expression(answer: str) -> _Expression | None:
    """Parsed and not evaluated, so that an `==` in a string is told from a comparison; None for any other text."""
    match parse_source(answer):
        case ast.Module([ast.Expr(whole) | ast.Assert(whole)]):
            text = ast.get_source_segment(answer, whole) or ""
        case _:
            return None
    if isinstance(whole, ast.Compare) and isinstance(whole.ops[0], ast.Eq):
        left = ast.get_source_segment(answer, whole.left) or ""
        return _Expression(left, _OPERATOR.sub("", _after(whole.left, whole, answer), count=1).strip(), False)
    return _Expression(text, None, isinstance(whole, ast.Call))


def _after(part: ast.expr, whole: ast.expr, text: str) -> str:
    """What follows a part of an expression, up to the expression's end."""
    assert part.end_lineno is not None and part.end_col_offset is not None
    rest = ast.Constant(
        None,
        lineno=part.end_lineno,
        col_offset=part.end_col_offset,
        end_lineno=whole.end_lineno,
        end_col_offset=whole.end_col_offset,
    )
    return ast.get_source_segment(text, rest) or ""


class OutputPrediction(CruxEval):
    graded = "the output as a literal, by Python's equality"

    def assertion(self, row: Row) -> str:
        return f"assert f({row['input']}) == ??"

    def read(self, answer: str, row: Row) -> str:
        """What the call is compared with; the whole where nothing is compared. In what is no Python, what follows the
        call that was asked, or else the first `==`."""
        said = _expression(answer)
        if said is not None:
            return answer if said.compared_with is None else said.compared_with
        _, asked, after = answer.partition(f"f({row['input']}) ==")
        if not asked:
            _, asked, after = answer.partition("==")
        return (after if asked else answer).strip()

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        read = await read_literals((answer for _, answer in answers if answer is not None), verifier)
        return [_grade_output(item, None if answer is None else read[answer]) for item, answer in answers]


def _grade_output(item: Item, value: str | Rejection | None) -> Grade:
    if value is None:
        return Grade(correct=False, why="no answer")
    if isinstance(value, Rejection):
        return Grade(correct=False, why="no literal")
    right = _is_output(value, item.row)
    return Grade(correct=right, vote=value, why="" if right else "wrong")


class InputPrediction(CruxEval):
    graded = "any input that gives the output, found by calling; copyable: the output itself is one"

    def assertion(self, row: Row) -> str:
        return f"assert f(??) == {row['output']}"

    def read(self, answer: str, row: Row) -> str:
        """What is compared with the output, or a call that stands alone. In anything else the text as far as the output
        that was shown, or else the first `==`."""
        said = _expression(answer)
        if said is not None and (said.compared_with is not None or said.is_call):
            return said.left
        _, asserts, after = answer.partition("assert ")
        call, shown, _ = (after if asserts else answer).partition(f"== {row['output']}")
        return (call if shown else call.partition("==")[0]).strip()

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        given = [None if answer is None else _arguments(answer) for _, answer in answers]
        read = await read_inputs((arguments for arguments in given if arguments is not None), verifier)
        jobs: dict[tuple[str, str], Job] = {}
        for (item, _), arguments in zip(answers, given, strict=True):
            if arguments is not None and (item.id, arguments) not in jobs:
                jobs[item.id, arguments] = _job(item.row["code"], arguments, read[arguments])
        outcomes = await verifier.run(list(jobs.values()))
        results = {key: outcome.results[0] for key, outcome in zip(jobs, outcomes, strict=True)}
        grades = []
        for (item, answer), arguments in zip(answers, given, strict=True):
            if arguments is None:
                grades.append(Grade(correct=False, why="no answer" if answer is None else "no call of f"))
                continue
            canonical = read[arguments]
            vote = arguments if isinstance(canonical, Rejection) else canonical
            grades.append(_grade_input(item, results[item.id, arguments], vote))
        return grades

    async def subsets(self, items: Sequence[Item], verifier: Verifier) -> list[str]:
        """Whether the output that is shown, given back as it stands, is right."""
        copies = await self.grade([(item, f"f({item.row['output']})") for item in items], verifier)
        return [COPYABLE if copy.correct else UNCOPYABLE for copy in copies]


def _arguments(answer: str) -> str | None:
    """What stands between the parentheses of a call."""
    return answer[2:-1].strip() if answer.startswith("f(") and answer.endswith(")") else None


def _job(code: str, arguments: str, canonical: str | Rejection) -> Job:
    if isinstance(canonical, Rejection):
        modules = [(_CALLED, code), (_NAMED, code)]
        return Job.calls(_EXPRESSIONS, [ascii(arguments)], modules=modules, seeds=1, limits=_LIMITS)
    return Job.calls(code, [canonical], seeds=1, limits=_LIMITS)


def _grade_input(item: Item, result: Result, vote: str) -> Grade:
    if result.value is None:
        return Grade(correct=False, vote=vote, why=result.verdict)
    right = _is_output(result.value, item.row)
    return Grade(correct=right, vote=vote, why="" if right else "wrong")


def _is_output(value: str, row: Row) -> bool:
    return bool(literals.parse(value) == ast.literal_eval(row["output"]))
