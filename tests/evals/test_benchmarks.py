"""Every benchmark on a few tasks of our own: loaded, asked, read and graded; and how programs are tested."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from tasks.proposing import Recorder

from evals.slices import BESIDE, ROWS, SAID, SECRETS, script, write_rows
from redqueen.errors import ConfigError, InputError
from redqueen.evals import code
from redqueen.evals.benchmarks import chosen
from redqueen.evals.benchmarks.humaneval_plus import HumanEvalPlus
from redqueen.evals.data import LoadedBenchmark, find
from redqueen.evals.evalplus import EvalPlus, read_script
from redqueen.evals.protocol import Grade, Item, Prompts, Published
from redqueen.plugins import BENCHMARKS
from redqueen.verifier import Verifier

ALL = sorted(BENCHMARKS.names())
FUNCTIONS = ("humaneval_plus", "mbpp_plus")


@pytest.fixture(params=ALL)
def loaded(request, slices) -> LoadedBenchmark:
    return find(BENCHMARKS.get(request.param), slices)


def graded(
    benchmark: Published, said: Iterable[tuple[Item, str | None]], prompts: Prompts, verifier: Verifier
) -> list[Grade]:
    answers = [(item, None if text is None else benchmark.extract(item, text, prompts)) for item, text in said]
    return asyncio.run(benchmark.grade(answers, verifier))


# All of them


def test_there_are_nineteen_and_each_has_a_slice():
    assert len(ALL) == 19
    assert sorted(ROWS) == ALL


def test_a_folder_is_loaded_with_every_task_once_and_says_that_it_is_not_the_whole(loaded, slices):
    ids = [item.id for item in loaded.items]
    assert ids == [row["id"] for row in ROWS[loaded.benchmark.name]]
    assert len(set(ids)) == 5
    assert loaded.origin == str(slices / (loaded.benchmark.folder or loaded.name) / "test.jsonl.gz")
    assert len(loaded.sha256) == 64
    assert loaded.notes == (
        f"{loaded.benchmark.title}: 5 rows, and the benchmark has {loaded.benchmark.rows:,}",
    )  # fmt: skip


@pytest.mark.parametrize("how", list(Prompts))
def test_a_prompt_has_the_question_and_never_the_answer(loaded, how):
    for item in loaded.items:
        prompt = loaded.benchmark.prompt(item, how)
        asked = next(item.row[name] for name in ("question", "prompt", "code") if name in item.row)
        assert asked.strip() in prompt.text
        secret = SECRETS[item.id]
        assert secret.strip() not in prompt.text
        assert secret.strip() not in prompt.prefill


@pytest.mark.parametrize("how", list(Prompts))
def test_right_texts_are_right_and_wrong_ones_wrong(loaded, how, verifier):
    said = [(item, SAID[item.id, how]) for item in loaded.items]
    right = graded(loaded.benchmark, [(item, texts.right) for item, texts in said], how, verifier)
    wrong = graded(loaded.benchmark, [(item, texts.wrong) for item, texts in said], how, verifier)
    assert [(grade.correct, grade.why) for grade in right] == [(True, "")] * 5
    assert [grade.correct for grade in wrong] == [False] * 5
    votes = zip(right, wrong, strict=True)
    assert all(mine.vote is not None and mine.vote != other.vote for mine, other in votes)


def test_no_answer_is_wrong_and_called_so(loaded, verifier):
    for grade in graded(loaded.benchmark, [(item, None) for item in loaded.items], Prompts.CHAT, verifier):
        assert (grade.correct, grade.vote, grade.why) == (False, None, "no answer")
        assert not any(grade.parts.values())


def test_the_grades_are_in_the_order_of_the_answers(loaded, verifier):
    said = [(item, SAID[item.id, Prompts.CHAT]) for item in loaded.items]
    mixed = [(item, texts.right if place % 2 else texts.wrong) for place, (item, texts) in enumerate(said)]
    mixed = [*mixed, (loaded.items[0], None), *reversed(mixed)]
    found = [grade.correct for grade in graded(loaded.benchmark, mixed, Prompts.CHAT, verifier)]
    assert found == [False, True, False, True, False, False, False, True, False, True, False]


def test_a_slice_has_always_the_same_tasks_and_says_so(loaded):
    part = loaded.first(2)
    assert part.items == loaded.first(2).items
    assert len(part.items) == 2
    assert {item.id for item in part.items} <= {item.id for item in loaded.first(3).items}
    assert part.notes[-1] == f"{loaded.benchmark.title}: 2 of 5 tasks"
    assert loaded.first(5) is loaded


def test_suites_are_lists_of_benchmarks():
    raw = Prompts.RAW
    assert [each.name for each in chosen(["code"], raw)] == ["humaneval_plus", "mbpp_plus", "livecodebench"]
    assert len(chosen(["math"], raw)) == 7
    assert len(chosen(["all", "gsm8k"], raw)) == 15, "not those that ask the same as races do"
    assert [each.name for each in chosen(["mmlu", "mmlu"], raw)] == ["mmlu"]


def test_what_is_asked_as_races_ask_is_asked_in_a_chat():
    assert [each.name for each in chosen(["cruxeval_o_long"], Prompts.CHAT)] == ["cruxeval_o_long"]
    with pytest.raises(InputError, match="cruxeval_o_long is asked as races ask, which is in a chat"):
        chosen(["all", "cruxeval_o_long"], Prompts.RAW)


@pytest.mark.parametrize(("name", "meant"), [("gsm8", "gsm8k"), ("humaneval", "humaneval_plus"), ("maths", "math")])
def test_a_name_that_is_almost_right_is_put_right(name, meant):
    with pytest.raises(ConfigError, match=rf"did you mean {meant}\?"):
        chosen([name], Prompts.CHAT)


# Files that are not as they should be


def test_a_missing_benchmark_names_the_way_out(tmp_path):
    with pytest.raises(InputError, match="--data"):
        find(BENCHMARKS.get("gsm8k"), tmp_path)


@pytest.mark.parametrize(
    ("name", "row", "told"),
    [
        ("gsm8k", {"id": "a", "question": "How many?"}, "it lacks 'answer'"),
        ("gsm8k", {"id": "a", "question": "", "answer": "4"}, "is empty"),
        ("aime24", {"id": "a", "question": "How many?", "answer": "1000"}, "not a whole number from 0 to 999"),
        ("mmlu", {"id": "a", "subject": "s", "question": "?", "choices": ["x"], "answer": "A"}, "four choices"),
        ("mmlu", {"id": "a", "subject": "s", "question": "?", "choices": [*"wxyz"], "answer": "A"}, "examples of s"),
        ("humaneval_plus", {"id": "a", "prompt": 3}, "prompt is not a text"),
        (
            "livecodebench",
            {"id": "a", "prompt": "?", "release": "v1", "public_tests": [{"input": ""}], "extra_tests": []},
            "a test lacks",
        ),
        (
            "livecodebench",
            {"id": "a", "prompt": "?", "release": "v1", "extra_tests": []}
            | {"public_tests": [{"input": "", "output": "", "kind": "stdin"}]},
            "a test lacks",
        ),
    ],
)
def test_rows_of_something_else_are_refused(tmp_path, name, row, told):
    write_rows(tmp_path / name / "test.jsonl.gz", [row])
    with pytest.raises(InputError, match=told):
        find(BENCHMARKS.get(name), tmp_path)


def test_a_file_that_names_a_task_twice_is_refused(tmp_path):
    write_rows(tmp_path / "gsm8k" / "test.jsonl.gz", [ROWS["gsm8k"][0]] * 2)
    with pytest.raises(InputError, match="names a task twice"):
        find(BENCHMARKS.get("gsm8k"), tmp_path)


@pytest.mark.parametrize("data", [b"", b"not packed", b"\x1f\x8b\x08\x00"])
def test_a_file_that_is_not_whole_is_refused(tmp_path, data):
    path = tmp_path / "gsm8k" / "test.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(InputError):
        find(BENCHMARKS.get("gsm8k"), tmp_path)


def test_a_file_that_is_not_packed_will_do(tmp_path):
    path = tmp_path / "gsm8k" / "test.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS["gsm8k"]))
    assert len(find(BENCHMARKS.get("gsm8k"), tmp_path).items) == 5


# Rows of the hub


def test_rows_of_the_hub_become_ours():
    ours = BENCHMARKS.get("gsm8k").from_hub({"question": "How many?", "answer": "Count.\n#### 1,234"}, 7)
    assert ours == {"id": "gsm8k/7", "question": "How many?", "answer": "1234"}
    ours = BENCHMARKS.get("mmlu").from_hub({"subject": "s", "question": "?", "choices": [*"wxyz"], "answer": 2}, 0)
    assert ours["answer"] == "C"
    ours = BENCHMARKS.get("olympiadbench").from_hub({"id": 5, "question": "?", "final_answer": ["1", "2"]}, 0)
    assert (ours["id"], ours["answer"]) == ("olympiadbench/5", "1, 2")
    ours = BENCHMARKS.get("math500").from_hub({"problem": "?", "answer": 4, "unique_id": "one"}, 0)
    assert ours == {"id": "one", "question": "?", "answer": "4"}
    tests = json.dumps([{"input": "1", "output": "1", "testtype": "stdin"}])
    row = {"question_id": "q", "question_content": "?", "starter_code": "", "metadata": "{}"}
    ours = BENCHMARKS.get("livecodebench").from_hub(row | {"public_test_cases": tests, "private_test_cases": tests}, 0)
    assert len(ours["public_tests"]) == 2
    assert len(BENCHMARKS.get("livecodebench").load([ours])) == 1


def test_private_tests_that_would_import_something_are_refused():
    import base64
    import os
    import pickle
    import zlib

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    row = {"question_id": "q", "question_content": "?", "starter_code": "", "public_test_cases": "[]"}
    with pytest.raises(ValueError, match="cannot be read"):
        BENCHMARKS.get("livecodebench").from_hub(row | {"private_test_cases": packed}, 0)
    honest = base64.b64encode(zlib.compress(pickle.dumps('[{"input": "", "output": "", "testtype": "stdin"}]')))
    ours = BENCHMARKS.get("livecodebench").from_hub(row | {"private_test_cases": honest.decode()}, 0)
    assert len(ours["public_tests"]) == 1


# Programs and their tests


def item_of(solution: str, inputs: list[list[Any]], base: int | None = None, atol: float = 0) -> Item:
    """A task `f` of HumanEval+ that this solves."""
    head, _, body = solution.partition("\n")
    row: dict[str, Any] = {
        "id": "own",
        "prompt": head + "\n",
        "entry_point": "f",
        "canonical_solution": body + "\n",
        "test": script(solution, "f", inputs, atol),
    }
    return Item("own", row if base is None else row | {"base_tests": base})


def judged(item: Item, program: str, verifier: Verifier) -> Grade:
    return asyncio.run(HumanEvalPlus().grade_program(item, program, verifier))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_benchmarks_own_solutions_pass_base_and_plus(name, slices, verifier):
    benchmark = BENCHMARKS.get(name)
    assert isinstance(benchmark, EvalPlus)
    for item in find(benchmark, slices).items:
        grade = asyncio.run(benchmark.grade_program(item, benchmark.solution(item.row), verifier))
        assert (grade.correct, grade.parts) == (True, {"base": True})


def test_a_script_is_read_and_not_run():
    test = script("def f(x):\n    return x", "f", [[1], [[2, (3,)]]], 1e-4)
    assert read_script("raise SystemExit\n" + test) == ([[1], [[2, (3,)]]], 1e-4)
    assert read_script("inputs = [[-inf], [{'a': {1, 2}}]]\nassertion(1, 2, 0)") == (
        [[float("-inf")], [{"a": {1, 2}}]], 0.0,
    )  # fmt: skip
    with pytest.raises(ValueError, match="no inputs"):
        read_script("assertion(1, 2, 0)")


def test_floats_count_as_equal_within_a_millionth(verifier):
    item = item_of("def f(x):\n    return x / 3", [[1], [2], [10]], 1)
    assert judged(item, "def f(x):\n    return x / 3 + 1e-7", verifier).correct
    assert judged(item, "def f(x):\n    return x / 3 + 2e-5", verifier).why == "wrong result"
    loose = item_of("def f(x):\n    return x / 3", [[1], [2], [10]], 1, 1e-3)
    assert judged(loose, "def f(x):\n    return x / 3 + 1e-4", verifier).correct


def test_whole_numbers_are_not_compared_within_a_tolerance(verifier):
    item = item_of("def f(x):\n    return 10 ** 8 + x", [[1], [2]], 1)
    assert not judged(item, "def f(x):\n    return 10 ** 8 + x + 1", verifier).correct


@pytest.mark.parametrize(
    ("solution", "program"),
    [
        (
            "def f(word):\n    return {each: word.count(each) for each in word}",
            "from collections import Counter\ndef f(word):\n    return Counter(word)",
        ),
        (
            "def f(word):\n    return (word[:1], len(word))",
            "from typing import NamedTuple\nclass Pair(NamedTuple):\n    first: str\n    second: int\n"
            "def f(word):\n    return Pair(word[:1], len(word))",
        ),
        (
            "def f(word):\n    return [[each] for each in word]",
            "class Kind(list):\n    pass\ndef f(word):\n    return Kind(Kind(each) for each in word)",
        ),
        ("def f(word):\n    return len(word)", "import numpy as np\ndef f(word):\n    return np.int64(len(word))"),
        (
            "def f(word):\n    return len(word) > 3",
            "import numpy as np\ndef f(word):\n    return np.bool_(len(word) > 3)",
        ),
        (
            "def f(word):\n    return len(word) / 3",
            "import numpy as np\ndef f(word):\n    return np.float64(len(word)) / 3",
        ),
        (
            "def f(word):\n    return [len(word)]",
            "import numpy as np\ndef f(word):\n    return list(np.array([len(word)]))",
        ),
        ("def f(word):\n    return len(word)", "def f(word):\n    return float(len(word))"),
        ("def f(word):\n    return set(word)", "def f(word):\n    return frozenset(word)"),
        (
            "def f(word):\n    return len(word) / 4",
            "from fractions import Fraction\ndef f(word):\n    return Fraction(len(word), 4)",
        ),
        (
            "def f(word):\n    return [len(word), {len(word): 0.5}]",
            "from decimal import Decimal as D\ndef f(word):\n    return [D(len(word)), {D(len(word)): D('0.5')}]",
        ),
    ],
)
def test_values_that_are_equal_will_do_whatever_their_type(solution, program, verifier):
    item = item_of(solution, [["otter"], ["heron"], [""]], 2)
    grade = judged(item, program, verifier)
    assert (grade.correct, grade.why) == (True, "")
    spoilt = program.replace("def f(word):\n", "def f(word):\n    word += 'wxyz'\n")
    assert not judged(item, spoilt, verifier).correct


@pytest.mark.parametrize("number", ["Fraction(n, 3)", "Decimal(n) / 3", "Decimal('NaN')", "Decimal('sNaN')"])
def test_numbers_that_are_almost_equal_must_be_floats(number, verifier):
    item = item_of("def f(n):\n    return n / 3", [[1], [2]], 1)
    program = f"from decimal import Decimal\nfrom fractions import Fraction\ndef f(n):\n    return {number}"
    assert judged(item, program, verifier).why == "wrong result"


LONG = "def f(n):\n    return list(range(n))"


@pytest.mark.parametrize(
    ("program", "right"),
    [
        (LONG, True),
        ("def f(n):\n    return [float(each) for each in range(n)]", True),
        ("def f(n):\n    return [*range(n - 1), n - 1 + 10 * (n > 10)] if n else []", False),
        ("def f(n):\n    return tuple(range(n))", False),
        ("def f(n):\n    return list(range(n)) if n < 10 else 'long result'", False),
    ],
)
def test_results_that_are_too_long_to_send_are_compared_all_the_same(program, right, verifier):
    grade = judged(item_of(LONG, [[3], [0], [5000], [20_000]], 2), program, verifier)
    assert (grade.correct, grade.parts["base"]) == (right, "tuple" not in program)


def test_long_sets_and_dictionaries_are_compared_whatever_their_order(verifier):
    item = item_of("def f(n):\n    return {each: str(each) for each in range(n)}", [[2], [3000]], 1)
    assert judged(item, "def f(n):\n    return {each: str(each) for each in reversed(range(n))}", verifier).correct
    counted = "from collections import Counter\ndef f(n):\n    return Counter({each: str(each) for each in range(n)})"
    assert judged(item, counted, verifier).correct
    assert not judged(item, counted.replace("(n)})", "(n - 1)})"), verifier).correct


def test_a_program_without_an_end_runs_out_of_time(verifier):
    item = item_of("def f(n):\n    return n", [[1], [2]], 1)
    grade = judged(item, "def f(n):\n    while True:\n        pass", verifier)
    assert (grade.correct, grade.why, grade.parts) == (False, "timeout", {"base": False})


BUSY = (
    "import os\ndef busy(seconds):\n    end = os.times().user + seconds / 4\n"
    "    while os.times().user < end:\n        sum(range(1000))\n"
)  # fmt: skip
"""In user mode, which is what counts, by a clock that ticks every 10 ms; a quarter of the time, as the limits are."""


@pytest.fixture
def quarter_time(monkeypatch) -> None:
    for name in ("LEAST_SECONDS", "TURN_SECONDS", "PROGRAM_SECONDS"):
        monkeypatch.setattr(code, name, getattr(code, name) / 4)


@pytest.mark.usefixtures("quarter_time")
def test_slow_programs_have_their_time_for_every_test_and_the_same_vote(verifier):
    """Each call takes longer than a process begins new ones for: what they agree and disagree on spans processes."""
    item = item_of("def f(n):\n    return 2 * n\n", [[n] for n in range(12)], base=6)
    slow = f"{BUSY}def f(n):\n    busy(0.15)\n"
    vote = judged(item, "def f(n):\n    return n + n\n", verifier).vote
    for returned, right, base in [("2 * n", True, True), ("2 * n + (n == 11)", False, True), ("n", False, False)]:
        grade = judged(item, f"{slow}    return {returned}\n", verifier)
        assert (grade.correct, grade.parts["base"], grade.vote == vote) == (right, base, base)
        assert grade.why == ("" if right else "wrong result")


@pytest.mark.parametrize("name", ["hash", "repr", "len", "list", "type", "isinstance", "marshal", "times", "turn"])
def test_a_program_may_have_names_of_its_own_for_anything(name, verifier):
    item = item_of("def f(n):\n    return [n, n + 0.5]", [[n] for n in range(20)], 4)
    head = f"from __future__ import annotations\n{name} = shown = chunk_of = redqueen_calls = 7\n"
    for returned in ("[n, n + 0.5]", "[float(n), n + 0.5]"):
        grade = judged(item, f"{head}def f(n: int):\n    return {returned}  # no line end", verifier)
        assert (grade.correct, grade.why) == (True, "")
    assert not judged(item, f"{head}def f(n: int):\n    return [n, n]", verifier).correct


@pytest.mark.parametrize("seconds", [0, 0.15])
@pytest.mark.usefixtures("quarter_time")
def test_a_program_that_is_wrong_from_its_second_call_on_is_wrong_however_slow(seconds, verifier):
    item = item_of("def f(n):\n    return [n]\n", [[n] for n in range(8)], base=4)
    program = f"{BUSY}def f(n, found=[]):\n    busy({seconds})\n    found.append(n)\n    return found\n"
    grade = judged(item, program, verifier)
    assert (grade.correct, grade.parts, grade.why) == (False, {"base": False}, "wrong result")
    right = judged(item, program.replace("return found", "return found[-1:]"), verifier)
    assert (right.correct, right.parts) == (True, {"base": True})
    assert right.vote == judged(item, "def f(n):\n    return [n]\n", verifier).vote


def test_what_a_program_keeps_after_the_base_tests_counts_too(verifier):
    item = item_of("def f(n):\n    return n + 0.0\n", [[n] for n in range(200)], base=2)
    program = "calls = []\ndef f(n):\n    calls.append(n)\n    return n + 1e-9 + (len(calls) > 150)\n"
    grade = judged(item, program, verifier)
    assert (grade.correct, grade.parts, grade.why) == (False, {"base": True}, "wrong result")


@pytest.mark.parametrize("returned", ["n", "n + 1e-9"], ids=["equal", "close"])
@pytest.mark.parametrize("seconds", [0, 0.01])
@pytest.mark.usefixtures("quarter_time")
def test_what_a_program_keeps_between_calls_counts_however_slow_they_are(seconds, returned, verifier):
    item = item_of("def f(n):\n    return n + 0.0\n", [[float(n)] for n in range(60)], base=2)
    program = f"{BUSY}calls = []\ndef f(n):\n    busy({seconds})\n    calls.append(n)\n    return {returned}"
    assert judged(item, f"{program}\n", verifier).correct
    grade = judged(item, f"{program} + (len(calls) > 45)\n", verifier)
    assert (grade.correct, grade.parts, grade.why) == (False, {"base": True}, "wrong result")


@pytest.mark.usefixtures("quarter_time")
def test_what_every_process_prepares_is_not_paid_for_every_test(verifier):
    item = item_of("def f(n):\n    return n + n\n", [[n] for n in range(100)], base=3)
    program = f"{BUSY}table = []\ndef f(n):\n    if not table:\n        busy(0.3)\n        table.append(2)\n"
    for returned in ("table[0] * n", "float(table[0] * n)"):
        recorder = Recorder(verifier)
        assert judged(item, f"{program}    return {returned}\n", recorder).correct
        assert len(recorder.jobs) < 12


@pytest.mark.usefixtures("quarter_time")
def test_a_program_has_a_minute_for_all_tests(verifier, monkeypatch):
    monkeypatch.setattr(code, "PROGRAM_SECONDS", 0.5)
    item = item_of("def f(n):\n    return n\n", [[n] for n in range(40)], base=3)
    grade = judged(item, f"{BUSY}def f(n):\n    busy(0.2)\n    return n\n", verifier)
    assert (grade.correct, grade.parts, grade.why) == (False, {"base": True}, "timeout")


@pytest.mark.usefixtures("quarter_time")
def test_a_test_has_the_same_time_in_whichever_process_it_is_begun(verifier):
    item = item_of("def f(n):\n    return n\n", [[n] for n in range(10)], base=2)
    program = f"{BUSY}def f(n):\n    busy(1.3 if n == 9 else 0.1)\n    return n\n"
    assert judged(item, program, verifier).why == "timeout"
    assert judged(item, program.replace("1.3", "0.7"), verifier).correct


@pytest.mark.parametrize("end", ["raise KeyError", "import os\n        os._exit(0)", "while True:\n            pass"])
@pytest.mark.usefixtures("quarter_time")
def test_the_vote_has_all_results_until_a_program_fails_however_slow_it_is(end, verifier):
    item = item_of("def f(n):\n    return 2 * n\n", [[n] for n in range(9)], base=6)

    def vote(seconds: float, returned: str, last: int, end: str = end) -> str | None:
        program = f"{BUSY}def f(n):\n    busy({seconds})\n    if n == {last}:\n        {end}\n    return {returned}\n"
        grade = judged(item, program, verifier)
        assert not grade.correct
        return grade.vote

    fast = vote(0, "n", 4)
    assert fast == vote(0.15, "n", 4) != None  # noqa: E711
    different = [vote(0, "n + (n == 3)", 4), vote(0, "n", 5), vote(0, "n", 4, "raise ValueError"), vote(0, "n", 99)]
    assert len({fast, *different}) == 5
    assert vote(0, "n", 0) is None


@pytest.mark.usefixtures("quarter_time")
def test_slow_base_tests_have_a_second_each_and_not_together(verifier):
    item = item_of("def f(n):\n    return 2 * n\n", [[n] for n in range(4)], base=3)
    slow = f"{BUSY}def f(n):\n    busy(0.6)\n    return RETURNED\n"
    fast = "def f(n):\n    return RETURNED\n"
    for returned, right in (("n + n", True), ("n + n + (n == 2)", False)):
        grades = [judged(item, program.replace("RETURNED", returned), verifier) for program in (slow, fast)]
        assert grades[0] == grades[1]
        assert grades[0].correct == right


def test_a_result_is_judged_as_it_was_returned(verifier):
    item = item_of("def f(n):\n    return [n, n + 1]", [[1], [2], [3]], 2)
    changed = "kept = []\ndef f(n):\n    kept[:] = [n, n + 1]\n    return kept"
    assert judged(item, changed, verifier).correct
    # The other way round: what is right only after later calls was wrong when it was returned.
    late = "kept = []\ndef f(n):\n    old = kept[:]\n    kept[:] = [n, n + 1]\n    return old"
    assert not judged(item, late, verifier).correct


def test_a_function_that_changes_its_input_does_not_change_the_test(verifier):
    item = item_of("def f(items):\n    return len(items)", [[[1, 2]], [[3]]], 1)
    assert judged(item, "def f(items):\n    n = len(items)\n    items.clear()\n    return n", verifier).correct


def test_base_tests_are_a_verdict_of_their_own(verifier):
    item = item_of("def f(n):\n    return abs(n)", [[1], [2], [-1]], 2)
    grade = judged(item, "def f(n):\n    return n", verifier)
    assert (grade.correct, grade.parts, grade.why) == (False, {"base": True}, "wrong result")
    assert judged(item, "def f(n):\n    return -n", verifier).parts == {"base": False}


def test_where_nobody_says_which_are_the_base_tests_there_is_one_verdict(verifier):
    item = item_of("def f(n):\n    return abs(n)", [[n] for n in range(12, -12, -1)])
    assert judged(item, "def f(n):\n    return abs(n)", verifier).parts == {}
    assert not judged(item, "def f(n):\n    return n", verifier).correct


def test_tests_that_are_all_base_tests_are_run(verifier):
    item = item_of("def f(n):\n    return n + 1", [[1], [2]], 2)
    assert judged(item, "def f(n):\n    return n + 1", verifier).correct
    for wrong in (
        "def f(n):\n    return n",
        "def f(n):\n    return n + 1 if n < 2 else 0",
        "def f(n):\n    raise KeyError",
    ):
        assert not judged(item, wrong, verifier).correct


def test_an_exception_is_named(verifier):
    item = item_of("def f(n):\n    return n", [[1], [0]], 1)
    assert judged(item, "def f(n):\n    return n // n * n", verifier).why == "exc:ZeroDivisionError"
    assert judged(item, "def g(n):\n    return n", verifier).why == "exc:NameError"


def test_what_stands_around_a_function_is_no_part_of_the_answer(slices, verifier):
    item = find(BENCHMARKS.get("mbpp_plus"), slices).items[0]
    program = SAID[item.id, Prompts.RAW].right
    text = f"Of course, here it is.\n{program}\nassert odd_sum([1]) == 7\nprint('done')\nThis works because 1 + 1 = 2."
    [grade] = graded(BENCHMARKS.get("mbpp_plus"), [(item, text)], Prompts.RAW, verifier)
    assert grade.correct


def test_helpers_and_imports_of_a_function_stay(slices, verifier):
    item = find(BENCHMARKS.get("mbpp_plus"), slices).items[0]
    program = (
        "from functools import reduce\nZERO = 0\ndef odd(n):\n    return n % 2 == 1\n"
        "def odd_sum(numbers):\n    return reduce(lambda a, b: a + b, filter(odd, numbers), ZERO)\n"
    )
    [grade] = graded(BENCHMARKS.get("mbpp_plus"), [(item, program)], Prompts.RAW, verifier)
    assert grade.correct


def test_programs_that_agree_have_the_same_vote(slices, verifier):
    item = find(BENCHMARKS.get("mbpp_plus"), slices).items[0]
    head = "def odd_sum(numbers):\n    return "
    texts = [head + "sum(n for n in numbers if n % 2)", SAID[item.id, Prompts.RAW].right, head + "7", head + "3 + 4"]
    votes = [
        each.vote for each in graded(BENCHMARKS.get("mbpp_plus"), [(item, t) for t in texts], Prompts.RAW, verifier)
    ]
    assert votes[0] == votes[1] != votes[2] == votes[3]


def test_slices_have_what_stands_beside_them():
    assert {*BESIDE} == {
        "humaneval_plus/HumanEvalPlus.jsonl.gz", "mbpp_plus/MbppPlus.jsonl.gz", "mmlu_dev/test.jsonl.gz",
    }  # fmt: skip


# Contest programs


def test_numbers_that_a_contest_program_prints_may_be_spelt_otherwise(slices, verifier):
    benchmark = BENCHMARKS.get("livecodebench")
    item = find(benchmark, slices).items[2]
    for program, right in (
        ("for _ in range(int(input())):\n    print(f'  {float(input()) / 2:.4f}  ')", True),
        ("for _ in range(int(input())):\n    print(float(input()) / 2 + 0.001)", False),
        ("print('\\n'.join(str(float(input()) / 2) for _ in range(int(input()))), end='\\n\\n')", True),
        ("import sys\nprint(*(float(each) / 2 for each in sys.stdin.read().split()[1:]))", False),
        ("from sys import stdin\nfor n in list(stdin)[1:]:\n    print(eval(n) / 2)", True),
        ("import threading\ndef main():\n    for _ in range(int(input())):\n        print(float(input()) / 2)\n"
         "t = threading.Thread(target=main)\nt.start()\nt.join()", True),
    ):  # fmt: skip
        [grade] = graded(benchmark, [(item, program)], Prompts.RAW, verifier)
        assert (grade.correct, program) == (right, program)


def test_tests_that_nobody_validated_are_left_out(slices):
    benchmark = BENCHMARKS.get("livecodebench")
    for item, row in zip(find(benchmark, slices).items, ROWS["livecodebench"], strict=True):
        tests = benchmark.tests(item.row)
        assert len(tests) == len(row["public_tests"]) + 1
        assert all(test["input"] != "?" for test in tests)


def test_releases_after_those_of_our_scores_are_left_out(tmp_path):
    rows = [row | {"release": "v6"} if place else row for place, row in enumerate(ROWS["livecodebench"])]
    write_rows(tmp_path / "livecodebench" / "test.jsonl.gz", rows)
    assert [item.id for item in find(BENCHMARKS.get("livecodebench"), tmp_path).items] == ["own/lcb/0"]
