"""Exams: figures of hand-made answers, exams from files, and `redqueen exam` on a race of two steps."""

import asyncio
import io
import itertools
import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from chains import uniform_test
from hypothesis import given
from hypothesis import strategies as st
from loop.making import race_to_the_end, settings
from loop.scripted import Streaming
from rich.console import Console
from tasks.proposing import CODE, Failing

from redqueen.analysis.resampling import Interval, pass_at
from redqueen.commands.exam import ExamCommand
from redqueen.engine import peft
from redqueen.engine.known import EMBEDDED, Embedded
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, Sample, SampleRequest, Stop
from redqueen.errors import InputError, MachineError
from redqueen.evals.benchmarks.exam import Exam
from redqueen.evals.examination import examine
from redqueen.evals.figures import Figures, Tally, figures, gain, parts, scores
from redqueen.keys import key
from redqueen.runs import exams
from redqueen.settings import Config, dump, load
from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.files import ExamTask, exam_file, read_exam, read_held_out, usual_exam, validated_exam
from redqueen.tasks.protocol import Form
from redqueen.training.rules import read_guards, versions
from redqueen.verifier import LocalVerifier, Mode, Verifier

ADD = "def f(n):\n    return n + 1"
DOUBLE = "def f(n):\n    return n * 2"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def written(folder: Path, *rows: object, name: str = "exam.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def row(program: str = ADD, given: str = "1", **more: object) -> dict[str, object]:
    return {"kind": "code_o", "program": program, "input": given, **more}


# Figures


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n), st.integers(0, n))))
def test_pass_at_k_is_the_share_of_choices_of_k_attempts_with_a_right_one(case):
    k, attempts, correct = case
    choices = list(itertools.combinations([True] * correct + [False] * (attempts - correct), k))
    assert pass_at(k, attempts, correct) == pytest.approx(sum(map(any, choices)) / len(choices))


def test_pass_at_k_needs_k_attempts():
    with pytest.raises(InputError, match="make k attempts or more"):
        pass_at(5, 4, 1)


FIRST = Tally(attempts=4, correct=(4, 2, 0), greedy=(True, True, False), well_formed=(4, 4, 1), tokens=(40, 20, 12))
SECOND = Tally(attempts=4, correct=(0, 0, 1), greedy=(False, True, True), well_formed=(4, 4, 4), tokens=(8, 8, 8))


def test_figures_are_the_means_over_tasks():
    assert figures(scores(FIRST)) == Figures(
        sampled=pytest.approx(6 / 12),
        greedy=pytest.approx(2 / 3),
        pass_at_k=pytest.approx(2 / 3),
        well_formed=pytest.approx(9 / 12),
        tokens=pytest.approx(6),
    )


def test_pass_at_fewer_than_all_attempts_is_without_bias():
    assert scores(FIRST, k=1)[:, 2].tolist() == pytest.approx(scores(FIRST)[:, 0].tolist())
    assert scores(FIRST, k=2)[:, 2].tolist() == pytest.approx([1, 1 - 1 / 6, 0])


def test_the_score_of_several_is_their_mean_task_by_task():
    assert scores(FIRST, SECOND).tolist() == ((scores(FIRST) + scores(SECOND)) / 2).tolist()


def answers(correct: Sequence[int], attempts: int = 8) -> Tally:
    return Tally(
        attempts=attempts,
        correct=tuple(correct),
        greedy=tuple(2 * each > attempts for each in correct),
        well_formed=(attempts,) * len(correct),
        tokens=(attempts,) * len(correct),
    )


def test_nobody_gains_on_itself():
    found = gain(scores(answers([3, 5, 8])), scores(answers([3, 5, 8])))
    assert found.sampled == found.greedy == found.pass_at_k == Interval(0, 0, 0)
    assert found.ratio == Interval(1, pytest.approx(1), pytest.approx(1))


def test_what_everybody_gains_on_every_task_is_sure_however_the_tasks_differ():
    base = [0, 1, 2, 3, 4, 5, 6] * 10
    found = gain(scores(answers([each + 2 for each in base])), scores(answers(base)))
    assert found.sampled == Interval(pytest.approx(0.25), pytest.approx(0.25), pytest.approx(0.25))
    assert found.ratio is not None and found.ratio.low is not None and found.ratio.high is not None
    assert found.ratio.value == pytest.approx(5 / 3)
    assert found.ratio.low < 5 / 3 < found.ratio.high


