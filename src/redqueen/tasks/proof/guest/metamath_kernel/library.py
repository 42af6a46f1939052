"""The statements that a proof may refer to, as trees: by label, by shape, and as text.

A lemma's leaves are numbered in the order of their first places. What cannot be read by the grammar is left out.
"""

import zlib
from itertools import pairwise
from pathlib import Path

from .database import read
from .grammar import Grammar, Unreadable
from .shapes import Shapes
from .terms import leaves, name_of, own

FEWEST = 20
"""Lemmas with which there is something to compose."""
MOST = 15_000
"""Axioms and theorems: each process that checks proofs loads them all."""
MOST_SYMBOLS = 40
"""Of a lemma that teachers are offered: long ones fill prompts."""
ALIKE = 32
"""Lemmas at least of about as many hypotheses and symbols, of which each may be shown in place of the others."""


class Unusable(Exception):
    """The database has too little to make tasks of, or too much to be loaded."""


def load(path):
    """The library of a .mm file, which may be packed (.mm.gz)."""
    data = Path(path).read_bytes()
    return Library(read((zlib.decompress(data, 31) if data[:2] == b"\x1f\x8b" else data).decode("ascii", "strict")))


class Lemma:
    """An axiom or a theorem."""

    __slots__ = (
        "at",
        "goal",
        "goal_leaves",
        "hyp_leaves",
        "hyps",
        "label",
        "names",
        "pairs",
        "shapes",
        "symbols",
        "text",
        "types",
    )

    def __init__(self, statement, hyps, goal, shapes, names, types, text):
        self.label, self.at = statement.label, statement.at
        self.hyps, self.goal = hyps, goal
        self.shapes = shapes
        """Of its hypotheses."""
        self.hyp_leaves, self.goal_leaves = list(map(leaves, hyps)), leaves(goal)
        """From left to right."""
        self.names, self.types = names, types
        """Of its leaves, by their numbers."""
        number = {name: at for at, name in enumerate(names)}
        self.pairs = tuple(sorted((number[one], number[other]) for one, other in statement.pairs))
        self.text, self.symbols = text, sum(len(each.symbols) for each in (statement, *statement.hyps))


class Library:
    """All lemmas of a database."""

    def __init__(self, database):
        self.database, self.grammar = database, Grammar(database)
        self._shapes = Shapes()
        self.lemmas = {}
        if len(database.assertions) > MOST:
            what = f"{len(database.assertions)} axioms and theorems, more than {MOST}"
            raise Unusable(f"{what}; tools/proof/pack.py cuts a file after a label")
        for statement in database.assertions:
            lemma = self._lemma(statement)
            if lemma is not None:
                self.lemmas[lemma.label] = lemma
        if len(self.lemmas) < FEWEST:
            raise Unusable(f"{len(self.lemmas)} of its statements can be read and referred to, fewer than {FEWEST}")
        self.short = [lemma for lemma in self.lemmas.values() if lemma.symbols <= MOST_SYMBOLS]
        if not self.short:
            raise Unusable(f"all of its statements have more than {MOST_SYMBOLS} symbols")
        self.alike = {lemma.label: group for group in _alike(self.lemmas.values()) for lemma in group}
        self.variables = {}
        """The names of variables by type, in the order in which the database declares them."""
        for name, code in database.types.items():
            self.variables.setdefault(code, []).append(name)
        self._own = {name: (code, own(name)) for name, code in database.types.items()}
        self._symbols = database.constants | database.types.keys()
        self._longest = max(map(len, self._symbols))
        self._by_shape = {}
        for lemma in self.lemmas.values():
            self._by_shape.setdefault(self._shapes.add(lemma.goal), []).append(lemma)

    def _lemma(self, statement):
        provable, types = self.grammar.provable, self.database.types
        stated = [*statement.hyps, statement]
        if any(each.symbols[0] not in provable for each in stated):
            return None
        names = list(dict.fromkeys(symbol for each in stated for symbol in each.symbols if symbol in types))
        numbered = {name: (types[name], at) for at, name in enumerate(names)}
        try:
            *hyps, goal = [self.grammar.read(each.symbols, numbered) for each in stated]
        except Unreadable:
            return None
        text = self.told([each.symbols for each in statement.hyps], statement.symbols, statement.pairs)
        shapes = list(map(self._shapes.add, hyps))
        return Lemma(statement, hyps, goal, shapes, names, [types[name] for name in names], text)

    def told(self, hyps, goal, pairs=()):
        """A statement as prompts show it."""
        said = " => ".join(filter(None, (" & ".join(map(self.shown, hyps)), self.shown(goal))))
        apart = ", ".join(f"{one} {other}" for one, other in sorted(pairs))
        return f"{said}  (distinct: {apart})" if apart else said

    def shown(self, symbols):
        """A formula, without its type code where all have the same."""
        return " ".join(symbols[len(self.grammar.provable) == 1 :])

    def written(self, tree):
        """The text of a tree whose leaves are variables."""
        return self.shown(self.grammar.write(tree, name_of))

    def read(self, text):
        """The tree of a formula as somebody may write it, with or without its type code."""
        symbols, provable = self.split(text), self.grammar.provable
        if symbols and symbols[0] in provable:
            return self.grammar.read(symbols, self._own)
        if len(provable) > 1:
            raise Unreadable("it does not say which sort of statement it is")
        return self.grammar.read([*provable, *symbols], self._own)

    def split(self, text):
        """The symbols of a formula. They stand between blanks; a word that is none may be several of them."""
        found = []
        for word in text.split():
            while word:
                end = min(len(word), self._longest)
                while end and word[:end] not in self._symbols:
                    end -= 1
                if not end:
                    raise Unreadable("it has something that is no symbol")
                found.append(word[:end])
                word = word[end:]
        return found

    def at_once(self, goal, premises, apart, fuel):
        """The first lemma by which the goal follows from these statements in one step, with their places in the order
        of its hypotheses; None where there is none. Variables stand for themselves; `apart` has, in sorted pairs,
        which of them are distinct."""
        there = [self._shapes.of(premise, fuel) for premise in premises]
        known = frozenset().union(*there)
        for shape, parts in self._shapes.of(goal, fuel).items():
            for lemma in self._by_shape.get(shape, ()):
                meant = {}
                if known.issuperset(lemma.shapes) and _agree(lemma.goal_leaves, parts, meant, fuel):
                    places = _placed(lemma, 0, there, meant, apart, fuel)
                    if places is not None:
                        return lemma, places
        return None


