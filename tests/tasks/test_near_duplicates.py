"""The key of near-duplicates, and identity."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.tasks.code import SEEDS, CodeTask
from tasks.proposing import CODE

BASE = """
import math

LIMIT = 10

def helper(items, start=0):
    total = start
    for item in items:
        total += item * 2
    return total

class Box:
    size: int = 3

    def __init__(self, content):
        self.content = content

    def weigh(self, factor):
        return self.content * factor

def f(n, scale=1):
    values = [k for k in range(n) if k % 2]
    box = Box(content=helper(values, start=scale))
    try:
        return math.floor(box.weigh(scale)) + LIMIT
    except ValueError as error:
        return f"{error:>{scale}}" + str(error)
"""

SAME = {
    "comments and layout": BASE.replace("    total = start\n", "    # begin\n\n    total  =  start   # here\n"),
    "docstrings": BASE.replace("def f(n, scale=1):\n", 'def f(n, scale=1):\n    """What it does."""\n'),
    "annotations": BASE.replace("def f(n, scale=1):", "def f(n: int, scale: 'float' = 1) -> int:"),
    "annotated assignment": BASE.replace("    total = start\n", "    total: int = start\n"),
    "locals": BASE.replace("values", "odd_ones").replace("total", "sum_"),
    "parameters": BASE.replace("scale", "by").replace("(n,", "(count,").replace("range(n)", "range(count)"),
    "helpers and their keywords": BASE.replace("helper", "add_up").replace("start", "first"),
    "comprehension variables": BASE.replace("[k for k in range(n) if k % 2]", "[n_ for n_ in range(n) if n_ % 2]"),
    "a comprehension variable that hides": BASE.replace(
        "[k for k in range(n) if k % 2]", "[n for n in range(n) if n % 2]"
    ),
    "globals": BASE.replace("LIMIT", "most"),
    "classes": BASE.replace("Box", "Crate"),
    "attributes and methods": BASE.replace("content", "load").replace("weigh", "times").replace("size", "side"),
    "import alias": BASE.replace("import math", "import math as m").replace("math.floor", "m.floor"),
    "exception name": BASE.replace("error", "problem"),
    "quotes and parentheses": BASE.replace("total += item * 2", "total += (item * 2)"),
}

OTHER = {
    "constant": BASE.replace("LIMIT = 10", "LIMIT = 11"),
    "type of a constant": BASE.replace("LIMIT = 10", "LIMIT = 10.0"),
    "operator": BASE.replace("item * 2", "item + 2"),
    "comparison": BASE.replace("if k % 2]", "if not k % 2]"),
    "called function": BASE.replace("math.floor", "math.ceil"),
    "builtin": BASE.replace("str(error)", "ascii(error)"),
    "default": BASE.replace("scale=1", "scale=2"),
    "argument": BASE.replace("box.weigh(scale)", "box.weigh(n)"),
    "keyword": BASE.replace("helper(values, start=scale)", "helper(start=values, items=scale)"),
    "order": BASE.replace("LIMIT = 10\n", "").replace("def f(", "LIMIT = 10\n\ndef f("),
    "exception": BASE.replace("except ValueError", "except TypeError"),
    "f is another function": BASE.replace("def helper", "def f_").replace("def f(", "def helper(").replace("f_", "f"),
    "inner f": BASE.replace("def f(n, scale=1):\n", "def f(n, scale=1):\n    n = f\n"),
    "unpacking": BASE.replace("helper(values,", "helper(*values,"),
    "scope": BASE.replace("    total = start\n", "    global LIMIT\n    LIMIT = total = start\n"),
}


def key(program: str) -> str:
    return CodeTask("code_o", program=program, inputs=("1",), outputs=("1",)).ast_key


@pytest.mark.parametrize("program", SAME.values(), ids=SAME)
def test_what_a_copy_changes_leaves_the_key_alone(program):
    assert program != BASE
    assert key(program) == key(BASE)


@pytest.mark.parametrize("program", OTHER.values(), ids=OTHER)
def test_what_a_program_means_changes_the_key(program):
    assert program != BASE
    assert key(program) != key(BASE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    y = x\n    return y", "def f(x):\n    x = x\n    return x"),
        ("def f(x, y):\n    return x - y", "def f(x, y):\n    return y - x"),
        ("def f(x):\n    return sorted(x, key=len)", "def f(x):\n    return sorted(x, reverse=len)"),
        ("def f(x):\n    def g():\n        nonlocal x\n        x = 1\n    g()\n    return x",
         "def f(x):\n    def g():\n        x = 1\n    g()\n    return x"),
        ("def f(x):\n    return [a for a in x for b in a]", "def f(x):\n    return [b for a in x for b in a]"),
        ("def f(x):\n    return 1", "def f(x):\n    return True"),
        ("def f(x):\n    return 0.0", "def f(x):\n    return -0.0"),
        ("def f(x):\n    return f'{x}'", "def f(x):\n    return f'{x!r}'"),
        ("def f(x):\n    match x:\n        case [a, *b]:\n            return a",
         "def f(x):\n    match x:\n        case [a, *b]:\n            return b"),
    ],
)  # fmt: skip
def test_renaming_is_told_from_reuse(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    return sorted(x, key=len)", "def f(key):\n    return sorted(key, key=len)"),
        ("def g(x):\n    return x\n\ndef f(y):\n    return g(y)",
         "def g(y):\n    return y\n\ndef f(y):\n    return g(y)"),
        ("def f(x):\n    global n\n    n = x\n    return n", "def f(x):\n    global m\n    m = x\n    return m"),
        ("def f(x):\n    return any((y := a) for a in x) and y",
         "def f(x):\n    return any((z := a) for a in x) and z"),
        ("def f(x):\n    match x:\n        case {'a': p, **q}:\n            return p, q",
         "def f(x):\n    match x:\n        case {'a': s, **t}:\n            return s, t"),
        ("from math import gcd as g\n\ndef f(x):\n    return g(x, 6)",
         "from math import gcd\n\ndef f(x):\n    return gcd(x, 6)"),
        ("y = 1\n\nclass A:\n    y = 2\n\n    def g(self):\n        return y\n\ndef f(x):\n    return A().g()",
         "z = 1\n\nclass A:\n    y = 2\n\n    def g(self):\n        return z\n\ndef f(x):\n    return A().g()"),
        ("import math\nimport re\n\ndef f(x):\n    return x", "def f(x):\n    return x"),
        ("def f(x):\n    return (lambda a, b=1: a + b)(x)", "def f(x):\n    return (lambda c, d=1: c + d)(x)"),
    ],
)  # fmt: skip
def test_renaming_is_seen_through_in_every_scope(one, other):
    assert key(one) == key(other)


def test_a_constant_too_long_for_decimal_has_a_key():
    assert key("def f(x):\n    return 0x" + "f" * 3_900) != key("def f(x):\n    return 0x" + "f" * 3_899 + "e")


def test_keys_are_the_same_under_every_python():
    """Written down once, so that a Python whose trees differ shows itself."""
    assert key(BASE)[:16] == "bf34e75865b50951"


NAMES = st.text("abcdefgh", min_size=2, max_size=5).map(lambda name: "v_" + name)
TEMPLATE = """
def {0}({1}, {2}=3):
    {3} = [{4} * {1} for {4} in range({2})]
    return sum({3}) + {5}

