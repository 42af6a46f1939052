"""A race that is killed with SIGKILL at any moment, and resumed, is the race that was left alone."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from kill import SETTINGS, Left, Trial
from runs.making import record

import redqueen
from redqueen.runs.store import Store
from redqueen.settings import Config

TOOL = Path(__file__).parents[2] / "tools" / "kill" / "kill.py"
RANDOM, EVERY = 2, 16


@pytest.fixture(scope="module")
def found():
    ended = subprocess.run(
        [sys.executable, str(TOOL), "--kills", str(RANDOM), "--every", str(EVERY), "--json"],
        env=os.environ | {"PYTHONPATH": str(Path(redqueen.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_killed_at_random_it_ends_with_the_same_members_and_records(found):
    assert len(found["random"]) == RANDOM
    for trial in found["random"]:
        assert trial["kills"], "it was killed"
        assert trial["differs"] == [], trial
    assert found["files"] == 4 * 2 + 2, "weights and settings of four members, the optimiser, the state"
    assert found["tables"] == 10


def test_killed_at_a_flush_or_a_rename_it_ends_with_the_same_members_and_records(found):
    assert found["calls"] > 40
    assert len(found["at_calls"]) >= found["calls"] // EVERY
    calls = {trial["kills"][0].rpartition(", ")[2].split()[0] for trial in found["at_calls"]}
    assert "fsync" in calls and calls & {"rename", "replace"}
    for trial in found["at_calls"]:
        assert trial["differs"] == [], trial


def test_what_is_killed_is_a_race_whose_members_learn_from_each_other_in_every_way(found):
    settings = Config.model_validate(tomllib.loads(SETTINGS))
    assert settings.rl.share == "students" and settings.evolution.pull > 0
    assert settings.evolution.pull_every < settings.run.steps
    assert found["trials"] == 4, "both roles, before the one event"
    assert found["replays"] > 0
    assert found["unfit"] > 0


def test_verdicts_are_not_kept_after_the_last_checkpoint(found):
    assert found["journal"] == 0


def test_only_what_refused_programs_returned_may_differ(tmp_path):
    """A program that is refused as nondeterministic need not return the same in the race that is done again."""
    [row] = record(1).rejections
    rows = [row, replace(row, runs=("f(1): ok:1 | ok:2",)), replace(row, program="other"), replace(row, detail="other")]
    left = []
    for number, each in enumerate(rows):
        folder = tmp_path / str(number)
        (folder / "checkpoints" / "step-000001").mkdir(parents=True)
        with Store.create(folder) as store:
            store.write(replace(record(1), rejections=[each]))
        left.append(Left.of(folder))
    assert [left[0].differences(each) for each in left] == [[], [], ["evidence"], ["rejections"]]


def test_what_differs_is_found():
    one = Left({"step-000003/members/s0": "a"}, {"tasks": "b", "matches": "c"}, 0)
    other = Left({"step-000003/members/s0": "A"}, {"tasks": "b", "matches": "C"}, 1)
    assert one.differences(one) == []
    assert one.differences(other) == ["journal", "matches", "step-000003/members/s0"]
    assert one.differences(Left({}, one.tables, 0)) == ["step-000003/members/s0"]
    assert Trial(1).differs == []
