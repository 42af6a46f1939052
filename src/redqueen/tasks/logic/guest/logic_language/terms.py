"""What puzzles are made of: their limits, their words, who is who, and what can be seen in a clue as it is written.

A puzzle is a pair: groups (names, values, whether different) and clues. A clue is a tuple whose first item says what it
is.
"""

from functools import lru_cache

MOST_CHARS = 2_000
MOST_UNKNOWNS, MOST_VALUES, MOST_CLUES = 12, 12, 24
MOST_NODES, MOST_DEPTH = 60, 8
"""Of one clue."""
MOST_NUMBER = 9_999
KNIGHTS = ("knight", "knave")
"""The domain of who may say something: a knight's words are true, a knave's are not."""
RESERVED = frozenset({"in", "different", "says", "and", "or", "not", "abs", "count"})
FLIPPED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
NODES_KEPT = 4_096
"""Whose names and evaluation are remembered: a search after the other asks for the same."""
COUNT = "count"
"""What is asked where it is the number of solutions."""


class Refused(Exception):
    """The text is no puzzle: a reason, and a detail in our words."""

    def __init__(self, reason, detail):
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class Scope:
    """Who is who: the domain of each name, and all words."""

    def __init__(self, groups):
        self.domains = {name: values for names, values, _ in groups for name in names}
        self.words = {value for _, values, _ in groups for value in values if isinstance(value, str)}
        names = [name for names, _, _ in groups for name in names]
        if not names:
            raise Refused("no_puzzle", "no unknown is declared, as in `Ann, Bob in 1..3`")
        if len(names) > MOST_UNKNOWNS:
            raise Refused("too_complex", f"more than {MOST_UNKNOWNS} unknowns")
        if len(set(names)) < len(names) or not self.words.isdisjoint(names):
            raise Refused("syntax", "a name is declared twice, or is also a value")


def is_range(values):
    return not isinstance(values[0], str) and values == tuple(range(values[0], values[-1] + 1))


def parts_of(node):
    """The clues and sums that it is made of."""
    return node[1] if node[0] in ("and", "or", "count") else [part for part in node[1:] if isinstance(part, tuple)]


@lru_cache(NODES_KEPT)
def names_in(node):
    """Of unknowns, each as often as it stands there, from left to right."""
    own = [node[1]] if node[0] in ("name", "says") else []
    return tuple(own + [name for part in parts_of(node) for name in names_in(part)])


def conditions_in(node):
    """All that holds or does not in it: the clue itself, what is joined or counted there, what is said."""
    if node[0] in ("cmp", "and", "or", "not", "says"):
        yield node
    for part in parts_of(node):
        yield from conditions_in(part)


def depth(node):
    """Of its syntax: 1 for a name or a number."""
    return 1 + max(map(depth, parts_of(node)), default=0)
