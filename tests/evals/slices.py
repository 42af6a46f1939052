"""Small stand-ins for all benchmarks, in our own words: five tasks each, with a text that is right and one that is not.

`write_slices` lays them out as `redqueen eval --data` reads them.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from redqueen.evals.protocol import Prompts
from redqueen.plugins import BENCHMARKS


@dataclass(frozen=True)
class Texts:
    """What a model may say to one task."""

    right: str
    wrong: str


SAID: dict[tuple[str, Prompts], Texts] = {}
"""By the task and how it is asked."""
SECRETS: dict[str, str] = {}
"""By the task, a text that no prompt may have: the answer, or the benchmark's own solution."""
ROWS: dict[str, list[dict[str, Any]]] = {}
"""By benchmark."""
BESIDE: dict[str, list[dict[str, Any]]] = {}
"""By path, the further files."""


def write_slices(folder: Path) -> Path:
    for name, rows in ROWS.items():
        write_rows(folder / (BENCHMARKS.get(name).folder or name) / "test.jsonl.gz", rows)
    for path, rows in BESIDE.items():
        write_rows(folder / path, rows)
    return folder


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0))


def fence(program: str) -> str:
    return f"Here it is:\n```python\n{program}\n```\nIt does what was asked."


# Functions

_ASSERTION = """
import numpy as np

def assertion(out, exp, atol):
    assert out == exp or np.allclose(out, exp, rtol=1e-07, atol=atol)
"""


def script(program: str, entry: str, inputs: list[list[Any]], atol: float = 0) -> str:
    """Tests in the form of EvalPlus' scripts."""
    names: dict[str, Any] = {}
    exec(program, names)
    results = [names[entry](*each) for each in inputs]
    return (
        f"{_ASSERTION}\ninputs = {inputs}\nresults = {results}\n"
        f"for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion({entry}(*inp), exp, {atol})\n"
    )


@dataclass(frozen=True)
class Function:
    head: str
    about: str
    body: str
    wrong: str
    base: list[list[Any]]
    plus: list[list[Any]]

    @property
    def entry(self) -> str:
        return self.head.removeprefix("def ").partition("(")[0]


_COMPLETED = (
    Function(
        "def thirds(numbers):",
        "A third of every number, in the order that they came in.",
        "out = [each / 3 for each in numbers]\nreturn out",
        "return [each / 4 for each in numbers]",
        [[[3, 6]], [[1, 2]]],
        [[[]], [[0.1, 10, 7]], [[-5]]],
    ),
    Function(
        "def tally(word):",
        "How often each letter is in the word.",
        "out = {}\nfor letter in word:\n    out[letter] = out.get(letter, 0) + 1\nreturn out",
        "return {letter: 1 for letter in word}",
        [["otter"], ["heron"]],
        [[""], ["aaaa"], ["mississippi bank"]],
    ),
    Function(
        "def ends(numbers):",
        "The smallest and the largest of some numbers.",
        "low, *_, high = sorted([*numbers, *numbers])\nreturn low, high",
        "return numbers[0], numbers[-1]",
        [[[1, 2, 3]], [[4, 9, 2]], [[5]]],
        [],
    ),
    Function(
        "def countdown(start):",
        "All whole numbers from the start down to one.",
        "out = []\nwhile start > 0:\n    out.append(start)\n    start -= 1\nreturn out",
        "return list(range(1, start + 1))",
        [[3], [1]],
        [[0], [-2], [5000]],
    ),
    Function(
        "def neighbours(number):",
        "The whole numbers before and after a number, as a list.",
        "out = [number - 1]\nout.append(number + 1)\nreturn out",
        "return [number, number + 1]",
        [[3], [10]],
        [[0], [-1], [99]],
    ),
)
_WRITTEN = (
    Function(
        "def odd_sum(numbers):",
        "Add up the odd ones of some whole numbers.",
        "whole = 0\nfor each in numbers:\n    whole += each * (each % 2)\nreturn whole",
        "return sum(numbers)",
        [[[1, 2, 3]], [[4]]],
        [[[]], [[7, 7, 8]]],
    ),
    Function(
        "def shouted(text):",
        "Put a text into capitals, with a mark of exclamation behind it.",
        'loud = text.upper()\nreturn loud + "!"',
        "return text.upper()",
        [["hey"], ["no"]],
        [[""], ["a b"]],
    ),
    Function(
        "def middle(first, second):",
        "The number half-way between two others.",
        "gap = second - first\nreturn first + gap / 2",
        "return (first + second) // 2",
        [[1, 3], [2, 4]],
        [[1, 2], [0.1, 0.2]],
    ),
    Function(
        "def longest(words):",
        "The longest of some words; of several the first.",
        'best = ""\nfor word in words:\n    best = word if len(word) > len(best) else best\nreturn best',
        "return words[0]",
        [[["a", "bb"]], [["ccc", "d"]]],
        [[["x", "yy", "zz"]]],
    ),
    Function(
        "def pairs_up(items):",
        "Whether there is an even number of items.",
        "left = len(items) % 2\nreturn left == 0",
        "return True",
        [[[1, 2]], [[1]]],
        [[[]], [[3, 3, 3]]],
    ),
)


