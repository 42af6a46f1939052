"""A short race on the base that comes with the package, in all three kinds, with events and a resume; and whether what
it pays for is what is learnt."""

from pathlib import Path
from typing import Any

import pytest
from chains import traced

from loop.making import CHANGES, Ran, race_to_the_end, same_weights, settings
from redqueen.rl import rewards

PICO: CHANGES = {
    "run": {"steps": 4, "checkpoint_every": 2, "measure_every": 2},
    "tasks": {
        "kinds": ["code_o", "code_i", "code_f"],
        "seeds": "pico",
        "prompts": 2,
        "proposal_tokens": 128,
        "attempt_tokens": 96,
    },
    "evolution": {"every": 1},
    "guard": {"held_out": ["pico"], "duplicates": "near"},
}


@pytest.fixture(scope="module")
def pico(place: Path) -> Ran:
    return race_to_the_end(place / "pico", settings("pico", PICO))


def test_a_race_on_pico_has_valid_tasks_of_every_kind_and_attempts_at_them(pico: Ran):
    tasks, rejected = pico.rows("tasks"), pico.rows("rejections")
    assert {task["kind"] for task in tasks} == {"code_o", "code_i", "code_f"}
    assert len(tasks) > 0.6 * (len(tasks) + len(rejected))
    assert any(0 < task["solved"] < task["attempts"] for task in tasks)
    assert {row["phase"] for row in pico.rows("timings")} >= {"propose", "verify", "solve", "grade", "update", "evolve"}


def test_members_learn_and_two_events_put_children_in_their_places(pico: Ran):
    events = pico.rows("events")
    assert {event["step"] for event in events} == {2, 4}
    assert {event["role"] for event in events} == {"teacher", "student"}
    began, ended = pico.members(2), pico.members(4)
    assert not any(same_weights(ended[id], began[id]) for id in began.keys() & ended.keys())


def test_a_race_that_was_stopped_between_its_events_goes_on_to_the_same_end(pico: Ran, place: Path):
    half = settings("pico", PICO | {"run": {**PICO["run"], "steps": 3}})
    race_to_the_end(place / "pico-resumed", half)
    resumed = race_to_the_end(place / "pico-resumed", settings("pico", PICO))
    assert resumed.tables == pico.tables
    ours, theirs = pico.members(4), resumed.members(4)
    assert ours.keys() == theirs.keys()
    assert all(same_weights(ours[id], theirs[id]) for id in ours)


# What pays is what is learnt

LEARNING: dict[str, Any] = {
    "run": {"steps": 5, "checkpoint_every": 5, "measure_every": 5},
    "population": {"teachers": 1, "students": 1},
    "engine": {"rank": 8},
    "tasks": {"prompts": 4, "proposals": 8, "attempts": 8},
    "rl": {"lr": 4e-3, "warmup": 1},
}


def share_of_traces(ran: Ran, step: int) -> float:
    """How often students work it out, which is what makes an answer right (tools/chains)."""
    texts = [attempt["text"] for attempt in ran.rows("attempts") if attempt["step"] == step]
    return sum(map(traced, texts)) / len(texts)


@pytest.mark.parametrize("sign", [1, -1])
def test_students_learn_what_pays_and_unlearn_it_when_the_rewards_sign_is_flipped(place: Path, monkeypatch, sign: int):
    paid = {grade: sign * reward for grade, reward in rewards.STUDENT.items()}
    monkeypatch.setattr(rewards, "STUDENT", paid)
    ran = race_to_the_end(place / f"learning{sign}", settings(changes=LEARNING))
    before, after = share_of_traces(ran, 1), share_of_traces(ran, 5)
    assert after > before + 0.3 if sign > 0 else after < before - 0.2
