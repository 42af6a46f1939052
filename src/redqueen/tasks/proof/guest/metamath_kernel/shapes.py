"""The shapes of many trees, and those that a tree has: a first sieve, so that few patterns have to be matched.

A shape is a tree whose leaves all stand for any tree. Shapes that begin alike, read from left to right, share the way
to where they differ.
"""

from .terms import is_leaf

_ANY = object()
"""Stands on the way where a shape has a leaf."""
_END = object()
"""Stands at the end of the way, before the shape's number."""


class Shapes:
    """Numbered from 0 in the order in which they came."""

    def __init__(self):
        self._ways, self._count = {}, 0

    def add(self, tree):
        """The number of its shape."""
        at = self._ways
        for _, label, _ in _read(tree):
            at = at.setdefault(_ANY if label is None else label, {})
        if _END not in at:
            at[_END] = self._count
            self._count += 1
        return at[_END]

    def of(self, tree, fuel):
        """All shapes that the tree is an instance of: their numbers, with the parts that stand where each has leaves,
        from left to right."""
        read, found, waiting = _read(tree), {}, [(self._ways, 0, [])]
        while waiting:
            at, place, parts = waiting.pop()
            fuel.burn()
            if place == len(read):
                found[at[_END]] = parts
                continue
            part, label, after = read[place]
            if label in at:
                waiting.append((at[label], place + 1, parts))
            if _ANY in at:
                waiting.append((at[_ANY], after, [*parts, part]))
        return found


def _read(tree):
    """From left to right, each part, with its label, None for a leaf, and the place after all that is in it."""
    read = []

    def note(part):
        place = len(read)
        read.append((part, None, place + 1))
        if not is_leaf(part):
            for each in part[1:]:
                note(each)
            read[place] = (part, part[0], len(read))

    note(tree)
    return read
