"""What a program may reach for by name: modules, their members, builtins and attributes.

Everything here keeps tasks open to reasoning; it is no protection, which is the verifier's business. The rules are
about syntax, so whatever would hide a name from them is refused as well: a module that is passed on as a value, or
an attribute whose name is computed.
"""

import ast
import importlib
import re
import symtable
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType

from redqueen.tasks.code.trees import children, nodes_of
from redqueen.tasks.verdicts import Reason, Rejection

ALLOWED_IMPORTS = frozenset(
    {
        "__future__", "abc", "bisect", "cmath", "collections", "collections.abc", "copy", "dataclasses", "decimal",
        "enum", "fractions", "functools", "heapq", "itertools", "math", "numbers", "operator", "re", "statistics",
        "string", "textwrap", "typing",
    }
)  # fmt: skip
"""Pure, deterministic and open to reasoning. Not `random`, even seeded, nor `hashlib`: nobody can work out what they
return, so a teacher would find in them an endless supply of tasks that are hard and teach nothing."""

_UNKNOWABLE = frozenset(
    {
        "abc.get_cache_token", "statistics.NormalDist", "statistics.kde_random",
        # These evaluate text, or find attributes by it.
        "enum.global_enum", "functools.singledispatch", "functools.singledispatchmethod", "string.Formatter",
        "typing.ForwardRef", "typing.evaluate_forward_ref", "typing.get_type_hints",
    }
)  # fmt: skip
"""Members of those modules that draw random numbers, count what happened before, or hide what a program does."""

FORBIDDEN_NAMES = frozenset(
    {
        "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "dir", "eval", "exec", "exit",
        "globals", "hash", "help", "id", "input", "locals", "open", "quit", "vars",
    }
)  # fmt: skip
"""Names about the interpreter, the world outside or addresses, unless the program gives them a meaning of its own
wherever it uses them: what they return is no matter of reasoning."""

_GETTERS = {"getattr": (1, 2), "setattr": (1, 2), "delattr": (1, 2), "hasattr": (1, 2)}
_OPERATOR_GETTERS = {"attrgetter": (0, None), "methodcaller": (0, 1)}
"""What finds an attribute by text, and which of its arguments, from and up to, are that text."""

_FORBIDDEN_ATTRIBUTES = frozenset(
    {
        "ag_code", "ag_frame", "co_code", "co_consts", "cr_code", "cr_frame", "f_back", "f_builtins", "f_code",
        "f_globals", "f_locals", "gi_code", "gi_frame", "tb_frame", "tb_next",
    }
)  # fmt: skip
_PLAIN_DUNDERS = frozenset(
    {
        "__add__", "__call__", "__class__", "__contains__", "__eq__", "__ge__", "__getitem__", "__gt__",
        "__init__", "__iter__", "__le__", "__len__", "__lt__", "__mul__", "__name__", "__ne__", "__new__", "__next__",
        "__post_init__", "__repr__", "__setitem__", "__str__", "__sub__",
    }
)  # fmt: skip
"""What ordinary classes call by name. Any dunder may be defined; others may not be reached for: not `__hash__` either,
which is `hash` by another name."""

_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
_IMPORTING = frozenset({ast.Import, ast.ImportFrom, ast.ClassDef})
_NAMING = frozenset({ast.Attribute, ast.MatchClass, ast.Name, ast.Constant})
"""Nodes by which attributes may be reached for."""
_FORMATS = frozenset({"format", "format_map"})
_FIELD = re.compile(r"\{[^{}]*")
_FIELD_ATTRIBUTE = re.compile(r"\.(\w+)")
"""In a field of a format: `{0.real}`."""


def check_names(text: str, tree: ast.Module) -> Rejection | None:
    """Why a program, whose tree this is, may not reach for what it reaches for; None if it may."""
    nodes = nodes_of(tree)
    return next(filter(None, (check(text, tree, nodes) for check in _CHECKS)), None)


def _check_imports(text: str, tree: ast.Module, nodes: Sequence[ast.AST]) -> Rejection | None:
    for node in (node for node in nodes if type(node) in _IMPORTING):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names if alias.name not in ALLOWED_IMPORTS]
        elif isinstance(node, ast.ImportFrom):
            module = "*" if node.level or node.module is None else node.module
            known = module in ALLOWED_IMPORTS
            wanted = [f"{module}.{a.name}" for a in node.names if not _member(module, a.name)] if known else [module]
        else:
            assert isinstance(node, ast.ClassDef)
            # It would be an attribute of the class.
            wanted = [name for inner in own_nodes(node) for name, module in _bindings(inner) if module]
        if wanted:
            return _refused(Reason.FORBIDDEN_IMPORT, wanted[0])
    return None


