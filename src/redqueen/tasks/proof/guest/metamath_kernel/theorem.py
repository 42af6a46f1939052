"""The most general theorem of a chain of references, what of the chain is needed for it, and whether it proves a goal.

Each line is one formula: where a lemma's hypothesis meets a line, the two are unified. So whatever is derived holds,
and there is nothing in a chain that would have to be believed.
"""

from itertools import combinations, permutations

from .library import distinct
from .steps import Refused
from .terms import Bindings, leaves, match, own, renamed, shifted

MOST_NODES = 150
"""Of one formula; longer ones are refused before they are written down."""
MOST_ORDERED = 4
"""References whose order is looked for when the one that is written fits nothing."""


class Chain:
    """Steps whose lines are unified as they are added."""

    def __init__(self, library, fuel):
        self.library, self._bindings = library, Bindings(fuel)
        self.steps, self.lines = [], []
        self.firsts = []
        """Of each step, the number that its lemma's first leaf has; None for a premise."""
        self._pairs, self._types = [], []

    def given(self, statement=None):
        """A premise: this one, or any that serves."""
        self.steps.append((None, ()))
        self.firsts.append(None)
        self.lines.append(self._fresh([None]) if statement is None else statement)

    def add(self, label, places, loosely=False):
        """A step. Loosely, a lemma without references has new premises for its hypotheses, and references in an order
        that fits nothing are taken in the one that does."""
        lemma = self.library.lemmas.get(label)
        if lemma is None:
            raise Refused("invalid_step", f"step {len(self.steps) + 1} refers to no lemma that there is")
        if loosely and not places and lemma.hyps:
            places = tuple(range(len(self.steps), len(self.steps) + len(lemma.hyps)))
            for _ in places:
                self.given()
        if len(places) != len(lemma.hyps):
            counts = f"{len(places)} references of {len(lemma.hyps)}"
            raise Refused("invalid_step", f"step {len(self.steps) + 1} has {counts}")
        orders = [places]
        if loosely and len(places) <= MOST_ORDERED:
            orders += [order for order in dict.fromkeys(permutations(places)) if order != places]
        before = list(self._bindings.bound), list(self._types), list(self._pairs)
        fitting = []
        for at, order in enumerate(orders):
            self._bindings.bound, self._types, self._pairs = (list(each) for each in before)
            goal = self._fitted(lemma, order)
            if goal is not None:
                fitting.append((order, goal, (self._bindings.bound, self._types, self._pairs)))
                if at == 0:
                    break
        if len(fitting) != 1:
            self._bindings.bound, self._types, self._pairs = before
            raise Refused("invalid_step", f"the lines that step {len(self.steps) + 1} refers to do not fit its lemma")
        [(order, goal, (self._bindings.bound, self._types, self._pairs))] = fitting
        self.steps.append((label, order))
        self.firsts.append(len(before[0]))
        self.lines.append(goal)

    def _fitted(self, lemma, places):
        """What the lemma says of these lines; None where they do not fit."""
        first = self._fresh(lemma.types)
        for hyp, place in zip(lemma.hyps, places, strict=True):
            if not self._bindings.unify(shifted(hyp, first), self.lines[place]):
                return None
        self._pairs += [(first + one, first + other) for one, other in lemma.pairs]
        return shifted(lemma.goal, first)

    def _fresh(self, types):
        self._types += types
        return self._bindings.fresh(len(types))

    def resolved(self, tree):
        return self._bindings.resolved(tree, MOST_NODES)

    def type_of(self, leaf):
        return self._types[leaf]

    def apart(self):
        """The pairs of leaves that must be distinct, the lower first; refused where a step would need one variable to
        be distinct from itself."""
        found = set()
        for one, other in self._pairs:
            ours, theirs = (set(leaves(self.resolved(tree))) for tree in (one, other))
            if not ours.isdisjoint(theirs):
                raise Refused("invalid_step", "a step has one variable where its lemma needs distinct ones")
            found.update(tuple(sorted((some, any), key=str)) for some in ours for any in theirs)
        return found

    def proves(self, goal, allowed):
        """Whether the last line has the goal as an instance, with no more distinct variables than these pairs."""
        if not self._bindings.unify(self.lines[-1], goal):
            return False
        for one, other in self.apart() if self._pairs else ():
            # A number is a variable that neither premises nor goal have: it can be one that occurs nowhere else.
            if type(one) is not int and type(other) is not int and not distinct(one, other, allowed):
                return False
        return True


def derived(library, steps, fuel, loosely=False):
    """The chain of these steps; references are to places among them."""
    chain, place_of = Chain(library, fuel), []
    for label, places in steps:
        if label is None:
            chain.given()
        else:
            chain.add(label, tuple(place_of[place] for place in places), loosely)
        place_of.append(len(chain.steps) - 1)
    return chain


def proof_of(library, steps, given, goal, allowed, fuel):
    """Whether these steps prove the goal from the premises that are given, in their order."""
    chain, premises = Chain(library, fuel), list(given)
    if sum(label is None for label, _ in steps) > len(premises):
        raise Refused("invalid_step", f"more than {len(premises)} premises")
    for label, places in steps:
        if label is None:
            chain.given(premises.pop(0))
        else:
            chain.add(label, places)
    return chain.proves(goal, allowed)


