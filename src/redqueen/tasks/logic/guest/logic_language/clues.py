"""The tokens of one clue to its syntax, by recursive descent."""

from .terms import FLIPPED, KNIGHTS, MOST_DEPTH, MOST_NODES, RESERVED, Refused, names_in

_AFTER_SUMS = (*FLIPPED, "=", "+", "-", "*", "%")


class ClueReader:
    """Recursive descent over the tokens of one clue, with a budget on its size and its depth."""

    def __init__(self, tokens, scope):
        self._tokens, self._scope, self._at, self._left = tokens, scope, 0, MOST_NODES

    def clues(self):
        """A line may say several things: `a < b < c`, or with `and`."""
        clue = self._chain() or self._whole()
        if self._at < len(self._tokens):
            raise Refused("syntax", "something follows it that does not belong to it")
        return clue[1] if clue[0] == "and" else (clue,)

    def whole_sum(self):
        """Not a clue, but a sum that something is asked of."""
        asked = self._number(self._sum(0))
        if self._at < len(self._tokens):
            raise Refused("syntax", "something follows what is asked that does not belong to it")
        if not names_in(asked):
            raise Refused("no_question", "no unknown stands in what is asked")
        return asked

    def _chain(self):
        """Comparisons in a row become clues of their own; None where it is no such row."""
        signs = [token for token in self._tokens if token[0] == "sign" and (token[1] in FLIPPED or token[1] == "=")]
        words = {token[1] for token in self._tokens if token[0] == "word"}
        if len(signs) < 2 or not words.isdisjoint(RESERVED):
            return None
        sides, ops = [self._sum(0)], []
        while (op := self._comparison_sign()) is not None:
            ops.append(op)
            sides.append(self._sum(0))
        made = [self._compare(op, left, right) for op, left, right in zip(ops, sides, sides[1:], strict=False)]
        return "and", tuple(made)

    def _whole(self):
        speaker = self._tokens[:2]
        if len(speaker) == 2 and speaker[1] in (("word", "says"), ("word", "say")):
            name = speaker[0][1]
            if set(self._scope.domains.get(name, ())) != set(KNIGHTS):
                raise Refused("syntax", "who says something is in knight, knave")
            self._at = 2
            return "says", name, self._either(1)
        return self._either(0)

    def _either(self, depth):
        return self._joined("or", self._both, depth)

    def _both(self, depth):
        return self._joined("and", self._plain, depth)

    def _joined(self, word, part, depth):
        parts = [part(depth + 1)]
        while self._take("word", word):
            parts.append(part(depth + 1))
        return self._node(word, tuple(parts)) if len(parts) > 1 else parts[0]

    def _plain(self, depth):
        self._deep(depth)
        if self._take("word", "not"):
            return self._node("not", self._plain(depth + 1))
        if self._opens_condition():
            self._need("(")
            inner = self._either(depth + 1)
            self._need(")")
            return inner
        left = self._sum(depth + 1)
        op = self._comparison_sign()
        if op is None:
            raise Refused("syntax", "a clue compares two things, as in `Ann < Bob`")
        return self._compare(op, left, self._sum(depth + 1))

    def _compare(self, op, left, right):
        kinds = {self._kind(left), self._kind(right)}
        if len(kinds) > 1:
            raise Refused("syntax", "a word is compared with a number, or with a word of another domain")
        if kinds != {"number"} and op not in ("==", "!="):
            raise Refused("syntax", "words are equal or not; they have no order")
        return self._node("cmp", op, left, right)

    def _kind(self, node):
        """`number`, or the words that a side may be."""
        if node[0] == "name":
            values = self._scope.domains[node[1]]
            return values if isinstance(values[0], str) else "number"
        if node[0] == "word":
            owners = [values for values in self._scope.domains.values() if node[1] in values]
            return owners[0]
        return "number"

    def _sum(self, depth):
        self._deep(depth)
        left = self._product(depth + 1)
        while (sign := self._one_of("+", "-")) is not None:
            left = self._node(sign, self._number(left), self._number(self._product(depth + 1)))
        return left

    def _product(self, depth):
        left = self._factor(depth + 1)
        while (sign := self._one_of("*", "%")) is not None:
            right = self._factor(depth + 1)
            if sign == "%" and (right[0] != "int" or right[1] < 2):
                raise Refused("syntax", "what stands after % is a number from 2 on")
            left = self._node(sign, self._number(left), self._number(right))
        return left

    def _factor(self, depth):
        self._deep(depth)
        if self._at >= len(self._tokens):
            raise Refused("syntax", "it ends too early")
        kind, value = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return self._node("int", value)
        if (kind, value) == ("sign", "-"):
            inner = self._number(self._factor(depth + 1))
            return ("int", -inner[1]) if inner[0] == "int" else self._node("neg", inner)
        if (kind, value) == ("sign", "("):
            inner = self._sum(depth + 1)
            self._need(")")
            return inner
        if kind == "word":
            return self._word(value, depth)
        raise Refused("syntax", "a sign stands where a name or a number should")

    def _word(self, word, depth):
        if word in ("abs", "count"):
            self._need("(")
            inner = self._number(self._sum(depth + 1)) if word == "abs" else self._conditions(depth)
            self._need(")")
            return self._node(word, inner)
        if word in self._scope.domains:
            return self._node("name", word)
        if word in self._scope.words:
            return self._node("word", word)
        raise Refused("syntax", "a name that is not declared")

    def _conditions(self, depth):
        parts = [self._either(depth + 1)]
        while self._take("sign", ","):
            parts.append(self._either(depth + 1))
        return tuple(parts)

    def _number(self, node):
        if self._kind(node) != "number":
            raise Refused("syntax", "words cannot be counted with")
        return node

    def _node(self, *parts):
        self._left -= 1
        if self._left < 0:
            raise Refused("too_complex", f"a clue has more than {MOST_NODES} parts")
        return parts

    def _deep(self, depth):
        if depth > 4 * MOST_DEPTH:
            raise Refused("too_deep", "brackets within brackets")

    def _take(self, kind, value):
        if self._at < len(self._tokens) and self._tokens[self._at] == (kind, value):
            self._at += 1
            return True
        return False

    def _need(self, sign):
        if not self._take("sign", sign):
            if self._comparison_sign() is not None:
                raise Refused("syntax", "what is compared is a sum, not another comparison")
            raise Refused("syntax", f"a {sign} is missing")

    def _one_of(self, *signs):
        return next((sign for sign in signs if self._take("sign", sign)), None)

    def _opens_condition(self):
        """Whether a bracket begins here with a condition in it: after a sum goes on what it is compared with."""
        if self._tokens[self._at : self._at + 1] != [("sign", "(")]:
            return False
        opened = 0
        for at in range(self._at, len(self._tokens)):
            opened += {("sign", "("): 1, ("sign", ")"): -1}.get(self._tokens[at], 0)
            if not opened:
                return self._tokens[at + 1 : at + 2] not in [[("sign", sign)] for sign in _AFTER_SUMS]
        raise Refused("syntax", "a ) is missing")

    def _comparison_sign(self):
        op = self._one_of("==", "!=", "<=", ">=", "<", ">", "=")
        return "==" if op == "=" else op
