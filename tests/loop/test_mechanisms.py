"""What members get from each other, and what decides who is replaced: each mechanism is a switch."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from loop.making import (
    Ran,
    at_the_start,
    clock,
    listening,
    race_to_the_end,
    same_moments,
    same_weights,
    settings,
    untouched,
)
from loop.scripted import Script, proposal, race, riddle, state, tries
from redqueen.analysis.watch import Watch
from redqueen.commands.main import main
from redqueen.engine import peft
from redqueen.engine.protocol import MemberState, OptimiserState
from redqueen.errors import ConfigError
from redqueen.evals.subjects import find_subjects
from redqueen.evolution.consensus import pulled, soup
from redqueen.loop import one_step
from redqueen.phases.clock import Clock, Stopped
from redqueen.phases.evolve import evolve, take_back
from redqueen.phases.judge import judge
from redqueen.phases.learn import PATIENCE, learn
from redqueen.phases.pull import pull
from redqueen.phases.record import attempt_rows
from redqueen.phases.state import Health
from redqueen.phases.view import Quiet, StepSummary
from redqueen.population.members import Birth, Role
from redqueen.runs import CHECKPOINTS, benchmarks, checkpoints
from redqueen.runs.metrics import EFFECTIVE_SIZE, WEIGHT_DISTANCE
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.training import arms
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races
from redqueen.training.train import open_run, train

GRADES = ["CWWW", "CCWW", "CCCW", "CWWM"]


def two_students(changes=None, *, step: int = 9, born: int = 0, health: Health | None = None, **of_s1):
    """What t0, s0 and s1 come to, each student with four tasks; the batch by member."""
    engine = Script()
    of = race(changes, engine)
    where = state(health=health)
    members = [replace(one, birth=Birth(born)) if one.id == "s1" else one for one in where.population.members]
    where = replace(where, population=replace(where.population, members=tuple(members)))
    proposals = [riddle(place, group=place // 4, tokens=2) for place in range(8)]
    attempts = [one for place, grades in enumerate(GRADES) for one in tries(place, grades, tokens=3)]
    attempts += [one for place, grades in enumerate(GRADES, 4) for one in tries(place, grades, "s1", tokens=3, **of_s1)]
    done = asyncio.run(learn(of, where, step, judge(of, where, step, proposals, attempts)))
    return done, {id: [row for row in engine.batch if row.member == id] for id in ("t0", "s0", "s1")}


# Sharing


def test_a_student_also_learns_from_what_the_others_wrote_with_their_probabilities():
    _, alone = two_students(logprob=-0.7)
    _, shared = two_students({"rl": {"share": "students"}}, logprob=-0.7)
    assert {id: len(rows) for id, rows in alone.items()} == {"t0": 8, "s0": 16, "s1": 16}
    assert {id: len(rows) for id, rows in shared.items()} == {"t0": 8, "s0": 32, "s1": 32}
    for id in ("s0", "s1"):
        by_writer = Counter(row.logprobs[0] for row in shared[id])
        assert by_writer == {-0.5: 16, -0.7: 16}, "the weight's denominator is the writer's probability"
    assert {row.prompt for row in shared["s0"]} == {(place,) for place in range(8)}


@pytest.mark.parametrize("share", ["nobody", "teachers"])
def test_who_does_not_share_learns_from_its_own(share: str):
    assert len(two_students({"rl": {"share": share}})[1]["s0"]) == 16


def test_nobody_learns_from_a_member_that_has_lost_its_footing():
    changes = {"rl": {"share": "everybody"}, "guard": {"entropy_floor": 0.1}}
    done, batch = two_students(changes, logprob=-0.01)
    assert [skip.member for skip in done.skips] == ["s1"]
    assert {id: len(rows) for id, rows in batch.items()} == {"t0": 8, "s0": 16, "s1": 0}


# The length of a step


def test_a_newborn_begins_slowly_whatever_the_step():
    rl = {"rl": {"lr": 0.5, "warmup": 5}}
    rates = [two_students(rl, step=step, born=11)[0].lrs for step in (11, 12, 15, 16)]
    assert [rate["s1"] for rate in rates] == pytest.approx([0.1, 0.2, 0.5, 0.5])
    assert {rate["s0"] for rate in rates} == {0.5}


def test_a_half_life_is_of_the_race_whoever_is_young():
    rl = {"rl": {"lr": 0.5, "half_life": 10, "warmup": 5}}
    rates = [two_students(rl, step=step, born=11)[0].lrs for step in (11, 20, 30)]
    assert [rate["s0"] for rate in rates] == pytest.approx([0.5 * 0.5**1.1, 0.125, 0.0625])
    assert [rate["s1"] for rate in rates] == pytest.approx([0.5 * 0.5**1.1 / 5, 0.125, 0.0625])


def test_teachers_may_have_a_rate_and_a_temperature_of_their_own(tmp_path: Path):
    assert two_students({"rl": {"lr": 0.5, "teacher_lr": 0.1}})[0].lrs == pytest.approx(
        {"t0": 0.1, "s0": 0.5, "s1": 0.5}
    )
    with listening() as asked:
        race_to_the_end(tmp_path / "run", settings(changes={"rl": {"temperature": 0.9, "teacher_temperature": 0.6}}))
    heat = {request.member: request.temperature for batch in asked.samples for request in batch if request.member}
    assert heat == {"t0": 0.6, "t1": 0.6, "s0": 0.9, "s1": 0.9}


def test_a_handful_of_texts_makes_a_shorter_step():
    lrs = two_students({"rl": {"lr": 0.5, "full_rows": 32}})[0].lrs
    assert lrs == pytest.approx({"t0": 0.25, "s0": 0.5 * 0.5**0.5, "s1": 0.5 * 0.5**0.5})


# A member that is not fit to learn


def test_who_is_unfit_for_long_is_moved_towards_the_base_until_it_is_fit():
    of = settings(changes={"guard": {"entropy_floor": 100.0}, "tasks": {"prompts": 4}})

    async def lead(race, state, engine):
        for id in engine.members:
            member = engine.read(id)
            factors = {name: (a, torch.full_like(b, 2**-12)) for name, (a, b) in member.factors.items()}
            engine.write(id, replace(member, factors=factors))
        sizes = []
        for step in range(1, PATIENCE + 2):
            state, rows = await one_step(race, state, clock(step))
            sizes.append({float(b.mean()) for id in engine.members for _, b in engine.read(id).factors.values()})
        return sizes, state, rows

    with at_the_start(of) as (race, state, engine):
        sizes, state, _ = asyncio.run(lead(race, state, engine))
    assert sizes == [{2**-12}] * (PATIENCE - 1) + [{2**-13}] * 2
    assert set(state.health.unfit_steps.values()) == {1}


# Duplicates


@pytest.mark.parametrize(("duplicates", "reward"), [("near", -1.0), ("same", -1.0), ("unpaid", 0.0)])
def test_a_refused_duplicate_costs_what_the_settings_say(duplicates, reward: float):
    of = race()
    of = replace(of, guards=replace(of.guards, duplicates=duplicates))
    proposals = [proposal(0, Rejection(Reason.DUPLICATE)), proposal(1, Rejection(Reason.SYNTAX))]
    assert [one.reward for one in judge(of, state(), 1, proposals, [])] == [reward, -1.0]


# Replay


def test_students_attempt_recent_tasks_once_more_and_nobody_wins_by_it(tmp_path: Path):
    changes = {"run": {"steps": 3, "measure_every": 9}, "tasks": {"replay": 2}}
    with listening() as asked:
        ran = race_to_the_end(tmp_path / "run", settings(changes=changes))
    attempts = ran.rows("attempts")
    replays = [row for row in attempts if row["detail"].startswith("replays task ")]
    assert {row["step"] for row in replays} <= {2, 3} and replays
    known = {task["id"][:12]: task for task in ran.rows("tasks")}
    for row in replays:
        task = known[row["detail"].removeprefix("replays task ")]
        assert task["step"] < row["step"]
        assert 0 < task["solved"] < task["attempts"]
    own = {(row["step"], row["place"]) for row in attempts if row not in replays}
    assert own == {(task["step"], task["place"]) for task in ran.rows("tasks")}
    played = sum(row["attempts"] for row in ran.rows("matches"))
    assert played == len(attempts) - len(replays)
    again = {row["place"] for row in replays if row["step"] == 3}
    asked_again = [one for one in asked.samples[-1] if (one.member or "").startswith("s")]
    assert len(asked_again) == len([row for row in attempts if row["step"] == 3])
    prompts = {one.prompt for one in asked_again}
    texts = {(row.member, row.prompt) for row in asked.updates[-1] if row.prompt in prompts}
    own_tasks = sum(task["step"] == 3 for task in ran.rows("tasks"))
    assert again and len(prompts) > own_tasks, "some are of earlier steps"
    assert texts
    assert all(task["attempts"] == 4 for task in ran.rows("tasks"))


def test_a_replayed_attempt_keeps_what_its_verdict_says():
    refused = Verdict(grade=Grade.MALFORMED, reason=Reason.SYNTAX, detail="line 3")
    first, *_ = tries(0, "C")
    attempts = [replace(first, became=refused, replays=replays) for replays in (None, "0123456789abcdef")]
    attempts.append(replace(first, replays="0123456789abcdef"))
    details = [row.detail for row in attempt_rows(2, attempts)]
    assert details == ["line 3", "replays task 0123456789ab; line 3", "replays task 0123456789ab"]


# Trials


def test_in_a_trial_all_of_a_role_face_the_same_with_the_same_luck(tmp_path: Path):
    changes = {
        "run": {"steps": 2, "measure_every": 9},
        "evolution": {"every": 1, "trial": 4},
        "population": {"teachers": 2, "students": 3},
    }
    with listening() as asked:
        ran = race_to_the_end(tmp_path / "run", settings(changes=changes))
    _, of_students, of_teachers, of_panels, *_ = asked.samples
    for batch, members in ((of_students, {"s0", "s1", "s2"}), (of_teachers, {"t0", "t1"})):
        faced = {id: [(one.prompt, one.key) for one in batch if one.member == id] for id in members}
        assert len({tuple(own) for own in faced.values()}) == 1, "the same prompts and random numbers"
        assert sum(map(len, faced.values())) == len(batch)
    assert len(of_teachers) == 2 * 4
    assert {one.member for one in of_panels} == {"s0", "s1", "s2"}
    faced_by_each = {one.prompt for one in of_students if one.member == "s0"}
    judged_by = {"s0": len(faced_by_each), "s1": len(faced_by_each), "s2": len(faced_by_each), "t0": 4, "t1": 4}
    assert ran.figures("trial_tasks", 2) == judged_by
    worth = ran.figures("trial", 2)
    assert worth.keys() == {"t0", "t1", "s0", "s1", "s2"}
    assert all(0 <= worth[id] <= 1 for id in worth if id[0] == "s")
    assert all(-1 <= worth[id] <= 1 for id in worth if id[0] == "t")
    lowest = min(worth[id] for id in worth if id[0] == "s")
    assert {worth[event["dead"]] for event in ran.rows("events", role="student")} == {lowest}
    sampled = sum(row["tokens"] for row in ran.rows("attempts", step=2))
    assert ran.figures("sampled_tokens", 2)["race"] > sampled, "what a trial takes is accounted for"


# The mean of a role


def _spread(states) -> float:
    """The mean distance of the members' updates from their mean."""
    names = states[0].factors
    deltas = torch.stack([torch.cat([(b @ a).flatten() for a, b in (one.factors[n] for n in names)]) for one in states])
    return float((deltas - deltas.mean(0)).norm(dim=1).mean())


