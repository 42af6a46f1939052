"""Finding assignments: domains as bit masks, clues that filter the last unknown that they leave open, and fuel.

Fuel counts evaluations of clues, values that are tried and sets that are counted, never time: a verdict is the same on
every machine.
"""

from logic_language import MOST_VALUES, compiled, names_in


class OutOfFuel(Exception):
    """The search did not come to its end."""


def burn(fuel, amount=1):
    fuel[0] -= amount
    if fuel[0] < 0:
        raise OutOfFuel


class Clue:
    """A clue, ready to be asked."""

    def __init__(self, node, names):
        self.node = node
        self.holds = compiled(node)
        self.places = tuple(sorted({names.index(name) for name in names_in(node)}))
        self.mask = sum(1 << place for place in self.places)


class Search:
    """All assignments that clues leave, one by one."""

    def __init__(self, groups, clues, fuel):
        self.names = [name for names, _, _ in groups for name in names]
        self.values = [values for names, values, _ in groups for _ in names]
        self.apart = [[] for _ in self.names]
        for names, _, different in groups:
            if different:
                places = [self.names.index(name) for name in names]
                for place in places:
                    self.apart[place] = [other for other in places if other != place]
        self.clues = [Clue(node, self.names) for node in clues]
        self.fuel = fuel  # a list of one number, which several searches share
        self.guesses = 0
        self._given = {}

    def full(self):
        """The masks before any clue."""
        return [(1 << len(values)) - 1 for values in self.values]

    def after_single_clues(self):
        """The masks that clues about one unknown leave."""
        masks = self.full()
        for clue in self.clues:
            if len(clue.places) == 1:
                self._filter(clue, masks, {}, clue.places[0])
        return masks

    def solutions(self, most):
        """The first so many, as dicts; `guesses` counts the values that were tried where several were left."""
        found = []
        clues_at = [[] for _ in self.names]
        for clue in self.clues:
            if len(clue.places) > 1:
                for place in clue.places:
                    clues_at[place].append(clue)
        self._extend(self.after_single_clues(), {}, (1 << len(self.names)) - 1, clues_at, found, most)
        return found

    def _extend(self, masks, given, open_, clues_at, found, most):
        """`open_` has a bit for each unknown without a value."""
        if not open_:
            found.append(dict(given))
            return
        place, fewest = 0, MOST_VALUES + 1
        for each, mask in enumerate(masks):
            if open_ >> each & 1 and (left := mask.bit_count()) < fewest:
                place, fewest = each, left
        name, values, mask = self.names[place], self.values[place], masks[place]
        for at in range(len(values)):
            if not mask >> at & 1:
                continue
            self.guesses += fewest > 1
            burn(self.fuel)
            given[name] = values[at]
            left = self._propagate(list(masks), given, open_ ^ 1 << place, clues_at[place], place, at)
            if left is not None:
                self._extend(left, given, open_ ^ 1 << place, clues_at, found, most)
            del given[name]
            if len(found) >= most:
                return

    def _propagate(self, masks, given, open_, clues, place, at):
        """What a value leaves to the others; None where one of them has nothing left."""
        masks[place] = 1 << at
        for other in self.apart[place]:
            if open_ >> other & 1:
                masks[other] &= ~(1 << at)
                if not masks[other]:
                    return None
        for clue in clues:
            left = clue.mask & open_
            if left and not left & left - 1:
                last = left.bit_length() - 1
                self._filter(clue, masks, given, last)
                if not masks[last]:
                    return None
        return masks

    def _filter(self, clue, masks, given, place):
        """Leave the unknown the values with which the clue holds."""
        name, mask = self.names[place], masks[place]
        burn(self.fuel, mask.bit_count())
        for at, value in enumerate(self.values[place]):
            if mask >> at & 1:
                given[name] = value
                if not clue.holds(given):
                    mask ^= 1 << at
        given.pop(name, None)
        masks[place] = mask


def candidates(groups, masks, fuel):
    """How many assignments these masks leave, with the unknowns of a group apart where they are to be."""
    total, at = 1, 0
    for names, _, different in groups:
        own = masks[at : at + len(names)]
        at += len(names)
        total *= _apart(own, fuel) if different else _product(mask.bit_count() for mask in own)
    return total


def _product(counts):
    total = 1
    for count in counts:
        total *= count
    return total


SETS_FOR_FUEL = 8
"""Sets of values that cost as much as one evaluation of a clue."""


def _apart(masks, fuel):
    """Ways to give each a bit of its own."""
    ways = {0: 1}
    for mask in masks:
        burn(fuel, len(ways) // SETS_FOR_FUEL)
        more = {}
        for taken, count in ways.items():
            free = mask & ~taken
            while free:
                bit = free & -free
                more[taken | bit] = more.get(taken | bit, 0) + count
                free ^= bit
        ways = more
    return sum(ways.values())
