"""Plain values as canonical literal text, and back.

A plain value is exactly (by `type`, never by `isinstance`) None, bool, int, float, complex, str, bytes, list, tuple,
dict or set. Its canonical text is ASCII and unique up to the order of dict items, so two values are the same when their
texts are, and `1`, `1.0` and `True` differ.

    encode, encode_arguments   value -> text    budgets on characters and depth
    parse, parse_arguments     text  -> value   in the host; read hostile text, accept nothing but canonical text
    read_literal, read_arguments   any Python literal text -> value; in the guest only, since Python's
                                   parser is recursive C code that hostile text can exhaust
    same                       value, value -> bool   equality by type, floats within a tolerance
"""

import _ast
import math
import re
from keyword import iskeyword

MAX_DEPTH = 60
MAX_INT_DIGITS = 4300
MAX_KEYS = 4096
"""Dict keys and set items in one value, or in one call's arguments: keys that hash alike must not stall the reader."""
FLOAT_TOLERANCE = 1e-6
_EXACT = 2.0**53


class Opaque(Exception):
    """The value is not plain."""


class TooLong(Exception):
    """The value's text is over its budget."""


class NotCanonical(ValueError):
    """The text is not the canonical text of a plain value."""


def encode(value, max_chars):
    """The canonical text of a plain value; raises Opaque or TooLong."""
    budget = [max_chars, MAX_KEYS]
    text = _encode(value, budget, MAX_DEPTH)
    if len(text) > max_chars:
        raise TooLong
    return text


def _encode(value, budget, depth):
    kind = type(value)
    if id(kind) in _ATOMS:
        text = _encode_atom(value, kind, budget)
        budget[0] -= len(text)
    elif id(kind) in _BRACKETS:
        if depth == 0:
            raise TooLong
        budget[0] -= 2
        text = _encode_container(value, kind, budget, depth - 1)
    else:
        raise Opaque
    if budget[0] < 0:
        raise TooLong
    return text


def _encode_atom(value, kind, budget):
    if kind is int:
        if value.bit_length() > MAX_INT_DIGITS * 3.3219:
            raise TooLong
        return repr(value)
    if kind is str or kind is bytes:
        if len(value) > budget[0]:
            raise TooLong
        return ascii(value)
    return repr(value)


def _encode_container(value, kind, budget, depth):
    if kind is dict or kind is set:
        budget[1] -= len(value)
        if budget[1] < 0:
            raise TooLong
    if kind is dict:
        items = [_encode(k, budget, depth) + ": " + _encode(v, budget, depth) for k, v in value.items()]
    elif kind is set:
        if not value:
            return "set()"
        items = _encode_set(value, budget, depth)
    else:
        items = [_encode(item, budget, depth) for item in value]
        if kind is tuple and len(items) == 1:
            return "(" + items[0] + ",)"
    opening, closing = _BRACKETS[id(kind)]
    return opening + ", ".join(items) + closing


def _encode_set(items, budget, depth):
    """Items of one ordered type by value, any others by their text."""
    kinds = {id(type(item)) for item in items}
    if len(kinds) == 1 and kinds <= _ORDERED:
        return [_encode(item, budget, depth) for item in sorted(items)]
    return sorted([_encode(item, budget, depth) for item in items])


# Types are told apart by identity: a metaclass can make a type hash and compare like `int`.
_ATOMS = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes)))
_ORDERED = frozenset(map(id, (int, str, bytes)))
_BRACKETS = {id(list): "[]", id(tuple): "()", id(dict): "{}", id(set): "{}"}


# Reading canonical text: a recursive descent of bounded depth over a regular token grammar.

_REAL = r"(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|inf|nan)"
_TOKEN = re.compile(
    rf"""(?P<complex>\(-?{_REAL}[+-]{_REAL}j\)|-?{_REAL}j)
    |(?P<float>-?(?:\d+\.\d+(?:e[+-]\d+)?|\d+e[+-]\d+|inf)|nan)
    |(?P<int>-?\d+)
    |(?P<bytes>b'[^'\\]*(?:\\.[^'\\]*)*'|b"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<str>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<word>None|True|False|set\(\))
    |(?P<mark>,\ |,|:\ |[\[\](){{}}])""",
    re.VERBOSE,
)
_KEYWORD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_WORDS = {"None": None, "True": True, "False": False}
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


