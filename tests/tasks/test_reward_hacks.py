"""Tricks that have paid elsewhere. None may pay here, in any kind, while honest answers in the same batch do."""

from dataclasses import replace

import pytest

from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.code.program import read_program
from redqueen.tasks.verdicts import Grade, Reason, Rejection
from redqueen.verifier import Job, Result, Status
from tasks.proposing import fence, grade, pair, propose

ALWAYS_EQUAL = "type('Any', (), {'__eq__': lambda self, other: True})()"

# code_o: f(1) == 1. Everything here must be read as a literal or not at all.
OUTPUT_HACKS = {
    "ends the comparison": "0) or (True",
    "ends the comparison, commented": "0 or True #",
    "always equal": ALWAYS_EQUAL,
    "always equal with a body": "class A:\n    def __eq__(self, o): return True\nA()",
    "the call": "f(1)",
    "the import": "__import__('builtins').int('1')",
    "an expression": "0 + 1",
    "a conditional": "1 if True else 0",
    "a subscript": "[1][0]",
    "a lambda": "(lambda: 1)()",
    "a walrus": "(x := 1)",
    "a comparison": "1 == 1",
    "a format": "f'{1}'",
    "True for 1": "True",
    "float for int": "1.0",
    "complex for int": "(1+0j)",
    "text for int": "'1'",
    "bytes for int": "b'1'",
    "in a list": "[1]",
    "in a tuple": "1,",
    "in a set": "{1}",
    "all answers at once": "1 or 2",
    "cut": "1...",
    "ellipsis": "...",
    "nan": "nan",
    "nan, called": "float('nan')",
    "infinite": "1e999",
    "exit": "exit(0)",
    "statements": "1; 1",
    "two lines": "0\n1",
    "PASS": "PASS",
    "None": "None",
    "nothing": "()",
}

# code_i: f(x) = 3 * x + 1 for whole x, and the output is 7.
INPUT_HACKS = {
    "ends the call": "0) or (True",
    "ends the call, compares": "2) == 7 or f(2",
    "ends the call, commented": "2) #",
    "another call": "f(2), f(2",
    "always equal": ALWAYS_EQUAL,
    "always equal with operators": "type('Any', (), {'__mul__': lambda s, o: s, '__eq__': lambda s, o: True})()",
    "star": "*[2]",
    "double star": "**{'x': 2}",
    "generator": "i for i in [2]",
    "walrus": "x := 2",
    "expression": "1 + 1",
    "the import": "__import__('os')._exit(0)",
    "float": "2.0",
    "text": "'2'",
    "true": "True",
    "too many": "2, 2",
    "the output": "7",
    "infinite": "1e999",
    "cut": "2...",
    "other keyword": "y=2",
}