def _add_function(name: str, beside: str, number: int, function: Function) -> None:
    id = f"Own/{name}/{number}"
    body, wrong = indent(function.body, "    "), indent(function.wrong, "    ")
    if name == "humaneval_plus":
        prompt = f'{function.head}\n    """ {function.about}\n    """\n'
        canonical, whole = body + "\n", prompt + body + "\n"
        SAID[id, Prompts.RAW] = Texts(body, wrong)
    else:
        prompt = f'"""\n{function.about}\nassert {function.entry}(*{function.base[0]!r}) is right\n"""\n'
        canonical = whole = f"{function.head}\n{body}\n"
        SAID[id, Prompts.RAW] = Texts(whole, f"{function.head}\n{wrong}\n")
    SAID[id, Prompts.CHAT] = Texts(fence(f"{function.head}\n{body}"), fence(f"{function.head}\n{wrong}"))
    SECRETS[id] = body
    row = {"id": id, "prompt": prompt, "entry_point": function.entry, "canonical_solution": canonical}
    test = script(whole, function.entry, [*function.base, *function.plus])
    ROWS.setdefault(name, []).append({**row, "test": test})
    BESIDE.setdefault(f"{name}/{beside}", []).append({"task_id": id, "base_input": function.base})


for _number, (_one, _other) in enumerate(zip(_COMPLETED, _WRITTEN, strict=True)):
    _add_function("humaneval_plus", "HumanEvalPlus.jsonl.gz", _number, _one)
    _add_function("mbpp_plus", "MbppPlus.jsonl.gz", _number, _other)


# Contest programs


def _add_program(
    release: str, about: str, right: str, wrong: str, tests: list[tuple[str, str]], method: str = "", of: str = ""
) -> None:
    id = f"own/lcb/{len(ROWS.get('livecodebench', []))}"
    kind = "functional" if method else "stdin"
    starter = f"class Solution:\n    def {method}({of}):\n        " if method else ""
    cases = [{"input": given, "output": output, "testtype": kind} for given, output in tests]
    row = {"id": id, "prompt": about, "starter_code": starter, "func_name": method or None, "release": release}
    further = [cases[-1] | {"validated": True}, {"input": "?", "output": "?", "testtype": kind, "validated": False}]
    ROWS.setdefault("livecodebench", []).append({**row, "public_tests": cases[:-1], "extra_tests": further})
    SAID[id, Prompts.RAW] = Texts(right, wrong)
    SAID[id, Prompts.CHAT] = Texts(fence(right), fence(wrong))
    SECRETS[id] = tests[0][1].strip()


_add_program(
    "v1", "Read two whole numbers and print their product.",
    "a, b = map(int, input().split())\nprint(a * b)", "a, b = map(int, input().split())\nprint(a + b)",
    [("53 89\n", "4717\n"), ("2 2\n", "4\n"), ("-3 5\n", "-15\n")],
)  # fmt: skip
_add_program(
    "v2", "Read a line of words and print them in the opposite order.",
    "print(*reversed(input().split()))", "print(input()[::-1])",
    [("red green\n", "green red\n"), ("one\n", "one\n"), ("a b c\n", "c b a\n")],
)  # fmt: skip
_add_program(
    "v5", "Read a number of lines, then the lines, each with a length; print half of every length.",
    "for _ in range(int(input())):\n    print(float(input()) / 2)", "print(float(input()) / 2)",
    [("2\n613\n7\n", "306.5\n3.50\n"), ("1\n3\n", "1.5\n")],
)  # fmt: skip
_add_program(
    "v3", "Of a list of whole numbers, give every second one, from the first on.",
    "class Solution:\n    def everySecond(self, numbers):\n        return tuple(numbers[::2])",
    "class Solution:\n    def everySecond(self, numbers):\n        return numbers[1::2]",
    [("[613, 2, 719]", "[613, 719]"), ("[]", "[]"), ("[1, 2]", "[1]")], "everySecond", "self, numbers: List[int]",
)  # fmt: skip
_add_program(
    "v4", "Say whether a word is in a text, whichever the case of its letters.",
    "class Solution:\n    def inText(self, word, text):\n        return word.lower() in text.lower()",
    "class Solution:\n    def inText(self, word, text):\n        return word in text",
    [('"Owl"\n"the owl"', "true"), ('"cat"\n"the dog"', "false"), ('"DOG"\n"the dog"', "true")],
    "inText", "self, word: str, text: str",
)  # fmt: skip
SECRETS["own/lcb/4"] = "true"


