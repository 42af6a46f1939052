"""Formulas as trees, by the syntax axioms of a database: text to tree, and tree to text.

A tree is a leaf, or a tuple of a syntax axiom's label and a tree for each of its variables, in the order in which they
stand in its text. What leaves are is up to the caller. A formula that could be read in two ways is read in one of them:
both are proofs of the same text, so nothing false follows.
"""

MOST_WORK = 100_000
"""Readings of parts of one formula."""


class Unreadable(Exception):
    """The symbols are no formula."""


class Grammar:
    """The syntax axioms, and what types there are."""

    def __init__(self, database):
        floats = set(database.types.values())
        proved = [each.symbols[0] for each in database.statements.values() if each.kind in ("$e", "$p")]
        self.provable = [code for code in dict.fromkeys(proved) if code not in floats]
        """The type codes of statements that are proved and not built up."""
        self.items = {}
        """Of each syntax axiom, what its text is made of: (True, type code) for a variable, (False, constant)."""
        self._by_constant, self._by_type = {}, {}
        for statement in database.assertions:
            code, *symbols = statement.symbols
            if code not in self.provable and statement.kind == "$a":
                self._add(statement.label, code, symbols, statement, database.types)

    def _add(self, label, code, symbols, statement, types):
        variables = [symbol for symbol in symbols if symbol in types]
        # Others are no plain building rules; formulas that need them cannot be read, which only leaves them out.
        if not symbols or statement.hyps or statement.pairs or len(set(variables)) < len(variables):
            return
        items = tuple((symbol in types, types.get(symbol, symbol)) for symbol in symbols)
        self.items[label] = items
        is_variable, first = items[0]
        (self._by_type if is_variable else self._by_constant).setdefault(first, []).append((label, code, items[1:]))

    def read(self, symbols, leaves):
        """The tree of a statement, type code first; `leaves` has the type and the leaf of each variable."""
        code, *symbols = symbols
        trees = _Chart(self, symbols, leaves).whole()
        if not trees:
            raise Unreadable("it is no formula")
        found = min(trees)
        return (f"{code} {found}", trees[found])

    def write(self, tree, names):
        """The symbols of a statement, its type code first; `names` gives the text of a leaf."""
        root, inner = tree
        written = [root.partition(" ")[0]]
        waiting = [inner]
        while waiting:
            part = waiting.pop()
            if type(part) is str:
                written.append(part)
            elif type(part) is tuple and part[0] in self.items:
                waiting += reversed(self._parts(part))
            else:
                written.append(names(part))
        return written

    def _parts(self, tree):
        inner = iter(tree[1:])
        return [next(inner) if is_variable else text for is_variable, text in self.items[tree[0]]]


class _Chart:
    """All readings of all parts of a formula, from its end to its beginning: what a part goes on with is known then."""

    def __init__(self, grammar, symbols, leaves):
        self._grammar, self._symbols, self._leaves = grammar, symbols, leaves
        self._found = [{} for _ in range(len(symbols) + 1)]
        """By place, the type and the end of a part: its tree."""
        self._left = MOST_WORK
        for at in reversed(range(len(symbols))):
            self._fill(at)

    def whole(self):
        """The trees of all of it, by type."""
        if not self._symbols:
            return {}
        end = len(self._symbols)
        return {code: tree for code, ends in self._found[0].items() for stop, tree in ends.items() if stop == end}

    def _fill(self, at):
        here, symbol, waiting = self._found[at], self._symbols[at], []

        def add(code, end, tree):
            ends = here.setdefault(code, {})
            if end not in ends:
                ends[end] = tree
                waiting.append((code, end, tree))

        if symbol in self._leaves:
            code, leaf = self._leaves[symbol]
            add(code, at + 1, leaf)
        for label, code, items in self._grammar._by_constant.get(symbol, ()):
            for end, trees in self._rest(items, 0, at + 1):
                add(code, end, (label, *trees))
        while waiting:
            first, stop, tree = waiting.pop()
            for label, code, items in self._grammar._by_type.get(first, ()):
                for end, trees in self._rest(items, 0, stop):
                    add(code, end, (label, tree, *trees))

    def _rest(self, items, at, place):
        self._left -= 1
        if self._left < 0:
            raise Unreadable("there are too many ways to read it")
        if at == len(items):
            yield place, ()
            return
        is_variable, text = items[at]
        if not is_variable:
            if place < len(self._symbols) and self._symbols[place] == text:
                yield from self._rest(items, at + 1, place + 1)
            return
        for end, tree in self._found[place].get(text, {}).items():
            for stop, trees in self._rest(items, at + 1, end):
                yield stop, (tree, *trees)
