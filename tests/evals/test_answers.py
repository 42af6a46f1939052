"""Answers on the disk, and the figures that are made of them."""

import itertools
import json
import math

import numpy as np
import pytest

from redqueen.analysis.resampling import DRAWS, Interval, between, paired, pass_at, resamples
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, SETTINGS, Answer, AnswerStore, note_settings
from redqueen.evals.figures import Sheet, Tally, accuracy, majority, measures, sheet
from redqueen.evals.protocol import Item
from redqueen.runs import benchmarks
from redqueen.runs.benchmarks import Result


def answer(item: str = "a", number: int = GREEDY, who: str = "s0", **more) -> Answer:
    about = {"text": "so 4", "tokens": 3, "cut": False, "answer": "4", "correct": True, "vote": "4"}
    return Answer(who=who, item=item, attempt=number, **{**about, **more})


# Answers on the disk


def test_what_was_kept_is_there_again(tmp_path):
    given = [
        answer(), answer("b", 0, text='\x00\ud800\n\r\u2028"', correct=False, vote=None),
        answer("b", 1, who="", parts={"base": True}, why="timeout", answer=None, cut=True),
    ]  # fmt: skip
    kept = AnswerStore(tmp_path, "own")
    for each in given:
        kept.add(each)
    kept.close()
    again = AnswerStore(tmp_path, "own")
    again.close()
    assert [*again.answers.values()] == given == [*kept.answers.values()]
    assert [*again.answers] == [("s0", "a", GREEDY), ("s0", "b", 0), ("", "b", 1)]


@pytest.mark.parametrize("left", [1, 10, 60])
def test_a_line_that_was_torn_is_dropped_and_the_rest_kept(tmp_path, left):
    path = tmp_path / "answers" / "own.jsonl"
    kept = AnswerStore(tmp_path, "own")
    for item in "abc":
        kept.add(answer(item))
    kept.close()
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    path.write_bytes(whole[: ends[1] + left])
    again = AnswerStore(tmp_path, "own")
    assert [item for _, item, _ in again.answers] == ["a", "b"]
    again.add(answer("c"))
    again.close()
    assert path.read_bytes() == whole


def test_a_file_of_nothing_but_a_torn_line_is_empty(tmp_path):
    path = tmp_path / "answers" / "own.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"who": "s')
    kept = AnswerStore(tmp_path, "own")
    kept.close()
    assert (kept.answers, path.read_bytes()) == ({}, b"")


@pytest.mark.parametrize("line", [b"{", b"3", b'{"who": "s0"}', b"\xff", b""])
def test_a_damaged_line_in_the_middle_is_named_in_one_line(tmp_path, line):
    path = tmp_path / "answers" / "own.jsonl"
    kept = AnswerStore(tmp_path, "own")
    for item in "abc":
        kept.add(answer(item))
    kept.close()
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], line, *lines[1:], b""]))
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        AnswerStore(tmp_path, "own")
    assert f"line 2 of {path} is not an answer" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


SETTLED = {"base": "pico", "temperature": 0.6, "benchmarks": {"gsm8k": {"sha256": "1", "max_tokens": 8}}}


def test_a_folder_is_settled_once_and_may_get_more(tmp_path):
    folder = tmp_path / "e"
    note_settings(folder, SETTLED)
    note_settings(folder, SETTLED)
    note_settings(folder, {**SETTLED, "benchmarks": {"mmlu": {"sha256": "2", "max_tokens": 8}}, "weights": {"s0": "f"}})
    noted = json.loads((folder / SETTINGS).read_text())
    assert noted["benchmarks"].keys() == {"gsm8k", "mmlu"}
    assert (noted["base"], noted["weights"]) == ("pico", {"s0": "f"})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"base": "chains"}, "another base (pico, not chains)"),
        ({"temperature": 1.0}, "another temperature (0.6, not 1.0)"),
        ({"quantise": "nf4"}, "another quantise (none, not nf4)"),
        ({"benchmarks": {"gsm8k": {"sha256": "9", "max_tokens": 8}}}, "another benchmarks.gsm8k.sha256 (1, not 9)"),
    ],
)
def test_a_folder_of_something_else_is_refused_in_one_line(tmp_path, change, told):
    note_settings(tmp_path / "e", SETTLED)
    before = (tmp_path / "e" / SETTINGS).read_bytes()
    with pytest.raises(InputError) as caught:
        note_settings(tmp_path / "e", {**SETTLED, **change})
    assert told in caught.value.what
    assert "\n" not in str(caught.value)
    assert "--to" in caught.value.mend
    assert (tmp_path / "e" / SETTINGS).read_bytes() == before


