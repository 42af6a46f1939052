"""CRUXEval: the official prompts, what is read out of replies, and answers that were written to pass unearned."""

import asyncio
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from loop.making import race_to_the_end, random_base, settings
from tasks.proposing import Failing, Recorder

from evals.slices import CRUXEVAL
from redqueen.errors import MachineError
from redqueen.evals import evaluation
from redqueen.evals.cruxeval import COPYABLE, UNCOPYABLE, CruxEval, InputPrediction
from redqueen.evals.data import find
from redqueen.evals.protocol import Grade, Item, Prompts, Reply
from redqueen.plugins import BENCHMARKS
from redqueen.runs.metrics import BENCHMARK
from redqueen.runs.store import Store
from redqueen.verifier import Job, Outcome, Verifier

HERE = ("--engine.device", "cpu", "--engine.dtype", "float32", "--verifier.workers", "2")


def benchmark(name: str) -> CruxEval:
    found = BENCHMARKS.get(name)
    assert isinstance(found, CruxEval)
    return found


def item(code: str, given: str, output: str) -> Item:
    return Item("own", {"id": "own", "code": code, "input": given, "output": output})


def graded(name: str, asked: Item, answers: Sequence[str | None], verifier: Verifier) -> list[Grade]:
    return asyncio.run(benchmark(name).grade([(asked, answer) for answer in answers], verifier))


NEXT = item("def f(x):\n    return x + 1", "16", "17")


# Prompts

OFFICIAL = {
    "cruxeval_o": "66995844ea07bf28",
    "cruxeval_o_cot": "f1f095f62f9d1568",
    "cruxeval_i": "60bd4755f8b1c24e",
    "cruxeval_i_cot": "a22813781b7955eb",
}
"""The SHA-256 of what the official `prompts.py` makes of NEXT."""


@pytest.mark.parametrize("name", CRUXEVAL)
def test_a_raw_prompt_is_the_official_one(name):
    text = benchmark(name).prompt(NEXT, Prompts.RAW).text
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == OFFICIAL[name]


@pytest.mark.parametrize("name", CRUXEVAL)
def test_a_chat_has_the_same_text_with_its_last_tag_in_the_reply(name):
    raw, chat = (benchmark(name).prompt(NEXT, how) for how in (Prompts.RAW, Prompts.CHAT))
    assert f"{chat.text}\n{chat.prefill}" == raw.text
    assert chat.prefill == ("[THOUGHT]\n" if name.endswith("_cot") else "[ANSWER]\n")
    assert chat.stop == raw.stop == ("[/ANSWER]",)


def test_what_is_cut_is_no_answer_where_races_ask(verifier):
    text = "```output\n17\n```\nAnd so on and"
    asked = benchmark("cruxeval_o_long")
    replies = [Reply(NEXT, text, False), Reply(NEXT, text, True)]
    grades = asyncio.run(asked.judge(replies, Prompts.CHAT, verifier))
    assert [grade.correct for grade in grades] == [True, False]


@pytest.mark.parametrize("side", ["o", "i"])
def test_a_thought_may_be_as_long_where_races_ask_as_where_the_official_prompts_do(side):
    assert benchmark(f"cruxeval_{side}_long").tokens == benchmark(f"cruxeval_{side}_cot").tokens


# What is read


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("assert f(16) == 17\n", "17"),
        ("assert f(16) == 17\n[/ANSWER]\nassert f(16) == 18", "17"),
        ("[ANSWER]\nassert f(16) == 17", "17"),
        ("17", "17"),
        ("f(16)==17 # done", "17"),
        ("assert f(16) == 17, 'by hand'", "17"),
        ("(f(16)) == (17)", "(17)"),
        ("(f(16) # ==\n) == 17", "17"),
        ("( # f(16) == 18\nf(16)) == 17", "17"),
        ("f('ä') == (\n'b'\n'c')", "(\n'b'\n'c')"),
        ("assert f(16) == 'a == b'", "'a == b'"),
        ("'a==b'", "'a==b'"),
        ("['==', 'f(16) == 17']", "['==', 'f(16) == 17']"),
        ("assert f(??) == 17", "17"),
        ("== 17", "17"),
        ("assert f(16) ==", None),
        ("", None),
    ],
)
def test_the_output_is_what_follows_the_call(text, answer):
    assert benchmark("cruxeval_o").extract(NEXT, text, Prompts.RAW) == answer