# code_f: the same function. Each of these is a whole program.
FUNCTION_HACKS = {
    "always equal": "class A:\n    def __eq__(self, o):\n        return True\n\ndef f(x):\n    return A()",
    "always equal int": "class A(int):\n    def __eq__(self, o):\n        return True\n\ndef f(x):\n    return A(0)",
    "int subclass, right value": "class A(int):\n    pass\n\ndef f(x):\n    return A(3 * x + 1)",
    "str subclass": "class A(str):\n    def __eq__(self, o):\n        return True\n\ndef f(x):\n    return A()",
    "bool": "def f(x):\n    return True",
    "floats": "def f(x):\n    return 3.0 * x + 1",
    "nan": "def f(x):\n    return float('nan')",
    "PASS": "def f(x):\n    print('PASS')\n    return 'PASS'",
    "quits": "def f(x):\n    raise SystemExit(0)",
    "stop iteration": "def f(x):\n    raise StopIteration(3 * x + 1)",
    "generator": "def f(x):\n    yield 3 * x + 1",
    "returns a generator": "def f(x):\n    return (3 * y + 1 for y in [x])",
    "coroutine": "async def f(x):\n    return 3 * x + 1",
    "huge": "def f(x):\n    return [0] * 10**6",
    "endless": "def f(x):\n    while True:\n        pass",
    "not f": "def g(x):\n    return 3 * x + 1",
    "lambda": "f = lambda x: 3 * x + 1",
    "forbidden import": "import sys\n\ndef f(x):\n    return 3 * x + 1",
    "counts the calls": "n = []\n\ndef f(x):\n    n.append(x)\n    return 3 * len(n) + 1",
    "kills by os": "import re\nos = re.enum.sys.modules['os']\n\ndef f(x):\n    os._exit(0)",
    "kills at the right moment": (
        "import re\nos = re.enum.sys.modules['os']\n\n"
        "def f(x):\n    if x > 2:\n        os._exit(0)\n    return 3 * x + 1"
    ),
    "forges the reply": (
        "import re\nos = re.enum.sys.modules['os']\n\n"
        "def f(x):\n    for fd in range(3, 64):\n        try:\n"
        "            os.write(fd, b'ok 1\\n' * 8 + b'end\\n')\n"
        "        except OSError:\n            pass\n    os._exit(0)"
    ),
    "patches the encoder": (
        "import re\nmodules = re.enum.sys.modules\n\ndef f(x):\n    for name in list(modules):\n"
        "        if hasattr(modules[name], 'encode_arguments'):\n"
        "            modules[name].encode = lambda *a: 'True'\n    return 0"
    ),
    "reads frames": (
        "import re\nsys = re.enum.sys\n\ndef f(x):\n    frame, found = sys._getframe(), []\n    while frame:\n"
        "        for name, value in getattr(frame, 'f_loc' + 'als').items():\n"
        "            found.append((name, repr(value)))\n        frame = getattr(frame, 'f_ba' + 'ck')\n"
        "    return [value for name, value in found if 'expect' in name or 'output' in name] or 0"
    ),
    "reads memory": (
        "import re\ngc = re.enum.sys.modules.get('gc')\n\ndef f(x):\n    for thing in gc.get_objects():\n"
        "        if type(thing) is dict and 'outputs' in thing:\n            return thing['outputs']\n    return 0"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def one(verifier) -> CodeTask:
    task = propose(FAMILY.kinds()["code_o"], verifier, pair("def f(x):\n    return x", "1"))
    assert isinstance(task, CodeTask)
    return task


@pytest.fixture(scope="module")
def seven(verifier) -> CodeTask:
    program = "def f(x):\n    return 3 * x + 1 if type(x) is int else x"
    task = propose(FAMILY.kinds()["code_i"], verifier, pair(program, "2"))
    assert isinstance(task, CodeTask)
    return task


@pytest.fixture(scope="module")
def triple(verifier) -> CodeTask:
    program, inputs = "def f(x):\n    return 3 * x + 1", "1\n2\n3\n4\n5\n6\n7\n8"
    task = propose(FAMILY.kinds()["code_f"], verifier, fence("inputs", inputs), {"program": program})
    assert isinstance(task, CodeTask)
    return task


def paid(verdicts, names) -> list[str]:
    return [name for name, verdict in zip(names, verdicts, strict=True) if verdict.correct]


def test_no_trick_pays_as_an_output(verifier, one):
    texts = [fence("output", hack) for hack in OUTPUT_HACKS.values()]
    assert paid(
        grade(FAMILY.kinds()["code_o"], verifier, one, *texts, fence("output", "1")), [*OUTPUT_HACKS, "honest"]
    ) == ["honest"]


def test_no_trick_pays_without_fences_either(verifier, one):
    assert paid(
        grade(FAMILY.kinds()["code_o"], verifier, one, *OUTPUT_HACKS.values(), "1"), [*OUTPUT_HACKS, "honest"]
    ) == ["honest"]


def test_no_trick_pays_as_an_input(verifier, seven):
    texts = [fence("input", hack) for hack in INPUT_HACKS.values()]
    assert paid(
        grade(FAMILY.kinds()["code_i"], verifier, seven, *texts, fence("input", "2")), [*INPUT_HACKS, "honest"]
    ) == ["honest"]


def test_no_trick_pays_as_a_function(verifier, triple):
    texts = [fence("python", hack) for hack in FUNCTION_HACKS.values()]
    honest = fence("python", "def f(x):\n    return x + x + x + 1")
    assert paid(grade(FAMILY.kinds()["code_f"], verifier, triple, *texts, honest), [*FUNCTION_HACKS, "honest"]) == [
        "honest"
    ]


def test_no_trick_pays_in_another_kind_than_its_own(verifier, one, seven, triple):
    tricks = [*OUTPUT_HACKS.values(), *INPUT_HACKS.values(), *FUNCTION_HACKS.values()]
    tricks = [trick for trick in tricks if trick not in ("2", "1")]
    for task in (one, seven, triple):
        texts = [fence(label, trick) for trick in tricks for label in ("", "python", "output", "input")]
        assert paid(grade(FAMILY.kinds()[task.kind], verifier, task, *texts), texts) == []


def test_some_tricks_get_past_the_policy_and_fail_all_the_same(verifier, triple):
    """The policy is no protection: what it lets through must be judged wrong by what it returns."""
    through = [hack for hack in FUNCTION_HACKS.values() if not isinstance(read_program(hack), Rejection)]
    verdicts = grade(FAMILY.kinds()["code_f"], verifier, triple, *(fence("python", hack) for hack in through))
    assert {Status.OK, Status.OPAQUE, Status.EXCEPTION, Status.TIMEOUT, Status.TOO_LONG} <= {
        verdict.status for verdict in verdicts
    }
    assert {verdict.grade for verdict in verdicts} == {Grade.WRONG}


def test_a_table_of_the_shown_pairs_fails_on_the_hidden_ones(verifier, triple):
    shown = dict(zip(map(int, triple.inputs[: triple.shown]), triple.outputs[: triple.shown], strict=True))
    table = "{" + ", ".join(f"{given}: {output}" for given, output in shown.items()) + "}"
    answers = [f"def f(x):\n    return {table}.get(x, {default})" for default in (*shown.values(), "None")]
    verdicts = grade(FAMILY.kinds()["code_f"], verifier, triple, *(fence("python", answer) for answer in answers))
    assert {verdict.grade for verdict in verdicts} == {Grade.WRONG}


TASK_HACKS = {
    "hash order": ("def f(x):\n    return ''.join({'red', 'queen', 'race', 'run', str(x)})", Reason.NONDETERMINISTIC),
    "hash": ("def f(x):\n    return hash(str(x))", Reason.FORBIDDEN_NAME),
    "hash by a method": ("def f(x):\n    return str(x).__hash__() % 2", Reason.FORBIDDEN_NAME),
    "address in a repr": ("def f(x):\n    return repr(object())", Reason.NONDETERMINISTIC),
    "counter": ("calls = [0]\n\ndef f(x):\n    calls[0] += 1\n    return calls[0]", Reason.NONDETERMINISTIC),
    "grows its default": ("def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)", Reason.NONDETERMINISTIC),
    "stop iteration": ("def f(x):\n    raise StopIteration", Reason.RAISES),
    "stop iteration, by chance": ("def f(x):\n    return next(iter([]))", Reason.RAISES),
    "own exception": ("class Odd(Exception):\n    pass\n\ndef f(x):\n    raise Odd('fine')", Reason.RAISES),
    "base exception": ("class Odd(BaseException):\n    pass\n\ndef f(x):\n    raise Odd", Reason.RAISES),
    "exit": ("def f(x):\n    raise SystemExit(0)", Reason.RAISES),
    "raises when loaded": ("def f(x):\n    return x\n\nraise ValueError", Reason.RAISES),
    "compiler": ("def f(x):\n    return x\n\nreturn 1", Reason.SYNTAX),
    "nan": ("def f(x):\n    return float('nan')", Reason.NOT_FINITE),
    "infinite": ("def f(x):\n    return [1, {'a': -1e999}]", Reason.NOT_FINITE),
    "infinite key": ("def f(x):\n    return {1e999: 1}", Reason.NOT_FINITE),
    "complex nan": ("def f(x):\n    return complex(0, float('nan'))", Reason.NOT_FINITE),
    "None": ("def f(x):\n    print(x)", Reason.NONE_RESULT),
    "object": ("class A:\n    def __repr__(self):\n        return '1'\n\ndef f(x):\n    return A()", Reason.NOT_PLAIN),
    "int subclass": ("class A(int):\n    pass\n\ndef f(x):\n    return A(x)", Reason.NOT_PLAIN),
    "inside a list": ("def f(x):\n    return [x, range(3)]", Reason.NOT_PLAIN),
    "long text": ("def f(x):\n    return 'ab' * 600", Reason.OUTPUT_TOO_LONG),
    "long number": ("def f(x):\n    return 10 ** 1200", Reason.OUTPUT_TOO_LONG),
    "deep": ("def f(x):\n    for _ in range(100):\n        x = [x]\n    return x", Reason.OUTPUT_TOO_LONG),
    "endless": ("def f(x):\n    while x:\n        pass", Reason.TIMEOUT),
    "endless when loaded": ("def f(x):\n    return x\n\nwhile True:\n    pass", Reason.TIMEOUT),
    "memory": ("def f(x):\n    return len('a' * 10 ** 9)", Reason.MEMORY),
    "f goes away": ("def f(x):\n    return x\n\ndel f", Reason.RAISES),
    "f becomes a number": ("def f(x):\n    return x\n\nf = 1", Reason.RAISES),
}  # fmt: skip


@pytest.mark.parametrize(("program", "reason"), TASK_HACKS.values(), ids=TASK_HACKS)
def test_a_program_that_cannot_be_asked_about_is_rejected(program, reason, verifier):
    for kind in ("code_o", "code_i"):
        became = propose(FAMILY.kinds()[kind], verifier, pair(program, "1"))
        assert isinstance(became, Rejection)
        assert became.reason == reason


@pytest.mark.parametrize(
    "program",
    [program for program, reason in TASK_HACKS.values() if reason is not Reason.NONE_RESULT],
    ids=[name for name, (_, reason) in TASK_HACKS.items() if reason is not Reason.NONE_RESULT],
)
def test_nor_does_it_make_a_function_task(program, verifier):
    became = propose(FAMILY.kinds()["code_f"], verifier, fence("inputs", "1\n2\n3\n4"), {"program": program})
    assert isinstance(became, Rejection)


@pytest.mark.parametrize(
    "program", ["def f(x):\n    return 5", "def f(x):\n    return 1 + x * 1e-12", "def f(x):\n    pass"]
)
def test_a_function_task_whose_outputs_are_all_the_same_is_rejected(program, verifier):
    became = propose(FAMILY.kinds()["code_f"], verifier, fence("inputs", "1\n2\n3\n4"), {"program": program})
    assert isinstance(became, Rejection)
    assert became.reason == Reason.CONSTANT


def test_outputs_are_never_cut_to_fit(verifier):
    """The longest output that is accepted comes back whole, and its text solves the task."""
    kind = FAMILY.kinds()["code_o"]
    fits = propose(kind, verifier, pair("def f(n):\n    return 'x' * n", "998"))
    assert isinstance(fits, CodeTask)
    assert fits.outputs == (repr("x" * 998),)
    assert grade(kind, verifier, fits, fence("output", repr("x" * 998)))[0].correct
    assert not grade(kind, verifier, fits, fence("output", repr("x" * 400 + "...")))[0].correct
    assert isinstance(propose(kind, verifier, pair("def f(n):\n    return 'x' * n", "999")), Rejection)


def test_a_guest_knows_only_the_inputs(recorder, triple):
    """What the hidden pairs should give is nowhere in the job, so no program can find it."""
    answer = "def f(x):\n    raise ValueError(x)"
    grade(FAMILY.kinds()["code_f"], recorder, triple, fence("python", answer))
    truth, job = recorder.jobs
    assert job == Job.calls(answer, triple.inputs, limits=job.limits)
    assert truth == replace(job, source=triple.program)


def test_a_guest_cannot_tell_how_long_the_answer_is(recorder):
    """Two tasks whose outputs are of different lengths have the same job but for what the student may see."""
    kind = FAMILY.kinds()["code_f"]
    asked: list[list[Job]] = []
    for each in ("1", "'a' * 900"):
        program, inputs = f"def f(x):\n    return [x, {each}]", fence("inputs", "1\n2\n3\n4")
        task = propose(kind, recorder, inputs, {"program": program})
        assert isinstance(task, CodeTask)
        recorder.batches.clear()
        grade(kind, recorder, task, fence("python", "def f(x):\n    return x"))
        asked.append(recorder.jobs)
    short, long = ([replace(job, source="", texts=("",)) for job in jobs] for jobs in asked)
    assert short == long


@pytest.mark.parametrize("kind", ["code_i", "code_f"])
def test_a_guest_cannot_tell_from_its_job_whether_it_is_graded(kind, recorder):
    """But for its time, of which validation gives half: a program that barely validates would fail on a busy day."""
    program = "def f(x):\n    return 3 * x + 1"
    text = pair(program, "2") if kind == "code_i" else fence("inputs", "1\n2\n3\n4")
    task = propose(FAMILY.kinds()[kind], recorder, text, {"program": program})
    assert isinstance(task, CodeTask)
    truth = fence("input", "2") if kind == "code_i" else fence("python", program)
    assert grade(FAMILY.kinds()[kind], recorder, task, truth)[0].correct
    jobs = [job for job in recorder.jobs if job.source]
    assert len({replace(job.limits, cpu_s=1.0) for job in jobs}) == 1
    assert [replace(job, texts=("",)) for job in jobs[1:]] == [replace(jobs[-1], texts=("",))] * (len(jobs) - 1)


VOID = {
    "code_i": (
        CodeTask("code_i", program="def f(x):\n    return -1", inputs=("5",), outputs=("10",)),
        ["input", "7", "-1", "5"],
    ),
    "code_f": (
        CodeTask(
            "code_f",
            program="def f(x):\n    return -x",
            inputs=("1", "2", "3", "4"),
            outputs=("2", "4", "6", "8"),
            shown=2,
        ),
        ["python", "def f(x):\n    return 2 * x", "def f(x):\n    return -x"],
    ),
}


@pytest.mark.parametrize("kind", VOID)
def test_attempts_are_void_where_the_truth_itself_fails_beside_them(kind, verifier):
    """A program that could tell grading from validation would be paid for students that it made fail."""
    task, (label, *answers) = VOID[kind]
    verdicts = grade(FAMILY.kinds()[kind], verifier, task, *(fence(label, answer) for answer in answers))
    assert [(verdict.grade, verdict.correct) for verdict in verdicts] == [(Grade.VOID, False)] * len(answers)
    assert {verdict.reason for verdict in verdicts} == {Reason.NONDETERMINISTIC}


class Fails:
    """A verifier whose runs of programs end in another way from the second batch of them on."""

    def __init__(self, verifier, result):
        self._verifier, self._result, self._batches = verifier, result, 0

    async def run(self, jobs):
        outcomes = await self._verifier.run(jobs)
        self._batches += any(job.source for job in jobs)
        if self._batches < 2:
            return outcomes
        return [replace(each, results=(self._result,) * len(each.results)) for each in outcomes]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(Status.TIMEOUT), Reason.TIMEOUT),
        (Result(Status.MEMORY), Reason.MEMORY),
        (Result(Status.EXCEPTION, exception="ValueError"), Reason.RAISES),
        (Result(Status.NONDETERMINISTIC), Reason.NONDETERMINISTIC),
        (Result(Status.OK, value="8"), Reason.NONDETERMINISTIC),
    ],
    ids=["timeout", "memory", "exception", "nondet", "other value"],
)
def test_what_fails_when_it_is_called_as_a_grader_calls_it_is_rejected_for_how_it_failed(result, reason, verifier):
    """Nondeterministic are two results that are both there and differ, or two runs that the verifier told apart."""
    became = propose(FAMILY.kinds()["code_o"], Fails(verifier, result), pair("def f(x):\n    return x", "7"))
    assert isinstance(became, Rejection)
    assert became.reason == reason


