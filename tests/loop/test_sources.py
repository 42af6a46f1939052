"""Fixed sources in a race: students train on items that nobody proposed, and nobody is rated by them."""

import asyncio
import re
from pathlib import Path

import pytest

from loop.making import CHANGES, Ran, race_to_the_end, same_weights, settings
from redqueen.errors import ConfigError
from redqueen.phases.view import Quiet
from redqueen.settings import Config
from redqueen.tasks.soundness import check_source
from redqueen.training import sources
from redqueen.training.checks import check, with_kinds
from redqueen.training.train import train

DRAWN = f"{Path(__file__).parents[1]}/plugins/drawn.py"
ALONE: CHANGES = {
    "run": {"steps": 3, "checkpoint_every": 1, "measure_every": 2},
    "population": {"teachers": 0, "students": 2},
    "tasks": {
        "families": [f"{DRAWN}:Drawn"], "kinds": ["addition"], "seeds": "pico", "prompts": 2, "proposals": 3,
        "attempt_tokens": 24,
    },
}  # fmt: skip
BESIDE: CHANGES = ALONE | {
    "population": {"teachers": 1, "students": 2},
    "tasks": {
        **ALONE["tasks"], "families": ["code", f"{DRAWN}:Drawn"], "kinds": ["code_o", "addition"], "mix": [3, 1],
        "prompts": 4, "proposals": 4, "proposal_tokens": 96,
    },
}  # fmt: skip


def changed(changes: CHANGES, **sections: dict) -> Config:
    return settings("pico", {**changes, **{name: {**changes.get(name, {}), **own} for name, own in sections.items()}})


@pytest.fixture(scope="module")
def alone(place: Path) -> Ran:
    return race_to_the_end(place / "sources-alone", settings("pico", ALONE))


@pytest.fixture(scope="module")
def beside(place: Path) -> Ran:
    return race_to_the_end(place / "sources-beside", settings("pico", BESIDE))


def test_students_of_a_source_alone_attempt_its_items_and_learn(alone: Ran):
    tasks = alone.rows("tasks")
    assert [(task["step"], task["place"]) for task in tasks] == [
        (step, place) for step in (1, 2, 3) for place in range(6)
    ]
    assert {(task["kind"], task["teacher"], task["match"]) for task in tasks} == {("addition", "source", -1)}
    assert {task["attempts"] for task in tasks} == {8}, "four of each student"
    assert {row["student"] for row in alone.rows("attempts")} == {"s0", "s1"}
    assert len({task["id"] for task in tasks}) == len(tasks), "each step draws its own"
    assert {row["subject"] for row in alone.rows("metrics", name="reward", kind="addition")} == {"student", "s0", "s1"}
    assert {row["subject"] for row in alone.rows("metrics", name="solve_rate", kind="addition")} == {"race", "s0", "s1"}


def test_nobody_is_rated_without_teachers(alone: Ran):
    assert alone.rows("matches") == [] and alone.rows("metrics", name="mu") == []
    assert "25.0" not in (alone.folder / "report.md").read_text().split("## First quarter")[0]


def test_items_beside_teachers_tasks_move_no_rating_and_pay_no_teacher(beside: Ran):
    tasks = beside.rows("tasks")
    items = [task for task in tasks if task["teacher"] == "source"]
    assert {task["kind"] for task in items} == {"addition"} and {task["kind"] for task in tasks} == {
        "code_o",
        "addition",
    }
    assert len(items) == 3 * 4, "one prompt of four, in three steps"
    assert {task["reward"] for task in items} == {0.0}
    assert {match["kind"] for match in beside.rows("matches")} == {"code_o"}
    assert {row["kind"] for row in beside.rows("metrics", name="reward", subject="t0")} == {"", "code_o"}
    of_matches = sum(match["attempts"] for match in beside.rows("matches", step=1))
    right = sum(match["solved"] for match in beside.rows("matches", step=1))
    right_at_items = sum(task["solved"] for task in items if task["step"] == 1)
    [rate] = [row["value"] for row in beside.rows("metrics", name="solve_rate", step=1, subject="race", kind="")]
    assert rate == pytest.approx((right + right_at_items) / (of_matches + 8 * 4))


@pytest.mark.parametrize("name", ["alone", "beside"])
def test_a_race_with_a_source_that_was_stopped_goes_on_to_the_same_end(name: str, request, place: Path):
    whole: Ran = request.getfixturevalue(name)
    of = ALONE if name == "alone" else BESIDE
    folder = place / f"sources-{name}-resumed"
    race_to_the_end(folder, changed(of, run={"steps": 2}))
    resumed = race_to_the_end(folder, settings("pico", of))
    assert resumed.tables == whole.tables
    ours, theirs = whole.members(3), resumed.members(3)
    assert ours.keys() == theirs.keys() and all(same_weights(ours[id], theirs[id]) for id in ours)


