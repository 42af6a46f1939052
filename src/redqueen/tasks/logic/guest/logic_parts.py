"""What makes a puzzle one task: that its unknowns hang together, and that no clue by itself is nearly the answer."""

import hashlib
from functools import lru_cache

from logic_language import NODES_KEPT, Refused, names_in
from logic_lot import distinct, giving_away, how_far_apart, is_sum
from logic_search import OutOfFuel, Search, candidates

LEFT_BY_SINGLE_CLUES = 32
"""Assignments at least that clues about one unknown leave: otherwise they are the answer."""
LOOKS_AT_A_CLUE = 1_000
"""To see what it settles by itself."""
MOST_GIVEN = 2
"""Values that are given away, where clues leave too much open."""


def without_answers(groups, clues, fuel):
    """With so few clues about one unknown that these are not the answer; the last ones go first."""
    while (left := left_by_single_clues(groups, clues, fuel)) < LEFT_BY_SINGLE_CLUES:
        single = [clue for clue in clues if told_by(groups, clue)]
        if not single:
            fewest = f"there must be {LEFT_BY_SINGLE_CLUES}"
            raise Refused("too_easy", f"{left} assignments are all that its unknowns have; {fewest}")
        clues = [clue for clue in clues if clue is not single[-1]]
    return clues


def left_by_single_clues(groups, clues, fuel):
    """The assignments that clues leave of which each is about one unknown, or settles some by itself."""
    return candidates(groups, masks_of_single_clues(groups, clues, fuel), fuel)


def masks_of_single_clues(groups, clues, fuel):
    search = Search(groups, clues, fuel)
    masks = search.after_single_clues()
    for clue in clues:
        for name, value in settled(groups, clue).items():
            place = search.names.index(name)
            masks[place] &= 1 << search.values[place].index(value)
    return masks


def told_by(groups, clue):
    """The unknowns that the clue by itself tells of, each alone."""
    names = set(names_in(clue))
    return names if len(names) == 1 else settled(groups, clue).keys()


@lru_cache(NODES_KEPT)
def settled(groups, clue):
    """Unknowns that have one value whenever this clue about several holds (`10 * a + b == 47`), as far as a short
    search sees; it has its own fuel, so that what is known already costs the same."""
    names = tuple(dict.fromkeys(names_in(clue)))
    if len(names) < 2:
        return {}
    own, fuel = only(groups, [], set(names))[0], [LOOKS_AT_A_CLUE]
    try:
        first = Search(own, [clue], fuel).solutions(1)
        same = dict(first[0]) if first else {}
        for name in names:
            if name in same:
                value = giving_away(name, same)
                for other in Search(own, [clue, ("not", value)], fuel).solutions(1):
                    same = {each: same[each] for each in same if same[each] == other[each]}
        return same
    except OutOfFuel:
        return {}


def narrowed(groups, clues, secret, fuel, too_many, kept=()):
    """With clues that leave nothing for which `too_many` gives assignments: clues that only order sums say how far
    apart these are, the last ones first; then a value or two are given away, of unknowns that are to be kept at last.
    None where that is not enough."""
    blunt = [
        at
        for at, clue in enumerate(clues)
        if clue[0] == "cmp" and clue[1] != "==" and is_sum(clue[2], secret) and not _tells_of(clue, kept)
    ]
    givens = sorted(secret, key=lambda name: hashlib.sha256(f"{name} {secret[name]}".encode("ascii")).digest())
    givens.sort(key=lambda name: name in kept)
    most_given = MOST_GIVEN
    while solutions := too_many(clues):
        if blunt:
            at = blunt.pop()
            sharper = [*clues[:at], how_far_apart(clues[at][2], clues[at][3], secret), *clues[at + 1 :]]
            clues = sharper if left_by_single_clues(groups, sharper, fuel) >= LEFT_BY_SINGLE_CLUES else clues
            continue
        told = [name for name in givens if any(found[name] != secret[name] for found in solutions)]
        given = [*clues, giving_away(told[0], secret)] if told else clues
        if not told or not most_given or left_by_single_clues(groups, given, fuel) < LEFT_BY_SINGLE_CLUES:
            return None
        clues, most_given = given, most_given - 1
    return distinct(clues)


def _tells_of(clue, kept):
    """Whether it would tell the value of one of these, if it were sharper."""
    names = set(names_in(clue))
    return len(names) == 1 and names <= set(kept)


def largest_part(groups, clues):
    """The part with most unknowns, the first of these, and what is said about it alone."""
    return only(groups, clues, max(separate_parts(groups, clues), key=len))


def only(groups, clues, kept):
    """These unknowns, and what is said about them alone."""
    groups = [(tuple(name for name in names if name in kept), values, apart) for names, values, apart in groups]
    groups = tuple(group for group in groups if group[0])
    return groups, [clue for clue in clues if kept.issuperset(names_in(clue))]


def separate_parts(groups, clues):
    """Unknowns hang together by clues and by being different."""
    parts = [{name} for names, _, _ in groups for name in names]
    together = [set(names) for names, _, different in groups if different] + [set(names_in(clue)) for clue in clues]
    for names in together:
        joined = [part for part in parts if not names.isdisjoint(part)]
        if len(joined) > 1:
            first, *others = joined
            first.update(*others)
            parts = [part for part in parts if part not in others]
    return parts