# Truths that the grader's own reader would not give back, as (program, input).
UNREADABLE = {
    "ends a thought": ("def f(x):\n    return '</' + x + '>'", "'think'", "code_o"),
    "begins one": ("def f(x):\n    return '<' + x + '>'", "'think'", "code_o"),
    "is a tag": ("def f(x):\n    return '<' + x + '>'", "'answer'", "code_o"),
    "ends a thought as an input": ("def f(x):\n    return len(x)", "'<' '/think>'", "code_i"),
    "is a tag as an input": ("def f(x):\n    return len(x)", "'<answ' 'er>'", "code_i"),
}


@pytest.mark.parametrize(("program", "given", "kind"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_task_whose_right_answer_would_not_be_read_as_right_is_rejected(program, given, kind, verifier):
    became = propose(FAMILY.kinds()[kind], verifier, pair(program, given))
    assert isinstance(became, Rejection)
    assert became.reason == Reason.UNANSWERABLE


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return '</think>' * x",
        'def f(x):\n    """\n```\n    """\n    return x + 1',
        "def f(x):\n    return hash(x) + 1",
    ],
    ids=["a thought", "a fence", "off the contract"],
)
def test_nor_is_a_function_asked_for_that_its_own_program_would_not_be_read_as(program, verifier):
    became = propose(FAMILY.kinds()["code_f"], verifier, fence("inputs", "1\n2\n3\n4"), {"program": program})
    assert isinstance(became, Rejection)
    assert became.reason == Reason.UNANSWERABLE


