"""What a program may be, and reading one without running it.

A program is Python text with a plain function `f` of at least one parameter at its top level. Helper functions,
classes, nested functions and type hints are welcome, and the imports that `names` allows.

Python's own parser runs in this process on hostile text, so what reaches it is bounded: in length, in nesting of
brackets and in the chains that it reads by recursion. It parses; nothing here compiles or evaluates.
"""

import ast
import re
import warnings
from functools import lru_cache

from redqueen.tasks.blocks import is_text
from redqueen.tasks.code.names import check_names, own_nodes
from redqueen.tasks.code.trees import KEPT_TREES, known
from redqueen.tasks.verdicts import Reason, Rejection

MAX_PROGRAM_CHARS = 4_000
MAX_BRACKETS = 30
"""Nesting of brackets, counted without regard to strings. Python's own limit of 200 leaves little stack in a thread."""
MAX_CHAIN = 200
"""Words and operators that nest without brackets, all together."""
MAX_DEPTH = 100
"""Depth of the syntax tree, so that walks over it may recurse."""

_BRACKET = re.compile(r"[()\[\]{}]")
_NESTING = re.compile(r"\b(?:lambda|not|else|elif|await)\b|\*\*|[-+~](?=[ \t\f\\\n]*[-+~#])")


def read_program(text: str) -> ast.Module | Rejection:
    """The syntax tree of a program that keeps the contract."""
    tree = parse_source(text)
    if isinstance(tree, Rejection):
        return tree
    return _check_entry(tree) or check_names(text, tree) or tree


def parse_source(text: str) -> ast.Module | Rejection:
    """The syntax tree of any text within the bounds, for looking at only: whoever asks about a program again soon, as
    its guards, keys and measures do, gets the same tree."""
    if len(text) > MAX_PROGRAM_CHARS:
        return Rejection(Reason.PROGRAM_TOO_LONG, f"more than {MAX_PROGRAM_CHARS} characters")
    if not is_text(text):
        return Rejection(Reason.NOT_TEXT, "a lone surrogate or a NUL")
    if brackets_nest(text, MAX_BRACKETS):
        return Rejection(Reason.TOO_DEEP, f"brackets nested deeper than {MAX_BRACKETS}")
    if len(_NESTING.findall(text)) > MAX_CHAIN:
        return Rejection(Reason.TOO_DEEP, f"more than {MAX_CHAIN} nesting operators")
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        return Rejection(Reason.SYNTAX, f"line {error.lineno}" if error.lineno else "")
    except (ValueError, RecursionError, MemoryError) as error:
        return Rejection(Reason.SYNTAX, type(error).__name__)
    if known(tree)[1] > MAX_DEPTH:
        return Rejection(Reason.TOO_DEEP, f"a syntax tree deeper than {MAX_DEPTH}")
    return tree


@lru_cache(maxsize=KEPT_TREES)
def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"\d"` and the like are the model's business
        return ast.parse(text)


def brackets_nest(text: str, most: int) -> bool:
    """Whether opening brackets nest deeper than this; strings and comments are not told apart, so it never says too
    little."""
    if sum(map(text.count, "([{")) <= most:
        return False
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        if bracket in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest > most


def parameters(tree: ast.Module) -> list[str]:
    """The names of the parameters of `f` that can be given by position."""
    entry = _entry(tree)
    return [] if entry is None else [a.arg for a in (*entry.args.posonlyargs, *entry.args.args)]


def required(tree: ast.Module) -> list[str]:
    """The parameters of `f` that a call must fill, or else one: what stands before a value in the call, `` or `name=`.
    None where there is no plain function `f`."""
    entry = _entry(tree)
    if not isinstance(entry, ast.FunctionDef):
        return []
    given = entry.args
    positional = len(given.posonlyargs) + len(given.args)
    names = [""] * (positional - len(given.defaults))
    names += [
        f"{arg.arg}=" for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
    ]
    if names or positional or given.vararg:
        return names or [""]
    return [f"{given.kwonlyargs[0].arg}="] if given.kwonlyargs else ["x="]


def _entry(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The last definition of `f` at the top level, which is the one that a call meets."""
    definitions = [s for s in tree.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name == "f"]
    return definitions[-1] if definitions else None


def _check_entry(tree: ast.Module) -> Rejection | None:
    entry = _entry(tree)
    if entry is None:
        return Rejection(Reason.NO_ENTRY, "no function f at the top level")
    if isinstance(entry, ast.AsyncFunctionDef):
        return Rejection(Reason.NOT_PLAIN_FUNCTION, "f is a coroutine")
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(entry)):
        return Rejection(Reason.NOT_PLAIN_FUNCTION, "f is a generator")
    given = entry.args
    if not (given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg):
        return Rejection(Reason.NO_PARAMETERS, "f takes no input")
    return None