def test_members_that_are_pulled_come_nearer_with_their_moments():
    with at_the_start(settings(changes={"tasks": {"prompts": 4}, "rl": {"lr": 1e-2}})) as (race, state, engine):
        asyncio.run(one_step(race, state, clock(1)))
        states = [engine.read(id, optimiser=True) for id in ("s0", "s1", "t0", "t1")]
    assert _spread(states) > 0
    spreads = [_spread(pulled(states, way, states)) for way in (0.0, 0.1, 0.5, 1.0)]
    assert spreads[0] == _spread(states)
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[3] == pytest.approx(0, abs=1e-7)
    name = next(iter(states[0].factors))
    trained = [one.optimiser for one in states if one.optimiser is not None]
    assert len(trained) >= 2
    for half in (0, 1):
        mean = torch.stack([one.factors[name][half] for one in states]).mean(0)
        moment = torch.stack([one.exp_avg_sq[name][half] for one in trained]).mean(0)
        for before, after in zip(states, pulled(states, 0.25, states), strict=True):
            assert torch.allclose(after.factors[name][half], 0.75 * before.factors[name][half] + 0.25 * mean)
            assert (after.optimiser is None) == (before.optimiser is None)
            if before.optimiser is not None and after.optimiser is not None:
                assert after.optimiser.step == before.optimiser.step == 1
                expected = 0.75 * before.optimiser.exp_avg_sq[name][half] + 0.25 * moment
                assert torch.allclose(after.optimiser.exp_avg_sq[name][half], expected, rtol=1e-4, atol=1e-20)