# Mathematics


def _add_question(name: str, question: str, answer: str, wrong: str, right: str | None = None) -> None:
    rows = ROWS.setdefault(name, [])
    id = f"own/{name}/{len(rows)}"
    rows.append({"id": id, "question": question, "answer": answer})
    for how in Prompts:
        SAID[id, how] = Texts(
            f"We count step by step. So the answer is $\\boxed{{{right or answer}}}$.",
            f"We guess. So the answer is $\\boxed{{{wrong}}}$.",
        )
    SECRETS[id] = answer


for _year, _more in (("aime24", 0), ("aime25", 96)):
    for _number in range(5):
        _count = 131 + 17 * _number + _more
        _add_question(
            _year,
            f"A lantern burns {_count} minutes longer than twelve times ten. For how many minutes does it burn?",
            f"{_count + 120:03d}", f"{_count + 121}", f"{_count + 120}.0",
        )  # fmt: skip
for _question, _answer, _wrong, _right in (
    ("A square garden has sides of 19 steps. What is its area in square steps?", "361", "381", "361.0"),
    ("A ladder has 41 rungs above and twice as many below the window. How many has it?", "123", "124", "123"),
    ("What is the sum of the whole numbers from 10 to 40?", "775", "-775", "\\text{775}"),
    ("Half of a rope of 135 feet is cut off. How many feet are left?", "67.5", "67", "\\frac{135}{2}"),
    ("How many ways are there to seat six owls on six posts?", "720", "6^6", "6!"),
):
    _add_question("amc23", _question, _answer, _wrong, _right)
for _question, _answer, _wrong, _right in (
    ("A wheel turns 17 times in 23 seconds. How often in one?", "\\frac{17}{23}", "\\frac{23}{17}", "17/23"),
    ("Solve $z^2 = 338$ for a positive $z$.", "13\\sqrt{2}", "-13\\sqrt{2}", "\\sqrt{338}"),
    ("Where does $(u + 11)(u - 31)$ lie below zero?", "(-11,31)", "[-11,31]", "\\left(-11, 31\\right)"),
    ("Write the point that is 12 right of and 35 above the origin.", "(12,35)", "(35,12)", "( 12 , 35 )"),
    ("Multiply out $(w + 6)(w - 6)$.", "w^2-36", "w^2+36", "(w-6)(w+6)"),
):
    _add_question("math500", _question, _answer, _wrong, _right)
for _question, _answer, _wrong, _right in (
    ("A star gives off light. Give its output in watts as found.", "3.83e35", "3.83e34", "3.83 \\times 10^{35}"),
    ("How long, in metres, is the tiny wave?", "7.25e-11", "8.25e-11", "7.25 \\cdot 10^{-11}"),
    ("A load falls for $t$ seconds at 9.81. What is its speed?", "9.81 t", "9.81 t^2", "9.81t"),
    ("What share of the sample is left after 3 half-lives?", "0.125", "0.25", "\\frac{1}{8}"),
    ("Give the decay of the signal with rate $k$.", "e^{-k t}", "e^{k t}", "\\exp(-kt)"),
):
    _add_question("minerva_math", _question, _answer, _wrong, _right)
for _question, _answer, _wrong, _right in (
    ("Ola packs 31 crates of 53 pears. How many pears are that?", "1643", "1642", "1,643"),
    ("A tram carries 97 people on each of 11 trips. How many in all?", "1067", "1068", "1067.00"),
    ("Ben had 900 stamps and gave 261 away. How many has he?", "639", "261", "\\$639"),
    ("A cook breaks 13 dozen eggs. How many eggs?", "156", "13", "156"),
    ("Two fields have 370 and 411 rows. How many rows together?", "781", "41", "781 rows"),
):
    _add_question("gsm8k", _question, _answer, _wrong, _right)
