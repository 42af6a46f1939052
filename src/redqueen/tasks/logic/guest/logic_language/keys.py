"""What puzzles are known by: their structure, their sorts of clues, how large they are."""

import hashlib

from .reading import read, read_asking
from .shape import forms_of, shown
from .terms import COUNT, KNIGHTS, depth
from .writing import write, write_clue


def what_it_says(node):
    """The sort of a clue, in a word: the rarest thing that is in it."""
    text = f" {write_clue(node)} "
    for sort, marks in _SORTS:
        if any(mark in text for mark in marks):
            return sort
    return "order" if node[0] == "cmp" and node[1] not in ("==", "!=") else "equal"


_SORTS = (
    ("says", (" says ",)), ("count", ("count(",)), ("or", (" or ",)), ("product", (" * ", " % ")),
    ("distance", ("abs(",)), ("sum", (" + ", " - ")),
)  # fmt: skip


def figures(puzzle):
    """What puzzles are known by, and how large they are."""
    groups, clues = read(puzzle)
    return {
        "structure": structure(groups, clues),
        "descriptor": descriptor(groups, clues),
        "unknowns": sum(len(names) for names, _, _ in groups),
        "clues": len(clues),
        "deepest": max(map(depth, clues), default=0),
        "answer_chars": sum(len(f"{name} = {max(map(str, values), key=len)}\n") for names, values, _ in groups
                            for name in names),
    }  # fmt: skip


def descriptor(groups, clues):
    """What sorts of clues about what sort of unknowns: `order+sum/numbers`."""
    sorts = sorted({what_it_says(clue) for clue in clues})
    domains = {"knights" if values == KNIGHTS else "words" if isinstance(values[0], str) else "numbers"
               for _, values, _ in groups}  # fmt: skip
    shown = "+".join(sorts) if len(sorts) <= 2 else f"{len(sorts)}sorts"
    return f"{shown}/{'mixed' if len(domains) > 1 else domains.pop()}"


def asking_figures(text):
    """The same of a puzzle that asks for a number."""
    groups, clues, asked = read_asking(text)
    puzzle = figures(write(groups, clues))
    sort = COUNT if asked is None else "value"
    return puzzle | {
        "structure": asking_structure(groups, clues, asked),
        "descriptor": f"{sort}/{puzzle['descriptor'].rpartition('/')[0]}",
        "deepest": max(puzzle["deepest"], 0 if asked is None else depth(asked)),
    }


def asking_structure(groups, clues, asked):
    """The same key, of what is asked too: blind to the factors that lot puts before its terms."""
    return _hashed([COUNT if asked is None else "value", *shown(groups, forms_of(groups, clues, asked))])


def structure(groups, clues):
    """A key that puzzles share whose teachers wrote the same: blind to names, notation, layout, the order of clues and
    declarations, and to what is worked out by lot, which is numbers, signs of comparison, words, the length of ranges
    and what is given away."""
    return _hashed(shown(groups, forms_of(groups, clues, None)))


def _hashed(lines):
    return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()
