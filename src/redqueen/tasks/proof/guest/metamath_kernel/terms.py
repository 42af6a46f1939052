"""Unification and matching of trees, under counted fuel.

A leaf is a whole number, which stands for any tree of its type, or `own(NAME)`, a variable that stands for itself.
Types need not be compared: two trees that meet are parts of the same syntax axiom, at the same place.
"""

FUEL = 60_000
"""Looks at nodes of trees, of all that one text has us do."""


_OWN = "="
"""Before the name of a variable that stands for itself; no label has it."""


def own(name):
    return (_OWN + name,)


def name_of(leaf):
    return leaf[0].removeprefix(_OWN)


def is_leaf(tree):
    return isinstance(tree, int) or (len(tree) == 1 and tree[0][0] == _OWN)


class OutOfFuel(Exception):
    """It takes more steps than a text may."""


class Fuel:
    """What is left to be spent on a text."""

    def __init__(self, left=FUEL):
        self.left = left

    def burn(self, amount=1):
        self.left -= amount
        if self.left < 0:
            raise OutOfFuel


class Bindings:
    """What each numbered leaf stands for."""

    def __init__(self, fuel):
        self.bound, self.fuel = [], fuel

    def fresh(self, count):
        """The first of so many new leaves."""
        first = len(self.bound)
        self.bound += [None] * count
        return first

    def walk(self, tree):
        """The tree itself, or what it has come to stand for."""
        while isinstance(tree, int) and self.bound[tree] is not None:
            tree = self.bound[tree]
        return tree

    def unify(self, one, other):
        """Make two trees equal with as little as does; False where nothing does. What was bound by then stays bound."""
        waiting = [(one, other)]
        while waiting:
            self.fuel.burn()
            one, other = waiting.pop()
            one, other = self.walk(one), self.walk(other)
            if one is other or (isinstance(one, int) and one == other):
                continue
            if isinstance(one, int):
                leaf, tree = one, other
            elif isinstance(other, int):
                leaf, tree = other, one
            elif one[0] != other[0] or len(one) != len(other):
                return False
            else:
                waiting += zip(one[1:], other[1:], strict=True)
                continue
            if self._occurs(leaf, tree):
                return False
            self.bound[leaf] = tree
        return True

    def _occurs(self, leaf, tree):
        waiting, seen = [tree], set()
        while waiting:
            self.fuel.burn()
            part = self.walk(waiting.pop())
            if isinstance(part, int):
                if part == leaf:
                    return True
            elif id(part) not in seen:
                seen.add(id(part))
                waiting += part[1:]
        return False

    def resolved(self, tree, most):
        """The tree with all that its leaves stand for, of so many nodes at most."""
        size = [0]

        def copy(part):
            self.fuel.burn()
            size[0] += 1
            if size[0] > most:
                raise OutOfFuel
            part = self.walk(part)
            return part if isinstance(part, int) else (part[0], *map(copy, part[1:]))

        return copy(tree)


def shifted(tree, by):
    """The tree with other numbers for its leaves."""
    return tree + by if isinstance(tree, int) else (tree[0], *[shifted(part, by) for part in tree[1:]])


def match(pattern, tree, meant, fuel):
    """Whether the tree is an instance of the pattern, whose leaves get what they stand for in `meant`; the leaves of
    the tree stand for themselves. Where it is none, `meant` may have got something all the same."""
    if isinstance(pattern, int):
        return meant.setdefault(pattern, tree) == tree
    if isinstance(tree, int) or pattern[0] != tree[0] or len(pattern) != len(tree):
        return False
    fuel.burn(len(pattern))
    for at in range(1, len(pattern)):
        # Nearly all of the time goes by here, and most parts are leaves.
        part, there = pattern[at], tree[at]
        if isinstance(part, int):
            if meant.setdefault(part, there) != there:
                return False
        elif not match(part, there, meant, fuel):
            return False
    return True


def leaves(tree):
    """Its leaves from left to right, each as often as it stands there."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if is_leaf(part):
            found.append(part)
        else:
            waiting += reversed(part[1:])
    return found


def renamed(tree, names):
    """The tree with other leaves."""
    return names[tree] if is_leaf(tree) else (tree[0], *[renamed(part, names) for part in tree[1:]])


def size(tree):
    """How many nodes it has."""
    return 1 if is_leaf(tree) else 1 + sum(map(size, tree[1:]))


def depth(tree):
    """How many nodes the longest path down has."""
    return 1 + max(map(depth, tree[1:]), default=0) if not is_leaf(tree) else 1


def parts(tree):
    """Itself and all trees in it."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += () if is_leaf(part) else part[1:]
