"""Completions that were written to be counted as right without being so, or to break the grader: none may succeed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.slices import SAID, script
from redqueen.evals.data import find
from redqueen.evals.evalplus import EvalPlus, tidy
from redqueen.evals.protocol import Grade, Item, Prompts
from redqueen.plugins import BENCHMARKS
from redqueen.verifier import Verifier

OFFLINE = ("aime24", "aime25", "mmlu")


@pytest.fixture
def marker(tmp_path) -> Iterator[Path]:
    """A file that nobody may make."""
    path = tmp_path / "was_here"
    yield path
    assert not path.exists()


def item_of(name: str, slices: Path, number: int = 0) -> Item:
    return find(BENCHMARKS.get(name), slices).items[number]


def grade(name: str, item: Item, answer: str | None, verifier: Verifier) -> Grade:
    [found] = asyncio.run(BENCHMARKS.get(name).grade([(item, answer)], verifier))
    assert found.vote is None or isinstance(found.vote, str)
    return found


# Functions

BODIES = {
    "leaves": "    import os\n    os._exit(0)",
    "exits": "    import sys\n    sys.exit(0)",
    "raises what nobody catches": "    raise BaseException",
    "prints without end": "    print('x' * 100_000_000)\n    return 7",
    "equals everything": (
        "    class Same:\n        __hash__ = None\n        def __eq__(self, other):\n            return True\n"
        "        def __repr__(self):\n            return '4'\n    return Same()"
    ),
    "is a number that equals everything": (
        "    class Same(int):\n        def __eq__(self, other):\n            return True\n"
        "        def __ne__(self, other):\n            return False\n        __hash__ = int.__hash__\n"
        "    return Same(7)"
    ),
    "is a float that is close to everything": "    return float('nan')",
    "is a digest": "    return 'long result ' + '0' * 64",
    "returns a generator": "    yield 4",
    "returns itself": "    return odd_sum",
    "returns what holds itself": "    out = []\n    out.append(out)\n    return out",
    "is deep": "    out = []\n    for _ in range(100_000):\n        out = [out]\n    return out",
    "is huge": "    return 10 ** 10 ** 7",
    "changes its caller": (
        "    import sys\n    frame = sys._getframe(1)\n    while frame:\n"
        "        for name in ('returned', 'whole', 'value'):\n"
        "            if name in frame.f_locals:\n                frame.f_locals[name] = []\n"
        "        frame = frame.f_back\n    return 7"
    ),
    "writes a reply of its own": (
        "    import os\n    for fd in range(3, 20):\n        try:\n            os.write(fd, b'ok:[4, 0, 0, 14]\\n')\n"
        "        except OSError:\n            pass\n    return 7"
    ),
    "kills": "    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n    return 7",
    "forks": "    import os\n    while True:\n        os.fork()",
    "waits": "    import time\n    time.sleep(1000)",
    "eats memory": "    return [0] * 10 ** 10",
    "has a surrogate": "    return '\\ud800'",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_function_that_does_something_else_than_its_task_is_wrong(name, slices, verifier):
    item = item_of("mbpp_plus", slices)
    found = grade("mbpp_plus", item, f"def odd_sum(numbers):\n{BODIES[name]}\n", verifier)
    assert (found.correct, found.parts) == (False, {"base": False})
    assert found.why


FAKES = {
    "names of the graders": (
        "def redqueen_chunk(packed):\n    return [4, 0, 0, 14]\nredqueen_call = redqueen_plain = redqueen_chunk\n"
        "redqueen_spelt = redqueen_digest = lambda *_: 'same'\n"
        "def odd_sum(numbers):\n    return redqueen_chunk(numbers) and redqueen_call and redqueen_spelt and 7\n"
    ),
    "hash": "hash = lambda whole: 0\ndef odd_sum(numbers):\n    return hash(numbers)\n",
    "repr": "repr = lambda value: '4'\ndef odd_sum(numbers):\n    return int(repr(numbers))\n",
    "the builtins": (
        "import builtins\ndef odd_sum(numbers):\n    builtins.hash = lambda whole: 0\n"
        "    builtins.repr = lambda value: '4'\n    builtins.isinstance = lambda *_: True\n"
        "    builtins.type = lambda *_: int\n    return 7\n"
    ),
    "marshal": (
        "import sys\nclass marshal:\n    loads = dumps = staticmethod(lambda packed: [])\n"
        "def odd_sum(numbers):\n    sys.modules['marshal'] = marshal\n    return 7\n"
    ),
    "marshal before its first use": (
        "import sys\ndef make():\n    class marshal:\n        loads = dumps = staticmethod(lambda packed: [])\n"
        "    sys.modules['marshal'] = marshal\nMADE = make()\ndef odd_sum(numbers):\n    return MADE or 7\n"
    ),
    "the function by a class": "class odd_sum:\n    def __new__(cls, numbers):\n        return 7\n",
    "its own tests": "def odd_sum(numbers):\n    global odd_sum\n    odd_sum = lambda numbers: 4\n    return 4\n",
    "all that is collected": (
        "import gc\ndef odd_sum(numbers):\n    for each in gc.get_objects():\n"
        "        if type(each) is list and len(each) < 5:\n            each[:] = [4]\n    return 7\n"
    ),
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", FAKES)
def test_a_program_that_fakes_what_grades_it_is_wrong(name, whole, slices, verifier):
    """Also as a whole program, which nobody tidies up."""
    item, benchmark = item_of("mbpp_plus", slices), BENCHMARKS.get("mbpp_plus")
    assert isinstance(benchmark, EvalPlus)
    if whole:
        found = asyncio.run(benchmark.grade_program(item, FAKES[name], verifier))
    else:
        found = grade("mbpp_plus", item, FAKES[name], verifier)
    assert (found.correct, found.parts) == (False, {"base": False})


def test_a_long_result_cannot_be_faked(verifier):
    solution = "def f(n):\n    return list(range(n))\n"
    row = {
        "id": "own",
        "prompt": "def f(n):\n",
        "entry_point": "f",
        "canonical_solution": "    return list(range(n))\n",
    }
    item = Item("own", row | {"test": script(solution, "f", [[3], [5000]]), "base_tests": 1})
    for fake in (
        "class Same(list):\n    def __eq__(self, other):\n        return True\n    def __repr__(self):\n"
        "        return '[]'\ndef f(n):\n    return Same(range(n)) if n < 9 else Same([1] * n)\n",
        "import hashlib\nhashlib.sha256 = lambda *_: hashlib.md5(b'')\n"
        "def f(n):\n    return [0, 1, 2] if n < 9 else [1] * n\n",
        "import builtins\nbuiltins.ascii = builtins.hex = lambda value: ''\n"
        "def f(n):\n    return [0, 1, 2] if n < 9 else [1] * n\n",
        "def f(n):\n    return [0, 1, 2] if n < 9 else 'long result ' + '0' * 64\n",
    ):
        found = asyncio.run(BENCHMARKS.get("humaneval_plus").grade_program(item, fake, verifier))
        assert (found.correct, fake) == (False, fake)


ODD_TEXTS = {
    "empty": "",
    "open brackets": "(" * 100_000,
    "brackets": "def odd_sum(n):\n    return " + "(" * 100_000 + ")" * 100_000,
    "lists": "odd_sum = " + "[" * 100_000 + "]" * 100_000,
    "signs": "odd_sum = " + "-" * 100_000 + "1",
    "attributes": "odd_sum = a" + ".a" * 100_000,
    "NUL": "def odd_sum(n):\x00\n    return 4\n",
    "surrogate": "def odd_sum(n):\n    return '\ud800'\n",
    "carriage returns": "def odd_sum(n):\r    return 7\r",
    "other line ends": "def odd_sum(n):\x0c\x1c\u2028    return 7",
    "many lines": "x\n" * 3_000,
    "many definitions": "def odd_sum(n: return 4\n" * 150,
    "megabytes": "# " + "x" * 3_000_000,
    "entry by unpacking": "odd_sum, = 4,",
    "a quote": "'''",
    "not a program": "I am sorry, I cannot do that.",
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_a_text_that_is_no_program_is_wrong_for_every_grader_of_programs(name, slices, verifier, within):
    text = ODD_TEXTS[name]
    with within(1000):  # outside the guests
        for benchmark in ("mbpp_plus", "humaneval_plus", "livecodebench"):
            assert not grade(benchmark, item_of(benchmark, slices), text, verifier).correct
        found = asyncio.run(tidy(text, "odd_sum", verifier))
    assert found is None or isinstance(found, str)


# Contest programs

CONTEST = {
    "leaves": "import os\nos._exit(0)",
    "exits": "import sys\nsys.exit(0)",
    "prints without end": "print('x' * 100_000_000)",
    "prints for ever": "while True:\n    print('x' * 1000)",
    "reads files": "print(open('/etc/passwd').read())",
    "reads its tests": "import glob\nprint(glob.glob('/proc/self/*'))",
    "forks": "import os\nos.fork()\nprint(4717)",
    "runs a command": "import subprocess\nprint(subprocess.check_output(['echo', '4717']).decode())",
    "opens a socket": "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "writes": "open(MARKER, 'w').write('x')",
    "runs a shell": "import os\nos.system('touch ' + MARKER)",
    "has no number": "print('nan')",
    "signals": "print('sNaN')",
    "has huge exponents": "print('1e999999999')",
    "has no such exponent": "print('1e99999999999999999999999')",
    "is empty": "",
    "prints surrogates": "import sys\nsys.stdout.write('\\ud800')",
    "prints NUL": "print(chr(0) * 10)",
    "forges a reply": (
        "import os\nfor fd in range(1, 20):\n    try:\n        os.write(fd, b\"ok:'4717'\\n\")\n"
        "    except OSError:\n        pass\n"
    ),
}


@pytest.mark.parametrize("name", CONTEST)
def test_a_contest_program_that_does_something_else_is_wrong(name, slices, verifier, marker):
    item = item_of("livecodebench", slices)
    program = CONTEST[name].replace("MARKER", repr(str(marker)))
    found = grade("livecodebench", item, program, verifier)
    assert not found.correct
    assert found.why


METHODS = {
    "equals everything": (
        "class Same(list):\n    def __eq__(self, other):\n        return True\n"
        "class Solution:\n    def everySecond(self, numbers):\n        return Same()"
    ),
    "leaves": "class Solution:\n    def everySecond(self, numbers):\n        import os\n        os._exit(0)",
    "has no such method": "class Solution:\n    pass",
    "has no class": "def everySecond(numbers):\n    return numbers[::2]",
    "fakes the call": (
        "def redqueen_call(numbers):\n    return numbers[::2]\nclass Solution:\n    everySecond = redqueen_chunk = None"
    ),
    "is deep": (
        "class Solution:\n    def everySecond(self, numbers):\n        out = []\n"
        "        for _ in range(10_000):\n            out = [out]\n        return out"
    ),
    "fakes json": (
        "import json\njson.loads = lambda text: []\n"
        "class Solution:\n    def everySecond(self, numbers):\n        return []"
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_does_something_else_is_wrong(name, slices, verifier):
    assert not grade("livecodebench", item_of("livecodebench", slices, 3), METHODS[name], verifier).correct


# Mathematics

ANSWERS = {
    "imports": "__import__('os').system('touch MARKER')",
    "imports in a text": "\\text{__import__('os').system('touch MARKER')}",
    "imports as an operator": "\\operatorname{__import__}('os').system('touch MARKER')",
    "opens": "open('MARKER','w')",
    "executes": "exec(\"open('MARKER','w')\")",
    "evaluates": "eval('1+1')",
    "a lambda": "(lambda: open('MARKER', 'w'))()",
    "a comprehension": "[open('MARKER', 'w') for x in (1,)]",
    "an attribute": "().__class__.__bases__[0].__subclasses__()",
    "patches": "__import__('redqueen_maths').__dict__.update(same=lambda *_: True)",
    "leaves": "__import__('os')._exit(0)",
    "open brackets": "(" * 60,
    "open braces": "{" * 60,
    "many open brackets": "(" * 5_000,
    "fractions": "\\frac{" * 150,
    "roots": "\\sqrt{" * 30 + "2" + "}" * 30,
    "a megabyte": "1+" * 500_000 + "1",
    "a megabyte of digits": "7" * 1_000_000,
    "a megabyte of backslashes": "\\" * 1_000_000,
    "a megabyte of texts": "\\text{" * 166_000,
    "a surrogate": "\ud800",
    "a surrogate beside": "1\udfff3",
    "NUL": "\x00",
    "NUL beside": "12\x003",
    "line ends": "\n\r\u2028\x0c",
    "nothing": "",
    "space": "   ",
    "no number": "nan",
    "a huge exponent": "1e9999",
    "a tiny one": "1e-9999",
    "an exponent out of range": "1e99999999999",
    "everything": "(-\\infty, \\infty)",
    "any complex number": "\\mathbb{C}",
    "a variable": "x",
    "true": "True",
    "the empty set": "\\emptyset",
    "many": ", ".join(map(str, range(300))),
    "quotes": "'''\"\"\"",
    "escapes": "\\x41\\u0041\\N{DIGIT ONE}",
    "end of the box": "1}}}}\\boxed{361",
    "control words": "\\end{document}",
    "a matrix": "\\begin{pmatrix} 1 & " * 40,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_was_written_to_break_the_grader_is_wrong(name, slices, verifier, marker, within):
    answer = ANSWERS[name].replace("MARKER", str(marker))
    with within(1000):  # outside the guests
        for benchmark in (*OFFLINE, "math500"):
            assert not grade(benchmark, item_of(benchmark, slices), answer, verifier).correct


def test_answers_that_cannot_be_read_or_computed_are_wrong_after_their_time(slices, verifier):
    item = item_of("math500", slices)
    endless = [(item, "9^{9^{9^{9}}}"), (item, "(" * 900), (item, "9**9**9**9"), (item, "\\frac{17}{23}")]
    grades = asyncio.run(BENCHMARKS.get("math500").grade(endless, verifier))
    assert [grade.correct for grade in grades] == [False, False, False, True]
    assert grades[0].why == "timeout"


# Whatever a model says


GARBAGE = (
    "", "\x00", "\ud800", "\\boxed{", "\\boxed{}", "\\boxed{\\boxed{}}", "}" * 1000, "the answer is", "answer: $",
    "A B C D", "####", "-", ".", "$", "1e", "```", "```python", "```\n```", "٣", "½", "∞",
    "\\boxed{\x00}", "answer is \ud800",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(BENCHMARKS.names()))
def test_garbage_is_read_and_graded_by_all(name, slices, verifier):
    benchmark, item = BENCHMARKS.get(name), item_of(name, slices, 1)
    said = [(item, benchmark.extract(item, text, how)) for text in GARBAGE for how in Prompts]
    grades = asyncio.run(benchmark.grade(said, verifier))
    assert not any(grade.correct for grade in grades)
    # And the grader still knows what is right.
    right = benchmark.extract(item, SAID[item.id, Prompts.CHAT].right, Prompts.CHAT)
    assert grade(name, item, right, verifier).correct
