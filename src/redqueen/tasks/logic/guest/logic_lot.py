"""The secret of a puzzle, drawn by lot, and clues that are changed as little as makes them true for it."""

import hashlib
import math

from logic_language import FLIPPED, KNIGHTS, MOST_VALUES, compiled, is_range

GUESS = 64
"""One assignment in so many may be right at most."""
ROOM = 4 * GUESS
"""Assignments that ranges are made wide enough for."""


def with_room(groups, room=ROOM):
    """With ranges that go on until there are enough assignments for a few of them to be right, and words of which there
    are too few for unknowns that are different shared after all."""
    groups = tuple(
        (names, values, different and (is_range(values) or len(names) <= len(values)))
        for names, values, different in groups
    )
    while possibilities(groups) < room:
        wider = tuple(
            (names, (*values, values[-1] + 1) if is_range(values) and len(values) < MOST_VALUES else values, different)
            for names, values, different in groups
        )
        if wider == groups:
            break
        groups = wider
    return groups


def possibilities(groups):
    """Assignments, before any clue."""
    return math.prod(
        math.perm(len(values), len(names)) if different else len(values) ** len(names)
        for names, values, different in groups
    )


def draw(groups, seed):
    """An assignment by lot."""
    secret, drawn = {}, 0

    def below(bound):
        nonlocal drawn
        drawn += 1
        return int.from_bytes(hashlib.sha256(seed + drawn.to_bytes(2, "big")).digest()[:8], "big") % bound

    for names, values, different in groups:
        left = list(values)
        for name in names:
            at = below(len(left))
            secret[name] = left[at]
            if different:
                del left[at]
    return secret


def mended(node, wanted, secret):
    """The clue, changed as little as makes it true for the secret, or false."""
    what = node[0]
    if bool(compiled(node)(secret)) == wanted:
        return node
    if what == "says":
        return "says", node[1], mended(node[2], (secret[node[1]] == KNIGHTS[0]) == wanted, secret)
    if what == "not":
        return "not", mended(node[1], not wanted, secret)
    if what in ("and", "or"):
        if (what == "and") == wanted:
            return what, tuple(mended(part, wanted, secret) for part in node[1])
        return what, (mended(node[1][0], wanted, secret), *node[1][1:])
    _, op, left, right = node
    if not wanted:
        return "cmp", FLIPPED[op], left, right
    if op == "==":
        return made_equal(left, right, secret)
    if op == "!=":
        return "cmp", "==", left, right
    return as_it_is(left, right, secret)


def made_equal(left, right, secret):
    """With another constant, where there is one that may change; as they are ordered otherwise."""
    more, less = compiled(left)(secret), compiled(right)(secret)
    for side, other, value in ((right, left, more), (left, right, less)):
        if side[0] in ("int", "word"):
            new = ("word", value) if isinstance(value, str) else ("int", value)
            return ("cmp", "==", other, new) if side is right else ("cmp", "==", new, other)
    if isinstance(more, str):
        return "cmp", "!=", left, right
    for side, other, lacks in ((right, left, more - less), (left, right, less - more)):
        if side[0] in ("+", "-") and side[2][0] == "int":
            term = (side[2][1] if side[0] == "+" else -side[2][1]) + lacks
            new = side[1] if term == 0 else ("+" if term > 0 else "-", side[1], ("int", abs(term)))
            return ("cmp", "==", other, new) if side is right else ("cmp", "==", new, other)
    return as_it_is(left, right, secret)


def as_it_is(left, right, secret):
    more, less = compiled(left)(secret), compiled(right)(secret)
    return "cmp", "==" if more == less else "<" if more < less else ">", left, right


def giving_away(name, secret):
    value = secret[name]
    return "cmp", "==", ("name", name), ("word" if isinstance(value, str) else "int", value)


def is_sum(side, secret):
    return not isinstance(compiled(side)(secret), str)


def how_far_apart(left, right, secret):
    """How far apart two sums are, said from the lower one."""
    more, less = compiled(left)(secret), compiled(right)(secret)
    if right[0] == "int":
        return "cmp", "==", left, ("int", more)
    if more < less:
        left, right, more, less = right, left, less, more
    return "cmp", "==", left, right if more == less else ("+", right, ("int", more - less))


def distinct(clues):
    parts = [part for clue in clues for part in (clue[1] if clue[0] == "and" else (clue,))]
    return list(dict.fromkeys(parts))
