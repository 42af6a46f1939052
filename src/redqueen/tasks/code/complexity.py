"""How complex a program is to read: the four figures that the paper follows over a race.

They are read off the text and the syntax tree; nothing is run. Each is about the whole program, helpers, classes and
nested functions included, so that moving code from one function into another changes little.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redqueen.errors import Fault
from redqueen.tasks.code.program import parse_source
from redqueen.tasks.code.trees import children, nodes_of
from redqueen.tasks.protocol import Complexity
from redqueen.tasks.verdicts import Rejection

_UNCOUNTED = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
"""Nodes that only say how their parent is meant: they never have children of their own."""
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_DECIDING = frozenset(
    {
        ast.If, ast.IfExp, ast.Assert, ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.BoolOp, ast.Try,
        ast.TryStar, ast.Match,
    }
)  # fmt: skip
"""What `_decisions` counts."""
_ROW_END = re.compile(r"\r\n|\r|\n")
"""Where Python's parser ends a line; `splitlines` knows more ends than that."""


def complexity(source: str) -> Complexity:
    """The figures of a program that `parse_source` accepts, as it does those of all tasks."""
    tree = parse_source(source)
    if isinstance(tree, Rejection):
        raise Fault(f"a program that this Python cannot read is to be measured: {tree.reason}")
    return Complexity(depth(tree), cyclomatic(tree), lines(source, tree), variables(tree))


def depth(tree: ast.AST) -> int:
    """Nodes on the longest path down the tree."""
    level, deepest = [tree], 0
    while level:
        level = [child for node in level for child in children(node) if not isinstance(child, _UNCOUNTED)]
        deepest += 1
    return deepest


def cyclomatic(tree: ast.Module) -> int:
    """One more than the decisions, and what is a decision is radon's idea of it.

    radon's own total leaves out the functions inside functions, which may be all of a program, and counts every method
    of a class as one more: here decisions count wherever they stand, and nothing else does.
    """
    return 1 + sum(_decisions(node) for node in nodes_of(tree) if type(node) in _DECIDING)


def _decisions(node: ast.AST) -> int:
    match node:
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.AsyncFor() | ast.While():
            return 1 + bool(node.orelse)
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.Try() | ast.TryStar():
            return len(node.handlers) + bool(node.orelse)
        case ast.Match():
            # `case _:` decides nothing, as an `else` does not.
            return len(node.cases) - any(_takes_all(case.pattern) for case in node.cases)
    return 0


def _takes_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def lines(source: str, tree: ast.Module) -> int:
    """Source lines, as radon counts them but for comments between brackets, which are no code here either.

    By the tree, not by Python's tokenizer: that refuses some programs that run.
    """
    rows = _ROW_END.split(source)
    in_text: set[int] = set()
    alone: set[int] = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            in_text.update(range(node.lineno + 1, node.end_lineno + 1))
        elif isinstance(node, ast.Expr) and _is_text(node.value) and _fills_rows(node, rows):
            alone.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        1
        for number, row in enumerate(map(str.strip, rows), 1)
        if row and number not in alone and (number in in_text or not row.startswith("#"))
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _fills_rows(node: ast.Expr, rows: Sequence[str]) -> bool:
    """Whether nothing else stands on the first and the last of its rows."""
    first, last = rows[node.lineno - 1].encode(), rows[(node.end_lineno or node.lineno) - 1].encode()
    return not first[: node.col_offset].strip() and not last[node.end_col_offset :].strip()


def variables(tree: ast.Module) -> int:
    """Distinct names that are bound, scope by scope."""
    scopes = _Scopes()
    scopes.read(tree, scopes.module)
    return sum(len(scope.bound - scope.elsewhere) for scope in scopes.all)


@dataclass(slots=True)
class _Scope:
    around: "_Scope | None" = None
    """Of a comprehension: the scope that `:=` binds in."""
    bound: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    """Declared `global` or `nonlocal`, so counted where they belong."""


class _Scopes:
    """The scopes of a program, and the names that each binds."""

    def __init__(self) -> None:
        self.module = _Scope()
        self.all = [self.module]

    def _new(self, around: _Scope | None = None) -> _Scope:
        self.all.append(_Scope(around))
        return self.all[-1]

    def read(self, node: ast.AST, scope: _Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._each(node.decorator_list, scope)
                self._function(node.args, node.body, scope)
            case ast.Lambda():
                self._function(node.args, [node.body], scope)
            case ast.ClassDef():
                self._each((*node.decorator_list, *node.bases, *node.keywords), scope)
                self._each(node.body, self._new())
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scope)
            case ast.NamedExpr():
                (scope.around or scope).bound.add(node.target.id)
                self.read(node.value, scope)
            case _:
                self._bind(node, scope)
                self._each(children(node), scope)

    def _each(self, nodes: Iterable[ast.AST], scope: _Scope) -> None:
        for node in nodes:
            self.read(node, scope)

    def _function(self, given: ast.arguments, body: Sequence[ast.AST], scope: _Scope) -> None:
        self._each([default for default in (*given.defaults, *given.kw_defaults) if default], scope)
        inner = self._new()
        starred = [arg for arg in (given.vararg, given.kwarg) if arg]
        inner.bound.update(arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *starred))
        self._each(body, inner)

    def _comprehension(self, node: _Comprehension, scope: _Scope) -> None:
        first, *further = node.generators
        self.read(first.iter, scope)
        inner = self._new(scope.around or scope)
        self._each((first.target, *first.ifs, *further), inner)
        self._each([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)

    def _bind(self, node: ast.AST, scope: _Scope) -> None:
        match node:
            case ast.Name(ctx=ast.Store()):
                scope.bound.add(node.id)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                scope.bound.add(name)
            case ast.Global():
                scope.elsewhere.update(() if scope is self.module else node.names)
                self.module.bound.update(node.names)
            case ast.Nonlocal():
                scope.elsewhere.update(node.names)
