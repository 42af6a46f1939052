"""Plain values and their canonical text: nothing is lost, nothing else is accepted, nothing hostile takes long."""

import collections
import enum
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redqueen.verifier.guest.literals import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    MAX_KEYS,
    NotCanonical,
    Opaque,
    TooLong,
    encode,
    encode_arguments,
    parse,
    parse_arguments,
    read_arguments,
    read_literal,
    same,
)

PLENTY = 10**6
LONG = 60_000
"""Characters of a hostile text: what takes time by its square takes half a minute at this length."""
COLLIDING = 2**61 - 1
"""Python hashes integers modulo this."""

QUICK = 200
"""Turns of work that reading or refusing a value takes at most."""

some = settings(max_examples=40)


def nested(depth: int, inner=None):
    value = [] if inner is None else inner
    for _ in range(depth - 1):
        value = [value]
    return value


# Values


big_ints = st.builds(lambda digits, more: 10**digits + more, st.integers(4200, 4298), st.integers(0, 10**50))
ints = st.integers() | big_ints | big_ints.map(lambda value: -value)
texts = st.text(st.characters() | st.characters(categories=["Cs"]) | st.sampled_from("'\"\\\n\r\t\0"), max_size=20)
complexes = st.builds(complex, st.floats(), st.floats())
atoms = st.none() | st.booleans() | ints | st.floats() | complexes | texts | st.binary(max_size=20)


