"""Whether every unknown that stands in a clue makes a difference in it.

`a + 0 * b == 5` names two unknowns and tells of one. Each condition in a clue and the clue itself are looked at: for an
unknown there must be values of the others with which its own value decides. The values that are looked at are all there
are, or so many by lot.
"""

import itertools
import math
from random import Random

from logic_language import Refused, compiled, conditions_in, names_in
from logic_search import burn

MOST_LOOKS = 144
"""Values of the others: all of two unknowns, and a part of those of more."""


def bearing(groups, clues, secret, fuel):
    """The clues in which every unknown makes a difference."""
    return [clue for clue in clues if idle_in(groups, clue, secret, fuel) is None]


def refuse_idle(groups, clues, secret, fuel):
    for number, clue in enumerate(clues, 1):
        if (name := idle_in(groups, clue, secret, fuel)) is not None:
            raise Refused("too_easy", f"clue {number}: {name} makes no difference in a part of it")


def idle_in(groups, clue, secret, fuel):
    """The first unknown that makes none, in any condition of the clue; None where all of them do."""
    for node in conditions_in(clue):
        if (name := idle(groups, node, secret, fuel)) is not None:
            return name
    return None


def idle(groups, node, secret, fuel):
    """The first unknown that the value of this condition or sum does not depend on."""
    value, names = compiled(node), list(dict.fromkeys(names_in(node)))
    own = [(tuple(name for name in group if name in names), values, apart) for group, values, apart in groups]
    own = [group for group in own if group[0]]
    # Where unknowns take up all values of their domain, none can change alone: they change places, and each must make
    # a difference when they are not kept apart, too.
    alike = [(inside, values, False) for inside, values, _ in own]
    crowded = any(apart and len(inside) == len(values) for inside, values, apart in own)
    for kept in (own, alike) if crowded else (own,):
        for name in names:
            if not _decides(kept, name, value, secret, fuel):
                return name
    return None


def _decides(groups, name, value, secret, fuel):
    members, values, apart = next(group for group in groups if name in group[0])
    others = [other for other in members if other != name] if apart else []
    for given in _assignments(groups, name, secret):
        burn(fuel)
        before = value(given)
        holders = {given[other]: other for other in others}
        for new in values:
            if new == given[name] or (new in holders and len(members) < len(values)):
                continue
            changed = given | {name: new}
            if new in holders:
                changed[holders[new]] = given[name]
            burn(fuel)
            if value(changed) != before:
                return True
    return False


def _assignments(groups, name, secret):
    """The secret's, then all of the others or some by lot; the unknown itself has the first value that it may have."""
    yield {each: secret[each] for members, _, _ in groups for each in members}
    others = [(tuple(each for each in members if each != name), values, apart) for members, values, apart in groups]
    lot, size = Random(MOST_LOOKS), math.prod(len(values) ** len(members) for members, values, _ in others)
    drawn = _all(others) if size <= MOST_LOOKS else (_by_lot(others, lot) for _ in range(MOST_LOOKS))
    members, values, apart = next(group for group in groups if name in group[0])
    for given in drawn:
        taken = {given[member] for member in members if member != name} if apart else ()
        yield given | {name: next(value for value in values if value not in taken)}


def _all(groups):
    ways = [
        itertools.permutations(values, len(members)) if apart else itertools.product(values, repeat=len(members))
        for members, values, apart in groups
    ]
    names = [name for members, _, _ in groups for name in members]
    return (dict(zip(names, itertools.chain(*picked), strict=True)) for picked in itertools.product(*ways))


def _by_lot(groups, lot):
    given = {}
    for members, values, apart in groups:
        left = list(values)
        for member in members:
            at = int(lot.random() * len(left))
            given[member] = left.pop(at) if apart else left[at]
    return given