def test_an_interval_is_that_of_the_normal_distribution_where_there_are_many_tasks():
    rng = np.random.default_rng(1)
    ours, base = rng.binomial(8, 0.6, 400), rng.binomial(8, 0.5, 400)
    found = gain(scores(answers(ours.tolist())), scores(answers(base.tolist()))).sampled
    differences = (ours - base) / 8
    half = 1.96 * differences.std() / math.sqrt(400)
    assert found.low is not None and found.high is not None
    assert found.value == pytest.approx(differences.mean())
    assert found.low == pytest.approx(found.value - half, abs=0.1 * half)
    assert found.high == pytest.approx(found.value + half, abs=0.1 * half)


def test_intervals_hold_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(100):
        rate_N = rng.beta(1, 1, 60)
        # Whatever the base can do, we can in half of the cases where it fails.
        base, ours = rng.binomial(8, rate_N), rng.binomial(8, rate_N + 0.5 * (1 - rate_N))
        found = gain(scores(answers(ours.tolist())), scores(answers(base.tolist()))).sampled
        assert found.low is not None and found.high is not None
        held += found.low <= 0.25 <= found.high
    assert 88 <= held <= 99


def test_there_is_no_ratio_to_nothing_and_no_interval_of_one_that_may_be():
    ours = scores(answers([1, 2, 3]))
    assert gain(ours, scores(answers([0, 0, 0]))).ratio is None
    assert gain(ours, scores(answers([0, 0, 3]))).ratio == Interval(pytest.approx(2), None, None)


def test_a_single_task_has_no_interval():
    assert gain(scores(answers([8])), scores(answers([4]))).sampled == Interval(0.5, None, None)


def test_an_exam_is_reported_whole_by_band_by_kind_and_by_both():
    def task(kind: str, band: str, number: int) -> ExamTask:
        return ExamTask(CodeTask(kind, program=ADD, inputs=(str(number),), outputs=(str(number + 1),)), band)

    exam = [task("code_o", "easy", 1), task("code_i", "easy", 1), task("code_o", "hard", 2), task("code_o", "hard", 3)]
    assert [(part.band, part.kind, part.places) for part in parts(Exam(exam, FAMILY.kinds()).items)] == [
        (None, None, (0, 1, 2, 3)),
        ("easy", None, (0, 1)),
        ("hard", None, (2, 3)),
        (None, "code_o", (0, 2, 3)),
        (None, "code_i", (1,)),
        ("easy", "code_o", (0,)),
    ]


def test_tasks_with_a_shortcut_are_reported_apart_where_there_are_both():
    def task(kind: str, number: int, shortcut: str | None) -> ExamTask:
        task = CodeTask(kind, program=ADD, inputs=(str(number),), outputs=(str(number + 1),))
        return ExamTask(task, "1", shortcut)

    exam = [task("code_o", 1, None), task("code_i", 1, "copy"), task("code_i", 2, None), task("code_o", 2, None)]
    found = [part for part in parts(Exam(exam, FAMILY.kinds()).items) if part.shortcut is not None]
    assert [(part.kind, part.shortcut, part.places) for part in found] == [
        (None, False, (0, 2, 3)),
        (None, True, (1,)),
        ("code_i", False, (2,)),
        ("code_i", True, (1,)),
    ]


# Exams from files


