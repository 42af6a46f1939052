"""From what was said to the answer in it: properties on any text, and texts that were made to keep a search busy."""

from decimal import Decimal
from functools import partial

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evals.slices import ROWS
from redqueen.evals.aime import whole_number
from redqueen.evals.extraction import boxed, fenced, final_answer, last_number, letter, numeral
from redqueen.evals.maths import bare, cleaned, settled, voted
from redqueen.evals.protocol import Item, Prompts
from redqueen.plugins import BENCHMARKS

quickly = settings(max_examples=100)
TEXTS = st.text() | st.text(alphabet="\\boxedf{}$ answer is:=0123456789.,-+e^*\n`ABCD()", max_size=200)
UNBOXED = TEXTS.filter(lambda text: "\\boxed" not in text and "\\fbox" not in text).map(lambda text: text.rstrip("\\"))
BALANCED = st.recursive(
    st.text(alphabet="xyz0123456789+-*/^_ ,.()[]$", max_size=8),
    lambda inner: st.builds("{}{{{}}}{}".format, inner, inner, inner),
    max_leaves=6,
)


# Boxes


@quickly
@given(UNBOXED, BALANCED, UNBOXED)
def test_what_is_put_into_a_box_is_found_in_any_text(before, inside, after):
    assert boxed(f"{before}\\boxed{{{inside}}}{after}") == inside.strip()
    assert boxed(f"{before}\\fbox {{{inside}}}{after}") == inside.strip()


@quickly
@given(UNBOXED, BALANCED, UNBOXED, BALANCED, UNBOXED)
def test_the_last_box_wins(before, first, between, last, after):
    assume(between.count("{") == between.count("}") == 0)
    assert boxed(f"{before}\\boxed{{{first}}}{between}\\boxed{{{last}}}{after}") == last.strip()


def test_braces_that_are_escaped_do_not_count():
    assert boxed("\\boxed{\\{1, 2\\}}") == "\\{1, 2\\}"
    assert boxed("\\boxed{\\left\\{x\\right.}") == "\\left\\{x\\right."


def test_a_box_that_is_not_closed_is_none():
    assert boxed("\\boxed{7} and then \\boxed{8") == "7"
    assert boxed("\\boxed{8") is None
    assert boxed("nothing here") is None


def test_a_box_in_a_box_is_the_answer_inside():
    assert boxed("\\boxed{\\boxed{5}}") == "5"


# Fences


@quickly
@given(TEXTS.filter(lambda text: "```" not in text), TEXTS.filter(lambda text: "```" not in text))
def test_what_is_fenced_is_found_in_any_text(inside, around):
    assert fenced(f"{around}\n```python\n{inside}\n```\n{around}") == [inside.rstrip("\n")]
    assert fenced(f"{around}\n```\n{inside}") == [inside.rstrip("\n")]
    assert fenced(around) == []


def test_several_fences_are_found_in_their_order():
    assert fenced("```\na\n```\nthen\n```py\nb\n\n```\n") == ["a", "b"]


# Numbers

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4)


@quickly
@given(DECIMALS)
def test_a_decimal_is_read_as_it_was_written(value):
    assert numeral(format(value, "f")) == value
    assert numeral(format(value, ",f")) == value
    assert numeral(format(value, ",f").replace(",", "{,}")) == value
    assert numeral(f" $ {value:f} $ ") == value


@quickly
@given(DECIMALS, st.integers(-300, 300))
def test_scientific_notation_is_read_as_it_was_written(value, exponent):
    right = Decimal(f"{value:f}e{exponent}")
    for text in (
        f"{value:f}e{exponent}", f"{value:f}E{exponent}", f"{value:f} \\times 10^{{{exponent}}}",
        f"{value:f}\\cdot10^{{{exponent}}}", f"{value:f} * 10^{exponent}",
    ):  # fmt: skip
        assert numeral(text) == right


@quickly
@given(st.integers(-(10**60), 10**60))
@example(10**30 + 1)
def test_long_whole_numbers_are_read_to_their_last_digit(value):
    assert numeral(str(value)) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1+1", "1,2", "1,23", "1e", "e5", "nan", "inf", "1/2", "--1", "1e99999", ".", "1 2"]
)
def test_what_is_no_plain_numeral_is_none(text):
    assert numeral(text) is None


@quickly
@given(DECIMALS, st.text(alphabet="abc xyz\n!?", max_size=40))
def test_the_last_number_is_found_behind_any_text(value, words):
    assert Decimal(last_number(f"{words}12 and then {value:f} {words}") or "") == value
    assert Decimal(last_number(f"{words}12 and then {value:,f} {words}") or "") == value


def test_a_number_is_read_without_its_currency():
    assert last_number("It costs $1,234.50.") == "1234.50"
    assert last_number("He owes -$5 now") == "-5"
    assert last_number("none") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\\boxed{1{,}000}", "1000"), ("\\boxed{\\$1{,}000}", "1000"), ("\\boxed{1\\,000}", "1000"),
        ("\\boxed{1,\\!000}", "1000"), ("\\boxed{36 \\text{ m}^2}", "36"), ("\\boxed{36 m^{2}}", "36"),
        ("\\boxed{-\\$5}", "-5"), ("\\boxed{25\\text{ in 2 hours}}", "25"), ("\\boxed{\\text{36 pears}}", "36"),
        ("Then 10-8", "8"), ("Then 1.5-2.5", "2.5"), ("so x=-8", "-8"), ("10 - -3", "-3"),
        ("\\boxed{} so $1{,}234$", "1234"),
    ],
)  # fmt: skip
def test_the_number_in_a_box_or_else_the_last_one_is_found(text, found):
    assert BENCHMARKS.get("gsm8k").extract(Item("own", {}), text, Prompts.CHAT) == found


