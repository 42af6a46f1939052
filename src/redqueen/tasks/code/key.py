"""A key that near-duplicates share: the program's syntax tree, with everything dropped that a copy would change.

Renaming variables, parameters, helpers, classes or their attributes, comments, layout, docstrings, annotations and
the names that imports get leave the key alone; a constant, an operator, a call or the order of statements changes it.
Names are numbered in the order of their first use, scope by scope, so renaming is told from reuse. The entry point is
written as `f` whatever its name, and what the program does not define itself keeps its own.

Two looser keys beside it: `shape_key` is blind to constants, and `part_keys` finds a program inside another.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard

from redqueen.tasks.code.scopes import Comprehension, Scope, bind_all, parameter_groups
from redqueen.tasks.code.trees import KEPT_TREES, nodes_of, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DROPPED_FIELDS = frozenset({"annotation", "ctx", "kind", "returns", "simple", "type_comment", "type_params"})
_DROPPED_NODES = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)
"""They bind names, and the names say so; `pass` stands where something was taken out."""
_PART_WORDS = 60
"""What a function other than the entry point must come to before it counts: `return n % 11 == 0` is anybody's."""


@lru_cache(maxsize=KEPT_TREES)
def program_key(tree: ast.Module, entry: str = "f") -> str:
    """The key of a program whose tree stays as it is and has a bounded depth, as those that `parse_source` accepts."""
    return _hash(_Writer(tree, entry).words)


def shape_key(tree: ast.Module) -> str:
    """Shared by programs that differ in their constants as well: those keep only their types."""
    return _hash(_Writer(tree, blank=True).words)


def part_keys(tree: ast.Module, entry: str = "f") -> frozenset[str]:
    """The program's key, and that of each of its functions as a program of its own.

    A copy is so found under another name, beside unused helpers, and inside a program that only calls it.
    """
    imports = [statement for statement in tree.body if isinstance(statement, ast.Import | ast.ImportFrom)]
    keys = {program_key(tree, entry)}
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == entry and tree.body == [*imports, node]:
                continue  # it is the program
            words = _Writer(ast.Module([*imports, node], []), node.name).words
            if node.name == entry or len(words) >= _PART_WORDS:
                keys.add(_hash(words))
    return frozenset(keys)