def test_an_exam_is_run_to_its_outputs_and_a_program_is_a_task_for_each_input(verifier, tmp_path):
    path = written(
        tmp_path,
        row(band="easy"),
        {"kind": "code_i", "program": DOUBLE, "inputs": ["2", "f(3)"], "band": "hard"},
        "",
        {"kind": "code_f", "program": DOUBLE, "inputs": ["1", "2", "3", "4"], "message": "More."},
    )
    exam = asyncio.run(validated_exam(read_exam(path, CODE), CODE, verifier))
    assert [(each.band, each.task.kind, each.task.inputs, each.task.outputs) for each in exam[:3]] == [
        ("easy", "code_o", ("1",), ("2",)),
        ("hard", "code_i", ("2",), ("4",)),
        ("hard", "code_i", ("3",), ("6",)),
    ]
    last = exam[3]
    assert (last.band, last.task.message, last.task.shown, sorted(last.task.inputs)) == (
        "code_f",
        "More.",
        2,
        [*"1234"],
    )


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("{", "not JSON"),
        ({"program": ADD, "input": "1"}, "no kind of task under 'kind'"),
        (row(kind="code_x"), "no kind of task under 'kind'"),
        (row(kind=["code_o"]), "no kind of task under 'kind'"),
        (row(band=""), "no text under 'band'"),
        (row(band=3), "no text under 'band'"),
        (row(message=None), "no text under 'message'"),
        ({"kind": "code_o", "program": ADD}, "no text under 'input'"),
        (row("def g(n): return n"), "the program is refused: no_entry"),
    ],
)
def test_a_bad_line_of_an_exam_is_named_by_its_number(tmp_path, bad, what):
    path = written(tmp_path, row(), "", bad)
    with pytest.raises(InputError) as caught:
        read_exam(path, CODE)
    assert caught.value.what.startswith(f"{path}, line 3: {what}")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (row("def f(n):\n    return 1 / 0"), "the task is refused: raises (ZeroDivisionError)"),
        (row(kind="code_f", given="1"), "the task is refused: too_few_inputs"),
        (row(given=" 1 ", band="other"), "the same task as in"),
    ],
)
def test_a_task_that_cannot_be_set_is_named_by_its_line(verifier, tmp_path, bad, what):
    path = written(tmp_path, row(), row(DOUBLE), bad)
    with pytest.raises(InputError) as caught:
        asyncio.run(validated_exam(read_exam(path, CODE), CODE, verifier))
    assert caught.value.what.startswith(f"{path}, line 3: {what}")


def test_a_task_with_a_shortcut_may_be_asked_and_says_so(verifier, tmp_path):
    path = written(tmp_path, row(), row("def f(n):\n    return -abs(n)", "-7"), row(ADD, "4", kind="code_i"))
    exam = asyncio.run(validated_exam(read_exam(path, CODE), CODE, verifier))
    assert [task.shortcut for task in exam] == [None, "argument", None]


def test_a_file_without_a_task_is_no_exam(tmp_path):
    with pytest.raises(InputError, match="no task in it"):
        read_exam(written(tmp_path, ""), CODE)


# What is asked, and who gets which answers


class Scripted(Streaming):
    """An engine whose members say what the test wants: a function of the member, the prompt and the attempt."""

    def __init__(self, say: Callable[[str | None, str, int], str], attempts: int) -> None:
        self.say, self.attempts = say, attempts
        self.requests: Sequence[SampleRequest] = ()
        self.prompts: list[str] = []
        self.base = self

    def encode(self, messages: Sequence[dict[str, str]], prefill: str = "") -> tuple[int, ...]:
        self.prompts.append(messages[-1]["content"])
        return (len(self.prompts) - 1,)

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        self.requests = requests
        samples = []
        for place, request in enumerate(requests):
            text = self.say(request.member, self.prompts[request.prompt[0]], place % (self.attempts + 1))
            stop = Stop.LENGTH if text.endswith("...") else Stop.EOS
            samples.append(Sample(tuple(range(len(text))), (0.0,) * len(text), stop, text))
        return samples


def examined(
    verifier: Verifier, say: Callable[[str | None, str, int], str], **others: str
) -> tuple[dict[str, Tally], Scripted]:
    exam = [
        ExamTask(CodeTask("code_o", program=ADD, inputs=("1",), outputs=("2",)), "easy"),
        ExamTask(CodeTask("code_i", program=DOUBLE, inputs=("3",), outputs=("6",)), "hard"),
    ]
    engine = Scripted(say, 3)
    who = {"bare": None, "ada": "m1", **others}
    found = examine(
        cast(LocalEngine, engine),
        verifier,
        who,
        exam,
        kinds=FAMILY.kinds(Form.SHORT),
        attempts=3,
        temperature=0.7,
        max_tokens=5,
    )
    return asyncio.run(found), engine


def test_everybody_gets_what_its_own_attempts_are_worth(verifier):
    def say(member: str | None, prompt: str, attempt: int) -> str:
        if member is None:
            return ["2", "3", "```output\n2\n```\n...", "2"][attempt] if "n + 1" in prompt else "five apples"
        return "3" if "n * 2" in prompt else ["2", "2", "2", "1"][attempt]

    def fenced(member: str | None, prompt: str, attempt: int) -> str:
        text = say(member, prompt, attempt)
        label = "input" if "n * 2" in prompt else "output"
        return text if text.startswith("`") else f"```{label}\n{text}\n```"

    found, _ = examined(verifier, fenced)
    length = len("```output\n2\n```")
    assert found["bare"] == Tally(
        attempts=3, correct=(1, 0), greedy=(True, False), well_formed=(2, 0), tokens=(3 * length + 4, 3 * (length + 9))
    )
    assert found["ada"] == Tally(
        attempts=3, correct=(3, 3), greedy=(False, True), well_formed=(3, 3), tokens=(3 * length, 3 * (length - 1))
    )


