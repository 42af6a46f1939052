"""Whether the order of a set can reach what a program returns.

Sets of strings come in another order under another hash seed, and those of two strings agree under any two seeds about
half of the time. A program that has no set anywhere needs no more than two; the others run under all that there are.
"""

import ast
from collections.abc import Iterable

from redqueen.tasks.code.program import parse_source
from redqueen.tasks.code.trees import walk
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import MOST_SEEDS, USUAL_SEEDS

_MAKERS = frozenset(
    {"set", "frozenset", "Set", "MutableSet", "FrozenSet", "AbstractSet", "KeysView", "ItemsView", "get_origin"}
)
_VIEWS = frozenset({"keys", "items"})
"""Of a dict; what is made of two of them is a set."""
_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_METHODS = frozenset({"__and__", "__or__", "__xor__", "__sub__", "__rand__", "__ror__", "__rxor__", "__rsub__"})
_SET_TEXTS = ("{", "set(")


def seeds_for(program: str, inputs: Iterable[str]) -> int:
    """How many hash seeds a draft is run under; its inputs are in canonical text."""
    tree = parse_source(program)
    if isinstance(tree, Rejection) or any(part in text for text in inputs for part in _SET_TEXTS):
        return MOST_SEEDS
    return MOST_SEEDS if _may_have_sets(walk(tree)) else USUAL_SEEDS


def _may_have_sets(nodes: list[ast.AST]) -> bool:
    if any(isinstance(node, ast.Set | ast.SetComp) or _word(node) in _MAKERS for node in nodes):
        return True
    return any(_word(node) in _VIEWS for node in nodes) and any(_makes_one_of_two(node) for node in nodes)


def _word(node: ast.AST) -> str:
    """What a node reaches for by name."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.alias():
            return node.name
        case _:
            return ""


def _makes_one_of_two(node: ast.AST) -> bool:
    match node:
        case ast.BinOp() | ast.AugAssign():
            return isinstance(node.op, _OPERATORS)
        case ast.ImportFrom():
            return node.module == "operator"
        case ast.Import():
            return any(alias.name == "operator" for alias in node.names)
        case _:
            return _word(node) in _METHODS
