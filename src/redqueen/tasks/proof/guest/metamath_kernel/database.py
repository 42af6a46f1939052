"""The text of a .mm file to its statements, by the rules of the Metamath language.

Every assertion gets its frame when it is read: the hypotheses that it needs, in their order, and the pairs of variables
that must stay distinct. `$[` includes are refused: a database is one file.
"""

import re

_COMMENT = re.compile(r"\$\(\s.*?(?<=\s)\$\)", re.DOTALL)
_LABEL = re.compile(r"[A-Za-z0-9._-]+")


class BadDatabase(Exception):
    """The text is no database, for what it says in one line."""


class Statement:
    """A hypothesis or an assertion."""

    __slots__ = ("all_pairs", "at", "ends", "floats", "frame", "hyps", "kind", "label", "pairs", "proof", "symbols")

    def __init__(self, label, kind, symbols, at):
        self.label, self.kind, self.symbols = label, kind, symbols
        self.at, self.ends = at, None
        """Where it stands among all statements, and where the scope of a hypothesis ends; None: never."""
        self.floats, self.hyps, self.frame = (), (), ()
        """Of an assertion, as statements: the types of the variables that it needs, its other hypotheses, and both in
        their order, as proofs refer to them."""
        self.pairs = self.all_pairs = frozenset()
        """Distinct variables, each pair sorted: of the frame, and all that were in force where it stands."""
        self.proof = ()


class Database:
    """What a file declares."""

    def __init__(self):
        self.constants = set()
        self.types = {}
        """The type code of each variable, in the order in which they are declared to have one."""
        self.statements = {}
        """All of them by label, in their order."""

    @property
    def assertions(self):
        return [each for each in self.statements.values() if each.kind in ("$a", "$p")]


def read(text):
    """The database of a text."""
    if not text.isascii():
        raise BadDatabase("it has other characters than ASCII")
    text = _COMMENT.sub(" ", text)
    for mark, what in (("$(", "a comment that does not end"), ("$[", "an include: put all in one file")):
        if mark in text:
            raise BadDatabase(f"it has {what}")
    return _Reader(text.split()).database


class _Reader:
    """One pass over the tokens, with the scopes that are open."""

    def __init__(self, tokens):
        self.database = Database()
        self._tokens, self._at = tokens, 0
        self._floats = {}
        """The active hypothesis of each variable that has one."""
        self._essentials, self._pairs, self._scopes = [], [], []
        self._active = {}
        """The variables that are declared, with the depth of their scope."""
        label = None
        while self._at < len(tokens):
            word = tokens[self._at]
            self._at += 1
            if word[0] != "$":
                if label is not None or not _LABEL.fullmatch(word):
                    raise BadDatabase(f"{word} stands where no label can")
                label = word
                continue
            self._statement(word, label)
            label = None
        if label is not None or self._scopes:
            raise BadDatabase("it ends within a statement or a scope")

    def _statement(self, word, label):
        if (label is None) == (word in ("$f", "$e", "$a", "$p")):
            raise BadDatabase(f"{word} with no label" if label is None else f"{word} after the label {label}")
        if word == "${":
            self._scopes.append((dict(self._floats), len(self._essentials), len(self._pairs)))
        elif word == "$}":
            self._close()
        elif word == "$c":
            self._declare_constants(self._until("$."))
        elif word == "$v":
            self._declare_variables(self._until("$."))
        elif word == "$d":
            self._declare_distinct(self._until("$."))
        elif word in ("$f", "$e", "$a", "$p"):
            self._labelled(word, label)
        else:
            raise BadDatabase(f"{word} is no keyword that can stand here")

    def _until(self, end):
        try:
            stop = self._tokens.index(end, self._at)
        except ValueError:
            raise BadDatabase(f"a statement without its {end}") from None
        found = self._tokens[self._at : stop]
        self._at = stop + 1
        return found

    def _close(self):
        if not self._scopes:
            raise BadDatabase("$} without ${")
        floats, essentials, pairs = self._scopes.pop()
        now = len(self.database.statements)
        for name, hyp in self._floats.items():
            if name not in floats:
                hyp.ends = now
        for hyp in self._essentials[essentials:]:
            hyp.ends = now
        self._floats = floats
        del self._essentials[essentials:], self._pairs[pairs:]
        for name in [name for name, depth in self._active.items() if depth > len(self._scopes)]:
            del self._active[name]

    def _declare_constants(self, symbols):
        known = self.database
        for symbol in symbols:
            if self._scopes or symbol in known.constants or symbol in self._active or symbol in known.types:
                raise BadDatabase(f"the constant {symbol} is declared twice or within a scope")
            known.constants.add(symbol)

    def _declare_variables(self, symbols):
        for symbol in symbols:
            if symbol in self._active or symbol in self.database.constants:
                raise BadDatabase(f"the variable {symbol} is declared twice")
            self._active[symbol] = len(self._scopes)

    def _declare_distinct(self, symbols):
        if len(set(symbols)) < len(symbols) or any(symbol not in self._active for symbol in symbols):
            raise BadDatabase("$d of something that is no variable, or of a variable and itself")
        ordered = sorted(symbols)
        self._pairs += [(one, other) for at, one in enumerate(ordered) for other in ordered[at + 1 :]]

    def _labelled(self, kind, label):
        known = self.database
        if label in known.statements:
            raise BadDatabase(f"the label {label} stands for two statements")
        symbols = tuple(self._until("$=" if kind == "$p" else "$."))
        statement = Statement(label, kind, symbols, len(known.statements))
        if not symbols or symbols[0] not in known.constants:
            raise BadDatabase(f"{label} does not begin with a constant")
        if kind == "$f":
            self._float(statement)
        else:
            if any(symbol not in known.constants and symbol not in self._floats for symbol in symbols):
                raise BadDatabase(f"{label} has a symbol that is not declared, or a variable without its $f")
            if kind == "$e":
                self._essentials.append(statement)
            else:
                self._frame(statement)
                statement.proof = tuple(self._until("$.")) if kind == "$p" else ()
        known.statements[label] = statement

    def _float(self, statement):
        types = self.database.types
        if len(statement.symbols) != 2 or statement.symbols[1] not in self._active:
            raise BadDatabase(f"{statement.label} gives no variable its type")
        code, name = statement.symbols
        if name in self._floats or types.setdefault(name, code) != code:
            raise BadDatabase(f"{statement.label} gives {name} a type for a second time")
        self._floats[name] = statement

    def _frame(self, statement):
        used = {symbol for each in (statement, *self._essentials) for symbol in each.symbols}
        statement.floats = tuple(
            sorted((self._floats[name] for name in used & self._floats.keys()), key=lambda hyp: hyp.at)
        )
        statement.hyps = tuple(self._essentials)
        statement.frame = tuple(sorted((*statement.floats, *statement.hyps), key=lambda hyp: hyp.at))
        statement.all_pairs = frozenset(self._pairs)
        statement.pairs = frozenset(pair for pair in self._pairs if used.issuperset(pair))
