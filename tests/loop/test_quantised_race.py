"""A race on a quantised base."""

import json
from pathlib import Path

import pytest

from loop.making import CHANGES, race_to_the_end, same_weights, settings
from redqueen.errors import UserError
from redqueen.runs.store import Store

NF4: CHANGES = {
    "run": {"steps": 2, "checkpoint_every": 1},
    "engine": {"quantise": "nf4"},
    "population": {"teachers": 1, "students": 1},
    "tasks": {"kinds": ["code_o"], "seeds": "pico", "prompts": 2, "proposal_tokens": 128, "attempt_tokens": 96},
    "evolution": {"every": 2},
}


def test_a_race_that_was_stopped_goes_on_to_the_same_end_and_in_no_other_way(place: Path, tmp_path, redqueen):
    whole = race_to_the_end(place / "nf4", settings("pico", NF4))
    half = settings("pico", NF4 | {"run": {**NF4["run"], "steps": 1}})
    folder = place / "nf4-resumed"
    race_to_the_end(folder, half)
    with pytest.raises(UserError, match=r"engine\.quantise"):
        race_to_the_end(folder, settings("pico", NF4 | {"engine": {"quantise": "none"}}))
    resumed = race_to_the_end(folder, settings("pico", NF4))

    assert resumed.tables == whole.tables
    assert any(row["solved"] for row in whole.rows("tasks"))
    ours, theirs = whole.members(2), resumed.members(2)
    assert all(same_weights(ours[id], theirs[id]) for id in ours)
    began = whole.members(1)
    assert not any(same_weights(ours[id], began[id]) for id in ours.keys() & began.keys())

    with Store.read(place / "nf4") as store:
        assert store.facts()["quantise"] == "nf4"
    export = ("export", folder, "--member", "student")
    status, _, errors = redqueen(*export, "--base", "org/pico", "--to", tmp_path / "adapter")
    assert (status, errors) == (0, "")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "org/pico"
    assert "stored in nf4" in (tmp_path / "adapter" / "README.md").read_text()
    status, out, errors = redqueen(*export, "--merged", "--to", tmp_path / "merged")
    assert (status, errors) == (0, "")
    assert "the base as it was before" in out