@pytest.mark.parametrize("text", ["{", "", "[]", "3", "null", "\x00"])
def test_settings_that_cannot_be_read_are_refused(tmp_path, text):
    (tmp_path / SETTINGS).write_text(text)
    with pytest.raises(InputError):
        note_settings(tmp_path, SETTLED)


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear all")
    with pytest.raises(InputError, match="holds no evaluation"):
        note_settings(tmp_path, SETTLED)


# Figures


def sheet_of(votes: str, right: str) -> Sheet:
    """Votes by letters, a dot for none, beside the letters that are right."""
    none = (0,) * len(votes)
    own = Tally(
        attempts=0,
        correct=none,
        greedy=tuple(mine == other for mine, other in zip(votes, right, strict=True)),
        well_formed=none,
        tokens=none,
    )
    found = tuple(None if each == "." else each for each in votes)
    return Sheet(tally=own, parts_N={}, votes=found, tokens=0, cut=0.0, unanswered=0.0)


def test_the_majority_is_what_most_of_those_say_who_say_something():
    right = "aaaaa"
    sheets = [sheet_of(votes, right) for votes in ("aab..", "aba..", "bbba.")]
    # aab: right; abb: wrong; bab: wrong; a alone: right; nobody: wrong.
    assert majority(sheets).tolist() == [1, 0, 0, 1, 0]


def test_a_tie_is_worth_the_mean_of_those_that_are_tied():
    sheets = [sheet_of(votes, "aaa") for votes in ("aab", "bbc", "bcc", "acb")]
    # aabb: a half; abcc: c leads, which is wrong; bccb: none of the two is right.
    assert majority(sheets).tolist() == [0.5, 0, 0]


def test_the_same_vote_may_be_right_for_one_and_wrong_for_another():
    one, other = sheet_of("a", "a"), sheet_of("a", "b")
    assert majority([one, other]).tolist() == [0.5]


def test_a_score_has_the_standard_error_of_its_mean():
    found = accuracy(np.array([1.0, 0, 0, 1, 1]))
    assert found.value == pytest.approx(0.6)
    assert found.error == pytest.approx(math.sqrt(0.3 / 5))
    assert found.gain is None
    assert accuracy(np.array([1.0])).error is None
    assert found.as_json() == {"value": found.value, "error": found.error}


def test_a_gain_is_paired_task_by_task():
    mine, other = np.array([1.0, 1, 0, 1]), np.array([0.0, 1, 0, 0])
    found = accuracy(mine, other)
    assert found.gain is not None and found.gain.value == pytest.approx(0.5)
    assert found.gain == paired(mine - other)
    same = accuracy(mine, mine).gain
    assert same == Interval(0, 0, 0)
    assert accuracy(np.array([1.0]), np.array([0.0])).gain == Interval(1, None, None)


def test_a_sheet_counts_attempts_tokens_and_what_was_cut():
    items = [Item("a", {}), Item("b", {})]
    given = [
        answer("a", parts={"base": True}), answer("b", correct=False, vote=None, answer=None, parts={"base": True}),
        answer("a", 0), answer("a", 1, correct=False, cut=True), answer("b", 0, correct=False, cut=True),
        answer("b", 1, correct=False), answer("c", 0), answer("a", who="s1", correct=False),
    ]  # fmt: skip
    found = sheet({each.id: each for each in given}, "s0", items, attempts=2)
    assert found.tally == Tally(attempts=2, correct=(1, 0), greedy=(True, False), well_formed=(2, 2), tokens=(6, 6))
    assert {name: values_N.tolist() for name, values_N in measures(found, k=2).items()} == {
        "greedy": [1, 0], "base tests alone": [1, 1], "avg@2": [0.5, 0], "pass@2": [1, 0]
    }  # fmt: skip
    assert (found.votes, found.tokens) == (("4", None), 18)
    assert (found.cut, found.unanswered) == (pytest.approx(2 / 6), pytest.approx(1 / 6))


def test_a_part_counts_only_where_every_task_has_it():
    given = [answer("a", parts={"base": True}), answer("b")]
    found = sheet({each.id: each for each in given}, "s0", [Item("a", {}), Item("b", {})], attempts=0)
    assert [*measures(found, k=0)] == ["greedy"]


# Resampling


@pytest.mark.parametrize(
    ("k", "attempts", "correct"), [(1, 4, 1), (2, 4, 1), (3, 5, 2), (5, 5, 1), (4, 6, 0), (2, 6, 5)]
)
def test_pass_at_k_is_the_share_of_choices_with_a_right_one(k, attempts, correct):
    choices = list(itertools.combinations([True] * correct + [False] * (attempts - correct), k))
    assert pass_at(k, attempts, correct) == pytest.approx(sum(map(any, choices)) / len(choices))