@pytest.mark.parametrize(
    "text", ["m+n=204", "x=204", "\\textbf{204}", "204^\\circ", "204^{\\circ}", "m + n = \\mathbf{204}", "\\$204"]
)
def test_a_whole_number_is_found_in_what_stands_around_it(text):
    assert whole_number(text) == 204


def test_two_whole_numbers_are_not_one():
    assert [whole_number(text) for text in ("20 4", "20\\ 4", "20\\quad 4", "204=m+n")] == [None] * 4


def test_a_whole_number_may_have_zeros_and_a_unit_of_text_around_it():
    assert [whole_number(text) for text in ("042", "42.0", "\\text{42}", "$42$", "4.2", "x", "1000000", "-3")] == [
        42, 42, 42, 42, None, None, None, -3,
    ]  # fmt: skip


# Letters


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("B", "B"), (" C. the third", "C"), ("The answer is (D).", "D"), ("\\boxed{A}", "A"),
        ("A is wrong, so the answer is B", "B"), ("**Answer: C**", "C"), ("E", None), ("", None), ("Because", None),
        ("\\boxed{\\text{D}}", "D"), ("The answer is A. No, the answer is C", "C"), ("I choose option B", "B"),
        ("A is wrong. Answer: C", "C"),
    ],
)  # fmt: skip
def test_the_letter_of_a_choice_is_found(text, found):
    assert letter(text) == found


@quickly
@given(st.sampled_from("ABCD"), st.text(alphabet="efgh xyz.\n", max_size=40))
def test_a_letter_alone_is_found_in_any_words(mark, words):
    assert letter(f"{words} {mark} {words}") == mark


# What an answer is where it is in no box


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("So the answer is 12. That is all.", "12"), ("The final answer is: $\\frac{1}{2}$.", "\\frac{1}{2}"),
        ("The answer is \\(x + 1\\).", "x + 1"), ("**Answer:** 7", "7"), ("Answer: 3.5", "3.5"), ("12 or 13", "13"),
        ("\\boxed{} so 4", "4"), ("The answer is\n5", "5"), ("nothing", None), ("answer = x + y\nbye", "x + y"),
        ("The answer is **5**.", "5"), ("The answer is **5** apples. Yes.", "5 apples"), ("The answer is *5*.", "5"),
        ("**The answer is 5.**", "5"), ("The answer is: **$x$**.", "x"), ("The answer is 2**3.", "2**3"),
    ],
)  # fmt: skip
def test_an_answer_that_is_in_no_box_is_what_is_called_so(text, found):
    assert final_answer(text) == found


# Any text


@pytest.mark.parametrize("name", sorted(BENCHMARKS.names()))
@settings(max_examples=30)
@given(text=TEXTS)
def test_every_benchmark_reads_any_text(name, text):
    item = Item("own", ROWS[name][0])
    for how in Prompts:
        found = BENCHMARKS.get(name).extract(item, text, how)
        assert found is None or isinstance(found, str)


@quickly
@given(TEXTS, TEXTS)
def test_any_two_texts_can_be_compared(gold, answer):
    assert settled(gold, answer) in (True, False, None)
    assert settled(answer, answer) is True
    assert isinstance(voted(answer), str)
    assert isinstance(cleaned(answer), str)
    assert isinstance(bare(answer), str)
    assert whole_number(answer) is None or isinstance(whole_number(answer), int)


LONG = {
    "open braces": "{" * 200_000,
    "braces": "{" * 100_000 + "}" * 100_000,
    "open boxes": "\\boxed{" * 28_000,
    "open boxes of braces": "\\boxed{{" * 25_000,
    "boxes": "\\boxed{" * 14_000 + "}" * 14_000,
    "box marks and spaces": "\\boxed" + " " * 200_000,
    "phrases": "answer is " * 20_000,
    "phrases and spaces": "answer" + " " * 200_000,
    "phrases and colons": "answer :" * 25_000,
    "letters": "answer " * 28_000,
    "digits": "1" * 200_000,
    "groups": "1,234" * 40_000,
    "commas": "1," * 100_000,
    "points": "1." * 100_000,
    "minus": "-" * 200_000,
    "dollars": "$" * 200_000,
    "formulas": "answer is $" + "\\(" * 100_000,
    "backslashes": "\\" * 200_000,
    "texts": "\\text{" * 33_000,
    "fences": "```\n" * 50_000,
    "fence marks": "`" * 200_000,
    "lines": "\n" * 200_000,
    "spaces": " " * 200_000,
    "sentences": "answer is " + ". " * 100_000,
    "signs of layout": "\\left\\," * 28_000,
}


@pytest.mark.parametrize("name", LONG)
def test_no_text_keeps_a_search_busy(name, within):
    plain = (boxed, fenced, final_answer, last_number, letter, numeral, bare, voted, whole_number)
    for search in (*plain, partial(settled, "7")):
        with within(400):
            search(LONG[name])
