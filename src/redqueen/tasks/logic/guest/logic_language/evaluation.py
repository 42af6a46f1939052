"""What clues and sums come to, given values for their unknowns."""

import operator
from functools import lru_cache

from .terms import KNIGHTS, NODES_KEPT

_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod}


@lru_cache(NODES_KEPT)
def compiled(node):
    """A function from an assignment (a dict by name) to the node's value."""
    what = node[0]
    if what in ("int", "word"):
        value = node[1]
        return lambda given: value
    if what == "name":
        return operator.itemgetter(node[1])
    if what == "cmp":
        compare, left, right = _COMPARE[node[1]], compiled(node[2]), compiled(node[3])
        return lambda given: compare(left(given), right(given))
    if what in _ARITHMETIC:
        work, left, right = _ARITHMETIC[what], compiled(node[1]), compiled(node[2])
        return lambda given: work(left(given), right(given))
    if what in ("and", "or", "count"):
        parts, join = [compiled(part) for part in node[1]], {"and": all, "or": any, "count": sum}[what]
        return lambda given: join([part(given) for part in parts])
    if what == "says":
        name, inner = node[1], compiled(node[2])
        return lambda given: (given[name] == KNIGHTS[0]) == inner(given)
    inner = compiled(node[1])
    apply = {"not": operator.not_, "neg": operator.neg, "abs": abs}[what]
    return lambda given: apply(inner(given))
