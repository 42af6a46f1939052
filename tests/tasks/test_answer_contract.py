"""From text to drafts and answers: what is tolerated, what is not, and that no text does harm."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redqueen.tasks.code import FAMILY, CodeDraft
from redqueen.tasks.code.blocks import Answer, read_answer
from redqueen.tasks.code.code_i import read_input
from redqueen.tasks.code.code_o import read_output
from redqueen.tasks.verdicts import Reason, Rejection

PROGRAM = "def f(n):\n    if n:\n        return n + 1\n    return 0"
PLAIN = f"```python\n{PROGRAM}\n```\n```input\n5\n```"
INDENTED = "\n".join("   " + line for line in PLAIN.split("\n"))

TOLERATED = {
    "plain": PLAIN,
    "prose around": f"Sure!\n\n{PLAIN}\n\nIt returns 6, I think.",
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "indented fences": INDENTED,
    "unlabelled": PLAIN.replace("```python", "```").replace("```input", "```"),
    "capital labels": PLAIN.replace("python", "Python").replace("```input", "``` Input:"),
    "neutral label": PLAIN.replace("```input", "```text"),
    "other blocks": f"```bash\npip install x\n```\n{PLAIN}",
    "think": f"<think>\n```python\ndef f(x): return 'draft'\n```\n</think>{PLAIN}",
    "think without its opening tag": f"a thought\n</think>\n{PLAIN}",
    "answer": f"so:\n<answer>\n{PLAIN}\n</answer> done",
    "answer that the sampler stopped at": f"<answer>\n{PLAIN}\n",
    "last program counts": f"```python\ndef f(n):\n    return 'first'\n```\n{PLAIN}",
    "last input counts": f"```input\n99\n```\n{PLAIN}",
    "program without f does not count": f"{PLAIN}\n```python\nassert f(5) == 6\n```",
    "forgotten closing fence": f"```python\n{PROGRAM}\n```input\n5\n```",
    "fence closes on the last line": f"```python\n{PROGRAM}```\n```input\n5```",
    "input on one line": f"```python\n{PROGRAM}\n```\n```input 5```",
    "the whole call": PLAIN.replace("\n5\n", "\nf(5)\n"),
    "longer fences": PLAIN.replace("```", "`````"),
}


@pytest.mark.parametrize("text", TOLERATED.values(), ids=TOLERATED)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_tolerated_layout_changes_nothing(kind, text):
    assert FAMILY.kinds()[kind].parse_proposal(text, {}) == CodeDraft(kind, PROGRAM, ("5",))


REFUSED = {
    "nothing": ("", Reason.NO_PROGRAM),
    "prose": ("I can't think of any program.", Reason.NO_PROGRAM),
    "no fences": (PROGRAM, Reason.NO_PROGRAM),
    "no input": (f"```python\n{PROGRAM}\n```", Reason.NO_INPUT),
    "blank input": (PLAIN.replace("\n5\n", "\n  \n"), Reason.NO_INPUT),
    "empty call": (PLAIN.replace("\n5\n", "\nf()\n"), Reason.NO_INPUT),
    "cut in the program": (PLAIN[:30], Reason.CUT),
    "cut in the input": (PLAIN[:-4], Reason.CUT),
    "cut in a thought": (f"{PLAIN}\n<think>Wait, is that", Reason.CUT),
    "over the length": (PLAIN + " " * 100_000, Reason.TEXT_TOO_LONG),
    "program over its length": (PLAIN.replace("return 0", "return 0 #" + "x" * 4_000), Reason.PROGRAM_TOO_LONG),
    "surrogate": (PLAIN + "\ud800", Reason.NOT_TEXT),
    "NUL": (PLAIN.replace("return 0", "return '\0'"), Reason.NOT_TEXT),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_proposal_off_the_contract_is_rejected_with_its_reason(text, reason):
    rejection = FAMILY.kinds()["code_o"].parse_proposal(text, {})
    assert isinstance(rejection, Rejection)
    assert rejection.reason == reason


INPUTS = {
    "lines": "```inputs\n1\n2, 3\nn=4\nf(5)\n```",
    "blocks": "```input\n1\n```\n```input\n2, 3\n```\n```input\nn=4\n```\n```input\n5\n```",
    "unlabelled": "```\n1\n2, 3\n\nn=4\n5\n```",
    "lines after a block": "```input\n9\n```\n```inputs\n1\n2, 3\nn=4\n5\n```",
    "twice the same": "```inputs\n1\n1\n2, 3\nn=4\n5\n5\n```",
}


@pytest.mark.parametrize("text", INPUTS.values(), ids=INPUTS)
def test_several_inputs_are_read_from_lines_or_blocks(text):
    draft = FAMILY.kinds()["code_f"].parse_proposal(text + "\n```message\na hint\n```", {"program": PROGRAM})
    assert draft == CodeDraft("code_f", PROGRAM, ("1", "2, 3", "n=4", "5"), "a hint")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```message\na hint\n```", Reason.NO_INPUT),
        ("```inputs\n1\n2\n3\n```", Reason.TOO_FEW_INPUTS),
        ("```inputs\n" + "\n".join(map(str, range(13))) + "\n```", Reason.TOO_MANY_INPUTS),
        ("```inputs\n1\n2\n3\n4\n```\n```message\n" + "x" * 501 + "\n```", Reason.MESSAGE_TOO_LONG),
    ],
)
def test_inputs_off_the_contract_are_rejected(text, reason):
    rejection = FAMILY.kinds()["code_f"].parse_proposal(text, {"program": PROGRAM})
    assert isinstance(rejection, Rejection)
    assert rejection.reason == reason


@pytest.mark.parametrize(
    "text",
    [
        "42",
        " 42 \n",
        "```output\n42\n```",
        "```\n42\n```",
        "```python\n42\n```",
        "It is\n```output\n41\n```\nno,\n```output\n42\n```\n.",
        "```output\n42\n```\n```python\nf(1)\n```",
        "<think>```output\n1\n```</think><answer>42</answer>",
    ],
)
def test_an_answer_is_the_last_block_of_its_label_or_all_there_is(text):
    assert read_output(text) == "42"
    assert read_input(text.replace("output", "input")) == "42"


# Texts that have hurt a parser: deep, long, quadratic to match, or not text at all.
NASTY = [
    "(" * 100_000,
    "-" * 1_000_000,
    "`" * 99_999,
    "`" * 50_000 + "x" + "`" * 40_000,
    "```" * 30_000,
    "``` " * 24_000,
    "```x" * 20_000,
    "```python\n" + "(" * 3_900 + "\n```",
    "```python\n" + "-" * 3_900 + "1\n```",
    "```python\n" + "not " * 900 + "1\n```",
    "```python\n" + "lambda:" * 500 + "1\n```",
    "```python\ndef f(x): return x" + ".a" * 1_900 + "\n```\n```input\n1\n```",
    "```python\ndef f(x): return 0x" + "f" * 3_900 + "\n```\n```input\n1\n```",
    "```python\ndef f(x): return " + "9" * 3_900 + "\n```\n```input\n1\n```",
    "```python\ndef f(x): return '\\N{" + "x" * 3_000 + "}'\n```",
    "<think>" * 14_000,
    "<answer>" * 12_000,
    "</think>" * 12_000,
    "```input\n" + "[" * 90_000 + "\n```",
    "```input\nf(" + ")" * 90_000 + "\n```",
    "\ud800\udfff\0\x85\u2028\ufeff",
    "\n" * 99_999,
    " " * 99_999,
]


def parse_all(text: str) -> None:
    for kind in FAMILY.kinds().values():
        for context in ({"program": PROGRAM}, {"program": text}):
            parsed = kind.parse_proposal(text, context)
            assert isinstance(parsed, Rejection | CodeDraft)
            assert not isinstance(parsed, Rejection) or parsed.detail.isascii()
    assert isinstance(read_answer(text), Answer | Rejection)
    read_output(text)
    read_input(text)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_nasty_text_makes_parsing_raise_or_dawdle(text, within):
    with within(200):
        parse_all(text)


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)
PIECES = st.sampled_from(
    [
        "```", "```python\n", "```input\n", "```inputs\n", "```output\n", "```message\n", "\n```\n", "\n", "\r\n", " ",
        "\t", "<think>", "</think>", "<answer>", "</answer>", "def f(x):\n", "    return x", "f(", ")", "(", "[", "]",
        "{", "}", "5", "n=5", ",", "'", '"', "\\", "#", "\0", "\ud800", "lambda:", "-", "not ", "async def f(x): ",
        "class A:\n", "import os\n", "from . import *\n", "yield", "f'{x", "}'", "**", "match x:\n case ", ":=", "\f",
        "\x1a", "é", "e\u0301",
    ]
)  # fmt: skip
SOUP = st.lists(PIECES | ANY_TEXT, max_size=40).map("".join)


@settings(max_examples=300)
@given(SOUP)
@example("```python\ndef f(x): return x\n```\n```input\n\ud800\n```")
def test_parsing_never_raises_on_any_text(text):
    parse_all(text)


@settings(max_examples=100)
@given(SOUP)
def test_parsing_never_raises_on_any_program(text):
    parse_all(f"```python\n{text}\n```\n```input\n5\n```")
    parse_all(f"```python\ndef f(x):\n    return {text}\n```\n```input\n5\n```")