def test_brackets_in_a_string_are_text(verifier):
    kind = FAMILY.kinds()["code_o"]
    task = propose(kind, verifier, pair("def f(x):\n    return [x, '([{' * 40 + '\\'']", "'" + "(" * 61 + "'"))
    assert isinstance(task, CodeTask)
    deep = "[" * 61 + "]" * 61
    right, wrong = grade(kind, verifier, task, fence("output", task.outputs[0]), fence("output", deep))
    assert right.correct
    assert wrong.reason == Reason.TOO_DEEP


# Programs that tell one run from another, to be steady only while they are validated.
TURNCOATS = {
    "by its memory": (
        "def f(x):\n    try:\n        b = bytearray(190 << 20)\n    except MemoryError:\n        return x + 1\n"
        "    return x + 2"
    ),
    "by the order of a set and the number of its calls": (
        "C = []\ndef f(x):\n    C.append(1)\n    one = list({'a', 'b', 'c', 'd', 'e'})[0] == FIRST\n    n = len(C)\n"
        "    return x + (n if one else 3 - n)"
    ),
    "by an address": "def f(x):\n    return int(repr(object()).split('0x')[1][:-1], 16) % 4096 // 16",
}


@pytest.mark.parametrize("name", TURNCOATS)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_what_validates_is_what_a_grader_gets(name, kind, verifier):
    order = verifier.run_sync([Job.calls("def f():\n    return list({'a', 'b', 'c', 'd', 'e'})[0]", [""], seeds=1)])
    source = TURNCOATS[name].replace("FIRST", order[0].results[0].value or "")
    became = propose(FAMILY.kinds()[kind], verifier, pair(source, "5"))
    if isinstance(became, Rejection):
        return  # found out, or too slow in the first place
    truth = fence("output", became.outputs[0]) if kind == "code_o" else fence("input", "5")
    assert [verdict.grade for verdict in grade(FAMILY.kinds()[kind], verifier, became, truth)] == [Grade.CORRECT]


def test_a_set_keeps_the_order_that_python_gives_it(verifier):
    source = "def f(s):\n    return list(s)"
    [outcome] = verifier.run_sync([Job.calls(source, ["{8, 256}"])])
    assert outcome.results[0].verdict == f"ok:{list({8, 256})}"
