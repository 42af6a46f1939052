"""Answers without their fenced block: read where there is one way to (`tasks.unfenced`), malformed where not."""

import time
from dataclasses import replace

import pytest

from redqueen.settings import Config
from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.code.unfenced import last_value, only_program
from redqueen.tasks.families import Families
from redqueen.tasks.verdicts import Grade, Reason
from redqueen.training.rules import read_rules
from tasks.proposing import fence, grade

READS = FAMILY.reading_unfenced().kinds()
DOUBLE = CodeTask("code_o", program="def f(x):\n    return [x, x * 2]", inputs=("1",), outputs=("[1, 2]",))
TEXT = CodeTask("code_o", program="def f(x):\n    return x", inputs=("'a, **b**.'",), outputs=("'a, **b**.'",))
TRIPLE = "def f(x):\n    return x * 3"
INPUTS = tuple(map(str, range(1, 7)))
FUNCTION = CodeTask("code_f", program=TRIPLE, inputs=INPUTS, outputs=tuple(str(3 * int(n)) for n in INPUTS), shown=3)


@pytest.mark.parametrize(
    "line",
    [
        "Output: [1, 2]",
        "output = [1, 2]",
        "The output is [1, 2].",
        "So, the final answer is: [1, 2]",
        "Therefore the answer is `[1, 2]`.",
        "The answer is **[1, 2]**.",
        "**Output:** [1, 2]",
        "**Output: `[1, 2]`**",
        "**[1, 2]**",
        "`[1, 2]`",
        "`[1, 2]`.",
        "[1, 2]",
        "Returned value: [1, 2]\n\n",
    ],
)
def test_a_last_line_with_one_value_is_read(line, verifier):
    text = f"First x is 1, and twice that is 2.\n\n{line}"
    [off] = grade(FAMILY.kinds()["code_o"], verifier, DOUBLE, text)
    [on] = grade(READS["code_o"], verifier, DOUBLE, text)
    assert (off.grade, on.grade) == (Grade.MALFORMED, Grade.CORRECT)


@pytest.mark.parametrize(
    "line",
    ["Output: 'a, **b**.'", "The answer is 'a, **b**.'", "'a, **b**.'", "`'a, **b**.'`", "**'a, **b**.'**"],
)
def test_nothing_within_a_string_is_taken_for_a_mark(line, verifier):
    [verdict] = grade(READS["code_o"], verifier, TEXT, f"It is returned as it is.\n{line}")
    assert verdict.grade is Grade.CORRECT


@pytest.mark.parametrize(
    "text",
    [
        "The answer is [1, 2] or [2, 1].",
        "Output: [1, 2], [2, 4]",
        "It is `[1, 2]` or `[2, 1]`",
        "`[1, 2]` or `[2, 1]`",
        "**[1, 2]** and **[2, 1]**",
        "Output: [1, 2]\nI am not sure.",
        "[1, 2]\n[2, 1]",
        "The answer is [1, 2], not [2, 1].",
        "The output of f(1) was [1, 2]",
        "Output:",
        "x = [1, 2]",
        "The answer is __import__('os').getcwd()",
        "Output: [1, 2] if True else 3",
        "Output: f(1)",
        "",
    ],
)
def test_a_text_with_more_than_one_reading_or_none_is_malformed_as_before(text, verifier):
    verdicts = [grade(kinds["code_o"], verifier, DOUBLE, text)[0] for kinds in (FAMILY.kinds(), READS)]
    assert {verdict.grade for verdict in verdicts} == {Grade.MALFORMED}


@pytest.mark.parametrize(("line", "value"), [("The answer is 5.", "5"), ("The answer is 5.0", "5.0")])
def test_a_full_stop_ends_a_sentence(line, value):
    assert last_value(f"So:\n{line}", "output") == value


@pytest.mark.parametrize("line", ["Output: 5.", "5.", "**5.**", "Output: 5, 6", "Result = 1, 2"])
def test_a_number_or_the_end_of_a_sentence_and_a_tuple_or_two_answers_are_in_doubt(line):
    assert last_value(f"So:\n{line}", "output") is None


def test_what_was_read_before_is_read_the_same(verifier):
    texts = ["[1, 2]", "[1,\n 2]", fence("output", "[1, 2]"), f"Output: 7\n{fence('output', '[1, 2]')}"]
    texts += [f"{fence('output', '[1, 2]')}\nOutput: 7"]
    for kinds in (FAMILY.kinds(), READS):
        assert {verdict.grade for verdict in grade(kinds["code_o"], verifier, DOUBLE, *texts)} == {Grade.CORRECT}


@pytest.mark.parametrize("line", ["Input: 1", "input = f(1)", "f(1)", "The input is `f(1)`.", "1", "Input: x=1"])
def test_an_input_is_read_as_arguments(line, verifier):
    task = replace(DOUBLE, kind="code_i")
    [off] = grade(FAMILY.kinds()["code_i"], verifier, task, f"It wants 1.\n{line}")
    [on] = grade(READS["code_i"], verifier, task, f"It wants 1.\n{line}")
    assert (off.grade, on.grade) == (Grade.MALFORMED, Grade.CORRECT)


HELPED = f"import math\n\ndef three(x):\n    return 3 * x\n\nNow with that:\n\n{TRIPLE.replace('x * 3', 'three(x)')}"


@pytest.mark.parametrize(
    "text",
    [
        TRIPLE,
        f"Each is three times as much.\n\n{TRIPLE}\n\nThat does it.",
        HELPED,
        "def f(\n    x,\n):\n    return x * 3\n",
    ],
)
def test_the_one_function_of_a_text_is_its_program(text, verifier):
    [off] = grade(FAMILY.kinds()["code_f"], verifier, FUNCTION, text)
    [on] = grade(READS["code_f"], verifier, FUNCTION, text)
    assert (off.grade, off.reason, on.grade) == (Grade.MALFORMED, Reason.NO_PROGRAM, Grade.CORRECT)


@pytest.mark.parametrize(
    "text",
    [
        f"{TRIPLE}\n\nor rather\n\n{TRIPLE.replace('3', '4')}",
        "    def f(x):\n        return x * 3",
        "lambda x: x * 3",
        "def g(x):\n    return x * 3",
        "import os\n\ndef f(x):\n    return os.getpid()",
    ],
)
def test_no_function_or_two_or_a_forbidden_one_are_malformed(text, verifier):
    [verdict] = grade(READS["code_f"], verifier, FUNCTION, text)
    assert verdict.grade is Grade.MALFORMED


def test_hostile_texts_take_no_time():
    texts = ["`" * 100_000, "**" * 50_000, "output " * 14_000, "Output: " + "(" * 90_000, "def f(\n" * 14_000]
    texts += ["import " + "a," * 49_000, "the final " * 10_000, "\n" * 100_000, "Output: " + "'\\" * 45_000]
    start = time.perf_counter()
    for text in texts:
        last_value(text, "output")
        last_value(text, "input")
        only_program(text)
    assert time.perf_counter() - start < 2


def test_the_setting_reaches_the_kinds_of_a_race_and_is_off_by_default():
    for changes, read in (({}, False), ({"unfenced": True}, True)):
        kinds = read_rules(Config.model_validate({"tasks": changes})).families.kinds
        assert [kind.unfenced for kind in kinds.values()] == [read] * 3


def test_teachers_need_their_fences():
    kind = Families.of(("code",), unfenced=True).kinds["code_o"]
    assert kind.parse_proposal(f"{TRIPLE}\n\nInput: 4", {}).reason is Reason.NO_PROGRAM
