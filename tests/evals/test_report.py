"""What `redqueen eval` shows: a table for any width, what gains are on, and how far it is."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from redqueen.console import Progress
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.evals.data import LoadedBenchmark
from redqueen.evals.evaluation import fingerprint
from redqueen.evals.figures import Sheet, Tally
from redqueen.evals.protocol import Item
from redqueen.evals.report import SPARE, EvaluationReport, benchmark_report, rival
from redqueen.evals.subjects import BARE, Group, Subjects
from redqueen.plugins import BENCHMARKS
from redqueen.population.members import Role

STATE = MemberState(4, 8.0, {"q": (torch.ones(4, 3), torch.ones(3, 4))})
HOW = {
    "prompts": "chat",
    "attempts": 0,
    "k": 0,
    "temperature": 0.6,
    "device": "cpu",
    "dtype": "float32",
    "quantise": "none",
}


def subjects(*groups: tuple[str, Role | None, int]) -> Subjects:
    found = []
    for what, role, count in groups:
        ids = [f"{what}/{role or 'x'}{number}" for number in range(count)]
        found.append(Group(what=what, step=3, role=role, members=dict.fromkeys(ids, STATE)))
    return Subjects("pico", tuple(found), {}, ())


def sheet(seed: int, cut: float = 0.0) -> Sheet:
    right = tuple(map(bool, np.random.default_rng(seed).integers(0, 2, 40)))
    own = Tally(attempts=0, correct=(0,) * 40, greedy=right, well_formed=(0,) * 40, tokens=(0,) * 40)
    return Sheet(tally=own, parts_N={}, votes=tuple(map(str, right)), tokens=123_456, cut=cut, unanswered=0.0)


def report(of: Subjects, names: tuple[str, ...] = ("humaneval_plus", "gsm8k"), cut: float = 0.0) -> EvaluationReport:
    found = []
    for name in names:
        benchmark = BENCHMARKS.get(name)
        loaded = LoadedBenchmark(
            benchmark=benchmark,
            items=tuple(Item(f"{name}/{n}", {}) for n in range(40)),
            origin="f",
            sha256="0",
            notes=(),
        )
        sheets = {who: sheet(place, cut) for place, who in enumerate([BARE, *of.members])}
        found.append(benchmark_report(loaded, sheets, of, None, 0, 1234.5, benchmark.tokens))
    return EvaluationReport(of.base, {**HOW, "against": None}, tuple(found), ())


def shown(of: EvaluationReport, width: int, terminal: bool = True) -> str:
    to = io.StringIO()
    of.render(Console(file=to, width=width, force_terminal=terminal, color_system=None))
    return to.getvalue()


BOTH = subjects(("runs/a-long-name-of-a-run", Role.STUDENT, 3), ("runs/a-long-name-of-a-run", Role.TEACHER, 2))
FIGURES = re.compile(r"\d+\.\d ±\d+\.\d")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_names_and_scores_are_there_on_any_terminal(width):
    table = re.split("no room here|HumanEval[+]: ", shown(report(BOTH), width))[0]
    for words in ("HumanEval+,", "GSM8K, greedy", "runs/a-long-na", "students", "teachers", "%, chat"):
        assert words in table
    assert len(FIGURES.findall(table)) == 8
    if width >= 80:
        assert max(map(len, table.splitlines())) <= width
        assert len(re.findall(r"\[[+-]\d+\.\d, [+-]\d+\.\d\]", table)) == 4


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (250, []),
        (120, ["tokens", "seconds", "weakest", "best*"]),
        (80, ["tokens", "seconds", "weakest", "best*", "vote", "tasks"]),
        (40, ["tokens", "seconds", "weakest", "best*", "vote", "tasks", "95 %"]),
    ],
)
def test_a_narrow_terminal_does_without_the_columns_that_matter_least(width, left_out):
    text = shown(report(BOTH), width)
    told = re.search("no room here for (.*): results.json has all", text)
    assert (told[1].split(", ") if told else []) == left_out
    head = text.partition("─")[0]
    assert [name for name in SPARE if name not in head] == left_out


def test_what_is_no_terminal_gets_every_column():
    text = shown(report(BOTH), 80, terminal=False)
    head = text.splitlines()[0]
    for name in ("base ±se", "mean ±se", "less the base", "95 %", "weakest", "best*", "vote", "tasks", "tokens"):
        assert name in head
    assert "runs/a-long-name-of-a-run students" in text
    assert "no room" not in text


def test_that_answers_were_cut_is_said_except_where_one_letter_is_the_answer():
    text = shown(report(subjects(), ("gsm8k", "mmlu"), cut=1.0), 200)
    assert "GSM8K: 100 % of the answers were cut" in text
    assert "MMLU: 100 %" not in text


def test_the_longest_answer_is_in_the_results_of_each_benchmark():
    found = report(subjects(), ("gsm8k", "mmlu")).as_json()["benchmarks"]
    assert [each["max_tokens"] for each in found] == [512, 8]


# Subsets


def test_a_subset_has_its_own_scores_gains_and_vote_and_the_whole_is_as_without():
    of = subjects(("run", Role.STUDENT, 3))
    sheets = {who: sheet(place) for place, who in enumerate([BARE, *of.members])}
    loaded = report(of).benchmarks[0].loaded
    subsets = ["odd" if place % 2 else "even" for place in range(40)]
    whole = benchmark_report(loaded, sheets, of, None, 0, 1.0, 8).lines
    lines = benchmark_report(loaded, sheets, of, None, 0, 1.0, 8, subsets).lines
    assert lines[:1] == whole
    assert [(line.name, line.tasks) for line in lines] == [("greedy", 40), ("greedy, even", 20), ("greedy, odd", 20)]
    for line, first in zip(lines[1:], (0, 1), strict=True):
        right = {who: np.array(sheets[who].tally.greedy)[first::2] for who in sheets}
        assert line.base.value == right[BARE].mean()
        assert line.mean is not None and line.mean.gain is not None and line.vote is not None
        students = np.stack([right[who] for who in of.members])
        assert line.mean.value == pytest.approx(students.mean())
        assert line.mean.gain.value == pytest.approx(students.mean() - right[BARE].mean())
        assert line.vote.value == pytest.approx((students.sum(axis=0) >= 2).mean())
    both = EvaluationReport("pico", {**HOW, "against": None}, (replace(report(of).benchmarks[0], lines=lines),), ())
    assert re.findall(r"HumanEval\+, greedy(?:, \w+)?", shown(both, 200)) == [
        "HumanEval+, greedy", "HumanEval+, greedy, even", "HumanEval+, greedy, odd",
    ]  # fmt: skip


# Gains


def test_gains_are_on_the_same_role():
    of = subjects(("a", Role.STUDENT, 1), ("a", Role.TEACHER, 1), ("b", Role.STUDENT, 1))
    assert rival(of, of.groups[2], "a") is of.groups[0]


@pytest.mark.parametrize(
    ("mine", "others", "told"),
    [
        (Role.STUDENT, (Role.TEACHER,), "the students of b cannot be compared with a, which has teachers"),
        (None, (Role.STUDENT, Role.TEACHER), "the single adapter b cannot be compared with a, which has students and"),
        (Role.TEACHER, (None,), "the teachers of b cannot be compared with a, which has a single adapter"),
    ],
)
def test_gains_on_another_role_are_refused_in_one_line(mine, others, told):
    of = subjects(("b", mine, 1), *(("a", role, 1) for role in others))
    with pytest.raises(InputError) as caught:
        rival(of, of.groups[0], "a")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


# Whose answers they are


def test_weights_that_count_otherwise_are_other_weights():
    marks = {fingerprint(each) for each in (STATE, replace(STATE, alpha=16.0), replace(STATE, rank=8))}
    assert len(marks) == 3
    assert fingerprint(replace(STATE, alpha=8)) == fingerprint(STATE)


# How far it is


def test_progress_is_said_every_ten_seconds_at_most(capsys):
    now = [100.0]
    progress = Progress("GSM8K", 400, 1_319, clock=lambda: now[0])
    for _ in range(60):
        now[0] += 0.5
        progress.more()
    assert capsys.readouterr().err.splitlines() == [
        f"redqueen: GSM8K: {done} of 1,319 answers, {seconds} s" for done, seconds in ((420, 10), (440, 20), (460, 30))
    ]


def test_what_is_quick_is_not_talked_about(capsys):
    now = [0.0]
    progress = Progress("GSM8K", 0, 19, clock=lambda: now[0])
    for _ in range(19):
        now[0] += 0.5
        progress.more()
    assert capsys.readouterr().err == ""
