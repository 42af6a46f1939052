"""Programs from the user's own files."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from redqueen.errors import InputError
from redqueen.tasks.code import CodeTask
from redqueen.tasks.files import read_held_out, read_seeds, validated_seeds
from tasks.proposing import CODE

ADD = "def f(a, b=1):\n    return a + b"


def written(folder: Path, *rows: object, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def key(program: str) -> str:
    return CodeTask("code_o", program=program, inputs=("1",), outputs=("1",)).ast_key


# Seeds.


def test_seeds_become_tasks_by_running(verifier, tmp_path):
    path = written(tmp_path, {"program": ADD, "input": "2, b=3"}, "", {"program": ADD, "inputs": ["1", "f(2)"]})
    assert asyncio.run(validated_seeds(read_seeds(path, CODE), CODE, verifier)) == (
        CodeTask("code_o", program=ADD, inputs=("2, b=3",), outputs=("5",)),
        CodeTask("code_o", program=ADD, inputs=("1",), outputs=("2",)),
        CodeTask("code_o", program=ADD, inputs=("2",), outputs=("3",)),
    )


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([1], "not an object"),
        ({"input": "1"}, "no text under 'program'"),
        ({"program": 5, "input": "1"}, "no text under 'program'"),
        ({"program": ADD}, "no text under 'input'"),
        ({"program": ADD, "input": 5}, "no text under 'input'"),
        ({"program": ADD, "input": ""}, "no text under 'input'"),
        ({"program": ADD, "inputs": []}, "no text under 'input'"),
        ({"program": ADD, "inputs": "1"}, "no text under 'input'"),
        ({"program": ADD, "inputs": ["1", 2]}, "no text under 'input'"),
        ({"program": "def f(:", "input": "1"}, "the program is refused: syntax"),
        ({"program": "def g(n):\n    return n", "input": "1"}, "the program is refused: no_entry"),
        ({"program": "def f(n):\n    return '\ud800'", "input": "1"}, "the program is refused: not_text"),
    ],
)
def test_a_seed_that_cannot_be_read_is_named_with_its_file_and_line(tmp_path, row, what):
    path = written(tmp_path, {"program": ADD, "input": "1"}, "", row)
    with pytest.raises(InputError) as caught:
        read_seeds(path, CODE)
    assert caught.value.what.startswith(f"{path}, line 3: {what}")
    assert caught.value.mend


@pytest.mark.parametrize(
    ("program", "given", "why"),
    [
        ("def f(n):\n    return n / 0", "1", "raises (ZeroDivisionError)"),
        ("def f(n):\n    while True:\n        n += 1", "1", "timeout"),
        (ADD, "x", "not_literal"),
        ("def f(n):\n    pass", "1", "none_result"),
    ],
)
def test_a_seed_that_does_not_run_is_named_with_its_file_and_line(verifier, tmp_path, program, given, why):
    path = written(tmp_path, {"program": ADD, "input": "1"}, {"program": program, "input": given})
    with pytest.raises(InputError) as caught:
        asyncio.run(validated_seeds(read_seeds(path, CODE), CODE, verifier))
    assert caught.value.what.startswith(f"{path}, line 2: the seed is refused: {why}")


def test_a_file_that_cannot_be_read_is_the_users_to_mend(tmp_path):
    (tmp_path / "latin.jsonl").write_bytes(b'{"program": "\xe9"}')
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    (tmp_path / "plain.jsonl.gz").write_bytes(b"{}")
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "table.csv").write_text("program,input\n")
    (tmp_path / "folder.jsonl").mkdir()
    names = ["latin.jsonl", "cut.jsonl.gz", "plain.jsonl.gz", "empty.jsonl", "table.csv", "folder.jsonl", "no.jsonl"]
    for name in names:
        for read in (lambda path: read_seeds(path, CODE), lambda path: read_held_out([path], CODE)):
            with pytest.raises(InputError) as caught:
                read(tmp_path / name)
            assert caught.value.what.startswith(f"{tmp_path / name}: ")


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path):
    path = tmp_path / "seeds.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"program": "def f(n): return n", "input": "1"}\r\n\r\n')
    assert len(read_seeds(path, CODE)) == 1


# Held-out programs.

PROMPT = '\nimport math\n\ndef root(n: int) -> int:\n    """ The root.\n    >>> root(9)\n    3\n    """\n'
ROOT = "import math\n\ndef f(k):\n    return math.isqrt(k)"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": PROMPT, "canonical_solution": "    return math.isqrt(n)\n", "entry_point": "root"},
        {"prompt": PROMPT, "canonical_solution": "\n\n    return math.isqrt(n)\n"},
        {"prompt": '"""Write a function."""', "canonical_solution": PROMPT + "    return math.isqrt(n)\n"},
        {"code": "from math import *\nimport math\n\ndef root(n):\n    return math.isqrt(n)"},
        {"program": ROOT},
        {"program": "import math\n\ndef root(n):\n    return math.isqrt(n)\n\nprint(root(9))"},
        {
            "code": "import math\n\ndef one(n):\n    return math.isqrt(n)\n\ndef last(n):\n    return -n",
            "entry_point": "one",
        },
    ],
)
def test_a_program_is_held_out_under_whatever_name(tmp_path, row):
    found = read_held_out([written(tmp_path, row)], CODE)
    assert key(ROOT) in found.keys
    assert key(ROOT.replace("isqrt", "sqrt")) not in found.keys
    assert (found.programs, found.unreadable) == (1, 0)


def test_a_helper_and_a_global_of_the_name_f_are_only_names(tmp_path):
    path = written(tmp_path, {"code": "def f(n):\n    return n - 1\n\ndef main(n):\n    return f(n) * f(n)"})
    assert key("def g(n):\n    return n - 1\n\ndef f(n):\n    return g(n) * g(n)") in read_held_out([path], CODE).keys


def test_python_files_and_packed_ones_are_read(tmp_path):
    (tmp_path / "root.py").write_text("import math\n\ndef root(n):\n    return math.isqrt(n)\n")
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps({"code": "def plus(a, b=1):\n    return a + b"}).encode()))
    found = read_held_out([tmp_path / "root.py", packed], CODE)
    assert {key(ROOT), key(ADD)} <= found.keys
    assert found.programs == 2


def test_programs_that_cannot_be_compared_are_counted(tmp_path):
    deep = "def f(n):\n    return " + "(" * 150 + "n" + ")" * 150
    deeper = "def f(n):\n    return " + "-" * 150 + "n"
    deepest = deeper.replace("-", "--" * 30)
    bad = ["def f(:", "print(input())", "def f(n):\n    return '\0'", deeper, deepest]
    rows = [{"code": program} for program in [*bad, "def f(n):\n    return '\ud800'", ADD, deep]]
    found = read_held_out([written(tmp_path, *rows)], CODE)
    assert (found.programs, found.unreadable) == (2, 6)
    assert key(ADD) in found.keys


def test_a_longer_program_than_a_task_may_have_is_held_out_function_by_function(tmp_path):
    body = "".join(f"    n = n * {number} + {number}\n" for number in range(12))
    many = "\n".join(f"def g{number}(n):\n    n += {number}\n{body}    return n\n" for number in range(40))
    assert len(many) > 4000
    (tmp_path / "many.py").write_text(many)
    found = read_held_out([tmp_path / "many.py"], CODE)
    body = body.replace("n", "k")
    assert all(key(f"def f(k):\n    k += {number}\n{body}    return k") in found.keys for number in range(40))


def test_a_row_without_a_program_is_an_error_since_it_would_protect_nothing(tmp_path):
    path = written(tmp_path, {"code": ADD}, {"question": "1 + 1?", "answer": "2"})
    with pytest.raises(InputError, match=r"line 2: no text under any of 'program', 'code', 'canonical_solution'"):
        read_held_out([path], CODE)


def test_a_file_with_nothing_to_hold_out_is_an_error(tmp_path):
    (tmp_path / "script.py").write_text("print(input())")
    with pytest.raises(InputError, match="no program in it that could be held out"):
        read_held_out([tmp_path / "script.py"], CODE)


def test_no_file_holds_nothing_out():
    assert read_held_out([], CODE).keys == frozenset()