def test_who_is_the_same_member_is_asked_once_and_gets_the_same(verifier):
    def say(member: str | None, prompt: str, attempt: int) -> str:
        return "```output\n2\n```" if member == "m1" else "nothing"

    found, engine = examined(verifier, say, bob="m1", eve="m2")
    assert found["bob"] == found["ada"] != found["eve"] == found["bare"]
    assert [request.member for request in engine.requests] == 2 * [*4 * [None], *4 * ["m1"], *4 * ["m2"]]


@pytest.mark.parametrize("mode", [Mode.LITERALS, Mode.CALLS])
def test_an_answer_that_the_machine_keeps_from_being_judged_is_no_wrong_one(verifier, mode):
    with pytest.raises(MachineError, match=r"the machine failed .*same command"):
        examined(Failing(verifier, lambda job: job.mode is mode), lambda *_: "```output\n2\n```")


def test_a_task_whose_shortcuts_the_machine_keeps_from_being_tried_is_not_taken_for_one_without(verifier, tmp_path):
    drafts = read_exam(written(tmp_path, row(ADD, "4", kind="code_i")), CODE)
    failing = Failing(verifier, lambda job: job.seeds == 1 and job.mode is Mode.CALLS)
    with pytest.raises(MachineError, match=r"the machine failed a program .*same command"):
        asyncio.run(validated_exam(drafts, CODE, failing))


def test_a_task_whose_own_truth_fails_during_the_exam_is_named(verifier, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "DOUBLE", "def f(n):\n    return -1")
    with pytest.raises(InputError, match=r"\(def f\(n\):\.\.\.\) does not return its own output again"):
        examined(verifier, lambda member, prompt, attempt: "```input\n3\n```")


def test_random_numbers_come_from_task_and_attempt_alone(verifier):
    _, engine = examined(verifier, lambda *_: "")
    keys: dict[str | None, list[tuple[int, float]]] = {None: [], "m1": []}
    for request in engine.requests:
        assert request.max_tokens == 5
        keys[request.member].append((request.key, request.temperature))
    assert keys[None] == keys["m1"]
    assert len(set(keys[None])) == 8
    assert [temperature for _, temperature in keys[None]] == [0.7, 0.7, 0.7, 0.0] * 2
    tasks = [
        CodeTask("code_o", program=ADD, inputs=("1",), outputs=("2",)),
        CodeTask("code_i", program=DOUBLE, inputs=("3",), outputs=("6",)),
    ]
    # Exams of earlier versions come out the same.
    assert [number for number, _ in keys[None]] == [key("exam", task.id, at) for task in tasks for at in range(4)]


# The command


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("exam")


@pytest.fixture(scope="module")
def exam(place) -> Path:
    chains = [chain for chain in uniform_test(2) if chain.level <= 4]
    rows = [
        row(chain.task.program, chain.task.inputs[0], band="low" if chain.level < 3 else "high") for chain in chains
    ]
    return written(place, *rows)


@pytest.fixture(scope="module")
def run(place) -> Path:
    changes: dict[str, dict[str, Any]] = {"run": {"steps": 2}, "rl": {"lr": 1e-2, "temperature": 0.9}}
    return race_to_the_end(place / "run", settings(changes=changes)).folder


HERE = ("--engine.device", "cpu", "--verifier.workers", "2")


def by_name(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in answer["examinees"]}


