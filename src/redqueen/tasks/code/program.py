"""What a program may be, and reading one without running it.

A program is Python text with a plain function `f` of at least one parameter at its top level. Helper functions,
classes, nested functions, type hints and imports from ALLOWED_IMPORTS are welcome. The rules here keep tasks about
reasoning and reproducible; they are no protection, which is the verifier's business.

Python's own parser runs in this process on hostile text, so what reaches it is bounded: in length, in nesting of
brackets and in the chains that it reads by recursion. It parses; nothing here compiles or evaluates.
"""

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache

from redqueen.tasks.code.blocks import is_text
from redqueen.tasks.protocol import Reason, Rejection

MAX_PROGRAM_CHARS = 4_000
MAX_BRACKETS = 30
"""Nesting of brackets, counted without regard to strings. Python's own limit of 200 leaves little stack in a thread."""
MAX_CHAIN = 200
"""Words and operators that nest without brackets, all together."""
MAX_DEPTH = 100
"""Depth of the syntax tree, so that walks over it may recurse."""

KEPT_TREES = 256
"""A step's programs, about."""

ALLOWED_IMPORTS = frozenset(
    {
        "__future__", "abc", "bisect", "cmath", "collections", "collections.abc", "copy", "dataclasses", "decimal",
        "enum", "fractions", "functools", "heapq", "itertools", "math", "numbers", "operator", "re", "statistics",
        "string", "textwrap", "typing",
    }
)  # fmt: skip
"""Pure, deterministic and open to reasoning. Not `random`, even seeded, nor `hashlib`: nobody can work out what they
return, so a teacher would find in them an endless supply of tasks that are hard and teach nothing."""

FORBIDDEN_NAMES = frozenset(
    {
        "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "dir", "eval", "exec", "exit",
        "globals", "hash", "help", "id", "input", "locals", "open", "quit", "vars",
    }
)  # fmt: skip
"""Names about the interpreter, the world outside or addresses, unless the program gives them a meaning of its own:
what they return is no matter of reasoning."""

_FORBIDDEN_ATTRIBUTES = frozenset(
    {
        "ag_frame", "co_code", "co_consts", "cr_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals",
        "gi_code", "gi_frame", "tb_frame", "tb_next",
    }
)  # fmt: skip
_PLAIN_DUNDERS = frozenset(
    {
        "__add__", "__call__", "__class__", "__contains__", "__eq__", "__ge__", "__getitem__", "__gt__", "__hash__",
        "__init__", "__iter__", "__le__", "__len__", "__lt__", "__mul__", "__name__", "__ne__", "__new__", "__next__",
        "__post_init__", "__repr__", "__setitem__", "__str__", "__sub__",
    }
)  # fmt: skip
"""What ordinary classes call by name. Any dunder may be defined; other ones may not be reached for."""

_BRACKET = re.compile(r"[()\[\]{}]")
_NESTING = re.compile(r"\b(?:lambda|not|else|elif|await)\b|\*\*|[-+~](?=[ \t\f\\\n]*[-+~#])")


def read_program(text: str) -> ast.Module | Rejection:
    """The syntax tree of a program that keeps the contract."""
    tree = parse_source(text)
    if isinstance(tree, Rejection):
        return tree
    return _check_entry(tree) or _check_names(tree) or tree


def parse_source(text: str) -> ast.Module | Rejection:
    """The syntax tree of any text within the bounds, for looking at only: whoever asks about a program again soon, as
    its guards, keys and measures do, gets the same tree."""
    if len(text) > MAX_PROGRAM_CHARS:
        return Rejection(Reason.PROGRAM_TOO_LONG, f"more than {MAX_PROGRAM_CHARS} characters")
    if not is_text(text):
        return Rejection(Reason.NOT_TEXT, "a lone surrogate or a NUL")
    if bracket_depth(text) > MAX_BRACKETS:
        return Rejection(Reason.TOO_DEEP, f"brackets nested deeper than {MAX_BRACKETS}")
    if sum(1 for _ in _NESTING.finditer(text)) > MAX_CHAIN:
        return Rejection(Reason.TOO_DEEP, f"more than {MAX_CHAIN} nesting operators")
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        return Rejection(Reason.SYNTAX, f"line {error.lineno}" if error.lineno else "")
    except (ValueError, RecursionError, MemoryError) as error:
        return Rejection(Reason.SYNTAX, type(error).__name__)
    if tree_depth(tree) > MAX_DEPTH:
        return Rejection(Reason.TOO_DEEP, f"a syntax tree deeper than {MAX_DEPTH}")
    return tree


