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
        return _of_two(_COMPARE[node[1]], node[2], node[3])
    if what in _ARITHMETIC:
        return _of_two(_ARITHMETIC[what], node[1], node[2])
    if what in ("and", "or", "count"):
        parts, join = [compiled(part) for part in node[1]], {"and": all, "or": any, "count": sum}[what]
        return lambda given: join([part(given) for part in parts])
    if what == "says":
        name, inner = node[1], compiled(node[2])
        return lambda given: (given[name] == KNIGHTS[0]) == inner(given)
    inner = compiled(node[1])
    apply = {"not": operator.not_, "neg": operator.neg, "abs": abs}[what]
    return lambda given: apply(inner(given))


def _of_two(work, left, right):
    """Most have a name or a number on the right: a search asks them so often that a call less counts."""
    first = compiled(left)
    if right[0] == "name":
        name = right[1]
        return lambda given: work(first(given), given[name])
    if right[0] in ("int", "word"):
        value = right[1]
        return lambda given: work(first(given), value)
    second = compiled(right)
    return lambda given: work(first(given), second(given))
