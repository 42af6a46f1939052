"""What a program may be, and that reading one cannot hurt this process."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from redqueen.tasks.code import program
from redqueen.tasks.code.names import ALLOWED_IMPORTS
from redqueen.tasks.code.program import parse_source, read_program
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Job, Status

WELCOME = {
    "helper": "def g(x):\n    return x\n\ndef f(x):\n    return g(x)",
    "class": "class A:\n    def __init__(self, x):\n        self.x = x\n\ndef f(x):\n    return A(x).x",
    "nested": "def f(x):\n    def g(y):\n        return x + y\n    return g(1)",
    "hints": "from typing import Optional\n\ndef f(x: Optional[int], *, y: 'int' = 1) -> list[int]:\n    return [x, y]",
    "hinted local": "def f(x):\n    z: int = x\n    return z",
    "submodule": "from collections.abc import Iterable\n\ndef f(x):\n    return isinstance(x, Iterable)",
    "import inside": "def f(x):\n    import math\n    return math.floor(x)",
    "nested generator": "def f(x):\n    def g():\n        yield x\n    return list(g())",
    "builtin as a name": "def f(input):\n    id = 1\n    return input + id",
    "plain dunders": "class A:\n    def __len__(self):\n        return 3\n\ndef f(x):\n    return A.__name__",
    "attribute like a frame's": "class N:\n    f_score = 1\n\ndef f(x):\n    return N.f_score",
    "decorated": "from functools import cache\n\n@cache\ndef f(x):\n    return x",
    "future": "from __future__ import annotations\n\ndef f(x: Nowhere):\n    return x",
    "stars": "def f(*xs, **ks):\n    return xs",
    "bad escape": "def f(x):\n    return '\\d'",
    "own builtins": "def hash(x):\n    return x + 1\n\nid = 2\n\ndef f(x):\n    return hash(x) + id",
    "builtins in a comprehension": "def f(x):\n    return [input for input in [x]] + [(lambda id: id)(x)]",
    "attributes by text": (
        "from operator import attrgetter as get\nimport operator\n\nclass A:\n    b = 1\n\ndef f(x):\n"
        "    return [getattr(A, 'b', 0), get('b')(A), hasattr(A, '__len__'), operator.methodcaller('strip')(' ')]"
    ),
    "formats": "def f(x):\n    return '{0.real} {1:.2f} {}'.replace('{}', '.__').format(x, 1.5)",
    "submodule by its path": (
        "import collections.abc\nimport collections.abc as c\nfrom collections import abc, Counter\n\ndef f(x):\n"
        "    return [isinstance(x, m) for m in (collections.abc.Sized, abc.Sized, c.Sized, collections.Counter)]"
    ),
    "pattern": "class A:\n    b = 1\n\ndef f(x):\n    match A():\n        case A(b=y):\n            return y",
    "main guard": "def f(x):\n    return x\n\nif __name__ == '__main__':\n    print(f(1))",
    "brackets in a string": "def f(x):\n    return x.strip('([{<')",
}


@pytest.mark.parametrize("source", WELCOME.values(), ids=WELCOME)
def test_a_welcome_program_is_read(source):
    assert not isinstance(read_program(source), Rejection)


@pytest.mark.parametrize("source", WELCOME.values(), ids=WELCOME)
def test_a_welcome_program_runs(source, verifier):
    [outcome] = verifier.run_sync([Job.calls(source, ["'1'" if "strip" in source else "1"])])
    assert outcome.status is Status.OK


REFUSED = {
    "syntax": ("def f(x)\n    return x", Reason.SYNTAX),
    "no f": ("def g(x):\n    return x", Reason.NO_ENTRY),
    "f in a class": ("class A:\n    def f(self, x):\n        return x", Reason.NO_ENTRY),
    "f is a lambda": ("f = lambda x: x", Reason.NO_ENTRY),
    "f in a branch": ("if True:\n    def f(x):\n        return x", Reason.NO_ENTRY),
    "coroutine": ("async def f(x):\n    return x", Reason.NOT_PLAIN_FUNCTION),
    "generator": ("def f(x):\n    yield x", Reason.NOT_PLAIN_FUNCTION),
    "generator from": ("def f(x):\n    if x:\n        return (yield from x)", Reason.NOT_PLAIN_FUNCTION),
    "no parameters": ("def f():\n    return 1", Reason.NO_PARAMETERS),
    "os": ("import os\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "one of two": ("import math, sys\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "from": ("from random import Random\n\ndef f(x):\n    return Random(1).random()", Reason.FORBIDDEN_IMPORT),
    "star": ("from math import *\n\ndef f(x):\n    return pi", Reason.FORBIDDEN_IMPORT),
    "relative": ("from . import math\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "deep import": ("def f(x):\n    if x:\n        import time\n    return x", Reason.FORBIDDEN_IMPORT),
    "another's import": (
        "from statistics import random\n\ndef f(x):\n    return random.Random(x).random()",
        Reason.FORBIDDEN_IMPORT,
    ),
    "another's import, as an attribute": (
        "import statistics as s\n\ndef f(x):\n    return s.random.Random(x).random()",
        Reason.FORBIDDEN_IMPORT,
    ),
    "a private member": ("from dataclasses import _thread\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "hash": ("def f(x):\n    return hash(x) % 2", Reason.FORBIDDEN_NAME),
    "odd import": ("import ünïcode\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "eval": ("def f(x):\n    return eval(x)", Reason.FORBIDDEN_NAME),
    "id": ("def f(x):\n    return id(x) % 2", Reason.FORBIDDEN_NAME),
    "dunder": ("def f(x):\n    return ().__class__.__subclasses__()", Reason.FORBIDDEN_NAME),
    "frame": ("def f(x):\n    return (i for i in x).gi_frame", Reason.FORBIDDEN_NAME),
    "a module's module": ("import enum as e\n\ndef f(x):\n    return e.bltns.eval(x)", Reason.FORBIDDEN_IMPORT),
    "a module's module, imported": ("from re import enum\n\ndef f(x):\n    return x", Reason.FORBIDDEN_IMPORT),
    "a submodule's module": (
        "import collections.abc\n\ndef f(x):\n    return collections.abc.sys.path",
        Reason.FORBIDDEN_IMPORT,
    ),
    "a module as a value": ("import re\nm = re\n\ndef f(x):\n    return m.enum.sys", Reason.FORBIDDEN_NAME),
    "a submodule as a value": (
        "import collections.abc\n\ndef f(x):\n    return [collections.abc][0].sys",
        Reason.FORBIDDEN_NAME,
    ),
    "a module as a class's": (
        "class A:\n    if 1:\n        import re\n\ndef f(x):\n    return A.re.enum",
        Reason.FORBIDDEN_IMPORT,
    ),
    "a module's name for something else": (
        "import re, enum\n\ndef f(x):\n    for re in [enum.Enum]:\n        return re",
        Reason.FORBIDDEN_NAME,
    ),
    "random numbers": (
        "import statistics\n\ndef f(x):\n    return statistics.NormalDist().samples(1, seed=x)",
        Reason.FORBIDDEN_IMPORT,
    ),
    "random numbers, imported": (
        "from statistics import NormalDist\n\ndef f(x):\n    return NormalDist().samples(1, seed=x)",
        Reason.FORBIDDEN_IMPORT,
    ),
    "text that is evaluated": (
        "import typing\n\ndef f(x: '__import__(\"os\").getpid()'):\n    return typing.get_type_hints(f)",
        Reason.FORBIDDEN_IMPORT,
    ),
    "eval, elsewhere a parameter": (
        "def g(eval):\n    return eval\n\ndef f(x):\n    return eval(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "eval, elsewhere in a comprehension": (
        "def f(x):\n    return [eval for eval in ()] or eval(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "eval by a class": (
        "def f(x):\n    class A:\n        e = eval\n        eval = 1\n    return A.e(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "eval before it is something else": ("e = eval\neval = 1\n\ndef f(x):\n    return e(x)", Reason.FORBIDDEN_NAME),
    "eval while it becomes something else": ("eval = eval\n\ndef f(x):\n    return eval(x)", Reason.FORBIDDEN_NAME),
    "eval after it was something else": ("eval = 1\ndel eval\n\ndef f(x):\n    return eval(x)", Reason.FORBIDDEN_NAME),
    "eval that is never something else": (
        "if []:\n    eval = 1\n\ndef f(x):\n    return eval(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "eval, declared global": (
        "def g():\n    eval = 1\n\ndef f(x):\n    global eval\n    return eval(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "computed attribute": ("def f(x):\n    return getattr(x, 're' + 'al')", Reason.FORBIDDEN_NAME),
    "forbidden attribute by text": ("def f(x):\n    return getattr(f, '__globals__')", Reason.FORBIDDEN_NAME),
    "getattr as a value": ("def f(x):\n    return [*map(getattr, [x], ['real'])]", Reason.FORBIDDEN_NAME),
    "getattr with stars": ("def f(x):\n    return getattr(*[x], 'real')", Reason.FORBIDDEN_NAME),
    "computed attrgetter": (
        "from operator import attrgetter as a\n\ndef f(x):\n    return a('re' + 'al')(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "attrgetter down to a forbidden one": (
        "import operator\n\ndef f(x):\n    return operator.attrgetter('g.__globals__')(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "computed methodcaller": (
        "import operator\n\ndef f(x):\n    return operator.methodcaller(x)(x)",
        Reason.FORBIDDEN_NAME,
    ),
    "attribute by a format": ("def f(x):\n    return '{0.__doc__}'.format(x)", Reason.FORBIDDEN_NAME),
    "attribute further down a format": (
        "def f(x):\n    return str.format('{0.real.__doc__}', x)",
        Reason.FORBIDDEN_NAME,
    ),
    "attribute by a pattern": (
        "def f(x):\n    match f:\n        case object(__globals__=g):\n            return g",
        Reason.FORBIDDEN_NAME,
    ),
    "attribute by a pattern's place": (
        "class A:\n    __match_args__ = ('__doc__',)\n\ndef f(x):\n    return x",
        Reason.FORBIDDEN_NAME,
    ),
    "brackets": ("def f(x):\n    return " + "[" * 31 + "]" * 31, Reason.TOO_DEEP),
    "signs": ("def f(x):\n    return " + "-" * 300 + "x", Reason.TOO_DEEP),
    "chain": ("def f(x):\n    return " + "not " * 201 + "x", Reason.TOO_DEEP),
    "sum": ("def f(x):\n    return x" + "+x" * 120, Reason.TOO_DEEP),
    "long": ("def f(x):\n    return x\n" + "#" * 4_000, Reason.PROGRAM_TOO_LONG),
    "NUL": ("def f(x):\n    return '\0'", Reason.NOT_TEXT),
}


@pytest.mark.parametrize(("source", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_program_off_the_contract_is_refused_with_its_reason(source, reason):
    refused = read_program(source)
    assert isinstance(refused, Rejection)
    assert refused.reason == reason
    assert refused.detail.isascii()


def test_every_allowed_import_works_in_a_guest(verifier):
    source = "\n".join(f"import {name}" for name in sorted(ALLOWED_IMPORTS)) + "\ndef f(x):\n    return x"
    assert not isinstance(read_program(source), Rejection)
    assert verifier.run_sync([Job.calls(source, ["1"])])[0].results[0].verdict == "ok:1"


@pytest.mark.filterwarnings("error")
def test_what_python_warns_about_is_not_our_business():
    assert not isinstance(parse_source("def f(x):\n    return '\\d' if x is 1 else 0"), Rejection)


@pytest.mark.parametrize("name", ["brackets", "signs", "chain", "long", "NUL"])
def test_what_is_beyond_the_bounds_never_reaches_pythons_parser(name, monkeypatch):
    monkeypatch.setattr(program, "ast", SimpleNamespace(parse=lambda text: pytest.fail("parsed")))
    assert isinstance(parse_source(REFUSED[name][0]), Rejection)


@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError, SyntaxError])
def test_whatever_pythons_parser_raises_is_a_rejection(error, monkeypatch):
    def parse(text):
        raise error("no")

    monkeypatch.setattr(program, "ast", SimpleNamespace(parse=parse))
    assert parse_source("def f(x): ...") == Rejection(Reason.SYNTAX, "" if error is SyntaxError else error.__name__)


DEEPEST = """
import threading
from redqueen.tasks.code.program import MAX_BRACKETS, MAX_CHAIN, MAX_PROGRAM_CHARS, parse_source

