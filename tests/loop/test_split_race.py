"""A race on a base whose weights are split over two processes."""

from pathlib import Path

from loop.making import CHANGES, race_to_the_end, same_weights, settings

SPLIT: CHANGES = {
    "run": {"steps": 2, "checkpoint_every": 1},
    "engine": {"tensor_parallel": 2},
    "population": {"teachers": 1, "students": 1},
    "tasks": {"kinds": ["code_o"], "seeds": "pico", "prompts": 2, "proposal_tokens": 128, "attempt_tokens": 96},
    "evolution": {"every": 2},
}


def test_a_race_that_was_stopped_goes_on_to_the_same_end(place: Path):
    whole = race_to_the_end(place / "split", settings("pico", SPLIT))
    half = settings("pico", SPLIT | {"run": {**SPLIT["run"], "steps": 1}})
    race_to_the_end(place / "split-resumed", half)
    resumed = race_to_the_end(place / "split-resumed", settings("pico", SPLIT))

    assert resumed.tables == whole.tables
    assert any(row["solved"] for row in whole.rows("tasks"))
    ours, theirs = whole.members(2), resumed.members(2)
    assert all(same_weights(ours[id], theirs[id]) for id in ours)
    began = whole.members(1)
    assert not any(same_weights(ours[id], began[id]) for id in ours.keys() & began.keys())