def parse(text):
    """The value whose canonical text this is; raises NotCanonical on anything else."""
    try:
        value, end = _parse(text, 0, MAX_DEPTH, [MAX_KEYS])
        canonical = end == len(text) and encode(value, len(text)) == text
    except (TypeError, ValueError, OverflowError, KeyError, TooLong, Opaque):
        canonical = False
        value = None
    if not canonical:
        raise NotCanonical("not the canonical text of a plain value")
    return value


def parse_arguments(text):
    """Positional and keyword arguments from their canonical text `1, [2, 3], n=5`; raises NotCanonical."""
    arguments, keywords = [], {}
    at, budget = 0, [MAX_KEYS]
    try:
        while at < len(text):
            name = _KEYWORD.match(text, at)
            value, end = _parse(text, name.end() if name else at, MAX_DEPTH, budget)
            if name:
                _check_keyword(name[1], keywords)
                keywords[name[1]] = value
            else:
                arguments.append(value)
            at = end if end == len(text) else _after_item(text, end, "")
        canonical = encode_arguments(arguments, keywords, len(text)) == text
    except (TypeError, ValueError, OverflowError, KeyError, TooLong, Opaque):
        canonical = False
    if not canonical:
        raise NotCanonical("not the canonical text of a call's arguments")
    return arguments, keywords


def _check_keyword(name, keywords):
    if iskeyword(name) or not name.isascii():
        raise ValueError("not a name that a parameter may have here")
    if name in keywords:
        raise ValueError("keyword argument repeated")


def _parse(text, at, depth, budget):
    token = _TOKEN.match(text, at)
    if token is None or depth < 0:
        raise NotCanonical
    kind, word, at = token.lastgroup or "", token.group(), token.end()
    if kind != "mark":
        return _ATOM_READERS[kind](word), at
    if word == "[":
        return _parse_items(text, at, "]", depth, budget)
    if word == "(":
        items, at = _parse_items(text, at, ")", depth, budget)
        return tuple(items), at
    if word == "{":
        return _parse_braces(text, at, depth, budget)
    raise NotCanonical


def _parse_items(text, at, closing, depth, budget):
    items = []
    while not text.startswith(closing, at):
        item, at = _parse(text, at, depth - 1, budget)
        items.append(item)
        at = _after_item(text, at, closing)
    return items, at + 1


def _after_item(text, at, closing):
    if text.startswith(", ", at):
        return at + 2
    if closing == ")" and text.startswith(",)", at):
        return at + 1
    if closing and text.startswith(closing, at):
        return at
    raise NotCanonical


def _parse_braces(text, at, depth, budget):
    pairs, items = {}, set()
    while not text.startswith("}", at):
        budget[0] -= 1
        if budget[0] < 0:
            raise NotCanonical
        key, at = _parse(text, at, depth - 1, budget)
        if text.startswith(": ", at):
            pairs[key], at = _parse(text, at + 2, depth - 1, budget)
        else:
            items.add(key)
        at = _after_item(text, at, "}")
    if pairs and items:
        raise NotCanonical
    return (items or pairs), at + 1


def _read_int(word):
    if len(word.removeprefix("-")) > MAX_INT_DIGITS:
        raise NotCanonical
    return int(word)


def _read_str(word):
    return _ESCAPE.sub(_unescape, word[1:-1])


def _unescape(match):
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _SHORT_ESCAPES[match[4]]


_ATOM_READERS = {
    "complex": complex,
    "float": float,
    "int": _read_int,
    "bytes": lambda word: _read_str(word[1:]).encode("latin-1"),
    "str": _read_str,
    "word": lambda word: set() if word == "set()" else _WORDS[word],
}


# Reading any literal text, in the guest.


def read_literal(text):
    """The value of a Python literal; raises ValueError, SyntaxError, RecursionError or MemoryError."""
    return _value(_tree(text.strip()))