def test_a_call_with_an_equals_sign_of_its_own_is_stepped_over():
    asked = item("def f(x):\n    return len(x)", "'a == b'", "6")
    assert benchmark("cruxeval_o").extract(asked, "assert f('a == b') == 6", Prompts.RAW) == "6"
    assert benchmark("cruxeval_i").extract(asked, "assert f('a == b') == 6", Prompts.RAW) == "f('a == b')"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("assert f(16) == 17\n[/ANSWER]", "f(16)"),
        ("Here:\nassert f(16) == 17", "f(16)"),
        ("f(16)", "f(16)"),
        ("f('a==b')", "f('a==b')"),
        ("assert f('== 17')", "f('== 17')"),
        ("assert f('== 17') == 17", "f('== 17')"),
        ("assert f(16) == 18 - 1", "f(16)"),
        ("assert f(16)", "f(16)"),
        ("", None),
        ("== 17", None),
    ],
)
def test_the_input_is_the_call_before_the_output(text, answer):
    assert benchmark("cruxeval_i").extract(NEXT, text, Prompts.RAW) == answer


@pytest.mark.parametrize("name", ["cruxeval_o_cot", "cruxeval_i_cot"])
def test_a_thought_without_an_answer_is_none(name):
    thought = "f(16) == 17, so we add one.\n[/THOUGHT]\n"
    assert benchmark(name).extract(NEXT, thought, Prompts.RAW) is None
    assert benchmark(name).extract(NEXT, f"{thought}[ANSWER]\nassert f(16) == 17", Prompts.RAW) is not None


# Right answers


def test_values_are_equal_as_python_has_it(verifier):
    answers = ["17", "17.0", "(17)", "0x11", " 17  # so", "+17", "True", "'17'", "[17]", "18"]
    right = [grade.correct for grade in graded("cruxeval_o", NEXT, answers, verifier)]
    assert right == [True] * 6 + [False] * 4


def test_any_input_that_gives_the_output_is_right(verifier):
    absolute = item("def f(x, add=0):\n    return abs(x) + add", "3", "3")
    answers = ["f(3)", "f(-3)", "f( x = 3 )", "f(1, 2)", "f(2, add=1)", "f(3.0)", "f(3,)", "f(4)", "f('3')", "f()"]
    grades = graded("cruxeval_i", absolute, answers, verifier)
    assert [grade.correct for grade in grades] == [True] * 7 + [False] * 3
    assert [grade.why for grade in grades[7:]] == ["wrong", "exc:TypeError", "exc:TypeError"]
    assert grades[0].vote == grades[6].vote != grades[1].vote


def test_the_codec_that_two_tasks_use_is_there(verifier):
    encoding = item("def f(text, name):\n    return text.encode(name)", "'noon', 'shift_jis'", "b'noon'")
    assert [grade.correct for grade in graded("cruxeval_i", encoding, ["f('noon', 'shift_jis')"], verifier)] == [True]


EXPRESSIONS = {
    "f(range(3))": True,
    "f([1] + [2, 3])": True,
    "f('a-b-c'.split('-'))": True,
    "f(dict(a=1, b=2, c=3))": True,
    "f(THREE)": True,
    "f(THREE[:2] * 2 if THREE else 'abc', )": False,
    "f(range(4))": False,
}


@pytest.mark.parametrize("answer", EXPRESSIONS)
def test_an_input_may_be_an_expression_of_plain_values(answer, verifier):
    counting = item("THREE = [1, 2, 3]\ndef f(x):\n    return len(x)", "THREE", "3")
    [grade] = graded("cruxeval_i", counting, [answer], verifier)
    assert (grade.correct, grade.why) == (EXPRESSIONS[answer], "" if EXPRESSIONS[answer] else "wrong")


# Answers that would pass the official check, or break a grader

FAKE_OUTPUTS = (
    "f(16)", "f (16)", "(f)(16)", "f(17 - 1)", "17 if True else 0", "16 + 1", "(lambda x: x + 1)(16)", "17 or 3",
    "f(16) or True", "0 or True", "0 < 1", "0) or (True", "_ if (_ := 17) else 0", "17\nTrue", "17; True", "17, 'so'",
    "type('E', (), {'__eq__': lambda *_: True})()", "__import__('unittest.mock').mock.ANY", "open('/etc/passwd')",
    "int('17')", "eval('17')", "[17][0]", "f'{17}'", "__import__('os')._exit(0)", "17\x00", "\ud800", "(" * 5_000,
    "1" * 100_000, "-" * 50_000 + "17", "[" * 200 + "17" + "]" * 200, "nan", "...", "17j", "??", "assert True",
)  # fmt: skip


def test_an_output_that_is_not_its_literal_is_wrong(verifier):
    grades = graded("cruxeval_o", NEXT, [*FAKE_OUTPUTS, "17"], verifier)
    passed = [answer for answer, grade in zip(FAKE_OUTPUTS, grades[:-1], strict=True) if grade.correct]
    assert (passed, grades[-1].correct) == ([], True)


