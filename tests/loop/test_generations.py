"""Evolution alone: nothing is kept to train, founders stand near the base, a generation is one event, and whatever
begins again is the race that it was."""

from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from loop.making import CHANGES, Ran, at_the_start, race_to_the_end, same_weights, settings
from redqueen.commands.main import main
from redqueen.errors import ConfigError
from redqueen.phases.view import Quiet
from redqueen.population.members import Role
from redqueen.runs import CONFIG
from redqueen.runs.store import Store
from redqueen.settings import Config, load, load_run
from redqueen.training.setup import Start, open_races
from redqueen.training.train import Fork, train
from redqueen.ui.live import Plain

ALONE: CHANGES = {
    "run": {"steps": 3, "keep_last": 3},
    "evolution": {"every": 1},
    "rl": {"update": "none"},
    "tasks": {"prompts": 1, "proposals": 1, "attempts": 1},
}


def small(steps: int) -> list[tuple[str, str]]:
    """The preset, with fewer members and shorter texts."""
    return [
        ("run.steps", str(steps)), ("population.teachers", "20"), ("population.students", "20"), ("match.panel", "1"),
        ("tasks.prompts", "1"), ("tasks.proposal-tokens", "64"), ("tasks.attempt-tokens", "32"),
        ("run.keep-every", "1"), ("run.checkpoint-every", "1"), ("engine.device", "cpu"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def said() -> StringIO:
    return StringIO()


@pytest.fixture(scope="module")
def generations(place: Path, said: StringIO) -> Ran:
    """Three generations of the preset."""
    of, folder = load("generations", small(3)), place / "generations"
    train(of, folder, Plain(Console(file=said, width=200)))
    return Ran(folder, of)


def test_the_preset_is_a_hundred_members_for_fifty_generations():
    of = load("generations")
    assert of.population.teachers + of.population.students == 100
    assert (of.run.steps, of.evolution.every, of.rl.update) == (50, 1, "none")
    Start.new(of)


def test_a_generation_is_told_in_one_line(generations: Ran, said: StringIO):
    lines = [line for line in said.getvalue().splitlines() if "replaced" in line]
    assert lines == [
        "step 2: generation 2: 5 teachers and 5 students were replaced",
        "step 3: generation 3: 5 teachers and 5 students were replaced",
    ]
    assert "20 replacements in 2 events" in (generations.folder / "report.md").read_text()
    with Store.read(generations.folder) as store:
        assert [event.step for event in store.events()] == [2] * 10 + [3] * 10, "the records have who replaced whom"


def test_generations_that_were_stopped_go_on_to_the_same_end(generations: Ran, place: Path):
    folder = place / "generations-resumed"
    for steps in (2, 3):
        train(load("generations", small(steps)), folder, Quiet())
    resumed = Ran(folder, generations.settings)
    assert resumed.tables == generations.tables
    ours, theirs = generations.members(3), resumed.members(3)
    assert ours.keys() == theirs.keys() and len(ours) == 40
    assert all(same_weights(ours[id], theirs[id]) for id in ours)


def test_every_founder_changes_every_weight_by_its_share(generations: Ran):
    born = {event["child"] for event in generations.rows("events")}
    founders = {id: state for id, state in generations.members(2).items() if id not in born}
    with open_races([Start.new(generations.settings)]) as stage:
        for state in founders.values():
            for name, (a_R_I, b_O_R) in state.factors.items():
                update = state.alpha / state.rank * b_O_R @ a_R_I
                assert float(update.norm()) == pytest.approx(0.03 * stage.local.norms[name], rel=1e-3)


def test_an_engine_keeps_room_to_train_where_somebody_trains():
    for update, trains in (("none", False), ("reinforce", True)):
        with at_the_start(settings(changes={**ALONE, "rl": {"update": update}, "tasks": {}})) as (_, _, engine):
            assert (engine.bank.trains, engine.plan.trained_member > 0) == (trains, trains)
    alone, beside = settings(changes=ALONE), settings(changes={**ALONE, "rl": {}, "tasks": {}})
    with open_races([Start.new(alone, "a/"), Start.new(beside, "b/")]) as stage:
        assert stage.local.bank.trains, "one of two races on it does"


def test_a_plan_says_what_scoring_takes_where_nothing_trains(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [word for name, value in small(1) for word in (f"--{name}", value)]
    assert main(["train", "generations", "--plan", *words]) == 0
    said = capsys.readouterr().out
    assert "with scoring" in said and "with an update" not in said


def test_a_fork_of_members_that_learnt_leaves_their_optimisers_behind(place: Path):
    learnt: CHANGES = {"run": {"steps": 1}, "evolution": {"every": 1}}
    source = race_to_the_end(place / "alone-learnt", settings(changes=learnt))
    assert any(state.optimiser is not None for state in source.members(1).values())
    whole, parts = place / "alone-fork", place / "alone-fork-resumed"
    alone = {**ALONE, "tasks": {}}
    train(settings(changes=alone), whole, Quiet(), Fork(source.folder, 1))
    for steps in (2, 3):
        train(
            settings(changes={**alone, "run": {**ALONE["run"], "steps": steps}}), parts, Quiet(), Fork(source.folder, 1)
        )
    ours, theirs = Ran(whole, settings(changes=alone)), Ran(parts, settings(changes=alone))
    for step in (2, 3):
        assert all(state.optimiser is None for state in ours.members(step).values())
    assert ours.tables == theirs.tables
    assert all(same_weights(state, theirs.members(3)[id]) for id, state in ours.members(3).items())


def test_workers_have_the_founders_of_an_engine_here_and_keep_no_room_to_train_either(place: Path):
    of = {**ALONE, "run": {"steps": 2, "keep_last": 2}}
    here = race_to_the_end(place / "alone-here", settings(changes=of)).members(1)
    sharded = settings(changes={**of, "cluster": {"shards": 2}})
    there = race_to_the_end(place / "alone-sharded", sharded)
    assert all(same_weights(here[id], state) for id, state in there.members(1).items())
    assert len(there.rows("events")) == 2


def without_scatter(run: Ran) -> Path:
    """Its settings, as a version wrote them that had no such setting."""
    config = run.folder / CONFIG
    config.write_text("".join(line for line in config.open() if not line.startswith("scatter")))
    return config


def said_of(of: Config, folder: Path) -> str:
    said = StringIO()
    train(of, folder, Plain(Console(file=said, width=200)))
    return said.getvalue()


def test_an_older_run_goes_on_scattering_as_it_did(place: Path):
    older = race_to_the_end(place / "alone-older", settings(changes={**ALONE, "run": {"steps": 1}}))
    began = load_run(without_scatter(older))
    assert began.evolution.scatter == 0
    with at_the_start(began) as (race, _, _):
        drawn = torch.cat([b_O_R.flatten() for _, b_O_R in race.fresh(1).factors.values()])
    assert float(drawn.std()) == pytest.approx(0.1, rel=0.1)
    said = said_of(settings(changes={**ALONE, "run": {"steps": 2}}), older.folder)
    assert 'evolution.scatter stays "0", as in the version that began this run' in said
    assert {event["role"] for event in older.rows("events")} == set(Role)


def test_of_a_race_that_learns_nothing_is_said_of_scattering_and_none_may_be_asked_for(place: Path):
    older = race_to_the_end(place / "older-learning", settings())
    without_scatter(older)
    assert "scatter" not in said_of(settings(changes={"run": {"steps": 2}}), older.folder)
    with pytest.raises(ConfigError, match=r"members begin as the base; set evolution\.scatter to 0\.03"):
        Start.new(settings(changes={"evolution": {"scatter": 0.5}}))