def _agree(leaves, parts, meant, fuel):
    """Whether these leaves can stand for these parts, beside what they stand for already."""
    fuel.burn(len(parts))
    for leaf, part in zip(leaves, parts, strict=True):  # noqa: SIM110 (half the time goes by here)
        if meant.setdefault(leaf, part) != part:
            return False
    return True


def _placed(lemma, at, premises, meant, apart, fuel):
    """Where its hypotheses from this one on stand among the premises, of which there are all shapes."""
    if at == len(lemma.hyps):
        return [] if all(distinct(meant[one], meant[other], apart) for one, other in lemma.pairs) else None
    for place, shapes in enumerate(premises):
        parts = shapes.get(lemma.shapes[at])
        if parts is None:
            continue
        tried = dict(meant)
        if _agree(lemma.hyp_leaves[at], parts, tried, fuel):
            others = _placed(lemma, at + 1, premises, tried, apart, fuel)
            if others is not None:
                return [place, *others]
    return None


def distinct(one, other, apart):
    """Whether no variable of a tree is in the other, nor allowed to be."""
    pairs = {tuple(sorted((name_of(some), name_of(any)))) for some in leaves(one) for any in leaves(other)}
    return all(pair in apart for pair in pairs)


def _alike(lemmas):
    """Groups of lemmas of as many hypotheses and about as many symbols. Where few have so many hypotheses, those of
    more are with them."""
    by_hyps = [[]]
    for hyps in sorted({len(lemma.hyps) for lemma in lemmas}):
        own = [lemma for lemma in lemmas if len(lemma.hyps) == hyps]
        by_hyps = [*by_hyps, own] if len(by_hyps[-1]) >= ALIKE else [*by_hyps[:-1], by_hyps[-1] + own]
    if len(by_hyps) > 1 and len(by_hyps[-1]) < ALIKE:
        by_hyps[-2:] = [by_hyps[-2] + by_hyps[-1]]
    for group in by_hyps:
        group.sort(key=lambda lemma: (lemma.symbols, lemma.at))
        parts = max(1, len(group) // ALIKE)
        ends = [len(group) * part // parts for part in range(parts + 1)]
        yield from (group[begin:end] for begin, end in pairwise(ends))