def read_arguments(text):
    """Positional and keyword arguments as they stand between a call's parentheses."""
    call = _tree("f(" + text + "\n)")
    if type(call) is not _ast.Call or type(call.func) is not _ast.Name or call.func.end_col_offset != 1:
        raise ValueError("not the arguments of one call")
    arguments = [_value(node) for node in call.args]
    keywords = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError("** is not a literal")
        _check_keyword(keyword.arg, keywords)
        keywords[keyword.arg] = _value(keyword.value)
    return arguments, keywords


def _tree(text):
    """`ast.parse` without `ast`, a large module that every fork would have to carry."""
    tree = compile(text, "<literal>", "eval", _ast.PyCF_ONLY_AST)
    return getattr(tree, "body")  # noqa: B009 (the type stubs know only of `ast.parse`)


def _is_empty_set(call):
    return type(call.func) is _ast.Name and call.func.id == "set" and not call.args and not call.keywords


def _value(node):
    kind = type(node)
    if kind is _ast.Constant and id(type(node.value)) in _ATOMS:
        return node.value
    if kind is _ast.List:
        return [_value(item) for item in node.elts]
    if kind is _ast.Tuple:
        return tuple([_value(item) for item in node.elts])
    if kind is _ast.Set:
        return {_value(item) for item in node.elts}
    if kind is _ast.Dict:
        if None in node.keys:
            raise ValueError("** is not a literal")
        return {_value(k): _value(v) for k, v in zip(node.keys, node.values, strict=True)}
    if kind is _ast.Call and _is_empty_set(node):
        return set()
    if kind is _ast.UnaryOp and type(node.op) in (_ast.USub, _ast.UAdd):
        return _signed(node.op, _value(node.operand))
    if kind is _ast.BinOp and type(node.op) in (_ast.Add, _ast.Sub):
        return _complex(_value(node.left), node.op, _value(node.right))
    raise ValueError("not a literal")


def _signed(sign, value):
    if type(value) not in (int, float, complex):
        raise ValueError("a sign on something that is not a number")
    return -value if type(sign) is _ast.USub else +value


def _complex(real, operator, imaginary):
    if type(real) not in (int, float) or type(imaginary) is not complex:
        raise ValueError("arithmetic is not a literal")
    return real + imaginary if type(operator) is _ast.Add else real - imaginary


def encode_arguments(arguments, keywords, max_chars):
    """The canonical text of a call's arguments: `1, [2, 3], n=5`."""
    budget = [max_chars, MAX_KEYS]
    parts = [_encode(value, budget, MAX_DEPTH) for value in arguments]
    parts += [name + "=" + _encode(value, budget, MAX_DEPTH) for name, value in keywords.items()]
    text = ", ".join(parts)
    if len(text) > max_chars:
        raise TooLong
    return text


def same(left, right, tolerance=FLOAT_TOLERANCE):
    """Equality by type; floats (inside containers too, but not as keys or set items) within a tolerance."""
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is float:
        return _close(left, right, tolerance)
    if kind is complex:
        return same(left.real, right.real, tolerance) and same(left.imag, right.imag, tolerance)
    if kind is list or kind is tuple:
        return len(left) == len(right) and all(same(a, b, tolerance) for a, b in zip(left, right, strict=True))
    if kind is dict:
        lefts, rights = _by_key(left), _by_key(right)
        return [key for key, _ in lefts] == [key for key, _ in rights] and all(
            same(a, b, tolerance) for (_, a), (_, b) in zip(lefts, rights, strict=True)
        )
    if kind is set:
        return sorted(map(_exact, left)) == sorted(map(_exact, right))
    return left == right


def _close(left, right, tolerance):
    """Whole numbers up to 2**53, which rounding leaves exact, must be equal. Others may differ by the tolerance times
    their size up to 1, by the tolerance up to 1000, and above by a thousandth of it times their size, so that no number
    of dollars and cents is taken for another."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    size = max(abs(left), abs(right))
    if left.is_integer() and right.is_integer() and size < _EXACT:
        return left == right
    room = max(tolerance**2, tolerance * min(size, 1.0))
    return math.isclose(left, right, rel_tol=tolerance / 1000, abs_tol=room)


def _by_key(items):
    return sorted(((_exact(key), value) for key, value in items.items()), key=lambda pair: pair[0])


def _exact(key):
    """A key that tells `1`, `1.0` and `True` apart at any depth."""
    return encode(key, 10**9)