def test_a_run_that_goes_on_does_not_check_its_sources_again(alone: Ran, place: Path, monkeypatch):
    folder = place / "sources-asked-once"
    race_to_the_end(folder, changed(ALONE, run={"steps": 1}))

    async def never(*_: object) -> None:
        raise AssertionError("it is checked again")

    monkeypatch.setattr(sources, "_refuse_unsound", never)
    race_to_the_end(folder, changed(ALONE, run={"steps": 2}))


def test_an_unsound_source_is_refused_before_the_first_step_unless_it_is_allowed(place: Path):
    own = {"families": [f"{DRAWN}:EverythingPays"]}
    with pytest.raises(ConfigError, match="fails the check") as refused:
        train(changed(ALONE, tasks=own), place / "sources-unsound", Quiet())
    assert "redqueen check" in refused.value.mend and "guard.sources" in refused.value.mend
    allowed = changed(ALONE, tasks=own, guard={"sources": "allow"}, run={"steps": 1})
    ran = race_to_the_end(place / "sources-allowed", allowed)
    assert {task["solved"] for task in ran.rows("tasks")} <= set(range(9))


def test_a_source_is_checked_with_answers_read_as_the_race_reads_them(place: Path, verifier):
    name = f"{DRAWN}:PaysUnfenced"
    assert asyncio.run(check_source(name, verifier)).failures == []
    failed = [row.check for row in asyncio.run(check_source(name, verifier, unfenced=True)).failures]
    assert "told apart" in failed and "processes" not in failed
    with pytest.raises(ConfigError, match="fails the check told apart"):
        train(changed(ALONE, tasks={"families": [name], "unfenced": True}), place / "sources-unfenced", Quiet())


def test_a_grader_that_raises_at_an_answer_refuses_that_one(place: Path):
    ran = race_to_the_end(place / "sources-raises", changed(ALONE, tasks={"families": [f"{DRAWN}:Raises"]}))
    raised = [row for row in ran.rows("attempts") if row["reason"] == "raises"]
    assert raised and {row["grade"] for row in raised} == {"wrong"}
    assert all(row["detail"].startswith("its grader raises ValueError") for row in raised)


def test_a_source_that_runs_answers_is_refused(place: Path):
    with pytest.raises(ConfigError, match="fails the check runs nothing"):
        train(changed(ALONE, tasks={"families": [f"{DRAWN}:RunsAnswers"]}), place / "sources-runs", Quiet())


def test_trials_replace_students_that_nobody_rates(place: Path):
    of = changed(ALONE, evolution={"every": 2, "trial": 2}, population={"teachers": 0, "students": 3})
    ran = race_to_the_end(place / "sources-trials", of)
    held = {row["value"] for row in ran.rows("metrics", name="trial_tasks")}
    assert bool(ran.rows("events")) == (held != {0.0} and bool(held)), "without a task to compare by nobody is replaced"


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"population": {"teachers": 2}}, "nobody proposes tasks of a fixed source, and population.teachers = 2"),
        ({"evolution": {"every": 5}}, "evolution.every = 5 goes by ratings, and without teachers nobody is rated"),
        ({"match": {"exclude": ["t0:s0"]}}, "match.exclude keeps seats apart"),
        (
            {"tasks": {"families": ["code"], "kinds": ["code_o"]}},
            "population.teachers = 0 leaves nobody to propose code_o",
        ),
        ({"tasks": {"families": ["rg"]}}, 'tasks.families cannot be "rg"'),
    ],
)
def test_what_a_race_with_sources_cannot_be_is_refused_in_a_line(sections: CHANGES, what: str):
    with pytest.raises(ConfigError, match=re.escape(what)) as refused:
        check(changed(ALONE, **sections))
    assert "\n" not in str(refused.value)


def test_teachers_that_would_be_asked_too_little_are_refused():
    with pytest.raises(ConfigError, match="too few for a teacher to learn from"):
        check(changed(BESIDE, tasks={"prompts": 2, "mix": [1, 3]}))


def test_the_kinds_of_sources_are_those_of_a_race_that_names_none():
    of = Config.model_validate({"tasks": {"families": ["code", f"{DRAWN}:Drawn"]}})
    assert with_kinds(of).tasks.kinds == ("code_o", "code_i", "code_f", "addition")