{5} = 4

def f({6}):
    for {7} in [{6}, {0}({6}, {2}=2)]:
        {6} = {7} + {5}
    return {6}
"""


@settings(max_examples=50)
@given(st.lists(NAMES, min_size=8, max_size=8, unique=True), st.integers(5, 99))
def test_no_choice_of_names_changes_the_key(names, constant):
    usual = TEMPLATE.format(*"hxynkmzi")
    assert key(TEMPLATE.format(*names)) == key(usual)
    assert key(TEMPLATE.format(*names).replace("= 4", f"= {constant}")) != key(usual)


def test_identity_is_the_content():
    task = CodeTask(
        "code_f", program="def f(x):\n    return x", inputs=("1", "2"), outputs=("1", "2"), shown=1, message="a hint"
    )
    assert task.id == replace(task).id
    changes: list[dict[str, Any]] = [
        {"kind": "code_o"},
        {"program": task.program + " "},
        {"inputs": ("1, 2",)},
        {"outputs": ("1", "3")},
        {"shown": 2},
        {"message": "another"},
    ]
    others = [replace(task, **change) for change in changes]
    assert len({task.id, *(other.id for other in others)}) == 7


def test_a_pair_is_near_another_by_its_program_alone():
    task = CodeTask("code_o", program="def f(x):\n    return x", inputs=("1",), outputs=("1",))
    other = CodeTask("code_o", program="def f(y):\n    return y", inputs=("2",), outputs=("2",))
    assert task.near_key == other.near_key == task.ast_key


def test_a_code_f_task_is_near_another_by_its_program_and_its_inputs_in_any_order():
    def task(inputs: tuple[str, ...], message: str = "", name: str = "x") -> CodeTask:
        return CodeTask(
            "code_f",
            program=f"def f({name}):\n    return {name}",
            inputs=inputs,
            outputs=inputs,
            shown=len(inputs) // 2,
            message=message,
        )

    near = task(("1", "2", "3", "4")).near_key
    assert near == task(("3", "1", "4", "2"), "another hint", "y").near_key
    assert near != task(("1", "2", "3", "5")).near_key
    assert near != task(("1", "2", "3, 4")).near_key
    assert near != CodeTask("code_o", program="def f(x):\n    return x", inputs=("1",), outputs=("1",)).near_key


@pytest.mark.parametrize(
    "other",
    ["LIMIT = 11", "LIMIT = -3"],
)
def test_the_shape_is_blind_to_constants(other):
    def shape(program: str) -> str:
        return CodeTask("code_o", program=program, inputs=("1",), outputs=("1",)).shape_key

    assert key(BASE) != key(BASE.replace("LIMIT = 10", other))
    assert shape(BASE) == shape(BASE.replace("LIMIT = 10", other))
    assert shape(BASE) != shape(BASE.replace("LIMIT = 10", "LIMIT = 'x'"))
    assert shape(BASE) != shape(BASE.replace("item * 2", "item + 2"))


@pytest.mark.parametrize("task", SEEDS, ids=lambda task: task.id[:8])
def test_a_task_survives_being_written_down(task):
    again = CODE.restore(json.loads(json.dumps(task.record())))
    assert again == task
    assert again.id == task.id
