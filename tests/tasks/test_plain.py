"""A program is shown and run without text that it does not compute with, and nothing in a task ends its own block."""

import ast
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.engine.known import EMBEDDED
from redqueen.tasks.code import FAMILY, SEEDS, CodeTask
from redqueen.tasks.code.plain import read_plain
from redqueen.tasks.files import read_exam, read_held_out, read_seeds
from redqueen.tasks.protocol import Form
from redqueen.tasks.verdicts import Reason, Rejection
from tasks.proposing import CODE, fence, pair, propose

PROGRAMS = [seed.program for seed in SEEDS]
INDENT = "def f(n):\n    if n:\n        return 1\n    return 2"
CODE_O, CODE_F = FAMILY.kinds()["code_o"], FAMILY.kinds(Form.SHORT)["code_f"]
TURN = '"""\n\nWrite the output.\n"""'

CASES = {
    "a comment after a statement": ("def f(n):\n    return n  # 5", "def f(n):\n    return n"),
    "comments on lines of their own": ("# a\n\ndef f(n):\n    # b\n    return n\n# c", "def f(n):\n    return n"),
    "a comment in brackets": (
        "def f(n):\n    return (n +  # a\n        # b\n        1)",
        "def f(n):\n    return (n +\n        1)",
    ),
    "a hash in a string": ("def f(n):\n    return '# a'  # b", "def f(n):\n    return '# a'"),
    "a docstring": (f"def f(n):\n    {TURN}\n    return n", "def f(n):\n    return n"),
    "docstrings of a module and a class": (
        "'a'\nclass A:\n    'b'\n    x = 1\n\ndef f(n):\n    return A.x",
        "class A:\n    x = 1\n\ndef f(n):\n    return A.x",
    ),
    "a string in the middle": (
        "def f(n):\n    n += 1\n    'n is 5'\n    return n",
        "def f(n):\n    n += 1\n    return n",
    ),
    "a string in brackets": (
        "def f(n):\n    (\n        'a'\n        'b'\n    )\n    return n",
        "def f(n):\n    return n",
    ),
    "other constants": ("def f(n):\n    5\n    'a', ['b']\n    f'c'\n    return n", "def f(n):\n    return n"),
    "a body of nothing else": (
        "def f(n):\n    if n:\n        'a'\n        'b'  # c\n    else:\n        'd'\n    return n",
        "def f(n):\n    if n:\n        pass\n    else:\n        pass\n    return n",
    ),
    "letters of two bytes": ("def f(n):\n    'é'\n    return 'é'  # é", "def f(n):\n    return 'é'"),
    "one line": ("def f(n): 'a'; return n", "def f(n):\n    return n"),
    "after a semicolon": ("def f(n):\n    n += 1; 'a'\n    return n", "def f(n):\n    n += 1\n    return n"),
    "a string over lines": (f"def f(n):\n    return {TURN}", "def f(n):\n    return '\\n\\nWrite the output.\\n'"),
    "a string over lines, with values in it": (
        'def f(n):\n    return f"""{n}\nb"""',
        "def f(n):\n    return f'{n}\\nb'",
    ),
    "a string that goes on": ("def f(n):\n    return 'a\\\nb'", "def f(n):\n    return 'ab'"),
    "line ends of another system": ("def f(n):\r\n    return n  # a\r\n", "def f(n):\n    return n"),
}


@pytest.mark.parametrize(("written", "plain"), CASES.values(), ids=CASES)
def test_text_that_does_nothing_is_taken_out(written, plain):
    assert read_plain(written) == plain


@pytest.mark.parametrize(
    "program",
    [
        *PROGRAMS,
        "def f(n):\n    ...\n    return n",
        "def f(n):\n\n\n  return ( n ,\n    'a'\n    'b' )  ",
        "def f(n):\n    x = 'a' ; return x\n",
        "def f(n):\n    return 0x" + "f" * 3900,
    ],
)
def test_a_program_without_any_stays_as_it_is(program):
    assert read_plain(program) == program


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_exams_and_seeds_that_come_with_a_base_stay_as_they_are(name):
    for file in EMBEDDED[name].folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            assert read_plain(row["program"]) == row["program"]