@lru_cache(maxsize=KEPT_TREES)
def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"\d"` and the like are the model's business
        return ast.parse(text)


def bracket_depth(text: str) -> int:
    """The deepest nesting of opening brackets; strings and comments are not told apart, so it never says too little."""
    depth = deepest = 0
    for found in _BRACKET.finditer(text):
        if found[0] in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


def parameters(tree: ast.Module) -> list[str]:
    """The names of the parameters of `f` that can be given by position."""
    entry = _entry(tree)
    return [] if entry is None else [a.arg for a in (*entry.args.posonlyargs, *entry.args.args)]


def tree_depth(tree: ast.AST) -> int:
    """Nodes on the longest path down the tree, operators and contexts included."""
    level, depth = [tree], 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _entry(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The last definition of `f` at the top level, which is the one that a call meets."""
    found = [s for s in tree.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name == "f"]
    return found[-1] if found else None


def _check_entry(tree: ast.Module) -> Rejection | None:
    entry = _entry(tree)
    if entry is None:
        return Rejection(Reason.NO_ENTRY, "no function f at the top level")
    if isinstance(entry, ast.AsyncFunctionDef):
        return Rejection(Reason.NOT_PLAIN_FUNCTION, "f is a coroutine")
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(entry)):
        return Rejection(Reason.NOT_PLAIN_FUNCTION, "f is a generator")
    given = entry.args
    if not (given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg):
        return Rejection(Reason.NO_PARAMETERS, "f takes no input")
    return None


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of the functions and classes in it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


def _check_names(tree: ast.Module) -> Rejection | None:
    forbidden = FORBIDDEN_NAMES - set(_bound_names(tree))
    modules = dict(_imported_modules(tree))
    for node in ast.walk(tree):
        rejection = None
        if isinstance(node, ast.Import):
            rejection = next(filter(None, (_check_import(alias.name) for alias in node.names)), None)
        elif isinstance(node, ast.ImportFrom):
            starred = any(alias.name == "*" for alias in node.names)
            module = "*" if starred or node.level else node.module or "*"
            checks = (_check_import(module), *(_check_member(module, alias.name) for alias in node.names))
            rejection = next(filter(None, checks), None)
        elif isinstance(node, ast.Name) and node.id in forbidden:
            rejection = Rejection(Reason.FORBIDDEN_NAME, node.id)
        elif isinstance(node, ast.Attribute) and _forbidden_attribute(node.attr):
            rejection = Rejection(Reason.FORBIDDEN_NAME, ascii(node.attr[:80]).strip("'"))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            rejection = _check_member(modules[node.value.id], node.attr)
        if rejection is not None:
            return rejection
    return None


def _bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _check_import(module: str) -> Rejection | None:
    if module in ALLOWED_IMPORTS:
        return None
    return Rejection(Reason.FORBIDDEN_IMPORT, ascii(module[:80]).strip("'"))


def _imported_modules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that stand for modules, and which."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)


def _check_member(module: str, name: str) -> Rejection | None:
    """Modules are full of what they import themselves: `statistics.random` is `random`."""
    own = name == module.rpartition(".")[2] or f"{module}.{name}" in ALLOWED_IMPORTS
    if own or (name not in sys.stdlib_module_names and not name.startswith("_")):
        return None
    return Rejection(Reason.FORBIDDEN_IMPORT, ascii(f"{module}.{name}"[:80]).strip("'"))


def _forbidden_attribute(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name not in _PLAIN_DUNDERS if dunder else name in _FORBIDDEN_ATTRIBUTES