def test_a_young_members_moments_stay_those_of_its_age_when_it_is_pulled():
    factors = {"layer": (torch.ones(1, 2), torch.ones(2, 1))}

    def member(steps: int) -> MemberState:
        # What Adam has after so many equal gradients of 1.
        first, second = (
            {name: (a * (1 - beta**steps), b * (1 - beta**steps)) for name, (a, b) in factors.items()}
            for beta in (0.9, 0.999)
        )
        return MemberState(1, 1.0, factors, OptimiserState(steps, first, second))

    members = [member(500), member(10)]
    for before, after in zip(members, pulled(members, 1.0, members), strict=True):
        assert before.optimiser is not None and after.optimiser is not None
        for own, moved in (
            (before.optimiser.exp_avg, after.optimiser.exp_avg),
            (before.optimiser.exp_avg_sq, after.optimiser.exp_avg_sq),
        ):
            assert torch.allclose(moved["layer"][0], own["layer"][0], rtol=1e-4)


def test_a_race_pulls_the_members_of_each_role_together_every_so_many_steps(tmp_path: Path):
    changes = {
        "run": {"steps": 2, "keep_last": 2, "measure_every": 1},
        "evolution": {"every": 0, "pull": 1.0, "pull_every": 2},
        "rl": {"lr": 1e-2},
    }
    watcher = Watcher()
    train(settings(changes=changes), tmp_path / "run", watcher)
    ran = Ran(tmp_path / "run", settings(changes=changes))
    apart, together = ran.members(1), ran.members(2)
    assert all(_spread([apart[f"{role}0"], apart[f"{role}1"]]) > 0 for role in "ts")
    assert all(same_weights(together[f"{role}0"], together[f"{role}1"]) for role in "ts")
    assert not same_weights(together["s0"], together["t0"]), "roles are not mixed"
    assert [summary.events for summary in watcher.seen] == [
        [],
        ["the teachers are averaged", "the students are averaged"],
    ]
    distances = ran.figures(WEIGHT_DISTANCE.name, step=2)
    assert [ran.figures("pull", step=step) for step in (1, 2)] == [{}, {"teacher": 1.0, "student": 1.0}]
    assert distances and all(distance > 0 for distance in distances.values()), "as far as they went apart"


