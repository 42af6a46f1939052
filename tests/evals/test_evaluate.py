"""Evaluations during a race: on benchmarks, recorded, and without any influence on it."""

import pytest
import torch
from loop.making import at_the_start, race_to_the_end, random_base, settings

from redqueen.commands.main import main
from redqueen.errors import InputError
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.runs.metrics import BENCHMARK
from redqueen.runs.store import Store
from redqueen.settings import dump
from redqueen.training.rules import read_rules

STEPS = 2


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, slices):
    """A race whose members are evaluated on two benchmarks after every step, and the same race without."""
    folder = tmp_path_factory.mktemp("evaluated")
    torch.set_num_threads(1)
    both = {"every": 1, "suite": ["gsm8k", "mbpp_plus"], "items": 3, "prompts": "raw", "max_tokens": 8}
    for name, evals in (("with", {**both, "data": str(slices)}), ("without", {})):
        race_to_the_end(folder / name, settings(changes={"run": {"steps": STEPS}, "evals": evals}))
    return folder


def test_every_member_and_role_has_its_share_after_every_step_and_the_base_once(evaluated):
    with Store.read(evaluated / "with") as store:
        found = [(each.step, each.subject, each.kind) for each in store.metrics(BENCHMARK)]
        shares = {each.value for each in store.metrics(BENCHMARK)}
    members = ["s0", "s1", "t0", "t1", "student", "teacher"]
    both = ("gsm8k", "mbpp_plus")
    expected = [(step, who, name) for step in (1, 2) for who in members for name in both]
    expected += [(1, "base", name) for name in both]
    assert sorted(found) == sorted(expected)
    assert all(0 <= share <= 1 for share in shares)


def test_a_race_that_begins_to_evaluate_later_evaluates_the_base_too(tmp_path, slices):
    one = {"every": 1, "suite": ["gsm8k"], "items": 2, "prompts": "raw", "max_tokens": 8, "data": str(slices)}
    for steps, evals in ((1, {}), (2, one), (3, {**one, "suite": ["gsm8k", "mmlu"]})):
        race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": steps}, "evals": evals}))
    with Store.read(tmp_path / "run") as store:
        found = [(each.step, each.kind) for each in store.metrics(BENCHMARK, "base")]
    assert found == [(2, "gsm8k"), (3, "mmlu")]


def test_evaluating_changes_nothing_of_the_race(evaluated):
    weights = []
    for name in ("with", "without"):
        newest, _ = checkpoints.newest(evaluated / name / CHECKPOINTS)
        assert newest is not None
        weights.append({path.name: path.read_bytes() for path in sorted(newest.rglob("*.safetensors"))})
    assert weights[0] and weights[0] == weights[1]


def test_compare_shows_the_last_evaluation_and_calls_both_one_race(evaluated, capsys):
    assert main(["compare", str(evaluated / "with")]) == 0
    assert "slice of gsm8k, students, at the last look" in capsys.readouterr().out
    # The same race with the same seed, although members of one were evaluated.
    assert main(["compare", str(evaluated / "with"), str(evaluated / "without")]) == 2
    assert "a second look at one race" in capsys.readouterr().err


def test_a_benchmark_that_is_not_there_is_refused_before_anything_is_opened(tmp_path):
    of = settings(changes={"evals": {"every": 1, "suite": ["gsm8k"], "data": str(tmp_path)}})
    with pytest.raises(InputError, match=r"has no test\.jsonl\.gz") as caught:
        read_rules(of)
    assert "--evals.data" in caught.value.mend and " --data" not in caught.value.mend
    assert "every = 1" in dump(of)


@pytest.mark.parametrize(
    ("form", "evals", "looked_at"),
    [
        ("long", {}, ["humaneval_plus", "gsm8k"]),
        ("long", {"suite": ["gsm8k"]}, ["gsm8k"]),
        ("long", {"every": 0}, []),
        ("short", {}, []),
    ],
)
def test_what_is_at_hand_is_looked_at_unless_somebody_says_otherwise(form, evals, looked_at, slices, monkeypatch):
    of = settings(changes={"tasks": {"form": form}, "evals": evals})
    monkeypatch.setenv("REDQUEEN_BENCH", str(slices))
    assert [each.name for each in read_rules(of).benchmarks] == looked_at


def test_nothing_is_looked_at_that_would_have_to_be_fetched(tmp_path, slices, monkeypatch):
    of = settings(changes={"tasks": {"form": "long"}})
    monkeypatch.delenv("REDQUEEN_BENCH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_rules(of).benchmarks == ()
    (tmp_path / "some" / "gsm8k").mkdir(parents=True)
    (tmp_path / "some" / "gsm8k" / "test.jsonl.gz").write_bytes((slices / "gsm8k" / "test.jsonl.gz").read_bytes())
    monkeypatch.setenv("REDQUEEN_BENCH", str(tmp_path / "some"))
    assert [each.name for each in read_rules(of).benchmarks] == ["gsm8k"]


def test_data_that_are_named_must_be_there_and_those_that_are_not_hold_nothing_up(tmp_path, monkeypatch, capsys):
    of = settings(changes={"tasks": {"form": "long"}, "evals": {"data": str(tmp_path / "nowhere")}})
    with pytest.raises(InputError, match=r"has no test\.jsonl\.gz"):
        read_rules(of)
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "test.jsonl").write_text("junk")
    monkeypatch.setenv("REDQUEEN_BENCH", str(tmp_path))
    assert read_rules(settings(changes={"tasks": {"form": "long"}})).benchmarks == ()
    assert "members will not be evaluated on gsm8k: " in capsys.readouterr().err


def test_a_look_that_nobody_asked_for_is_every_twenty_steps_and_needs_a_base_for_chats(tmp_path, slices, monkeypatch):
    base = random_base(tmp_path / "base")
    tasks = {"form": "direct", "seeds": None}
    for evals, every in (
        ({}, None),
        ({"prompts": "raw"}, 20),
        ({"prompts": "raw", "data": str(slices)}, 20),
        ({"prompts": "raw", "every": 3}, 3),
    ):
        monkeypatch.setenv("REDQUEEN_BENCH", str(slices))
        with at_the_start(settings(str(base), {"tasks": tasks, "evals": evals})) as (race, _, _engine):
            assert (None if race.slices is None else race.slices.every) == every
    with (
        pytest.raises(InputError, match="has no chat template"),
        at_the_start(settings(str(base), {"tasks": tasks, "evals": {"data": str(slices), "every": 3}})),
    ):
        pass