_EQUAL = "type('E', (), {'__eq__': lambda *_: True, '__add__': lambda *_: 17})()"
FAKE_INPUTS = (
    "17", "f(0) or (True)", "f(0) or True", "f(0) if 0 else 17", "f(0)) or (True", "f(0), 17)", "f(0)(17)", "f(0) * 17",
    f"f({_EQUAL})", "f(f(15))", "f(f)", "f(x := 16)", "f(*[16])", "f(**{'x': 16})", "f((lambda: 16)())",
    "f([x for x in range(99) if x + 1 == 17][0])", "f(next(x for x in range(99) if x + 1 == 17))",
    "f(next(filter(lambda x: x + 1 == 17, range(99))))", "f(max(range(17)))",
    "f((f.__setattr__('__code__', (lambda x: 17).__code__), 3)[1])", "f(globals().update(f=lambda x: 17) or 3)",
    "f((lambda: 0).__globals__.clear() or 3)", "f(().__class__.__base__.__subclasses__())",
    "f((x for x in ()).gi_frame.f_builtins.update(abs=3) or 3)", "f(__builtins__)", "f(redqueen_called)",
    "f(vars()['redqueen_called'])", "f(eval('16'))", "f(exit())", "f(print(17))", "f(open('/etc/passwd').read())",
    "f(__import__('os')._exit(0))", "f(17\x00)", "f(\ud800)", "f(" * 5_000, "f(" + "(" * 5_000 + ")" * 5_001,
    "f(" + "-" * 50_000 + "1)", "f(16 + ().__len__())", "f([lambda: 0] and 16)", "f(16 if {}.__class__ else 0)",
    "f(" + "9" * 100_000 + ")", "f(9 ** 9 ** 9)", "f('x' * 10 ** 12)", "f(??)", "f(3)\nf(16)", "f(...)",
)  # fmt: skip


def test_an_input_that_does_more_than_be_one_is_wrong(verifier):
    grades = graded("cruxeval_i", NEXT, [*FAKE_INPUTS, "f(16)"], verifier)
    passed = [answer[:80] for answer, grade in zip(FAKE_INPUTS, grades[:-1], strict=True) if grade.correct]
    assert (passed, grades[-1].correct) == ([], True)
    assert all(grade.why for grade in grades[:-1])


def test_an_input_cannot_change_what_the_function_reads(verifier):
    """Neither a list of the program's nor what a lambda could reach."""
    limited = item("LIMIT = [3]\ndef f(x, g=None):\n    return x + LIMIT[0] + (g(x) or 0 if g else 0)", "12", "15")
    answers = [
        "f(12)", "f(LIMIT.clear() or LIMIT.append(5) or 10)", "f(10, lambda x: LIMIT.insert(0, 5) or 2)",
        "f(5, lambda x: LIMIT.insert(0, 9) or 1)", "f(5, lambda x, y=LIMIT: 7)", "f(5, lambda x: 7)",
    ]  # fmt: skip
    right = [grade.correct for grade in graded("cruxeval_i", limited, answers, verifier)]
    assert right == [True, False, True, False, False, True]


def test_one_answer_that_loops_costs_no_other_its_verdict(verifier):
    counting = item("def f(n):\n    while n:\n        n -= 1\n    return 'done'", "3", "'done'")
    answers = ["f(3)", "f(-1)", "f(0)", "f(0.5)", "f(7)"]
    grades = graded("cruxeval_i", counting, answers, verifier)
    assert [grade.why for grade in grades] == ["", "timeout", "", "timeout", ""]


def test_equal_answers_run_once_and_outputs_are_read_many_at_a_time(verifier):
    recorder = Recorder(verifier)
    assert all(grade.correct for grade in graded("cruxeval_i", NEXT, ["f(16)"] * 9, recorder))
    assert len(recorder.jobs) == 2
    recorder = Recorder(verifier)
    graded("cruxeval_o", NEXT, [str(number) for number in range(60)], recorder)
    assert len(recorder.jobs) == 1


# Copies


def test_whether_a_copy_of_the_output_is_right_is_found_by_running(slices, verifier):
    found = benchmark("cruxeval_i")
    assert isinstance(found, InputPrediction)
    items = find(found, slices).items
    assert asyncio.run(found.subsets(items, verifier)) == [COPYABLE, *[UNCOPYABLE] * 4]


def test_an_item_whose_copy_the_machine_keeps_from_being_tried_is_in_no_subset(slices, verifier):
    loaded = find(benchmark("cruxeval_i"), slices)
    with pytest.raises(MachineError, match=r"the machine failed 1 of 5 programs .*same command"):
        asyncio.run(evaluation.find_subsets(loaded, Failing(verifier, lambda job: job.texts == ("['heron']",))))


