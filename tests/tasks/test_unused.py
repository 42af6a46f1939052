"""A program has nothing in it that a reader would read for nothing."""

import json

import pytest

from redqueen.tasks.code import FAMILY
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.unused import unused
from redqueen.tasks.verdicts import Reason, Rejection
from tests.tasks.proposing import pair, propose

IDLE = {
    "f twice": ("def f(n):\n    return 1\n\ndef f(n):\n    return n", "f is defined twice"),
    "f and a class of that name": ("class f:\n    pass\n\ndef f(n):\n    return n", "f is defined twice"),
    "a helper": ("def g(n):\n    return n\n\ndef f(n):\n    return n", "g is never used"),
    "a helper that calls itself": ("def g(n):\n    return g(n)\n\ndef f(n):\n    return n", "g is never used"),
    "helpers that call each other": (
        "def g(n):\n    return h(n)\n\ndef h(n):\n    return g(n)\n\ndef f(n):\n    return n",
        "g is never used",
    ),
    "a class": ("class Box:\n    pass\n\ndef f(n):\n    return n", "Box is never used"),
    "a name that is only written": ("def g(n):\n    return n\n\ndef f(n):\n    g = n\n    return 1", "g is never used"),
    "inside f": ("def f(n):\n    def g():\n        return n\n    return n", "g is never used"),
    "f under a condition": (
        "if True:\n    def f(n):\n        return 1\n\ndef f(n):\n    return n",
        "f is defined twice",
    ),
    "a helper under a condition": (
        "if True:\n    def g(n):\n        return 1\n\ndef f(n):\n    return n",
        "g is never used",
    ),
    "a helper that f has another meaning for": (
        "def g(n):\n    return n\n\ndef f(g):\n    return [g for g in g]",
        "g is never used",
    ),
    "inside a method": (
        "class Box:\n    def size(self):\n        def g():\n            return 1\n        return 2\n\n"
        "def f(n):\n    return Box().size()",
        "g is never used",
    ),
    "a name that is not ASCII": (
        "def gr\u00f6\u00dfe(n):\n    return n\n\ndef f(n):\n    return n",
        "gr\\xf6\\xdfe is never used",
    ),
    "a registry that nobody names": (
        "OPS = {}\n\ndef op(g):\n    OPS[g.__name__] = g\n    return g\n\n@op\ndef add(n):\n    return n + 1\n\n"
        "def f(n):\n    return OPS['add'](n)",
        "add is never used",
    ),
    "twice inside f": (
        "def f(n):\n    def g():\n        return 1\n    def g():\n        return n\n    return g()",
        "g is defined twice",
    ),
}
BUSY = {
    "a helper": "def g(n):\n    return n\n\ndef f(n):\n    return g(n)",
    "a helper's helper": "def f(n):\n    return g(n)\n\ndef g(n):\n    return h(n)\n\ndef h(n):\n    return n",
    "a class and its methods": "class Box:\n    def __len__(self):\n        return 3\n\ndef f(n):\n    return Box()",
    "a base class": "class A:\n    x = 1\n\nclass B(A):\n    pass\n\ndef f(n):\n    return B.x",
    "a default": "def g():\n    return 1\n\ndef f(n, how=g):\n    return how()",
    "a decorator": "def twice(g):\n    return lambda n: g(g(n))\n\n@twice\ndef f(n):\n    return n + 1",
    "a table": "def g(n):\n    return n\n\nTABLE = {'g': g}\n\ndef f(n):\n    return TABLE['g'](n)",
    "a property and its setter": (
        "class Box:\n    @property\n    def x(self):\n        return 1\n    @x.setter\n    def x(self, value):\n"
        "        pass\n\ndef f(n):\n    return Box().x"
    ),
    "in a lambda and in a comprehension": (
        "def g(n):\n    return n\n\ndef h(n):\n    return n\n\n"
        "def f(n):\n    return [h(k) for k in map(lambda k: g(k), n)]"
    ),
    "in a method of a class inside f": (
        "def f(n):\n    def g():\n        return n\n    class Box:\n        def x(self):\n            return g()\n"
        "    return Box().x()"
    ),
    "recursion inside f": "def f(n):\n    def g(k):\n        return k and g(k - 1)\n    return g(n)",
}


@pytest.mark.parametrize(("program", "says"), IDLE.values(), ids=IDLE)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_proposal_with_something_idle_is_refused(program, says, kind):
    assert FAMILY.kinds()[kind].parse_proposal(pair(program, "3"), {}) == Rejection(Reason.UNUSED, says, program)


@pytest.mark.parametrize("program", BUSY.values(), ids=BUSY)
def test_what_is_used_is_welcome(program):
    assert unused(program) is None


def test_no_seed_and_no_function_of_the_exam_has_anything_idle():
    lines = FAMILY.exams()["functions"].read_text("utf-8").splitlines()
    programs = [*(seed.program for seed in SEEDS), *(json.loads(line)["program"] for line in lines)]
    assert len(programs) > 100
    assert [program for program in programs if unused(program)] == []


def test_what_no_guest_compiles_is_left_to_the_guests(verifier):
    program = "def f(n):\n    return n\n\nnonlocal n"
    assert unused(program) is None
    refused = propose(FAMILY.kinds()["code_o"], verifier, pair(program, "3"))
    assert isinstance(refused, Rejection) and refused.reason is not Reason.UNUSED