@pytest.mark.parametrize(("k", "attempts", "correct"), [(3, 2, 1), (0, 2, 1), (1, 2, 3), (1, 2, -1)])
def test_pass_at_k_of_something_impossible_is_refused(k, attempts, correct):
    with pytest.raises(InputError):
        pass_at(k, attempts, correct)


def test_resamples_are_weights_and_the_same_every_time():
    drawn = resamples(7)
    assert drawn.shape == (DRAWS, 7)
    assert drawn.sum(axis=1) == pytest.approx(np.ones(DRAWS))
    resamples.cache_clear()
    assert (resamples(7) == drawn).all()


def test_an_interval_is_that_of_the_normal_distribution_where_there_are_many_tasks():
    more_N = np.random.default_rng(3).normal(0.1, 1, 400)
    found = paired(more_N)
    half = 1.96 * more_N.std() / math.sqrt(400)
    assert found.value == pytest.approx(more_N.mean())
    assert found.low == pytest.approx(found.value - half, abs=0.1 * half)
    assert found.high == pytest.approx(found.value + half, abs=0.1 * half)


def test_what_is_the_same_for_every_task_is_sure():
    assert paired(np.full(20, 0.25)) == Interval(0.25, pytest.approx(0.25), pytest.approx(0.25))
    assert between(0.5, np.array([0.5]), 1) == Interval(0.5, None, None)


# Beside a run's records


def result(value: float, **more) -> Result:
    about = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "raw", "role": "student"}
    return Result(**{**about, "step": 2, "tasks": 5, "sha256": "1", "value": value, "error": 0.1, "tokens": 9, **more})


def test_a_run_keeps_the_last_result_of_each_measure_and_step(tmp_path):
    assert benchmarks.read(tmp_path) == []
    benchmarks.keep(tmp_path, [result(0.1), result(0.2, role="teacher"), result(0.6, member="s0")])
    benchmarks.keep(tmp_path, [result(0.3, step=4), result(0.4, prompts="chat"), result(0.5, tasks=1319)])
    benchmarks.keep(tmp_path, [result(0.7, role="teacher"), result(0.1, step=1)])
    assert [each.value for each in benchmarks.read(tmp_path)] == [0.1, 0.7, 0.6, 0.3, 0.4, 0.5, 0.1]
    newest = {(each.role, each.prompts, each.tasks): each.value for each in benchmarks.of_roles(tmp_path)}
    assert newest == {
        ("student", "raw", 5): 0.3,
        ("teacher", "raw", 5): 0.7,
        ("student", "chat", 5): 0.4,
        ("student", "raw", 1319): 0.5,
    }


def test_a_result_is_named_by_all_that_it_depends_on():
    assert result(0.1, tasks=1319).name == "GSM8K (1,319 tasks), raw, greedy, students"
    assert result(0.1, tasks=5, role=None).name == "GSM8K (5 tasks), raw, greedy"
    names = {result(0.1, **{name: "other"}).name for name in ("title", "measure", "prompts", "role")}
    assert len(names) == 4


def test_a_truncated_evaluation_does_not_take_the_place_of_a_whole_one(tmp_path):
    benchmarks.keep(tmp_path, [result(0.6), result(0.5, measure="avg@4")])
    benchmarks.keep(tmp_path, [result(0.1, max_tokens=16), result(0.4, measure="avg@4", temperature=1.0)])
    found = benchmarks.read(tmp_path)
    assert [each.value for each in found] == [0.6, 0.5, 0.1, 0.4]
    assert [each.name.partition("students")[2] for each in found] == ["", "", ", at most 16 tokens", ", temperature 1"]


def test_results_from_before_there_was_a_temperature_are_read(tmp_path):
    benchmarks.keep(tmp_path, [result(0.6)])
    [row] = json.loads((tmp_path / benchmarks.FILE).read_text())
    del row["temperature"], row["max_tokens"]
    (tmp_path / benchmarks.FILE).write_text(json.dumps([row]))
    assert benchmarks.read(tmp_path) == [result(0.6)]
    benchmarks.keep(tmp_path, [result(0.7)])
    assert [each.value for each in benchmarks.read(tmp_path)] == [0.7]


def test_results_of_two_slices_do_not_share_a_name():
    assert result(0.1, tasks=5).name != result(0.1, tasks=1319).name


@pytest.mark.parametrize("text", ["{", "[{}]", "[3]", "3", ""])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    (tmp_path / benchmarks.FILE).write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        benchmarks.read(tmp_path)