class Watcher(Quiet):
    def __init__(self) -> None:
        self.seen: list[StepSummary] = []

    def step_done(self, summary: StepSummary) -> None:
        self.seen.append(summary)


def test_who_is_not_fit_to_learn_has_no_part_in_the_mean_and_is_moved_to_it():
    with at_the_start(settings(changes={"evolution": {"every": 0, "pull": 1.0, "pull_every": 1}})) as (
        race,
        state,
        engine,
    ):
        start, lost = engine.read("s0", optimiser=True), engine.read("s1", optimiser=True)
        far = {name: (a, b + 1) for name, (a, b) in lost.factors.items()}
        engine.write("s1", replace(lost, factors=far))
        pull(race, 1, state.population, {"s1"})
        assert same_weights(engine.read("s0"), start) and same_weights(engine.read("s1"), start)
        engine.write("s1", replace(lost, factors=far))
        pull(race, 1, state.population, {"s0", "s1"})
        assert not same_weights(engine.read("s0"), start), "of two that are not, the mean is what there is"


def test_members_that_are_pulled_learn_at_a_rate_of_their_own(tmp_path: Path):
    changes = {"rl": {"lr": 1e-3, "warmup": 0}, "evolution": {"every": 0, "pull": 1.0, "pull_rate": 1.5}}
    ran = race_to_the_end(tmp_path / "run", settings(changes=changes))
    rates = ran.figures("lr")
    assert rates and rates == pytest.approx(dict.fromkeys(rates, 1.5e-3))


