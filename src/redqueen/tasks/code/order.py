"""Whether the order of a set can reach what a program returns.

Sets of strings come in another order under another hash seed, and those of two strings agree under any two seeds about
half of the time. A program that has no set anywhere needs no more than two; the others run under all that there are.
"""

import ast

from redqueen.tasks.code.program import parse_source
from redqueen.tasks.protocol import Rejection
from redqueen.verifier import MOST_SEEDS

_MAKERS = frozenset({"set", "frozenset"})
_VIEWS = frozenset({"keys", "items"})
_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
TWO_SEEDS = 2


def seeds_for(program: str, inputs: tuple[str, ...]) -> int:
    """How many hash seeds a draft is run under; its inputs are in canonical text."""
    tree = parse_source(program)
    if isinstance(tree, Rejection) or any("{" in text for text in inputs):
        return MOST_SEEDS
    return MOST_SEEDS if any(map(_may_be_set, ast.walk(tree))) else TWO_SEEDS


def _may_be_set(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return any(isinstance(part, ast.Attribute) and part.attr in _VIEWS for part in ast.walk(node))
    named = isinstance(node, ast.Name) and node.id in _MAKERS
    return named or isinstance(node, ast.Set | ast.SetComp)