def own_nodes(scope: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.AST]:
    """The nodes of a function's or class's body without those of the functions and classes in it."""
    pending: list[ast.AST] = list(scope.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending += children(node)


def _check_modules(text: str, tree: ast.Module, nodes: Sequence[ast.AST]) -> Rejection | None:
    """A module's name stands for that module everywhere, and is there to get a public member of it."""
    imports = [node for node in nodes if type(node) in _IMPORTING]
    modules = {name: module for node in imports for name, module in _bindings(node) if module}
    if not modules:
        return None
    bound = [(name, module) for node in nodes for name, module in _bindings(node)]
    clash = next((name for name, module in bound if name in modules and module != modules[name]), None)
    if clash is not None:
        return _refused(Reason.FORBIDDEN_NAME, clash)
    bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if id(node) not in bases and _module(node, modules):
            return _refused(Reason.FORBIDDEN_NAME, ast.unparse(node))
        module = _module(node.value, modules) if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and module and not _member(module, node.attr):
            return _refused(Reason.FORBIDDEN_IMPORT, f"{module}.{node.attr}")
    return None


def _bindings(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """The names that a node gives a meaning to, and the module that they stand for then."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            yield alias.asname or alias.name, path if path in ALLOWED_IMPORTS else None
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, None
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, _NAMED) and node.name:
        yield node.name, None
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, None


def _module(node: ast.AST, modules: Mapping[str, str]) -> str | None:
    """The module that an expression stands for."""
    if isinstance(node, ast.Name):
        return modules.get(node.id) if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Attribute):
        path = f"{_module(node.value, modules)}.{node.attr}"
        return path if path in ALLOWED_IMPORTS else None
    return None


def _member(module: str, name: str) -> bool:
    """Whether a member of a module may be reached: modules are full of what they import, `statistics.random` is
    `random`."""
    path = f"{module}.{name}"
    return path in ALLOWED_IMPORTS or (name in _public(module) and path not in _UNKNOWABLE)


@lru_cache(maxsize=len(ALLOWED_IMPORTS))
def _public(module: str) -> frozenset[str]:
    """What a module of the standard library offers."""
    there = importlib.import_module(module)
    names = getattr(there, "__all__", None) or [name for name in vars(there) if not name.startswith("_")]
    return frozenset(name for name in names if not isinstance(getattr(there, name, None), ModuleType))


def _check_builtins(text: str, tree: ast.Module, nodes: Sequence[ast.AST]) -> Rejection | None:
    used = {node.id for node in nodes if isinstance(node, ast.Name)} & FORBIDDEN_NAMES
    if not used:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = symtable.symtable(text, "<program>", "exec")
    except SyntaxError as error:
        return Rejection(Reason.SYNTAX, f"line {error.lineno}" if error.lineno else "")
    reached = sorted(name for name in used & _not_local(table) if not _bound_first(nodes, tree, name))
    return _refused(Reason.FORBIDDEN_NAME, reached[0]) if reached else None


def _not_local(table: symtable.SymbolTable) -> set[str]:
    """The names that some scope uses without them being a function's own: what they mean depends on what has run."""
    inside = table.get_type() == "function"
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and not (inside and (symbol.is_local() or symbol.is_free()))
    }
    return names.union(*map(_not_local, table.get_children()))


def _bound_first(nodes: Sequence[ast.AST], tree: ast.Module, name: str) -> bool:
    """Whether a statement at the top level gives a name its meaning before anything uses it, and nothing takes it
    away."""
    places = [statement.end_lineno or 0 for statement in tree.body if name in _gives(statement)]
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    return bool(places) and all(
        use.lineno > places[0] if isinstance(use.ctx, ast.Load) else isinstance(use.ctx, ast.Store) for use in uses
    )


def _gives(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _check_getters(text: str, tree: ast.Module, nodes: Sequence[ast.AST]) -> Rejection | None:
    """Attributes by text only where the text stands there to be read."""
    spans = _GETTERS | {
        alias.asname or alias.name: _OPERATOR_GETTERS[alias.name]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "operator"
        for alias in node.names
        if alias.name in _OPERATOR_GETTERS
    }
    getters = [
        (node, spans[node.id] if isinstance(node, ast.Name) else _OPERATOR_GETTERS[node.attr])
        for node in nodes
        if (isinstance(node, ast.Name) and node.id in spans and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in _OPERATOR_GETTERS)
    ]
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)} if getters else {}
    for node, span in getters:
        if not _by_plain_text(calls.get(id(node)), *span):
            return _refused(Reason.FORBIDDEN_NAME, node.id if isinstance(node, ast.Name) else ast.unparse(node))
    return None


def _by_plain_text(call: ast.Call | None, start: int, stop: int | None) -> bool:
    """Whether these arguments of a call are the names, in plain text, of attributes that may be reached for."""
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    texts = [argument.value if isinstance(argument, ast.Constant) else None for argument in call.args[start:stop]]
    return bool(texts) and all(
        isinstance(text, str) and not any(map(_forbidden_attribute, text.split("."))) for text in texts
    )


def _check_attributes(text: str, tree: ast.Module, nodes: Sequence[ast.AST]) -> Rejection | None:
    formats = any(isinstance(node, ast.Attribute) and node.attr in _FORMATS for node in nodes)
    for node in (node for node in nodes if type(node) in _NAMING):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.MatchClass):
            names = node.kwd_attrs
        elif isinstance(node, ast.Name) and node.id == "__match_args__":  # `case A(x)` finds attributes by it
            names = [node.id]
        elif formats and isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [name for field in _FIELD.findall(node.value) for name in _FIELD_ATTRIBUTE.findall(field)]
        refused = next(filter(_forbidden_attribute, names), None)
        if refused is not None:
            return _refused(Reason.FORBIDDEN_NAME, refused)
    return None


def _forbidden_attribute(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name not in _PLAIN_DUNDERS if dunder else name in _FORBIDDEN_ATTRIBUTES


def shown(name: str) -> str:
    """A program's name as a rejection may say it: ASCII, and not without end."""
    return ascii(name[:80]).strip("'")


def _refused(reason: Reason, name: str) -> Rejection:
    return Rejection(reason, shown(name))


_CHECKS = (_check_imports, _check_modules, _check_builtins, _check_getters, _check_attributes)
