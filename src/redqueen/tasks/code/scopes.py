"""The scopes of a program, and which of them a name belongs to."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from redqueen.tasks.code.trees import children, walk

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(kw_only=True)
class Scope:
    node: ast.AST
    parent: "Scope | None"
    bound: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)
    signatures: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    number: int = 0

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def owner(self, name: str) -> "Scope | None":
        """The scope that a name in this one belongs to; None for builtins. Classes are not seen from inside methods."""
        if name in self.global_names and self.parent is not None:
            return self.root
        scope: Scope | None = self
        while scope is not None:
            seen = scope is self or not scope.is_class
            if seen and name not in scope.nonlocal_names and (name in scope.bound or name in scope.imports):
                return scope
            scope = scope.parent
        return None

    @property
    def root(self) -> "Scope":
        return self if self.parent is None else self.parent.root


_BINDING = frozenset(
    {
        ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arguments, ast.ExceptHandler, ast.MatchAs,
        ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom,
    }
)  # fmt: skip
"""What `_bind` knows."""


def bind_all(node: ast.AST, scope: Scope) -> None:
    for child in _own_nodes(node):
        if type(child) in _BINDING:
            _bind(child, scope)


def _own_nodes(scope_node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that bind in a scope: its own, without those of the scopes inside it."""
    pending: list[ast.AST] = []
    match scope_node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            pending += scope_node.body
        case ast.Lambda():
            pending.append(scope_node.body)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            pending += [generator.target for generator in scope_node.generators]
    if isinstance(scope_node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield scope_node.args
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending += node.decorator_list
        elif isinstance(node, Comprehension):
            # what `:=` binds in a comprehension belongs to the scope around it
            pending += [inner.target for inner in walk(node) if isinstance(inner, ast.NamedExpr)]
            pending.append(node.generators[0].iter)
        elif not isinstance(node, ast.Lambda):
            pending += children(node)


def _bind(node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Name():
            if not isinstance(node.ctx, ast.Load):
                scope.bound.add(node.id)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            scope.bound.add(node.name)
            scope.signatures[node.name] = _names(node.args)
        case ast.ClassDef():
            scope.bound.add(node.name)
            scope.signatures[node.name] = _constructor_names(node)
        case ast.arguments():
            scope.bound.update(_names(node))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            scope.bound.add(name)
        case ast.MatchMapping(rest=str(name)):
            scope.bound.add(name)
        case ast.Global():
            scope.global_names.update(node.names)
            scope.root.bound.update(node.names)
        case ast.Nonlocal():
            scope.nonlocal_names.update(node.names)
        case ast.Import():
            for alias in node.names:
                first = alias.name.partition(".")[0]
                scope.imports[alias.asname or first] = alias.name if alias.asname else first
        case ast.ImportFrom():
            for alias in node.names:
                scope.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"


def parameter_groups(arguments: ast.arguments) -> list[tuple[str, list[str]]]:
    return [
        ("posonly", [parameter.arg for parameter in arguments.posonlyargs]),
        ("args", [parameter.arg for parameter in arguments.args]),
        ("vararg", [arguments.vararg.arg] if arguments.vararg else []),
        ("kwonly", [parameter.arg for parameter in arguments.kwonlyargs]),
        ("kwarg", [arguments.kwarg.arg] if arguments.kwarg else []),
    ]


def _names(arguments: ast.arguments) -> list[str]:
    return [name for _, names in parameter_groups(arguments) for name in names]


def _constructor_names(node: ast.ClassDef) -> list[str]:
    """The parameters of `__init__`; a dataclass has none of its own, and its keywords are attributes."""
    made = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    return _names(made[-1].args) if made else []