class Theorem:
    """What a chain proves, when nothing in it can be left out."""

    def __init__(self, chain):
        self.chain, self.steps = chain, chain.steps
        self.lines = [chain.resolved(line) for line in chain.lines]
        self.premises = [line for line, (label, _) in zip(self.lines, self.steps, strict=True) if label is None]
        self.goal = self.lines[-1]
        self.apart = chain.apart()

    @property
    def lemma_steps(self):
        return len(self.steps) - len(self.premises)

    def own(self):
        """Lines and distinct pairs with variables of their own, whose names are numbers."""
        names = {leaf: own(str(leaf)) for line in self.lines for leaf in leaves(line)}
        apart = {tuple(sorted((str(one), str(other)))) for one, other in self.apart}
        return [renamed(line, names) for line in self.lines], apart

    def named(self):
        """Premises, goal and distinct pairs, with the library's variables in the order of their first places."""
        stated, left = [*self.premises, self.goal], {}
        names = {}
        for leaf in dict.fromkeys(leaf for line in stated for leaf in leaves(line)):
            code = self.chain.type_of(leaf)
            free = left.setdefault(code, iter(self.chain.library.variables.get(code, ())))
            name = next(free, None)
            if name is None:
                raise Refused("too_complex", "it has more variables than there are names for")
            names[leaf] = name
        *premises, goal = [renamed(line, {leaf: own(name) for leaf, name in names.items()}) for line in stated]
        apart = sorted(tuple(sorted((names[one], names[other]))) for one, other in self.apart
                       if one in names and other in names)  # fmt: skip
        return premises, goal, apart, list(names.values())


def core(library, steps, fuel, loosely=False):
    """The theorem of what is needed of the steps: without lines that the last one does not rest on, lines that say what
    an earlier one says, detours around a lemma that says the same at once, and lines in whose place any other would do.
    Each makes the theorem more general, so they are looked for until there are none."""
    steps = derived(library, steps, fuel, loosely).steps
    while True:
        needed = _premises_first(_reached(steps))
        if needed != steps:
            steps = needed
            continue
        theorem = Theorem(derived(library, steps, fuel))
        shorter = _merged(theorem) or _shortened(library, theorem, fuel) or _without_fillers(library, theorem, fuel)
        if shorter is None:
            return theorem
        steps = shorter


def _reached(steps):
    """Those that the last one rests on."""
    kept = {len(steps) - 1}
    for at in reversed(range(len(steps))):
        if at in kept:
            kept.update(steps[at][1])
    return _reordered(steps, sorted(kept))


def _premises_first(steps):
    return _reordered(steps, sorted(range(len(steps)), key=lambda at: steps[at][0] is not None))


def _reordered(steps, order):
    new = {old: at for at, old in enumerate(order)}
    return [(steps[old][0], tuple(new[place] for place in steps[old][1])) for old in order]


def _merged(theorem):
    """With references to the first of the lines that say the same; None where no two do."""
    first, same = {}, {}
    for at, line in enumerate(theorem.lines):
        if first.setdefault(line, at) != at:
            same[at] = first[line]
    if not same:
        return None
    last = same.get(len(theorem.steps) - 1, len(theorem.steps) - 1)
    steps = [(label, tuple(same.get(place, place) for place in places)) for label, places in theorem.steps]
    return steps[: last + 1]


def _shortened(library, theorem, fuel):
    """With a lemma in the place of a line that follows from the premises by it at once, where that saves steps; None
    where nothing does."""
    lines, apart = theorem.own()
    premises = lines[: len(theorem.premises)]
    for at in reversed(range(len(premises), len(lines))):
        if all(place < len(premises) for place in theorem.steps[at][1]) and at < len(lines) - 1:
            continue
        found = library.at_once(lines[at], premises, apart, fuel)
        if found is None:
            continue
        lemma, places = found
        if at == len(lines) - 1:
            raise Refused("too_easy", f"{lemma.label} says all of it")
        steps = list(theorem.steps)
        steps[at] = (lemma.label, tuple(places))
        if len(_reached(steps)) < len(steps):
            return steps
    return None


def _without_fillers(library, theorem, fuel):
    """With another line in the place of one whose formula the theorem does not depend on, such as any truth that an
    antecedent out of nowhere is discharged with; None where there is no such line, or no other will do."""
    for at in range(len(theorem.premises), len(theorem.steps) - 1):
        steps = theorem.steps
        chain = derived(library, [*steps[:at], (None, ()), *steps[at + 1 :]], fuel)
        wanted = chain.resolved(chain.lines[at])
        stated = [chain.lines[-1], *chain.lines[: len(theorem.premises)]]
        fixed = {leaf for line in stated for leaf in leaves(chain.resolved(line))}
        if not fixed.isdisjoint(leaves(wanted)):
            continue
        for other in range(at):
            line = chain.resolved(chain.lines[other])
            if set(leaves(line)).isdisjoint(leaves(wanted)) and match(wanted, line, {}, fuel):
                shorter = [
                    (label, tuple(other if place == at else place for place in places)) for label, places in steps
                ]
                if _has_theorem(library, shorter, fuel):
                    return shorter
    return None


def _has_theorem(library, steps, fuel):
    """Whether no two variables meet in it that must be distinct."""
    try:
        derived(library, steps, fuel).apart()
    except Refused:
        return False
    return True


def joined(theorem):
    """The first step that puts lines together which have nothing to do with each other, neither by their variables nor
    by those of its lemma; None where there is none."""
    lemmas = theorem.chain.library.lemmas
    for at, (label, places) in enumerate(theorem.steps):
        hyps = lemmas[label].hyps if label is not None else ()
        groups = [
            {("line", place), *leaves(theorem.lines[place]), *(("hyp", leaf) for leaf in leaves(hyp))}
            for hyp, place in zip(hyps, places, strict=True)
        ]
        while len(groups) > 1:
            pair = next((pair for pair in combinations(groups, 2) if not pair[0].isdisjoint(pair[1])), None)
            if pair is None:
                return at
            groups = [group for group in groups if group is not pair[0] and group is not pair[1]] + [pair[0] | pair[1]]
    return None