for _question, _answer, _wrong, _right in (
    ("Find all $q$ with $q^2 = 5041$.", "71,-71", "71", "-71, 71"),
    ("Find the largest $n$ for which the tiling of the hall works.", "2^{61}-1", "2^{61}", "-1 + 2^{61}"),
    ("Give the ratio of the two areas.", "\\frac{3\\pi}{16}", "\\frac{3}{16}", "3\\pi/16"),
    ("How many colourings are there of the board with $n$ columns?", "3 n+6", "3n-6", "3(n+2)"),
    ("Which values may the parameter $p$ take?", "[13,\\infty)", "(13,\\infty)", "\\left[13, +\\infty\\right)"),
):
    _add_question("olympiadbench", _question, _answer, _wrong, _right)


# Choices

for _subject, _about in (("river_lore", "river"), ("knot_tying", "knot")):
    for _number in range(5):
        BESIDE.setdefault("mmlu_dev/test.jsonl.gz", []).append(
            {
                "id": f"own/mmlu_dev/{_subject}/{_number}",
                "subject": _subject,
                "question": f"Which {_about} comes at place {_number}?",
                "choices": [f"the {_about} of {each}" for each in ("ash", "birch", "cedar", "elm")],
                "answer": "ABCD"[_number % 4],
            }
        )
for _number, (_subject, _question, _letter) in enumerate(
    (
        ("river_lore", "Which of these rivers is the longest in the tale?", "A"),
        ("river_lore", "Where does the ferry cross?", "C"),
        ("knot_tying", "Which knot holds a bucket?", "B"),
        ("knot_tying", "Which knot can be undone with one hand?", "D"),
        ("river_lore", "Who guards the ford?", "C"),
    )
):
    _id = f"own/mmlu/{_number}"
    _choices = [f"{word} number {_number}" for word in ("stone", "reed", "heron", "otter")]
    ROWS.setdefault("mmlu", []).append(
        {"id": _id, "subject": _subject, "question": _question, "choices": _choices, "answer": _letter}
    )
    _other = "ABCD"[("ABCD".index(_letter) + 1) % 4]
    SAID[_id, Prompts.RAW] = Texts(f" {_letter}", f" {_other}")
    SAID[_id, Prompts.CHAT] = Texts(f"The answer is ({_letter}).", f"**{_other}**. {_choices[0]}")
    SECRETS[_id] = f"{_choices[-1]}\nAnswer: {_letter}"


# What functions return

CRUXEVAL = ("cruxeval_o", "cruxeval_o_cot", "cruxeval_i", "cruxeval_i_cot")
"""They share their rows with those that are asked as races ask. Texts keep both forms."""
AS_RACES_ASK = ("cruxeval_o_long", "cruxeval_o_direct", "cruxeval_i_long", "cruxeval_i_direct")
for _code, _input, _output, _wrong in (
    ("def f(words):\n    return [word for word in words if len(word) > 2]", "['ox', 'heron']", "['heron']", "['ox']"),
    ("def f(rows, columns):\n    return rows * columns + 1", "4, columns=6", "25", "24"),
    ("def f(text):\n    return text.count('-')", "'-'.join('elm')", "2", "3"),
    ("def f():\n    return {'ash': 1, 'elm': (2.5, None)}", "", "{'ash': 1, 'elm': (2.5, None)}", "{'ash': 1}"),
    ("BIRDS = [5, 3]\ndef f(numbers, small):\n    return [small(each) for each in numbers]",
     "BIRDS[:], lambda each: each < 4", "[False, True]", "[True, True]"),
):  # fmt: skip
    _id = f"own/cruxeval/{len(ROWS.get(CRUXEVAL[0], []))}"
    for _name in (*CRUXEVAL, *AS_RACES_ASK):
        ROWS.setdefault(_name, []).append({"id": _id, "code": _code, "input": _input, "output": _output})
    for _how in Prompts:
        SAID[_id, _how] = Texts(
            f"By hand.\n[/THOUGHT]\n[ANSWER]\nassert f({_input}) == {_output}\n[/ANSWER]\n"
            f"```input\nf({_input})\n```\n```output\n{_output}\n```",
            f"By eye.\n[/THOUGHT]\n[ANSWER]\nassert f({_wrong}) == {_wrong}\n[/ANSWER]\n"
            f"```input\n{_wrong}\n```\n```output\n{_wrong}\n```",
        )
    SECRETS[_id] = f"f({_input}) == {_output}"