def values_of(atoms, key_atoms):
    keys = st.recursive(key_atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
    return st.recursive(
        atoms | st.sets(keys, max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.lists(inner, max_size=4).map(tuple)
            | st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=12,
    )


plain = values_of(atoms, atoms)
numbered = st.one_of(*(st.sampled_from(small) for small in ([True, False], [0, 1], [0.0, 1.0, math.nan], [0j, 1 + 0j])))
few = st.sampled_from([True, 0, 1, 1.0, 0.0, "a", b"a"])
likely_equal = values_of(numbered, few)
pairs = st.one_of(
    st.tuples(kind, kind)
    for kind in (st.sets(few, max_size=3), st.dictionaries(few, numbered, max_size=2), st.lists(numbered), likely_equal)
)
"""Of so few values that the two are often nearly the same."""
finite = values_of(
    st.none()
    | st.booleans()
    | ints
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.binary(max_size=20),
    st.booleans() | st.integers() | texts,
)
names = st.sampled_from(["number", "other_1", "_Under"])
arguments = st.tuples(st.lists(plain, max_size=3), st.dictionaries(names, plain, max_size=2))
finite_arguments = st.tuples(st.lists(finite, max_size=3), st.dictionaries(names, finite, max_size=2))


def shape(value):
    """A value with its types, its signs of zero and its nan written out, so that == can't be lenient."""
    if isinstance(value, list | tuple):
        return [type(value), *map(shape, value)]
    if isinstance(value, set):
        return [type(value), *sorted(repr(shape(item)) for item in value)]
    if isinstance(value, dict):
        return [type(value), *([shape(k), shape(v)] for k, v in value.items())]
    if isinstance(value, complex):
        return [type(value), repr(value.real), repr(value.imag)]
    return [type(value), repr(value)]


# There and back


@some
@given(plain)
@example(-0.0)
@example(math.nan)
@example([math.inf, -math.inf])
@example(
    [complex(-0.0, -0.0), complex(0.0, -0.0), complex(-0.0, 1), complex(math.nan, -math.inf), complex(0, math.nan)]
)
@example("\ud83d\ude00")  # two lone surrogates, not one character
@example("\U0001f600\udcff'\"\\")
@example([{}, set(), (), [], (1,), ((),), {()}, {(): {}}])
@example({1: {2: {3}}, (1, (2.5, "x")): b"\x00\xff"})
@example(2**14284 - 1)
@example(nested(MAX_DEPTH))
def test_a_plain_value_comes_back_from_its_text(value):
    assert shape(parse(encode(value, PLENTY))) == shape(value)


@pytest.mark.parametrize("value", [-(10**4299), -(2**14284 - 1)], ids=["round", "most"])
def test_a_negative_integer_of_as_many_digits_as_there_may_be_comes_back(value):
    assert parse(encode(value, PLENTY)) == value


@pytest.mark.parametrize(
    "value", [10**MAX_INT_DIGITS, -(10**MAX_INT_DIGITS), 1 << 10**6], ids=["plus", "minus", "huge"]
)
def test_an_integer_with_more_digits_than_python_prints_is_too_long(value, within):
    with within(QUICK), pytest.raises(TooLong):
        encode(value, PLENTY)


@some
@given(plain)
def test_canonical_text_is_one_line_of_ascii(value):
    text = encode(value, PLENTY)
    assert text.isascii()
    assert text.isprintable()


@some
@given(st.lists(atoms, max_size=6, unique_by=lambda item: repr(shape(item))), st.randoms(use_true_random=False))
def test_a_sets_text_does_not_depend_on_the_order_of_insertion(items, random):
    shuffled = random.sample(items, len(items))
    if len({*items}) == len(items):  # 1 and True are one item
        assert encode(set(items), PLENTY) == encode(set(shuffled), PLENTY)


@some
@given(arguments)
def test_arguments_come_back_from_their_text(given_arguments):
    positional, keywords = given_arguments
    text = encode_arguments(positional, keywords, PLENTY)
    assert text.isascii()
    assert shape(list(parse_arguments(text))) == shape([positional, keywords])


def test_arguments_are_written_as_a_call_has_them():
    assert encode_arguments([1, [2, 3]], {"n": 5, "m": "x"}, PLENTY) == "1, [2, 3], n=5, m='x'"
    assert encode_arguments([], {}, PLENTY) == ""
    assert parse_arguments("") == ([], {})


# Reading hostile text


@st.composite
def mutated(draw, canonical):
    """A canonical text with a few wounds."""
    text = draw(canonical)
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        piece = draw(st.sampled_from(["", text[at:to], text[at:to] * 2, draw(fragments)]))
        text = text[:at] + piece + text[to:]
    return text


fragments = st.sampled_from(
    [
        *"()[]{},:'\"\\ =+-._0193bejx\n\r\t\0é٣",
        ", ",
        ": ",
        ",)",
        "set()",
        "inf",
        "nan",
        "j)",
        "None",
        "\\x4",
        "\\ud800",
        "n=",
    ]
)
canonical_texts = plain.map(lambda value: encode(value, PLENTY))
canonical_arguments = arguments.map(lambda both: encode_arguments(*both, PLENTY))
soups = st.lists(fragments, max_size=12).map("".join)


SPELLINGS = [
    ("1", "01"), ("1", "1_1"), ("0", "-0"), ("0", "0e+0"), (".0", ".00"), ("j", "J"), ("'", '"'), ("a", "\\x61"),
    ("a", "\\141"), (", ", ","), (", ", ",  "), (": ", ":"), ("]", ", ]"), ("]", ",]"), (")", ",)"), ("}", ", }"),
    ("}", ", 1}"), ("}", ", 1: 0}"), ("(", "( "), ("1", "(1)"), ("0", " 0"), ("nan", "NaN"), ("nan", "-nan"),
    ("set()", "{}"), ("", " "), ("", "\n"), ("", "#"),
]  # fmt: skip
"""How a value's text may be written otherwise without becoming nonsense."""


@st.composite
def respelt(draw, canonical):
    text = draw(canonical)
    usual, other = draw(st.sampled_from([pair for pair in SPELLINGS if pair[0] in text]))
    at = draw(st.sampled_from([at for at in range(len(text) + 1) if text.startswith(usual, at)]))
    return text[:at] + other + text[at + len(usual) :]


small_texts = likely_equal.map(lambda value: encode(value, PLENTY))
hostile_texts = st.text(max_size=30) | soups | mutated(canonical_texts) | mutated(small_texts) | respelt(small_texts)


@settings(max_examples=200)
@given(hostile_texts)
def test_reading_accepts_nothing_but_canonical_text(text):
    try:
        value = parse(text)
    except NotCanonical:
        return
    assert encode(value, PLENTY) == text


@settings(max_examples=200)
@given(
    hostile_texts
    | mutated(canonical_arguments)
    | respelt(st.lists(small_texts, min_size=1, max_size=3).map(", n=".join))
)
def test_reading_arguments_accepts_nothing_but_canonical_text(text):
    try:
        positional, keywords = parse_arguments(text)
    except NotCanonical:
        return
    assert encode_arguments(positional, keywords, PLENTY) == text


OTHER_SPELLINGS = [
    " 1", "1 ", "1\n", "01", "+1", "1_0", "0x1", "-0", "--1", "- 1", "٣", "1.", ".5", "1.50", "1e5", "1E+16", "1e16",
    "1e+016", "1e999", "+inf", "-nan", "Infinity", "infinity", "0.1000000000000000055", "1J", "1+2j", "(1+2j", "(2j)",
    "(0+1j)", "(1+-2j)", "(1.0+2j)", "( 1+2j)", '"a"', "u'a'", "r'a'", "'a' 'b'", "'é'", "'\\x41'", "'\\x0a'",
    "'\\xA0'", "'\\u00e9'", "'\\U0000d800'", "'\\U00110000'", "'\\N{DASH}'", "'\\101'", "'\\a'", "'\\0'", "'\\'",
    "'\n'", "'\\\n'", "'\0'", "'''a'''", "'a", "a'", "'\\\"'", 'b"a"', "B'a'", "b'\\u0041'", "b'é'", "b 'a'", "rb'a'",
    "[1,2]", "[1 ,2]", "[1, 2, ]", "[1, 2,]", "[ 1]", "[1 ]", "[,]", "[, 1]", "[1", "[1)", "[1]]", "1]", "]", "[1 2]",
    "[1], 2", "1, 2", "(1)", "(1, )", "(1,2)", "(1, 2,)", "(,)", "( )", "(1,), ", "{2, 1}", "{1, 1}", "{1, True}",
    "{'b', 'a'}", "{,}", "{1,}", "{[]}", "{{}}", "set( )", "set([])", "frozenset()", "{set()}", "{1: 1, 1: 1}",
    "{1: 1, True: 1}", "{1:1}", "{1 : 1}", "{1: }", "{: 1}", "{1: 2, 3}", "{1, 2: 3}", "{1: 2: 3}", "{[]: 1}",
    "{1: 2,}", "", " ", "#", "None ", "none", "NoneNone", "Nonea", "...", "Ellipsis", "f(1)", "1 + 1", "not 1", "n=1",
    "f''", "*[1]", "\\", "\ufeff1", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", OTHER_SPELLINGS)
def test_another_spelling_of_a_value_is_refused(text):
    with pytest.raises(NotCanonical):
        parse(text)


COLLIDING_SET = "{" + ", ".join(str(COLLIDING * at) for at in range(MAX_KEYS)) + "}"
HOSTILE = {
    "brackets": "[" * LONG,
    "parentheses": "(" * LONG,
    "braces": "{" * LONG,
    "closed": "[" * LONG + "]" * LONG,
    "dictionaries": "{1: " * LONG,
    "unfinished items": "[1, " * LONG,
    "digits": "1" * LONG,
    "negative digits": "-" + "1" * LONG,
    "zeros": "0" * LONG,
    "integer part": "1" * LONG + ".0",
    "fraction": "0." + "1" * LONG,
    "exponent": "1e+" + "9" * LONG,
    "negative exponent": "1e-" + "9" * LONG,
    "two reals": "(" + "1" * LONG + "+" + "1" * LONG,
    "four runs of digits": "(" + ".".join(["1" * LONG] * 2) + "+" + ".".join(["1" * LONG] * 2),
    "exponents": "(" + "1e+" * LONG,
    "signs": "-" * LONG,
    "infinities": "inf" * LONG,
    "infinite sum": "(" + "inf+" * LONG,
    "complex": "(" + "1+1j" * LONG,
    "unfinished text": "'" + "a" * LONG,
    "unfinished bytes": "b'" + "a" * LONG,
    "backslashes": "'" + "\\" * (LONG + 1) + "'",
    "quotes": "'" * LONG,
    "both quotes": "'\"" * LONG,
    "empty texts": "[" + "'', " * LONG,
    "broken escapes": "'" + "\\x" * LONG + "'",
    "newlines": "\n" * LONG,
    "nuls": "\0" * LONG,
    "commas": ", " * LONG,
    "spaces": " " * LONG,
    "name": "a" * LONG,
    "keywords": "a=" * LONG,
    "one keyword": "a" * LONG + "=",
    "repeated keyword": ", ".join(["a=1"] * (LONG // 4)),
    "words": "None" * LONG,
    "colliding items": "{" + ", ".join(str(COLLIDING * at) for at in range(20_000)) + "}",
    "colliding keys": "{" + ", ".join(f"{COLLIDING * at}: 1" for at in range(20_000)) + "}",
    "colliding items in many sets": f"[{', '.join([COLLIDING_SET] * 8)}]",
    "colliding items in many arguments": ", ".join([COLLIDING_SET] * 8),
}


@pytest.mark.parametrize("read", [parse, parse_arguments])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_text_is_refused_at_once(read, what, within):
    with within(QUICK), pytest.raises(NotCanonical):
        read(HOSTILE[what])


@pytest.mark.parametrize(
    "value",
    [
        "a" * LONG,
        "\\" * LONG,
        "\0" * (LONG // 4),
        [1] * (LONG // 3),
        list(map(str, range(LONG // 8))),
        set(range(MAX_KEYS)),
    ],
    ids=["text", "backslashes", "escapes", "ints", "texts", "set"],
)
def test_a_long_value_is_read_at_once(value, within):
    text = encode(value, PLENTY)
    with within(QUICK):
        assert parse(text) == value


@some
@given(canonical_texts)
def test_one_value_is_one_argument(text):
    (value,), keywords = parse_arguments(text)
    assert (shape(value), keywords) == (shape(parse(text)), {})


@some
@given(finite_arguments.map(lambda both: encode_arguments(*both, PLENTY)))
def test_canonical_arguments_mean_what_python_reads(text):
    """Finite ones: Python has no literal for inf and nan."""
    assert shape(list(read_arguments(text))) == shape(list(parse_arguments(text)))


@settings(max_examples=100)
@given(mutated(finite_arguments.map(lambda both: encode_arguments(*both, PLENTY))) | soups)
def test_whatever_is_read_as_canonical_arguments_python_reads_alike(text):
    try:
        positional, keywords = parse_arguments(text)
    except NotCanonical:
        return
    if "inf" not in text and "nan" not in text:
        again = read_arguments(text)
        assert same(again[0], positional, tolerance=0.0)
        assert same(again[1], keywords, tolerance=0.0)


@pytest.mark.parametrize(
    "text", ["n=5, 1", "n=1, n=2", "1,2", "1, ", "n = 5", "n=", "=1", "1=1", "é=1", "n.m=1", "n=m=1"]
)
def test_other_spellings_of_arguments_are_refused(text):
    with pytest.raises(NotCanonical):
        parse_arguments(text)


@pytest.mark.parametrize("word", ["None", "True", "if", "lambda"])
def test_a_reserved_word_is_no_keyword(word):
    with pytest.raises(NotCanonical):
        parse_arguments(f"{word}=1")


# Reading literals in the guest


BREAKOUTS = [
    "0) or (True", "1)) or ...((1", "1)(2", "1) + f(1", "1) if f(1) else f(2", "1).f(2", "1)[0](2", "1), f(2",
    "1); f(2", "1)\nf(2", "1)\\\n(2", "1) #", "1\n)\n#", "1) == f(1", "(1", "1)", ")(", "*[1]", "*()", "**{}",
    "**{'n': 1}", "x:=1", "(x:=1)", "n=1, n=2", "n=1, 1", "é=1", "\uff49f=1", "1=1", "None=1", "n=", "lambda: 0",
    "f'a'", "f'{1}'", "[x for x in ()]", "x for x in ()", "{x: 1 for x in ()}", "await 1", "yield", "x", "True.real",
    "int()", "set([])", "set(1)", "list()", "frozenset()", "set().f()", "f()", "...", "1 + 1", "1 * 2", "2 ** 9",
    "1j + 1", "1j + 1j", "'a' + 'b'", "~1", "not True", "-True", "-'a'", "-[]", "-None", "+(1,)", "1 if 1 else 1",
    "1 or 2", "1 < 2", "[1][0]", "[*[1]]", "{*()}", "{**{}}", "__import__('os')", "inf", "nan", "\0", "1 2", ",",
    "1,,", "\ud800", "'\ud800'", "'", "'''", "`1`",
]  # fmt: skip


@pytest.mark.parametrize("text", BREAKOUTS)
def test_what_is_not_the_arguments_of_one_call_is_refused(text):
    with pytest.raises((ValueError, SyntaxError)):
        read_arguments(text)


@pytest.mark.parametrize(
    ("text", "positional", "keywords"),
    [
        ("", [], {}),
        (" \n ", [], {}),
        ("n = 5", [], {"n": 5}),
        ("1, [2, 3], n=5", [1, [2, 3]], {"n": 5}),
        ("1,", [1], {}),
        ("n=1,", [], {"n": 1}),
        ("[1, 2,],\n(3,),\n", [[1, 2], (3,)], {}),
        ("1  # one\n, 2  # and two", [1, 2], {}),
        ("# nothing", [], {}),
        ("\n\t1,\r\n    2\n", [1, 2], {}),
        ("set(), {1}, {}, ()", [set(), {1}, {}, ()], {}),
        ("-1, +1.5, -2j, 1+2j, -1-2j, - - 1", [-1, 1.5, -2j, 1 + 2j, -1 - 2j, 1], {}),
        ("0x10, 1_000, 1e3, .5", [16, 1000, 1000.0, 0.5], {}),
        ("'a' \"b\", r'\\d', '''c\nd''', b'x'", ["ab", "\\d", "c\nd", b"x"], {}),
        ("(1), ((2)), ('#)')", [1, 2, "#)"], {}),
        ("{1: {'a': None}}, True", [{1: {"a": None}}, True], {}),
        ("ﬁ=1", [], {"fi": 1}),
        ("f=1, set=2", [], {"f": 1, "set": 2}),
    ],
)
def test_arguments_are_read_as_people_write_them(text, positional, keywords):
    assert shape(list(read_arguments(text))) == shape([positional, keywords])


def test_a_literal_is_read_as_people_write_it():
    assert read_literal("  [1, (2,), {'a': {3}},]  # done\n") == [1, (2,), {"a": {3}}]
    assert read_literal("1e999") == math.inf


@pytest.mark.parametrize(
    "text", ["", "1, *[2]", "x", "f(1)", "n=1", "1; 2", "x = 1", "[x for x in ()]", "lambda: 0", "f'a'", "1 + 1"]
)
def test_what_is_not_a_literal_is_refused(text):
    with pytest.raises((ValueError, SyntaxError)):
        read_literal(text)


# Budgets


@some
@given(plain)
def test_a_text_of_exactly_the_limit_is_fine_and_one_more_is_too_long(value):
    text = encode(value, PLENTY)
    assert encode(value, len(text)) == text
    with pytest.raises(TooLong):
        encode(value, len(text) - 1)


@some
@given(arguments.filter(any))
def test_arguments_of_exactly_the_limit_are_fine_and_one_more_is_too_long(both):
    text = encode_arguments(*both, PLENTY)
    assert encode_arguments(*both, len(text)) == text
    with pytest.raises(TooLong):
        encode_arguments(*both, len(text) - 1)


def test_a_value_may_be_as_deep_as_the_limit_and_no_deeper():
    deepest = nested(MAX_DEPTH)
    assert parse(encode(deepest, PLENTY)) == deepest
    assert encode(nested(MAX_DEPTH, [1]), PLENTY)
    with pytest.raises(TooLong):
        encode([deepest], PLENTY)
    with pytest.raises(NotCanonical):
        parse("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


def test_a_value_may_have_as_many_keys_as_the_limit_and_no_more():
    most = MAX_KEYS // 2
    for value in ([set(range(most)), dict.fromkeys(range(most))], {0: dict.fromkeys(range(2 * most - 1))}):
        assert parse(encode(value, PLENTY)) == value
    for value in (set(range(2 * most + 1)), [set(range(most)), dict.fromkeys(range(most + 1))]):
        with pytest.raises(TooLong):
            encode(value, PLENTY)
    with pytest.raises(NotCanonical):
        parse("{" + ", ".join(map(str, range(2 * most + 1))) + "}")


def test_keys_are_counted_over_all_arguments_of_a_call():
    half, more = set(range(MAX_KEYS // 2)), set(range(MAX_KEYS // 2 + 1))
    assert parse_arguments(encode_arguments([half], {"n": half}, PLENTY)) == ([half], {"n": half})
    with pytest.raises(TooLong):
        encode_arguments([half], {"n": more}, PLENTY)
    with pytest.raises(NotCanonical):
        parse_arguments(encode(half, PLENTY) + ", n=" + encode(more, PLENTY))


def shared(make):
    value = make(None, None)
    for _ in range(40):
        value = make(value, value)
    return value


def cycle(make):
    inner = []
    inner.append(make(inner))
    return inner


@pytest.mark.parametrize(
    "value",
    [
        shared(lambda a, b: [a, b]),
        shared(lambda a, b: (a, b)),
        shared(lambda a, b: {1: a, 2: b}),
        cycle(lambda inner: inner),
        cycle(lambda inner: (inner, inner)),
        cycle(lambda inner: {1: inner, 2: inner}),
        nested(5000),
        [[]] * 10**6,
        "a" * 10**6,
        b"\0" * 10**6,
    ],
    ids=["lists", "tuples", "dicts", "cycle", "cycle of pairs", "cycle of dicts", "deep", "wide", "text", "bytes"],
)
def test_what_has_no_end_or_none_in_sight_is_too_long_at_once(value, within):
    with within(QUICK), pytest.raises(TooLong):
        encode(value, 20_000)


# What is not plain


class Liar(type):
    """A type that hashes and compares like another."""

    def __new__(cls, like):
        return super().__new__(
            cls, like.__name__, (), {"like": like, "__repr__": lambda self: "1", "bit_length": lambda self: 1}
        )

    def __init__(cls, like):
        super().__init__(like)

    def __eq__(cls, other):
        return other is cls.like or other is cls

    def __hash__(cls):
        return hash(cls.like)


class Impostor:
    """Says that it is an int."""

    __class__ = property(lambda self: int)

    def __repr__(self):
        return "1"


class Yes:
    def __bool__(self):
        return True


class Colour(enum.IntEnum):
    RED = 1


def subclass_of(kind, *values):
    return type(kind.__name__, (kind,), {})(*values)


OPAQUE = {
    "frozenset": frozenset({1}), "bytearray": bytearray(b"a"), "range": range(3), "object": object(), "...": ...,
    "type": int, "function": len, "generator": (x for x in ()), "NotImplemented": NotImplemented,
    "memoryview": memoryview(b"a"), "int subclass": subclass_of(int, 1), "float subclass": subclass_of(float, 1.5),
    "str subclass": subclass_of(str, "a"), "bytes subclass": subclass_of(bytes, b"a"),
    "complex subclass": subclass_of(complex, 1j), "list subclass": subclass_of(list, [1]),
    "tuple subclass": subclass_of(tuple, (1,)), "dict subclass": subclass_of(dict, {1: 1}),
    "set subclass": subclass_of(set, {1}), "OrderedDict": collections.OrderedDict(),
    "Counter": collections.Counter("a"), "defaultdict": collections.defaultdict(int), "deque": collections.deque(),
    "namedtuple": collections.namedtuple("Point", "x y")(1, 2), "enum": Colour.RED, "bool-like": Yes(),
    "impostor": Impostor(),
    **{f"liar {kind.__name__}": Liar(kind)() for kind in (int, str, bool, float, type(None), list, dict, set)},
}  # fmt: skip


@pytest.mark.parametrize("what", OPAQUE)
def test_what_is_not_exactly_of_a_plain_type_is_opaque_at_any_depth(what):
    value = OPAQUE[what]
    holders = [value, [value], (1, value), {1: value}, [{"a": (value,)}]]
    if what not in (
        "list subclass",
        "dict subclass",
        "set subclass",
        "bytearray",
        "OrderedDict",
        "Counter",
        "defaultdict",
        "deque",
    ):
        holders += [{value}, {value: 1}, {(value,)}]
    for holder in holders:
        with pytest.raises(Opaque):
            encode(holder, PLENTY)


# Equality


@some
@given(likely_equal | finite)
def test_a_value_is_the_same_as_itself(value):
    assert same(value, value)
    assert same(value, parse(encode(value, PLENTY)), tolerance=0.0)


@settings(max_examples=100)
@given(pairs)
def test_sameness_goes_both_ways(pair):
    left, right = pair
    for tolerance in (0.0, 1e-6):
        assert same(left, right, tolerance) == same(right, left, tolerance)


@settings(max_examples=100)
@given(pairs)
def test_values_with_one_text_are_the_same(pair):
    """Up to the order of a dict and the sign of a zero, also the other way round."""
    left, right = pair
    if encode(left, PLENTY) == encode(right, PLENTY):
        assert same(left, right, tolerance=0.0)
    elif same(left, right, tolerance=0.0):
        assert sorted(encode(left, PLENTY)) == sorted(encode(right, PLENTY))


DIFFERENT = [
    (1, True), (1, 1.0), (True, 1.0), (0, False), (0, None), (1, 1 + 0j), (1.0, 1 + 0j), ("a", b"a"), ("", None),
    ("1", 1), ([], ()), ([1], (1,)), ([1], {1}), ({}, set()), ({}, []), ([1], [True]), ((1,), (1.0,)),
    ([[1]], [[1.0]]), ([1], [1, 1]), ([1, 2], [2, 1]), ({1}, {True}), ({1}, {1.0}), ({(1,)}, {(True,)}),
    ({((1,),)}, {((1.0,),)}), ({1, 2}, {1, 3}), ({1, 2}, {1}), (set(), {1}), ({1: 0}, {True: 0}), ({1: 0}, {1.0: 0}),
    ({(1,): 0}, {(True,): 0}), ({("a", (0,)): 0}, {("a", (False,)): 0}), ({1: 1}, {1: True}), ({1: 1}, {1: 2}),
    ({1: 1}, {1: 1, 2: 2}), ({1: 1}, {2: 1}), ({1: [1]}, {1: [1.0]}), ({"a": 1}, {b"a": 1}), (1.0, 1.00001),
    (0.0, 1e-8), (math.inf, -math.inf), (math.inf, math.nan), (math.inf, 1e308), (1.0, math.nan), (1j, -1j),
    (complex(1, math.nan), complex(2, math.nan)), (1 + 1j, 1 + 1.1j), ({1.0}, {1.0 + 1e-9}),
    ({1.0: 0}, {1.0 + 1e-9: 0}), ("a", "a "), (2**70, 2**70 + 1), (1234567.0, 1234568.0), (1e9, 1e9 + 1),
    (2.0**53 - 1, 2.0**53 - 2), ([-5e12], [-5e12 - 1]), (1e9 + 1j, 1e9 + 1 + 1j), (1234567.0, 1234567.5),
    (1234567.25, 1234568.25), (0.25, 0.250001), (999.5, 999.50001),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), DIFFERENT, ids=repr)
def test_values_that_differ_are_told_apart(left, right):
    assert not same(left, right)
    assert not same(right, left)


ALIKE = [
    (1.0, 1.0 + 1e-9), (1e17, 1e17 + 32), (12345.678, 12345.678001), (0.25, 0.2500002),
    (-1.0, -1.0 - 1e-9), (0.0, -0.0), (0.0, 1e-12), (0.1 + 0.2, 0.3),
    (1 + 1j, 1 + 1.0000000001j), ([0.1 + 0.2], [0.3]), ((1, [0.3]), (1, [0.1 + 0.2])), ({1: 0.3}, {1: 0.1 + 0.2}),
    ({"a": [0.3]}, {"a": [0.1 + 0.2]}),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), ALIKE, ids=repr)
def test_floats_are_the_same_within_the_tolerance_and_exactly_without_one(left, right):
    assert same(left, right)
    assert same(right, left)
    assert same(left, right, tolerance=0.0) == (left == right)


def test_nan_is_the_same_as_nan_and_infinity_as_itself():
    assert same(math.nan, float("nan"), tolerance=0.0)
    assert same([math.nan, {1: math.nan}], [float("nan"), {1: float("nan")}])
    assert same(complex(math.nan, 1), complex(float("nan"), 1))
    assert same({math.nan}, {float("nan")})
    assert same({(math.nan,): 1}, {(float("nan"),): 1})
    assert same([math.inf, -math.inf], [math.inf, -math.inf], tolerance=0.0)


NANS = [float("nan"), float("nan")]


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        ({NANS[0]: 1, NANS[1]: 2}, {NANS[0]: 1, NANS[1]: 2}, True),
        ({NANS[0]: 1, NANS[1]: 1}, {NANS[0]: 1, "a": 2}, False),
        ({NANS[0], NANS[1]}, {NANS[0]}, False),
    ],
)
def test_nan_keys_are_counted(left, right, wanted):
    assert same(left, right) is wanted


def test_the_order_of_a_dict_or_a_set_is_irrelevant():
    assert same({1: "a", 2: "b"}, {2: "b", 1: "a"}, tolerance=0.0)
    assert same([{1: {"x": 1, "y": 2}}], [{1: {"y": 2, "x": 1}}], tolerance=0.0)
    assert same(set("abcdefgh"), set("hgfedcba"))
    assert not same({1: "a", 2: "b"}, {1: "b", 2: "a"})