def test_an_exam_of_a_run_has_its_students_their_mean_and_the_base(redqueen, run, exam, place):
    file = place / "figures.json"
    status, out, err = redqueen("exam", run, "--tasks", exam, "--attempts", 3, "--to", file, *HERE)
    assert status == 0
    assert err == "redqueen: 8 tasks, 3 sampled and 1 greedy attempt at each, by the base, s0, s1\n"
    assert f"all figures are in {file}" in out
    assert "8 tasks, 3 sampled (temperature 0.9) and 1 greedy attempt at each, short prompts, at most 48 tokens" in out
    lines = out.splitlines()
    heads = [
        "%",
        "all",
        "greedy",
        "pass@3",
        "no shortcut",
        "shortcut",
        "band low",
        "band high",
        "well formed",
        "tokens",
    ]
    assert re.split(" {2,}", lines[0].strip()) == heads
    found = json.loads(file.read_text())
    assert (found["base"], found["attempts"], found["tasks"], found["dtype"]) == ("chains", 3, 8, "float32")
    named = by_name(found)
    assert [*named] == ["chains (bare)", "s0", "s1", "mean of students"]
    assert [each["step"] for each in named.values()] == [None, 2, 2, 2]
    assert named["mean of students"]["members"] == ["s0", "s1"]
    whole = {name: each["parts"][0] for name, each in named.items()}
    *plain, without, shortcut = named["s0"]["parts"]
    assert [(part["band"], part["kind"], part["tasks"]) for part in plain] == [
        (None, None, 8), ("low", None, 4), ("high", None, 4), (None, "code_o", 8)
    ]  # fmt: skip
    assert [part["shortcut"] for part in named["s0"]["parts"]] == [None] * 4 + [False, True]
    rights = [part["tasks"] * part["sampled"] for part in (without, shortcut)]
    assert sum(rights) == pytest.approx(8 * whole["s0"]["sampled"])
    assert f"{shortcut['tasks']} of the tasks have a shortcut: they can be solved without reasoning" in out
    mean = (whole["s0"]["sampled"] + whole["s1"]["sampled"]) / 2
    assert whole["mean of students"]["sampled"] == pytest.approx(mean)
    gained = whole["mean of students"]["gain"]["sampled"]
    assert gained["value"] == pytest.approx(mean - whole["chains (bare)"]["sampled"])
    assert gained["low"] <= gained["value"] <= gained["high"]
    assert "gain" not in whole["chains (bare)"]
    shown = next(line.split() for line in lines if line.startswith("s0 "))
    assert shown[1] == f"{100 * whole['s0']['sampled']:.1f}"


def test_pass_at_one_of_many_attempts_is_the_accuracy_of_them_all(redqueen, run, exam):
    asked = ("exam", run, "--tasks", exam, "--attempts", 3, "--k", 1, *HERE)
    found = json.loads(redqueen(*asked, "--json")[1])
    assert (found["attempts"], found["k"]) == (3, 1)
    for each in found["examinees"]:
        assert each["parts"][0]["pass_at_k"] == pytest.approx(each["parts"][0]["sampled"])
    assert "pass@1" in redqueen(*asked)[1].splitlines()[0]


def test_bands_that_are_asked_for_get_what_they_get_in_the_whole_exam(redqueen, run, exam):
    asked = ("exam", run, "--tasks", exam, "--attempts", 2, "--json", *HERE)
    whole, low = (json.loads(redqueen(*asked, *more)[1]) for more in ((), ("--bands", "low")))
    assert (whole["bands"], low["bands"], low["tasks"]) == (["low", "high"], ["low"], 4)
    for name, row in by_name(whole).items():
        of_low = next(part for part in row["parts"] if part["band"] == "low" and part["kind"] is None)
        assert by_name(low)[name]["parts"][0] == of_low | {"band": None}


def test_steps_adapters_and_bases_share_one_exam_and_get_what_they_get_alone(redqueen, run, exam, place):
    assert redqueen("export", run, "--member", "s1", "--to", place / "s1")[0] == 0
    asked = ("--tasks", exam, "--attempts", 2, "--json", *HERE)
    status, out, _ = redqueen("exam", "chains", f"{run}:1", place / "s1", run, "--role", "all", *asked)
    assert status == 0
    together = by_name(json.loads(out))
    names = [f"{run}:1/s0", f"{run}:1/s1", f"mean of students of {run}:1"]
    assert [*together][1:4] == names
    assert {f"{run}/t0", f"mean of teachers of {run}", str(place / "s1")} < together.keys()
    assert together[f"{run}:1/s1"]["step"] == 1
    # The same weights by two ways.
    assert together[str(place / "s1")]["parts"] == together[f"{run}/s1"]["parts"]
    alone = by_name(json.loads(redqueen("exam", run, *asked)[1]))
    assert alone["s1"]["parts"] == together[f"{run}/s1"]["parts"]
    assert alone["chains (bare)"]["parts"] == together["chains (bare)"]["parts"]