def _hash(words: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8")).hexdigest()


class _Writer:
    """Writes a tree as a list of words."""

    def __init__(self, tree: ast.Module, entry: str = "f", *, blank: bool = False) -> None:
        self.words: list[str] = []
        self._entry = entry
        self._blank = blank
        self._scopes = 0
        self._attributes = dict.fromkeys(_own_attributes(tree), -1)
        """The attribute names that the program defines, and their numbers."""
        self._numbered = 0
        self._items(tree.body, self._enter(tree, None))

    def _enter(self, node: ast.AST, parent: Scope | None) -> Scope:
        scope = Scope(node=node, parent=parent, number=self._scopes)
        self._scopes += 1
        bind_all(node, scope)
        return scope

    def _node(self, node: ast.AST, scope: Scope) -> None:
        write = _WRITERS.get(type(node))
        if write is None:
            self._fields(node, scope)
        else:
            write(self, node, scope)

    def _constant(self, node: ast.Constant, _: Scope) -> None:
        if self._blank:
            self.words.append(type(node.value).__name__)
            return
        # hex, since Python refuses to write very long integers in decimal
        text = hex(node.value) if type(node.value) is int else ascii(node.value)
        self.words.append(f"{type(node.value).__name__} {text}")

    def _signed(self, node: ast.UnaryOp, scope: Scope) -> None:
        if self._blank and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            self._node(node.operand, scope)
        else:
            self._fields(node, scope)

    def _variable(self, node: ast.Name, scope: Scope) -> None:
        self._name(node.id, scope)

    def _member(self, node: ast.Attribute, scope: Scope) -> None:
        self._node(node.value, scope)
        self.words.append("." + self._attribute(node.attr))

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> None:
        # 3.12 leaves empty strings between the parts
        self._items([v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")], scope)

    def _fields(self, node: ast.AST, scope: Scope) -> None:
        self.words.append(f"{type(node).__name__}(")
        for name in node._fields:
            if name in _DROPPED_FIELDS:
                continue
            value = getattr(node, name, None)
            if name in ("name", "rest") and isinstance(value, str):  # of a handler or a pattern
                self._name(value, scope)
            elif name == "kwd_attrs" and isinstance(value, list):
                self.words += [self._attribute(attribute) for attribute in value]
            else:
                self._items(value if isinstance(value, list) else [value], scope)
        self.words.append(")")

    def _items(self, items: Sequence[object], scope: Scope) -> None:
        self.words.append("[")
        for item in items:
            if not isinstance(item, ast.AST):
                self.words.append(ascii(item))
            elif not isinstance(item, _DROPPED_NODES) and not is_remark(item):
                self._node(item, scope)
        self.words.append("]")

    def _name(self, name: str, scope: Scope) -> None:
        owner = scope.owner(name)
        if owner is None:
            self.words.append(name)
        elif name == self._entry and owner.parent is None:
            self.words.append("f")
        elif name in owner.imports:
            self.words.append("import " + owner.imports[name])
        elif owner.is_class:
            self.words.append("." + self._attribute(name))
        else:
            self.words.append(f"{owner.number}:{owner.numbers.setdefault(name, len(owner.numbers))}")

    def _attribute(self, name: str) -> str:
        if name not in self._attributes:
            return name
        if self._attributes[name] < 0:
            self._attributes[name] = self._numbered
            self._numbered += 1
        return f"attribute {self._attributes[name]}"

    def _call(self, node: ast.Call, scope: Scope) -> None:
        signature = None
        if isinstance(node.func, ast.Name):
            owner = scope.owner(node.func.id)
            signature = owner and owner.signatures.get(node.func.id)
        self.words.append("call(")
        self._node(node.func, scope)
        for argument in node.args:
            self._node(argument, scope)
        for keyword in node.keywords:
            self.words.append(self._keyword(keyword.arg, signature) + "=")
            self._node(keyword.value, scope)
        self.words.append(")")

    def _keyword(self, name: str | None, signature: list[str] | None) -> str:
        """A keyword by its place in the callee's signature where that is the program's own."""
        if name is None:
            return "**"
        if signature is None:
            return name
        return str(signature.index(name)) if name in signature else self._attribute(name)

    def _function(self, node: _Function, scope: Scope) -> None:
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                self._node(decorator, scope)
        self.words.append(f"{type(node).__name__}(")
        if not isinstance(node, ast.Lambda):
            self._name(node.name, scope)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is None:
                self.words.append("required")
            else:
                self._node(default, scope)
        inner = self._enter(node, scope)
        for group, names in parameter_groups(node.args):
            self.words.append(group)
            for name in names:
                self._name(name, inner)
        if isinstance(node, ast.Lambda):
            self._node(node.body, inner)
        else:
            self._items(node.body, inner)
        self.words.append(")")

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        for outer in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self._node(outer, scope)
        self.words.append("class(")
        self._name(node.name, scope)
        self._items(node.body, self._enter(node, scope))
        self.words.append(")")

    def _comprehension(self, node: Comprehension, scope: Scope) -> None:
        self.words.append(f"{type(node).__name__}(")
        self._node(node.generators[0].iter, scope)  # evaluated outside, where the same name may mean another thing
        inner = self._enter(node, scope)
        for place, generator in enumerate(node.generators):
            self._node(generator.target, inner)
            if place:
                self._node(generator.iter, inner)
            for condition in generator.ifs:
                self.words.append("if")
                self._node(condition, inner)
        for element in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self._node(element, inner)
        self.words.append(")")

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._node(ast.Assign(targets=[node.target], value=node.value), scope)
        elif scope.is_class:  # a dataclass's field
            self.words.append("field")
            self._node(node.target, scope)


_WRITERS: Mapping[type[ast.AST], Callable[[_Writer, Any, Scope], None]] = {
    ast.Constant: _Writer._constant,
    ast.UnaryOp: _Writer._signed,
    ast.Name: _Writer._variable,
    ast.Attribute: _Writer._member,
    ast.Call: _Writer._call,
    ast.FunctionDef: _Writer._function,
    ast.AsyncFunctionDef: _Writer._function,
    ast.Lambda: _Writer._function,
    ast.ClassDef: _Writer._class,
    ast.ListComp: _Writer._comprehension,
    ast.SetComp: _Writer._comprehension,
    ast.DictComp: _Writer._comprehension,
    ast.GeneratorExp: _Writer._comprehension,
    ast.AnnAssign: _Writer._annotated,
    ast.JoinedStr: _Writer._joined,
}
"""How nodes are written that are not written field by field."""


def _own_attributes(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            scope = Scope(node=node, parent=None)
            bind_all(node, scope)
            yield from (name for name in sorted(scope.bound) if not name.startswith("__"))


def is_remark(statement: object) -> TypeGuard[ast.Expr]:
    """Whether it is a constant that stands alone, a docstring for one: it says something and does nothing. `...` says
    nothing either."""
    return isinstance(statement, ast.Expr) and _is_constant(statement.value) and not _is_ellipsis(statement.value)


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr():
            return all(isinstance(part, ast.Constant) for part in node.values)
        case ast.Tuple() | ast.List():
            return all(map(_is_constant, node.elts))
        case _:
            return isinstance(node, ast.Constant)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