B, C = MAX_BRACKETS, MAX_CHAIN
TEXTS = [
    "(" * B + "-" * C + "1" + ")" * B, "(lambda:" * B + "lambda:" * (C - B) + "1" + ")" * B, "not " * C + "1",
    "(not " * B + "not " * (C - B) + "x" + ")" * B, "1 if 1 else " * C + "1", "2**" * C + "2", "await " * C + "x",
    "(x if x else " * B + "x" + ")" * B, "[x for x in " * B + "1" + "]" * B, "x[x:" * B + "1" + "]" * B,
    "x([" * (B // 2) + "~" * C + "1" + "])" * (B // 2), "(x:=" * B + "1" + ")" * B, "f'{" * B + "1" + "}'" * B,
    "match x:\\n case " + "[" * B + "]" * B + ":pass", "if 1:pass\\n" + "elif 1:pass\\n" * C,
    "\\n".join(" " * i + "if 1:" for i in range(80)) + "\\n" + " " * 80 + "pass",
    "a" + ".b" * 1990, "1" + "+1" * 1990, "a" + "()" * 1990, "a" + "[0]" * 1300, "1<" * 1990 + "1", "x," * 1990,
    "with " + "(" * B + "x" + ")" * B + ":pass", "(" * B, "{" * B, "-" * MAX_PROGRAM_CHARS, "(" * MAX_PROGRAM_CHARS,
]
assert all(len(text) <= MAX_PROGRAM_CHARS for text in TEXTS)
threading.stack_size(512 * 1024)
thread = threading.Thread(target=lambda: print(len([parse_source(text) for text in TEXTS])))
thread.start()
thread.join()
"""


def test_the_deepest_texts_within_the_bounds_fit_a_small_stack():
    """In a process of its own: where the claim is wrong, that process dies."""
    done = subprocess.run([sys.executable, "-c", DEEPEST], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "27"), done.stderr