def test_a_run_keeps_what_its_checkpoints_were_worth_in_exams(redqueen, run, exam, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns(exams.FILE))
    asked = ("exam", folder, "--every", 1, "--tasks", exam, "--attempts", 2, "--json", *HERE)
    status, out, _ = redqueen(*asked)
    assert status == 0
    shown = by_name(json.loads(out))
    kept = {(one.step, one.subject): one for one in exams.read(folder)}
    assert kept.keys() >= {(step, who) for step in (1, 2) for who in ("base", "s0", "s1", "student")}
    for step in (1, 2):
        for who, name in (("s0", f"{folder}:{step}/s0"), ("student", f"mean of students of {folder}:{step}")):
            whole, one = shown[name]["parts"][0], kept[step, who]
            assert one.tasks == 8 and one.title == "exam (8 tasks)" and one.measure("pass_at_k") == "pass@2"
            assert one.figures == {figure: whole[figure] for figure in ("sampled", "greedy", "pass_at_k")}
            gained = whole["gain"]["greedy"]
            assert one.gains["greedy"] == [gained["value"], gained["low"], gained["high"]]
    redqueen(*asked)
    assert len(exams.read(folder)) == len(kept), "the same again takes the place of what was there"
    redqueen("exam", f"{folder}:1/s1", "--tasks", exam, "--attempts", 3, *HERE)
    assert [(one.step, one.subject) for one in exams.newest(folder, ["s1"])] == [(1, "base"), (1, "s1")], "another exam"
    assert {(one.step, one.subject) for one in exams.newest(folder, ["student"])} == kept.keys()
    assert exams.newest(folder, ["nobody"]) == []
    assert len(exams.read(folder)) == len(kept) + 2


def test_only_runs_have_checkpoints_of_every_so_many_steps(redqueen, run, exam, place):
    for what, every, said in (
        (run, 7, f"{run} has no checkpoint of every 7 steps, only of 1, 2"),
        (f"{run}:1", 1, f"{run}:1 is not a run folder; --every is for whole runs"),
        ("chains", 1, "chains is not a run folder; --every is for whole runs"),
        (run, 0, "--every cannot be 0"),
    ):
        status, _, err = redqueen("exam", what, "--every", every, "--tasks", exam, *HERE)
        assert status == 2 and said in err and err.count("\n") == 1