@settings(deadline=None)
@given(st.sampled_from([*PROGRAMS, INDENT]), st.data())
def test_whatever_remarks_are_put_into_a_program_it_comes_out_as_it_was(program, data):
    lines: list[str] = []
    for line in program.split("\n"):
        before = data.draw(st.sampled_from(["", "# a", "    # ```output", "'a'", '"""\n\nWrite the output.\n"""']))
        indent = line[: len(line) - len(line.lstrip())]
        if before and line.strip() and not line.lstrip().startswith(("else", "elif", "def", "@")):
            lines.append(indent + before.replace("    ", "") if before[0] != " " else before)
        elif before.lstrip().startswith("#"):
            lines.append(before)
        lines.append(line + data.draw(st.sampled_from(["", "  # 5", " # '''"])) if line.strip() else line)
    assert read_plain("\n".join(lines)) == program


@settings(deadline=None)
@given(st.text("def f(x):\n\t 'a\"#\\;{}=+1,r\rb`", max_size=60))
def test_any_text_comes_to_a_program_with_nothing_to_take_out_or_to_a_reason(text):
    plain = read_plain("def f(x):\n " + text)
    if isinstance(plain, str):
        ast.parse(plain)
        assert read_plain(plain) == plain


def test_a_proposal_is_its_plain_program_everywhere(verifier):
    written = "def f(n):\n    '''Returns 5.'''\n    return n + 1  # 5"
    task = propose(CODE_O, verifier, pair(written, "1"))
    assert task == CodeTask("code_o", program="def f(n):\n    return n + 1", inputs=("1",), outputs=("2",))
    assert "5" not in CODE_O.solve_prompt(task).messages[-1]["content"].partition("```python")[2].partition("```")[0]


def test_seeds_and_exams_of_the_user_are_plain_too(tmp_path):
    path = tmp_path / "rows.jsonl"
    program = "def f(n):\n    return n"
    row = {"kind": "code_f", "program": program + "  # 5", "inputs": ["1"], "message": "a\n\nWrite the program."}
    path.write_text(json.dumps(row))
    [seed], [exam] = read_seeds(path, CODE), read_exam(path, CODE)
    assert (seed.draft.program, exam.draft.program, exam.draft.message) == (program, program, "a Write the program.")


# Fences


@pytest.mark.parametrize(
    ("program", "argument"),
    [
        ("def f(n):\n    return '```output'", "1"),
        ("def f(n):\n    return '`' * n", "3"),
        ("def f(n):\n    return len(n)", "'\\x60\\x60\\x60'"),
        ("def f(n):\n    return '\u1fef\u1fef\u1fef'", "1"),
    ],
)
def test_what_would_end_a_block_is_refused(verifier, program, argument):
    refused = propose(CODE_O, verifier, pair(program, argument))
    assert isinstance(refused, Rejection) and refused.reason is Reason.FENCE


def test_backticks_that_end_nothing_are_welcome(verifier):
    assert isinstance(propose(CODE_O, verifier, pair("def f(n):\n    return '``'", "3")), CodeTask)


def test_a_hint_has_one_line_and_no_fence(verifier):
    def hinted(message: str):
        text = fence("inputs", "1\n2\n3\n4") + "\n" + fence("message", message)
        return propose(CODE_F, verifier, text, {"program": "def f(n):\n    return n + 1"})

    task = hinted("It adds.\n\nWrite the program.")
    assert isinstance(task, CodeTask) and task.message == "It adds. Write the program."
    refused = hinted("It adds: ```python is 1.")
    assert isinstance(refused, Rejection) and refused.reason is Reason.FENCE


# Held out


def test_a_held_out_program_is_found_in_its_plain_copy(tmp_path):
    stubs = "def f(n):\n    class Wrong(ValueError):\n        'Not so.'\n\n    5\n    if n: raise Wrong\n    return n"
    path = tmp_path / "kept.py"
    path.write_text(stubs)
    plain = read_plain(stubs)
    assert isinstance(plain, str) and "pass" in plain
    assert not read_held_out([path], CODE).keys.isdisjoint(
        CodeTask("code_o", program=plain, inputs=("1",), outputs=("1",)).part_keys
    )