@pytest.mark.parametrize("way", [0.0, 0.5])
def test_members_that_are_pulled_may_be_alike(way: float):
    # Nobody is updated, so all are alike.
    changes = {
        "run": {"measure_every": 1},
        "evolution": {"every": 0, "pull": way, "pull_every": 1},
        "guard": {"entropy_floor": 100.0},
    }
    with at_the_start(settings(changes=changes)) as (race, state, _):
        varied = Watch(1, {role: {EFFECTIVE_SIZE.name: 2.0, WEIGHT_DISTANCE.name: 1.0} for role in Role})
        _, rows = asyncio.run(one_step(race, replace(state, watch=varied), clock(1)))
    rang = {alarm.measure for alarm in rows.alarms} & {EFFECTIVE_SIZE.name, WEIGHT_DISTANCE.name}
    assert bool(rang) == (way == 0)


def test_what_cannot_be_averaged_is_refused():
    evolution = {"pull": 0.5, "every": 10, "operators": ["slot_noise", "spectral"]}
    with pytest.raises(ConfigError, match=r'"spectral" gives children other factors .*set evolution\.pull or '):
        read_rules(settings(changes={"evolution": evolution}))
    read_rules(settings(changes={"evolution": {**evolution, "operators": ["slot_noise", "layer_wise"]}}))
    read_rules(settings(changes={"evolution": {**evolution, "every": 0}}))


def test_the_soup_of_equals_is_what_they_are():
    with at_the_start(settings(changes={"rl": {"lr": 1e-2}})) as (race, state, engine):
        asyncio.run(one_step(race, state, clock(1)))
        one = engine.read("s0")
    made = soup([one, one, one])
    for name, (a, b) in one.factors.items():
        assert torch.allclose(made.factors[name][1] @ made.factors[name][0], b @ a, atol=1e-6)


def test_the_soup_of_students_that_are_one_has_what_was_found_of_them(tmp_path: Path):
    averaged = {"every": 0, "pull": 1.0, "pull_every": 2}
    ran = race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": 2}, "evolution": averaged}))
    asked = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "chat", "sha256": "1"}
    found = {"role": "student", "step": 2, "tasks": 9, "value": 0.25, "error": None, "tokens": 1, "base": 0.125}
    benchmarks.keep(ran.folder, [benchmarks.Result(**asked, **found, member="s0")])
    assert main(["export", str(ran.folder), "--member", "soup", "--to", str(tmp_path / "soup")]) == 0
    card = (tmp_path / "soup" / "README.md").read_text()
    assert "It is each of s0 and s1, which had just been averaged and are one." in card
    assert "| GSM8K (9 tasks), chat, greedy | 25.0 % | 12.5 % |" in card


def test_a_soup_is_exported_as_one_member_with_a_card(tmp_path: Path):
    ran = race_to_the_end(tmp_path / "run", settings(changes={"tasks": {"prompts": 4}, "rl": {"lr": 1e-2}}))
    assert main(["export", str(ran.folder), "--member", "soup", "--to", str(tmp_path / "soup")]) == 0
    made, (one, other) = peft.load(tmp_path / "soup"), (ran.members(1)[id] for id in ("s0", "s1"))
    assert made.rank == one.rank
    for name, (a, b) in made.factors.items():
        mean = sum(mine.factors[name][1] @ mine.factors[name][0] for mine in (one, other)) / 2
        assert torch.dist(b @ a, mean) <= 0.5 * torch.linalg.norm(mean) + 1e-9, "but for what truncation takes"
    assert "the mean of the updates of s0 and s1" in (tmp_path / "soup" / "README.md").read_text()
    assert find_subjects([str(ran.folder)], "students").notes == ()


def test_an_exam_says_that_averaged_students_are_one(tmp_path: Path):
    averaged = {"pull": 1.0, "pull_every": 1, "every": 0}
    changes = {"tasks": {"prompts": 4}, "rl": {"lr": 1e-2}, "evolution": averaged}
    ran = race_to_the_end(tmp_path / "run", settings(changes=changes))
    assert find_subjects([str(ran.folder)], "students").notes == ("s0, s1 have the same weights",)


# Events