def test_an_exam_is_shown_even_if_its_run_cannot_keep_it(redqueen, run, exam, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(exams, "keep", refuse)
    status, out, _ = redqueen("exam", run, "--tasks", exam, "--attempts", 1, *HERE)
    assert status == 0 and "mean of students" in out
    assert f"{run / 'exams.json'} cannot be written (Permission denied)" in out


def test_the_soup_of_a_runs_students_sits_an_exam_and_its_card_has_it(redqueen, run, exam, place):
    soup = f"{run}/soup"
    status, out, _ = redqueen("exam", soup, "--tasks", exam, "--attempts", 1, "--json", *HERE)
    assert status == 0
    found = by_name(json.loads(out))
    assert [*found] == [f"{soup}", "chains (bare)"] or [*found] == ["chains (bare)", f"{soup}"]
    assert redqueen("export", run, "--member", "soup", "--to", place / "soup")[0] == 0
    folder = redqueen("exam", place / "soup", "--tasks", exam, "--attempts", 1, "--json", "--tasks.form", "short",
                      "--rl.temperature", "0.9", "--tasks.attempt-tokens", "48", *HERE)[1]  # fmt: skip
    of_folder = by_name(json.loads(folder))[str(place / "soup")]
    assert of_folder["parts"] == found[soup]["parts"], "the same weights as a folder"
    assert "| exam " in (place / "soup" / "README.md").read_text()


def test_an_adapter_of_another_rank_is_examined_beside_a_run_as_it_is_alone(redqueen, run, exam, place):
    mine = peft.load(next((run / "checkpoints").glob("*2")) / "members" / "s0")
    factors = {module: (a[:2], b[:, :2]) for module, (a, b) in list(mine.factors.items())[:3]}
    other = place / "theirs"
    peft.save(MemberState(rank=2, alpha=3.0, factors=factors), other, base_name="chains", modules=[*mine.factors])
    how = ("--tasks", exam, "--attempts", 1, "--json", "--tasks.form", "short", "--rl.temperature", "0.9",
           "--tasks.attempt-tokens", "48", *HERE)  # fmt: skip
    status, out, err = redqueen("exam", run, other, *how)
    assert status == 0, err
    together = by_name(json.loads(out))
    alone = by_name(json.loads(redqueen("exam", other, *how)[1]))
    assert together[str(other)]["parts"] == alone[str(other)]["parts"]
    assert together[f"{run}/s0"]["parts"] == by_name(json.loads(redqueen("exam", run, *how)[1]))["s0"]["parts"]


def test_a_base_alone_is_asked_as_the_options_say(redqueen, exam):
    options = ("--rl.temperature", "0.5", "--tasks.attempt-tokens", "9", "--tasks.form", "direct")
    status, out, err = redqueen("exam", "chains", "--tasks", exam, "--attempts", 1, "--json", *options, *HERE)
    assert (status, err) == (0, "redqueen: 8 tasks, 1 sampled and 1 greedy attempt at each, by the base\n")
    found = json.loads(out)
    assert (found["form"], found["temperature"], found["max_tokens"]) == ("direct", 0.5, 9)
    assert [*by_name(found)] == ["chains (bare)"]


def test_what_cannot_be_examined_together_is_refused_in_one_line(redqueen, run, exam, place):
    other, hotter = place / "other", place / "hotter"
    for folder, before, after in (
        (other, '"chains"', '"some/base"'),
        (hotter, "temperature = 0.9", "temperature = 1.5"),
    ):
        shutil.copytree(run, folder)
        text = (folder / "config.toml").read_text()
        assert before in text
        (folder / "config.toml").write_text(text.replace(before, after))
    asked = ("--tasks", exam, *HERE)
    for words, told in (
        ((run, other), f"{run} is of the base chains, {other} of some/base; examine them apart"),
        ((run, run), f"{run} is named twice"),
        ((run, hotter), f"{run} has rl.temperature = 0.9, and {hotter} has 1.5; choose one with"),
        ((f"{run}:7",), f"{run} has no checkpoint of step 7; its checkpoints are of steps 1, 2"),
        (
            (place / "nothing",),
            f"{place / 'nothing'} is not a run folder, a member or a PEFT folder, and there is no base ",
        ),
        (("chains", "--attempts", 0), "--attempts cannot be 0"),
        (("chains", "--k", 0), "--k cannot be 0"),
        (("chains", "--attempts", 4, "--k", 5), "pass@5 cannot be computed from 4 attempts; use --attempts 5 or more"),
        (("chains", "--bands", "low,deep"), f"{exam} has no band 'deep'; it has low, high"),
        (("chains", "--to", exam), f"{exam} is of no known format"),
        (("chains", "--to", run / "no" / "x.json"), "there is no folder"),
    ):
        status, out, err = redqueen("exam", *words, *asked)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"redqueen: {told}")


# The exam of a base that comes with the package


def test_an_exam_that_is_not_there_is_one_line(redqueen, monkeypatch, tmp_path):
    monkeypatch.setattr(Embedded, "exam", property(lambda self: tmp_path / "exam.jsonl"))
    for name, mend in (("chains", "use functions or a .jsonl file"), ("function", "did you mean functions?")):
        assert redqueen("exam", "chains", "--tasks", name, *HERE)[2] == (
            f"redqueen: there is no exam {name}, and no such file; {mend}\n"
        )


def test_whatever_has_no_exam_of_its_own_is_asked_about_functions(redqueen, tmp_path):
    shutil.copytree(EMBEDDED["chains"].folder, tmp_path / "elsewhere")
    words = ("--attempts", 1, "--bands", "1", "--json", "--tasks.form", "short", "--tasks.attempt-tokens", 4)
    status, out, _ = redqueen("exam", tmp_path / "elsewhere", *words, *HERE)
    assert status == 0 and json.loads(out)["exam"] == str(exam_file("functions", CODE))
    assert usual_exam("pico", CODE) == EMBEDDED["pico"].exam and usual_exam("chains", CODE) == exam_file(
        "functions", CODE
    )


def test_a_narrow_terminal_keeps_names_and_intervals_and_says_what_it_leaves_out(run, exam):
    settings = load("demo", [("engine.device", "cpu")])
    command = ExamCommand(what=(str(run),), tasks=str(exam), attempts=2, settings=settings)
    out = io.StringIO()
    command.report().render(Console(file=out, force_terminal=True, width=64, color_system=None))
    text = out.getvalue()
    assert "mean of" in text and "less the" in text and len(re.findall(r"\[[-+][0-9.]+, [-+][0-9.]+\]", text)) >= 3
    assert (
        "no room here for band high, band low, tokens, well formed, shortcut, no shortcut: --to FILE.json has all"
        in text
    )
    assert max(len(line) for line in text.splitlines()[:8]) <= 64


