"""What type of problem a program is: few words, for many programs, and the same whatever things are called."""

import ast
import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.bench.verifier import PROGRAMS
from redqueen.tasks.code import SEEDS, CodeTask
from redqueen.tasks.code.descriptor import descriptor
from redqueen.tasks.code.program import parse_source
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Rejection
from tasks.test_near_duplicates import BASE, SAME

HOSTILE = Path(__file__).parent.parent / "hostile"


def label(program: str) -> str:
    tree = parse_source(program)
    assert isinstance(tree, ast.Module)
    return descriptor(tree)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("def f(x): return x", "plain"),
        ("def f(x): return x + 1", "int"),
        ("def f(x): return x / 2", "float"),
        ("def f(x): return x if x else 1", "branch+int"),
        ("def f(x):\n    while x > 9: x -= 9\n    return x", "int+while"),
        ("def f(xs): return [x for x in xs if x]", "list+loop"),
        ("def f(xs):\n    out = []\n    for x in xs:\n        if x: out.append(x)\n    return out", "list+loop"),
        ("def f(xs): return sorted(xs)", "list"),
        ("def f(a, b): return a, b", "tuple"),
        ("def f(a, b):\n    a, b = b, a\n    return a", "plain"),
        ("def f(grid, r, c): return grid[r, c]", "plain"),
        ("def f(xs): return tuple(sorted(xs))", "list"),
        ("def f(s): return s[::-1].upper()", "str"),
        ("def f(s): return f'{s}!'", "str"),
        ("def f(s): return b'a' + s", "str"),
        ("def f(s):\n    'a docstring'\n    return s", "plain"),
        ("def f(s: 'str') -> 'list[str]': return s", "plain"),
        ("def f(xs): return list(map(str, xs))", "str"),
        ("def f(xs): return {x: 1 for x in xs}", "dict+loop"),
        ("def f(a, b): return set(a) & set(b)", "set"),
        ("def f(s): return sorted({c.lower() for c in s})", "loop+set+str"),
        ("from collections import Counter as C\ndef f(s): return C(s).most_common(1)", "dict"),
        ("import collections as c\ndef f(s): return c.Counter(s).most_common(1)", "dict"),
        ("def f(n): return 1 if n < 2 else n * f(n - 1)", "int+recursion"),
        ("def a(n): return n and b(n - 1)\ndef b(n): return n and a(n - 1)\ndef f(n): return a(n)", "int+recursion"),
        ("def g(n): return n + 1\ndef f(n): return g(g(n))", "int"),
        ("class A:\n    def m(self): return 1\ndef f(x): return A().m()", "class+int"),
        ("async def g(xs):\n    async for x in xs: pass\ndef f(x): return 1", "int+loop"),
        ("def f(x):\n    match x:\n        case [a, *b]: return a\n        case {'k': v, **r}: return v", "branch+str"),
        ("", "plain"),
    ],
)
def test_a_label_names_the_strongest_control_and_the_data(program, expected):
    assert label(program) == expected


@pytest.mark.parametrize("change", SAME)
def test_near_duplicates_share_a_label(change):
    assert label(SAME[change]) == label(BASE) == "class+str"


@given(st.text(string.ascii_lowercase, min_size=1, max_size=8))
def test_the_name_of_a_local_does_not_matter(name):
    name += "_"
    assert label(f"def f(n):\n    {name} = []\n    for x in n: {name}.append(x)\n    return {name}") == "list+loop"


@pytest.mark.parametrize(
    "program",
    [
        "def sorted(x): return x\ndef f(x): return sorted(x)",
        "def f(list): return list",
        "def f(x):\n    def add(y): return y\n    return add(x)",
    ],
)
def test_a_builtins_name_that_the_program_takes_for_itself_says_nothing(program):
    assert label(program) == "plain"


def test_a_method_of_the_programs_own_says_nothing():
    program = "class Bag:\n    def {0}(self, x): return x\ndef f(x): return Bag().{0}(x)"
    assert label(program.format("add")) == label(program.format("put")) == "class"


def test_varied_programs_get_varied_labels_and_not_one_each():
    programs = [seed.program for seed in SEEDS] + [program for program, _ in PROGRAMS]
    labels = [label(program) for program in programs]
    assert 12 <= len(set(labels)) < len(programs)
    assert len({label(seed.program) for seed in SEEDS}) >= 8


def test_programs_of_one_type_get_few_labels():
    """A teacher that found one trick: filter a list, then add up, with other conditions and other arithmetic."""
    program = (
        "def f({0}):\n    total = {1}\n    for x in {0}:\n        if x {2}:\n            total {3}\n    return total"
    )
    programs = [
        program.format(*parts)
        for parts in [
            ("xs", 0, "> 3", "+= x"),
            ("values", 1, "% 2 == 0", "*= x"),
            ("numbers", 10, "!= 5", "-= x * 2"),
            ("data", 0, "in (1, 2, 3)", "+= x ** 2"),
            ("items", 100, "< 50 and x > 10", "//= x + 1"),
        ]
    ]
    programs.append("def f(xs): return sum(x for x in xs if x > 3)")
    assert len({label(program) for program in programs}) <= 2


def test_no_tree_is_too_odd():
    read = [parse_source(path.read_bytes().decode("utf-8")) for path in HOSTILE.glob("*.py")]
    trees = [tree for tree in read if not isinstance(tree, Rejection)]
    assert len(trees) > 100
    assert all(re.fullmatch("[a-z]+([+][a-z]+)*", descriptor(tree)) for tree in trees)


def test_a_task_carries_its_label_and_other_families_their_kind():
    assert CodeTask("code_i", program="def f(x): return x + 1", inputs=("1",), outputs=("2",)).descriptor == "int"
    assert Task("riddle").descriptor == "riddle"