def test_a_step_that_is_given_up_takes_its_events_back():
    of = settings(changes={"evolution": {"every": 1}, "rl": {"lr": 1e-2}, "tasks": {"prompts": 4}})
    stopping = False

    def stop() -> bool:
        return stopping

    class Stopper(Quiet):
        def phase(self, step: int, name: str) -> None:
            nonlocal stopping
            stopping = name == "match"

    async def lead(race, state, engine):
        state, _ = await one_step(race, state, clock(1))
        before = {id: engine.read(id, optimiser=True) for id in engine.members}
        evolved = await evolve(race, state)
        assert set(engine.members) != set(before), "children are there"
        assert any(member.optimiser is not None for member in evolved.dead.values()), "some of the dead have learnt"
        take_back(race, evolved)
        with pytest.raises(Stopped):
            await one_step(race, state, Clock(2, Stopper(), stop))
        return before, {id: engine.read(id, optimiser=True) for id in engine.members}

    with at_the_start(of) as (race, state, engine):
        before, after = asyncio.run(lead(race, state, engine))
    assert before.keys() == after.keys()
    for id, own in before.items():
        assert same_weights(own, after[id])
        assert (own.optimiser is None) == (after[id].optimiser is None)
        if own.optimiser is not None:
            assert own.optimiser.step == after[id].optimiser.step
            assert same_moments(own.optimiser, after[id].optimiser)


def test_a_run_whose_older_version_ended_a_step_with_events_does_not_begin_the_next_with_others(tmp_path: Path):
    changes = {"evolution": {"every": 1}, "population": {"teachers": 3, "students": 3}, "rl": {"lr": 1e-2, "warmup": 4}}
    of = settings(changes=changes)
    ran = race_to_the_end(tmp_path / "run", of)
    with open_run(of, ran.folder) as run, open_races([Start.of_run(of, read_rules(of), run)]) as stage:
        race, state, engine = stage.only.race, stage.only.state, stage.local
        evolved = asyncio.run(evolve(race, state))
        assert {event.role for event in evolved.events} == set(Role)
        record = replace(state, population=evolved.population).as_record()
        weights = {member.id: engine.read(member.id, optimiser=True) for member in evolved.population.members}
        modules, children = race.modules, [event.child.id for event in evolved.events]
    # As that version wrote it: events bear the step that they came after.
    del record["unfit_steps"]
    for grave in record["population"]["graves"]:
        grave["step"] = 1
    for member in record["population"]["members"]:
        member["birth"]["step"] = min(member["birth"]["step"], 1)
    checkpoints.save(ran.folder / CHECKPOINTS, 1, record, weights, base_name="chains", modules=modules)
    longer = race_to_the_end(ran.folder, settings(changes={**changes, "run": {"steps": 3}}))
    assert not longer.rows("events", step=2), "they have happened"
    rates = longer.figures("lr", 2)
    assert rates.keys() <= weights.keys()
    assert set(children) & rates.keys()
    assert rates == pytest.approx({id: 0.25e-2 if id in children else 0.5e-2 for id in rates}), "their first step"
    assert {row["role"] for row in longer.rows("events", step=3)} == set(Role)


def test_without_gradients_a_fresh_member_is_scattered_as_founders_are():
    changes = {"evolution": {"every": 1, "inject": True}, "rl": {"update": "none"}}

    async def lead(race, state, engine):
        # Nothing is as varied as this watch has seen, so both roles need new blood.
        varied = replace(state.watch, highest={role: {"effective_size": 2.0} for role in ("teacher", "student")})
        for id in ("t1", "s1"):
            engine.write(id, engine.read(id.replace("1", "0")))
        return await evolve(race, replace(state, step=1, watch=varied))

    with at_the_start(settings(changes=changes)) as (race, state, engine):
        evolved = asyncio.run(lead(race, state, engine))
        fresh = [event.child.id for event in evolved.events if not event.parents]
        assert len(fresh) == 2
        assert not any(untouched(engine.read(id)) for id in fresh)
        assert not same_weights(engine.read(fresh[0]), engine.read(fresh[1]))


# Arms


def test_an_arm_may_have_settings_of_its_own():
    of = settings()
    assert arms.apply(of, "population rl.share=students").rl.share == "students"
    wide = arms.apply(of, "single-wide rl.lr=0.5")
    assert (wide.rl.lr, wide.population.single) == (0.5, True)


def test_one_pair_may_have_what_the_population_is_asked_and_all_students_may_attempt_everything():
    of = settings(changes={"population": {"teachers": 4, "students": 4}})
    pair = arms.apply(of, "1t1s-wide")
    assert (pair.population.teachers, pair.population.students, pair.population.single) == (1, 1, False)
    assert pair.tasks.prompts == 4 * of.tasks.prompts
    assert arms.apply(of, "full-panel").match.maker == "all"