def test_an_exam_says_which_races_did_not_keep_it_out(redqueen, run, exam, tmp_path):
    lines = exam.read_text().splitlines(keepends=True)
    programs = [json.loads(line)["program"] for line in lines]
    some = tmp_path / "some.jsonl"
    some.write_text(lines[0])
    kept = tmp_path / "kept"
    shutil.copytree(run, kept)

    def said(what, tasks, *held_out):
        given = [("guard.held_out", ",".join(map(str, held_out)))]
        (kept / "config.toml").write_text(dump(load(str(run / "config.toml"), given if held_out else [])))
        status, out, _ = redqueen("exam", what, "--tasks", tasks, "--attempts", 1, *HERE)
        assert status == 0
        unread = [path for path in held_out if path not in (exam, some)]
        assert out.count("which cannot be read here") == len(unread)
        return re.findall(r"did not keep (.*) out of its race", out)

    assert said(run, exam) == [f"{len(lines)} of these {len(lines)} tasks"]
    assert said(kept, exam, exam) == [] == said(kept, some, exam)
    others = len(lines) - programs.count(programs[0])
    assert said(kept, exam, some) == [f"{others} of these {len(lines)} tasks"]
    (tmp_path / "empty.jsonl").write_text("")
    for gone in ("gone.jsonl", "gone", "empty.jsonl"):
        assert said(kept, some, tmp_path / gone) == ["1 of these 1 tasks"]


def test_an_adapter_that_calls_its_base_otherwise_is_told_it(redqueen, run, exam, tmp_path):
    assert redqueen("export", run, "--member", "student", "--base", "me/mine", "--to", tmp_path / "s")[0] == 0
    asked = ("exam", tmp_path / "s", "--tasks", exam, "--attempts", 1, "--tasks.form", "short", *HERE)
    assert "me/mine" in redqueen(*asked)[2]
    assert redqueen(*asked, "--engine.base", "chains")[0] == 0


def test_functions_are_sound_and_their_halves_alike():
    drafts = read_exam(exam_file("functions", CODE), CODE)
    with LocalVerifier() as verifier:
        asyncio.run(validated_exam(drafts, CODE, verifier))
    by_kind = {kind: [each for each in drafts if each.draft.kind == kind] for kind in ("code_o", "code_i")}
    assert sum(map(len, by_kind.values())) == len(drafts)
    programs = {kind: [each.draft.program for each in own] for kind, own in by_kind.items()}
    assert programs["code_o"] == programs["code_i"] and len(set(programs["code_o"])) == len(programs["code_o"]) == 540
    # A study chooses with the even places and reports the odd ones: no program may be in both.
    assert {each.draft.program for each in drafts[::2]}.isdisjoint(each.draft.program for each in drafts[1::2])
    easy = [Counter(each.band for each in half)["1"] for half in (drafts[::2], drafts[1::2])]
    assert easy == [150, 142]
    lines = {"1": range(2, 5), "2": range(3, 5), "3": range(5, 9), "4": range(9, 15)}
    assert all(len(each.draft.program.splitlines()) in lines[each.band] for each in drafts)


def test_no_race_of_the_small_preset_may_have_a_program_of_the_exam():
    settings = load("small")
    [draft, *_] = read_exam(exam_file("functions", CODE), CODE)
    task = CodeTask("code_o", program=draft.draft.program.replace("totals", "sums"), inputs=("[]",), outputs=("[]",))
    guards, told = read_guards(settings, CODE)
    assert not told and not guards.held_out.isdisjoint(task.part_keys)
    assert versions(settings, CODE) == {}  # nothing of the user's own


def test_a_bases_own_exam_is_the_default(redqueen, monkeypatch, exam):
    monkeypatch.setattr(Embedded, "exam", property(lambda self: exam))
    status, out, _ = redqueen("exam", "chains", "--attempts", 1, "--json", *HERE)
    assert (status, json.loads(out)["exam"]) == (0, str(exam))


def test_a_base_among_what_is_held_out_stands_for_its_exam(monkeypatch, exam):
    monkeypatch.setattr(Embedded, "exam", property(lambda self: exam))
    asked = Config.model_validate({"guard": {"held_out": ["chains"]}})
    guards, told = read_guards(asked, CODE)
    assert guards.held_out == read_held_out([exam], CODE).keys
    assert told == []
    assert versions(asked, CODE) == {}