def test_copyable_inputs_have_lines_of_their_own(redqueen, slices, tmp_path):
    words = ("eval", "pico", "--prompts", "raw", "--suite", "cruxeval_o,cruxeval_i", "--data", slices, "--to",
             tmp_path / "e", "--attempts", 2, "--k", 2, "--max-tokens", 8, *HERE)  # fmt: skip
    status, out, _ = redqueen(*words)
    assert status == 0
    of_o, of_i = (each["scores"] for each in json.loads((tmp_path / "e" / "results.json").read_text())["benchmarks"])
    measures = ["greedy", "avg@2", "pass@2"]
    assert [(line["measure"], line["subset"], line["tasks"]) for line in of_o] == [(each, None, 5) for each in measures]
    assert [(line["measure"], line["subset"], line["tasks"]) for line in of_i] == [
        (each, subset, tasks) for subset, tasks in ((None, 5), (COPYABLE, 1), (UNCOPYABLE, 4)) for each in measures
    ]
    assert "CRUXEval-I, pass@2, uncopyable" in out


# Prompts that do not fit


def test_tasks_that_do_not_fit_the_base_are_counted_and_said(redqueen, slices, tmp_path):
    base = random_base(tmp_path / "short", positions=512)
    words = ("eval", base, "--prompts", "raw", "--suite", "cruxeval_o", "--data", slices, "--to", tmp_path / "e", *HERE)
    status, out, _ = redqueen(*words)
    assert status == 0
    assert "CRUXEval-O: the prompts of 5 of 5 tasks are too long for the base, which counts as wrong" in out
    assert "cut off" not in out
    [found] = json.loads((tmp_path / "e" / "results.json").read_text())["benchmarks"]
    assert (found["too_long"], found["tokens"], found["scores"][0]["base"]["value"]) == ({"base": 5}, {"base": 0}, 0)


# During a race


def test_members_are_evaluated_on_it_during_a_race(tmp_path, slices):
    suite = ["cruxeval_o", "cruxeval_i_cot"]
    evals = {"every": 1, "suite": suite, "items": 2, "prompts": "raw", "max_tokens": 8, "data": str(slices)}
    race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": 1}, "evals": evals}))
    with Store.read(tmp_path / "run") as store:
        assert {each.kind for each in store.metrics(BENCHMARK, "student")} == {*suite}


# The whole of it


class Timed:
    """A verifier that adds up what guests take."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.cpu_s = 0.0

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        outcomes = await self._verifier.run(jobs)
        self.cpu_s += sum(outcome.cpu_ms for outcome in outcomes) / 1000
        return outcomes


@pytest.fixture(scope="module")
def whole(benchmarks_at_hand) -> Path:
    if not benchmarks_at_hand:
        pytest.skip("REDQUEEN_BENCH names no folder with the benchmarks")
    return Path(benchmarks_at_hand)


def test_all_canonical_answers_are_right_within_five_seconds_of_two_cores(whole, verifier):
    timed, start = Timed(verifier), time.process_time()
    for name in ("cruxeval_o", "cruxeval_i"):
        found = benchmark(name)
        loaded = find(found, whole)
        assert (len(loaded.items), loaded.notes) == (800, ())
        said = [(each, f"assert f({each.row['input']}) == {each.row['output']}\n") for each in loaded.items]
        answers = [(each, found.extract(each, text, Prompts.RAW)) for each, text in said]
        grades = asyncio.run(found.grade(answers, timed))
        assert [each.id for each, grade in zip(loaded.items, grades, strict=True) if not grade.correct] == []
    assert time.process_time() - start + timed.cpu_s < 10


HOSTILE = {
    "cruxeval_o": ("f({input})", "0 == 0", "True or {output}", "{output} if True else 0", f"{_EQUAL}"),
    "cruxeval_i": ("f({input}) or (True)", "f({input}) and {output}", f"f({_EQUAL}, *[0] * 9)", "{output}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_answer_to_any_task_is_right(name, whole, verifier):
    found = benchmark(name)
    items = find(found, whole).items
    asked = [
        (each, answer.replace("{input}", each.row["input"]).replace("{output}", each.row["output"]))
        for each in items
        for answer in HOSTILE[name]
    ]
    grades = asyncio.run(found.grade(asked, verifier))
    assert [(each.id, answer) for (each, answer), grade in zip(asked, grades, strict=True) if grade.correct] == []


def test_almost_a_quarter_of_the_inputs_can_be_copied(whole, verifier):
    found = benchmark("cruxeval_i")
    assert isinstance(found, InputPrediction)
    items = find(found, whole).items
    subsets = asyncio.run(found.subsets(items, verifier))
    assert (subsets.count(COPYABLE), subsets.count(UNCOPYABLE)) == (181, 619)
