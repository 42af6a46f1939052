"""Races from nothing to trained adapters, a step or three long: what they record, whom they train, what they refuse."""

import asyncio
import importlib.util
import json
import shutil
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
import torch

from loop.making import (
    CHANGES,
    Asked,
    Ran,
    at_the_start,
    clock,
    listening,
    race_to_the_end,
    same_weights,
    settings,
    untouched,
)
from redqueen.analysis.watch import Watch
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import ScoreRequest
from redqueen.engine.trainer import Trainer
from redqueen.loop import one_step
from redqueen.phases import diversity, propose
from redqueen.phases import evolve as evolving
from redqueen.phases.timeline import Timeline
from redqueen.population.members import SOLO, Role
from redqueen.rl.batch import MIN_ROWS
from redqueen.rl.rewards import STUDENT
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.runs.metrics import COMPUTE, DRIFT, EFFECTIVE_SIZE, FUNCTION_DISTANCE, METRICS
from redqueen.runs.records_file import RECORDS
from redqueen.runs.rows import StepRecord
from redqueen.runs.store import Store
from redqueen.tasks.code import CodeDraft
from redqueen.tasks.guards import Guards, read_patterns, set_aside
from redqueen.tasks.verdicts import VOID_ATTEMPT, Grade, Verdict
from redqueen.training import arms

PHASES = {"match", "propose", "verify", "solve", "grade", "update", "evolve", "measure", "record", "checkpoint"}
Runner = Callable[..., Ran]


@pytest.fixture(scope="module")
def race(place: Path) -> Runner:
    """Run a race on chains with some settings of its own."""

    def run(name: str, changes: CHANGES | None = None, arm: str | None = None) -> Ran:
        return race_to_the_end(place / name, arms.apply(settings(changes=changes), arm))

    return run


@pytest.fixture(scope="module")
def long_race(race: Runner) -> tuple[Ran, Asked]:
    """Three steps with an event before the third, and what the engine was asked."""
    with listening() as asked:
        ran = race(
            "long",
            {"run": {"steps": 3, "keep_last": 3}, "evolution": {"every": 2}, "oversight": {"every": 3}},
        )
    return ran, asked


@pytest.fixture
def ran(long_race: tuple[Ran, Asked]) -> Ran:
    return long_race[0]


# What a step is


def test_every_phase_of_every_step_is_timed(ran: Ran):
    for step in (1, 2, 3):
        timed = {row["phase"]: row["seconds"] for row in ran.rows("timings", step=step)}
        assert timed.keys() == PHASES
        assert all(seconds >= 0 for seconds in timed.values())
        assert min(timed[phase] for phase in ("propose", "solve", "update")) > 0.01


def test_every_step_has_a_timeline_that_agrees_with_its_timings(ran: Ran):
    for step in (1, 2, 3):
        timed = {row["phase"]: row["seconds"] for row in ran.rows("timings", step=step)}
        [row] = ran.rows("timelines", step=step)
        timeline = Timeline.of_record(json.loads(row["timeline"]))
        assert timeline.seconds == pytest.approx(sum(timed.values()) - timed["record"] - timed["checkpoint"], abs=0.25)
        spent: Counter[str] = Counter()
        for phase, began, ended in timeline.others:
            spent[phase] += ended - began
        for phase in ("update", "grade", "verify"):
            assert spent[phase] == pytest.approx(timed[phase], abs=0.05)
        assert max(timeline.proposals) > 1 and max(timeline.attempts) > 1
        assert len(row["timeline"]) < 1000


def test_every_proposal_is_a_task_or_a_rejection(ran: Ran):
    for step in (1, 2, 3):
        rows = ran.rows("tasks", step=step) + ran.rows("rejections", step=step)
        assert sorted(row["place"] for row in rows) == list(range(2 * 2 * 4))
        assert all(row["group_"] == row["place"] // 4 for row in rows)
        assert len(ran.rows("tasks", step=step)) > 8, "the base can propose"


def test_a_task_is_attempted_by_its_panel_as_often_as_the_settings_say(ran: Ran):
    played = {(row["step"], row["teacher"]): row["student"] for row in ran.rows("matches")}
    attempts = defaultdict(list)
    for row in ran.rows("attempts"):
        attempts[row["step"], row["place"]].append((row["student"], row["number"]))
    for task in ran.rows("tasks"):
        student = played[task["step"], task["teacher"]]
        assert sorted(attempts.pop((task["step"], task["place"]))) == [(student, number) for number in range(4)]
        assert task["attempts"] == 4
    assert not attempts, "nobody attempts what is no task"


def test_solve_rates_and_rewards_are_those_of_the_attempts(ran: Ran):
    for row in ran.rows("attempts"):
        assert row["reward"] == STUDENT[row["grade"]]
    correct = Counter((row["step"], row["place"]) for row in ran.rows("attempts", grade="correct"))
    for task in ran.rows("tasks"):
        assert task["solved"] == correct[task["step"], task["place"]]
        expected = 0 if task["trivial"] or not task["solved"] else 1 - task["solved"] / 4
        assert task["reward"] == pytest.approx(expected)
    assert 0 < sum(correct.values()) < len(ran.rows("attempts")), "some are solved and some are not"
    assert all(row["reward"] == -1 for row in ran.rows("rejections"))


def rows_expected(ran: Ran, step: int) -> dict[str, int]:
    """By member, how many of its texts are worth training on: those that differ from the mean of their prompt's."""
    groups = defaultdict(list)
    for row in ran.rows("tasks", step=step) + ran.rows("rejections", step=step):
        groups[row["teacher"], row["group_"]].append(row["reward"])
    for row in ran.rows("attempts", step=step):
        groups[row["student"], "at", row["place"]].append(row["reward"])
    count: Counter[str] = Counter()
    for (member, *_), rewards in groups.items():
        count[member] += sum(reward != mean(rewards) for reward in rewards)
    return {member: rows for member, rows in count.items() if rows >= MIN_ROWS}


def test_every_attempt_trains_and_a_task_whose_attempts_agree_costs_no_row(long_race: tuple[Ran, Asked]):
    ran, asked = long_race
    assert len(asked.updates) == 3
    for step, batch in enumerate(asked.updates, 1):
        assert Counter(row.member for row in batch) == rows_expected(ran, step)
    agreeing = [task for task in ran.rows("tasks") if task["solved"] in (0, 4)]
    assert agreeing, "there was something to leave out"
    assert all(isinstance(row.advantages, float) and row.advantages for batch in asked.updates for row in batch)


def test_who_has_too_little_to_learn_from_is_reported(ran: Ran):
    for step in (1, 2, 3):
        fit = rows_expected(ran, step)
        members = {row["subject"] for row in ran.rows("metrics", step=step, name="reward", kind="")} - set(Role)
        told = {row["subject"] for row in ran.rows("alarms", step=step, measure="rows")}
        assert told == members - fit.keys()
        updated = ran.figures("updated", step)
        assert updated == {member: float(member in fit) for member in members}


def test_members_learn(ran: Ran):
    trained = rows_expected(ran, 1)
    assert {"s0", "s1"} <= trained.keys()
    for id, member in ran.members(1).items():
        assert untouched(member) == (id not in trained)


def test_what_was_used_is_accounted_for(long_race: tuple[Ran, Asked]):
    ran, asked = long_race
    for step, batch in enumerate(asked.updates, 1):
        for name in (metric.name for metric in COMPUTE):
            used = ran.figures(name, step)
            # One run of each program, for what it does, is the race's own.
            own = len({json.loads(row["record"])["program"] for row in ran.rows("tasks") if row["step"] == step})
            assert used.pop("race") - own * (name == "verifier_runs") == sum(used.values()) > 0
        trained = Counter()
        for row in batch:
            trained[row.member] += len(row.completion)
        assert trained == Counter({id: n for id, n in ran.figures("trained_tokens", step).items() if id != "race"})
    assert sum(row["tokens"] for row in ran.rows("attempts", step=1)) == sum(
        tokens for id, tokens in ran.figures("sampled_tokens").items() if id.startswith("s")
    )


@pytest.mark.parametrize("kl", [0.0, 0.5])
def test_floating_point_operations_are_those_of_the_texts_with_each_prompt_once(race: Runner, kl: float):
    with listening() as asked:
        ran = race(f"flops-{kl}", {"rl": {"kl": kl}})
    [size] = asked.sizes

    def of(texts: list[tuple[tuple[int, ...], int]], token: int, head: int, pair: int) -> int:
        tokens, pairs, completions = 0, 0, 0
        for length in map(len, {prompt for prompt, _ in texts}):
            tokens, pairs = tokens + length, pairs + sum(range(1, length + 1))
        for prompt, length in texts:
            tokens, completions = tokens + length, completions + length
            pairs += sum(range(len(prompt) + 1, len(prompt) + length + 1))
        return token * tokens + head * size.head * completions + pair * size.attention * pairs

    for student in ("s0", "s1"):
        prompts = [request.prompt for call in asked.samples for request in call if request.member == student]
        assert len(set(prompts)) < len(prompts), "a prompt has several attempts"
        sampled = [(own.prompt, len(sample.tokens)) for own, sample in asked.answers if own.member == student]
        trained = [(row.prompt, len(row.completion)) for row in asked.updates[0] if row.member == student]
        expected = of(sampled, 2 * (size.blocks + size.adapter), 2, 4)
        expected += of(trained, 4 * size.blocks + 6 * size.adapter, 4, 12)
        expected += of(trained, 2 * size.blocks, 2, 4) if kl else 0
        assert ran.figures("flops")[student] == expected
        assert ran.figures("prompt_tokens")[student] == sum(map(len, set(prompts)))
        passed = sum(map(len, {prompt for prompt, _ in trained})) + sum(length for _, length in trained)
        assert ran.figures("update_tokens")[student] == passed


def test_every_metric_is_recorded_and_of_whom_and_by_kind_as_the_schema_says(ran: Ran):
    teachers = {row["teacher"] for row in ran.rows("matches")}
    members = teachers | {row["student"] for row in ran.rows("matches")}
    groups = {"race": {"race"}, "roles": set(Role), "members": members, "adapters": members}
    groups |= {"teachers": teachers, "students": members - teachers}
    recorded = {name: [row for row in ran.rows("metrics") if row["name"] == name] for name in METRICS}
    assert sum(map(len, recorded.values())) == len(ran.rows("metrics"))
    assert not recorded.pop("benchmark"), "nobody was evaluated"
    assert not recorded.pop("ruler"), "nor the base asked"
    assert not recorded.pop("trial") and not recorded.pop("trial_tasks"), "nor a trial held"
    assert not recorded.pop("pull"), "nor anybody averaged"
    for name in ("elsewhere", "elsewhere_length", "elsewhere_entropy"):
        assert not recorded.pop(name), "and the base knows nothing but the short form"
    assert not recorded.pop("guess_rate"), "which races of the default family alone do not record"
    assert {row["kind"] for row in recorded.pop("coverage")} == {""}, "nor cells by kind"
    for name, rows in recorded.items():
        subjects, of = {row["subject"] for row in rows}, METRICS[name].of.split(", ")
        assert subjects <= set().union(*(groups[each] for each in of)), name
        assert all(subjects & groups[each] for each in of), name
        assert {row["kind"] for row in rows} == {"", "code_o"} if METRICS[name].by_kind else {""}, name


def test_an_event_puts_a_child_into_a_seat_of_each_role(ran: Ran):
    events = ran.rows("events")
    assert [event["step"] for event in events] == [3, 3]
    assert {event["role"] for event in events} == {"teacher", "student"}
    before, after = ran.members(2), ran.members(3)
    for event in events:
        assert event["dead"] in before
        assert event["dead"] not in after
        assert event["child"] in after
    assert {row["teacher"] for row in ran.rows("matches", step=3)} == {id for id in after if id[0] == "t"}


def test_children_are_made_and_members_compared_where_the_base_is(monkeypatch):
    used: list[torch.device] = []

    def seen(function):
        def called(*arguments, **options):
            used.append(arguments[-1])
            return function(*arguments[:-1], torch.device("cpu"), **options)

        return called

    monkeypatch.setattr(diversity, "weight_cosines", seen(diversity.weight_cosines))
    monkeypatch.setattr(evolving, "breed", seen(evolving.breed))
    with at_the_start(settings(changes={"evolution": {"every": 1}})) as (race, state, _):
        assert race.device == torch.device("cpu")
        asyncio.run(evolving.evolve(replace(race, device=torch.device("meta")), replace(state, step=1)))
    assert used == [torch.device("meta")] * 2


def test_tasks_are_set_aside_for_a_person(ran: Ran):
    for task in ran.rows("tasks"):
        assert bool(task["oversight"]) == set_aside(3, 0, task["step"], task["place"])
    assert any(task["oversight"] for task in ran.rows("tasks"))


def test_the_verdicts_of_a_finished_race_are_not_kept_twice(ran: Ran):
    assert ran.rows("journal") == []


# A base that knows nothing


def test_a_race_in_which_nothing_is_valid_goes_on(place: Path, blank: str):
    kinds = ["code_o", "code_i", "code_f"]
    tasks = {"kinds": kinds, "prompts": 3, "seeds": None, "proposal_tokens": 12, "attempt_tokens": 12}
    changes = {"run": {"steps": 3}, "evolution": {"every": 2}, "tasks": tasks}
    ran = race_to_the_end(place / "blank-race", settings(blank, changes))
    assert ran.rows("tasks") == ran.rows("attempts") == []
    rejected = ran.rows("rejections")
    assert len(rejected) == 3 * 2 * 3 * 4
    assert Counter(row["kind"] for row in rejected) == dict.fromkeys(kinds, 3 * 2 * 4)
    assert all(row["reason"] and row["reward"] == -1 for row in rejected)
    assert {row["match_result"] for row in ran.rows("matches")} == {"student"}
    assert ran.figures("valid")["teacher"] == 0
    assert set(ran.alarms("rows")) >= {"t0", "t1"}
    assert len(ran.rows("events")) == 2
    assert {row["phase"] for row in ran.rows("timings", step=3)} == PHASES


# Shapes of the population


def test_a_panel_attempts_every_task_and_pays_its_teacher_by_all_attempts(race: Runner):
    ran = race("panel", {"match": {"panel": 2}})
    assert {(row["teacher"], row["student"]) for row in ran.rows("matches")} == {
        (teacher, student) for teacher in ("t0", "t1") for student in ("s0", "s1")
    }
    correct = Counter(row["place"] for row in ran.rows("attempts", grade="correct"))
    made = Counter((row["place"], row["student"]) for row in ran.rows("attempts"))
    for task in ran.rows("tasks"):
        assert [made[task["place"], student] for student in ("s0", "s1")] == [4, 4]
        assert (task["solved"], task["attempts"]) == (correct[task["place"]], 8)


@pytest.mark.parametrize(("teachers", "students"), [(4, 2), (2, 4)])
def test_everybody_plays_when_one_role_is_larger(race: Runner, teachers: int, students: int):
    changes = {"population": {"teachers": teachers, "students": students}}
    ran = race(f"{teachers}t{students}s", changes)
    matches = ran.rows("matches")
    assert {row["teacher"] for row in matches} == {f"t{seat}" for seat in range(teachers)}
    assert {row["student"] for row in matches} == {f"s{seat}" for seat in range(students)}
    assert len(ran.rows("tasks") + ran.rows("rejections")) == 4 * 2 * 4
    assert ran.members(1).keys() == {row[role] for row in matches for role in ("teacher", "student")}


# Ways to learn, and controls


@pytest.mark.parametrize("estimator", ["trr++", "grpo", "rloo", "dr_grpo"])
def test_students_learn_by_every_estimator(race: Runner, ran: Ran, estimator: str):
    with listening() as asked:
        other = race(f"by-{estimator}", {"rl": {"estimator": estimator}})
    [batch] = asked.updates
    rows = Counter(row.member for row in batch)
    attempts = Counter(row["student"] for row in other.rows("attempts"))
    for student in ("s0", "s1"):
        expected = attempts[student] if estimator == "trr++" else rows_expected(other, 1)[student]
        assert rows[student] == expected
        assert not untouched(other.members(1)[student])
        assert not same_weights(other.members(1)[student], ran.members(1)[student])


def test_a_price_on_leaving_the_base_is_put_on_every_token(race: Runner):
    with listening() as asked:
        ran = race("held", {"run": {"steps": 2}, "rl": {"kl": 0.5, "lr": 1e-2}})
    attempts = Counter(row["student"] for row in ran.rows("attempts", step=2))
    batch = asked.updates[1]
    for student in ("s0", "s1"):
        own = [row for row in batch if row.member == student]
        assert len(own) == attempts[student], "texts that agree are held to the base too"
        assert any(len(set(row.advantages)) > 1 for row in own if isinstance(row.advantages, tuple))
    assert all(len(row.advantages) == len(row.completion) for row in batch if isinstance(row.advantages, tuple))


def test_without_gradients_weights_change_at_events_alone(race: Runner):
    changes = {"run": {"steps": 3, "keep_last": 3}, "rl": {"update": "none"}, "evolution": {"every": 2}}
    with listening() as asked:
        ran = race("evolution-only", {**changes, "tasks": {"prompts": 1}})
    assert asked.updates == []
    first, second, third = (ran.members(step) for step in (1, 2, 3))
    assert not any(untouched(member) for member in first.values()), "founders differ, or no operator could do anything"
    assert first.keys() == second.keys()
    assert all(same_weights(first[id], second[id]) for id in first)
    assert {event["child"] for event in ran.rows("events")} == third.keys() - second.keys()
    assert all(same_weights(second[id], third[id]) for id in second.keys() & third.keys())
    assert ran.figures("trained_tokens", 3)["race"] == 0


@pytest.mark.parametrize("role", ["teacher", "student"])
def test_the_frozen_stay_as_they_began(race: Runner, role: str):
    changes = {"run": {"steps": 2}, "evolution": {"every": 1}, "tasks": {"prompts": 3}}
    ran = race(f"frozen-{role}s", changes, f"frozen-{role}s")
    members = ran.members(2)
    for seat in (0, 1):
        assert untouched(members[f"{role[0]}{seat}"])
    assert {event["role"] for event in ran.rows("events")} == {"student", "teacher"} - {role}
    assert not all(untouched(member) for member in members.values()), "the others learn"


def test_a_single_agent_is_one_unrated_adapter_trained_in_both_roles(race: Runner):
    with listening() as asked:
        ran = race("single", {"run": {"steps": 2}, "tasks": {"prompts": 4}, "evolution": {"every": 1}}, "single")
    assert ran.members(2).keys() == {SOLO}
    assert ran.rows("events") == []
    assert ran.figures("mu", 2) == ran.figures("sigma", 2) == {}
    state = json.loads((ran.folder / CHECKPOINTS / checkpoints.name(2) / "state.json").read_text())
    assert len({str(member["rating"]) for member in state["state"]["population"]["members"]}) == 1
    requests = [request for call in asked.samples for request in call]
    assert {request.member for request in requests} == {SOLO, None}, "None: the base writes what drift is measured on"
    for step, batch in enumerate(asked.updates, 1):
        assert len(batch) == sum(rows_expected(ran, step).values())
    first = [request.prompt for request in asked.samples[0]]
    proposals = first[: 4 * 4]
    prompts = set(proposals), set(first) - set(proposals)
    assert all(any(row.prompt in some for row in asked.updates[0]) for some in prompts), "as teacher and as student"


def test_a_wide_single_agent_samples_what_the_population_does(race: Runner, long_race: tuple[Ran, Asked]):
    with listening() as asked:
        ran = race("wide", None, "single-wide")
    population = long_race[1].samples
    for requests, of in ((asked.samples[0], ran), (population[0], long_race[0])):
        spare = [row for row in of.rows("rejections", step=1) if row["detail"].startswith("another proposal")]
        assert len(requests) == 2 * 2 * 4 + 4 * (len(of.rows("tasks", step=1)) + len(spare))


def test_shuffled_rewards_change_what_is_learnt_and_nothing_else(race: Runner, ran: Ran):
    shuffled = race("shuffled", None, "shuffled-rewards")
    for table in ("matches", "attempts", "rejections"):
        assert shuffled.rows(table) == ran.rows(table, step=1)
    for id in ("s0", "s1"):
        assert not untouched(shuffled.members(1)[id])
        assert not same_weights(shuffled.members(1)[id], ran.members(1)[id])


# Guards


def test_a_member_below_the_entropy_floor_is_left_as_it_is_and_reported(race: Runner):
    ran = race("certain", {"guard": {"entropy_floor": 100.0}})
    assert all(untouched(member) for member in ran.members(1).values())
    assert ran.figures("updated") == dict.fromkeys(("t0", "t1", "s0", "s1"), 0.0)
    alarms = ran.rows("alarms", measure="entropy")
    assert {row["subject"] for row in alarms} == {"t0", "t1", "s0", "s1"}
    entropy = ran.figures("entropy")
    for row in alarms:
        assert (row["value"], row["floor"]) == (entropy[row["subject"]], 100.0)
        assert row["says"].startswith(f"{row['subject']} was not updated: its entropy is ")


def test_a_member_whose_texts_come_to_nothing_any_more_is_left_as_it_is_and_reported():
    of = settings(changes={"guard": {"valid_floor": 0.5}})

    async def lead(race, state, engine):
        state, _ = await one_step(race, state, clock(1))
        before = {id: engine.read(id) for id in engine.members}
        nothing_goes = replace(race, guards=Guards(deny=read_patterns(["."]), shortcuts="allow"))
        _, rows = await one_step(nothing_goes, state, clock(2))
        return before, {id: engine.read(id) for id in engine.members}, rows

    with at_the_start(of) as (race, state, engine):
        before, after, rows = asyncio.run(lead(race, state, engine))
    assert {(row.subject, row.value, row.floor) for row in rows.alarms if row.measure == "valid"} == {
        ("t0", 0.0, 0.5),
        ("t1", 0.0, 0.5),
    }
    assert all(row.reason == "denied" for row in rows.rejections)
    assert all(same_weights(before[id], after[id]) for id in before), "students had nothing to learn from"


def test_the_prompts_of_a_step_are_encoded_while_members_learn_in_the_one_before(monkeypatch):
    happened: list[str] = []
    encoded = threading.Event()
    update = Trainer.update

    def learn(*arguments):
        happened.append("update begins")
        assert encoded.wait(20)
        return update(*arguments)

    def encode(text):
        if happened:
            encoded.set()
        return race.encode(text)

    monkeypatch.setattr(Trainer, "update", learn)
    with at_the_start(settings(changes={"run": {"steps": 9}})) as (race, state, _):
        asyncio.run(one_step(replace(race, encode=encode), state, clock(1)))
    assert happened == ["update begins"]


@pytest.mark.parametrize("steps", [1, 9])
def test_what_goes_wrong_with_the_next_step_is_its_own_matter(steps, monkeypatch):
    asked = []

    def askings(race, state, step, matches):
        asked.append(step)
        if step == 2:
            raise ValueError("not this one")
        return propose.askings(race, state, step, matches)

    monkeypatch.setattr("redqueen.phases.match.askings", askings)
    with at_the_start(settings(changes={"run": {"steps": steps}})) as (race, state, _):
        state, _ = asyncio.run(one_step(race, state, clock(1)))
        assert state.step == 1 and asked == ([1] if steps == 1 else [1, 2])
        with pytest.raises(ValueError, match="not this one"):
            asyncio.run(one_step(race, state, clock(2)))


class Turncoat:
    """A kind some of whose tasks fail their own truth when attempts are graded."""

    def __init__(self, kind) -> None:
        self._kind = kind

    def __getattr__(self, name: str):
        return getattr(self._kind, name)

    async def grade(self, attempts, verifier):
        turned = int(attempts[0].task.id, 16) % 2 == 0
        return [VOID_ATTEMPT] * len(attempts) if turned else await self._kind.grade(attempts, verifier)


def test_void_attempts_are_recorded_and_accounted_for_and_count_for_nothing_else():
    async def lead(race, state):
        turned = replace(race, kinds={name: Turncoat(kind) for name, kind in race.kinds.items()})
        with listening() as asked:
            _, rows = await one_step(turned, state, clock(1))
        return rows, asked

    with at_the_start(settings()) as (race, state, _):
        rows, asked = asyncio.run(lead(race, state))
    withdrawn = {row.place: row for row in rows.rejections if "its own truth" in row.detail}
    void = [row for row in rows.attempts if row.grade == "void"]
    assert withdrawn
    assert {row.place for row in void} == set(withdrawn)
    assert {row.reward for row in withdrawn.values()} == {-1.0}
    assert {(row.reward, row.reason) for row in void} == {(0.0, "nondeterministic")}
    assert sum(row.attempts for row in rows.tasks) == len(rows.attempts) - len(void)
    assert sum(meeting.attempts for meeting in rows.matches) == len(rows.attempts) - len(void)
    figures = {(row.subject, row.name): row.value for row in rows.metrics if not row.kind}
    for student in ("s0", "s1"):
        own = [row for row in rows.attempts if row.student == student]
        assert figures[student, "sampled_tokens"] == sum(row.tokens for row in own)
        assert figures[student, "reward"] == pytest.approx(mean(row.reward for row in own if row.grade != "void"))
    counted = Counter(row.student for row in rows.attempts if row.grade != "void")
    trained = Counter(row.member for batch in asked.updates for row in batch)
    assert all(trained[student] <= counted[student] for student in ("s0", "s1"))


class Copying:
    """A kind whose every proposal returns its input, and every second of whose attempts gives back what is shown."""

    def __init__(self, kind) -> None:
        self._kind = kind

    def __getattr__(self, name: str):
        return getattr(self._kind, name)

    def parse_proposal(self, text, context):
        return CodeDraft(self._kind.name, "def f(x):\n    return [*x]", ("(3, 4)",))

    async def grade(self, attempts, verifier):
        return [Verdict(grade=Grade.WRONG, shortcut=number % 2 == 0) for number, _ in enumerate(attempts)]


def copying(shortcuts: str) -> StepRecord:
    """One step of a race whose teachers write one thing, which a copy solves."""
    changes: CHANGES = {"tasks": {"kinds": ["code_i"]}, "guard": {"shortcuts": shortcuts}}

    async def lead(race, state):
        same = replace(race, kinds={name: Copying(kind) for name, kind in race.kinds.items()})
        return (await one_step(same, state, clock(1)))[1]

    with at_the_start(settings(changes=changes)) as (race, state, _):
        return asyncio.run(lead(race, state))


def test_what_a_copy_solves_is_refused_at_the_price_of_one_run_unless_it_is_allowed():
    refused, allowed = copying("refuse"), copying("allow")
    why = Counter((row.reason, row.detail) for row in refused.rejections if row.reason != "cut")
    assert why == {("shortcut", "copy"): len(allowed.tasks)}
    assert not refused.tasks

    def teacher_runs(rows: StepRecord) -> dict[str, float]:
        named = [row for row in rows.metrics if row.name == "verifier_runs"]
        return {row.subject: row.value for row in named if row.subject in ("t0", "t1")}

    more = {id: runs - teacher_runs(allowed)[id] for id, runs in teacher_runs(refused).items()}
    assert more == Counter(row.teacher for row in refused.rejections if row.reason == "shortcut")


def test_attempts_that_give_back_what_is_shown_are_counted():
    rows = copying("allow")
    figures = {(row.subject, row.kind): row.value for row in rows.metrics if row.name == "copies"}
    assert figures == {(who, kind): 0.5 for who in ("race", "s0", "s1") for kind in ("", "code_i")}


class Shuffling:
    """A kind whose every proposal is a program that returns a set's order."""

    def __init__(self, kind) -> None:
        self._kind = kind

    def __getattr__(self, name: str):
        return getattr(self._kind, name)

    def parse_proposal(self, text, context):
        return CodeDraft(self._kind.name, "def f(x):\n    return [*{'a', 'b', 'c', 'd', 'e', x}]", ("'f'",))


def test_a_nondeterministic_proposal_is_recorded_with_results_that_differ(tmp_path):
    async def lead(race, state):
        shuffling = replace(race, kinds={name: Shuffling(kind) for name, kind in race.kinds.items()})
        _, rows = await one_step(shuffling, state, clock(1))
        return rows

    with at_the_start(settings()) as (race, state, _):
        rows = asyncio.run(lead(race, state))
    with Store.create(tmp_path) as store:
        store.write(rows)
        refused = list(store.rejections())
    assert refused == list(rows.rejections) and refused
    for row in refused:
        assert (row.reason, row.program[:9]) == ("nondeterministic", "def f(x):")
        assert len(set(row.runs[0].split(": ", 1)[1].split(" | "))) > 1


def test_a_race_whose_records_are_of_an_older_version_goes_on_and_ends_as_the_other_did(ran: Ran, place: Path):
    folder = shutil.copytree(ran.folder, place / "older")
    shutil.rmtree(folder / CHECKPOINTS / checkpoints.name(3))
    with closing(sqlite3.connect(folder / RECORDS)) as db:
        for table in ("evidence", "timelines", "workers", "worker_events"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 1")
    again = race_to_the_end(folder, ran.settings)
    assert again.tables == ran.tables
    assert again.rows("evidence") == ran.rows("evidence", step=3) != []


def test_a_member_whose_gradient_is_not_finite_is_left_as_it_is_and_reported():
    async def lead(race, state, engine):
        update, broken = engine.update, None

        async def overflowing(batch, recipe):
            nonlocal broken
            member = engine.read("s0")
            factors = {name: (a, b + 1e38) for name, (a, b) in member.factors.items()}
            engine.write("s0", replace(member, factors=factors))
            broken = engine.read("s0")
            return await update(batch, recipe)

        engine.update = overflowing
        _, rows = await one_step(race, state, clock(1))
        return broken, rows

    with at_the_start(settings()) as (race, state, engine):
        broken, rows = asyncio.run(lead(race, state, engine))
        after = {id: engine.read(id) for id in engine.members}
    [alarm] = [row for row in rows.alarms if row.measure == "grad_norm"]
    assert (alarm.subject, alarm.says) == ("s0", "s0 was not updated: its gradient is not finite")
    assert same_weights(after["s0"], broken)
    assert not untouched(after["s1"]), "the others learn"
    updated = {row.subject: row.value for row in rows.metrics if row.name == "updated"}
    assert (updated["s0"], updated["s1"]) == (0.0, 1.0)


def test_what_is_held_out_denied_or_too_long_is_refused_with_its_reason(race: Runner, ran: Ran, place: Path):
    first = ran.rows("tasks", step=1)
    short = [task for task in first if task["lines"] <= 5]
    known = json.loads(short[0]["record"])["program"]
    held_out = place / "held_out.py"
    held_out.write_text(known.replace("x", "y"))
    guard = {"held_out": [str(held_out)], "deny": [r"\+ [05]\b"], "max_lines": 5}
    guarded = race("guarded", {"guard": guard})
    refused = {row["place"]: row for row in guarded.rows("rejections")}
    expected = {}
    for task in first:
        program = json.loads(task["record"])["program"]
        if program == known:
            expected[task["place"]] = ("held_out", "a program of the held-out set, up to names and layout")
        elif "+ 0" in program or "+ 5" in program:
            expected[task["place"]] = ("denied", r"pattern 1: \\+ [05]\\b")
        elif task["lines"] > 5:
            expected[task["place"]] = ("too_complex", f"{task['lines']} lines, more than 5")
    assert {reason for reason, _ in expected.values()} == {"held_out", "denied", "too_complex"}
    before = {row["place"] for row in ran.rows("rejections", step=1)}
    assert {place: (row["reason"], row["detail"]) for place, row in refused.items() if place not in before} == expected
    assert {task["place"] for task in guarded.rows("tasks")} == {task["place"] for task in first} - expected.keys()


def test_a_role_that_has_become_too_much_alike_gets_a_fresh_member():
    # Nobody is updated, so all are alike; and all were different once, as far as the watch knows.
    changes = {"guard": {"entropy_floor": 100.0}, "evolution": {"every": 1, "inject": True}}

    async def lead(race, state):
        varied = Watch(1, {role: {EFFECTIVE_SIZE.name: 2.0} for role in Role})
        return await one_step(race, replace(state, step=1, watch=varied), clock(2))

    with at_the_start(settings(changes=changes)) as (race, state, engine):
        state, rows = asyncio.run(lead(race, state))
        members = engine.members
    assert [(event.role, event.operator, event.parents) for event in rows.events] == [
        ("teacher", None, ()),
        ("student", None, ()),
    ]
    assert {alarm.subject for alarm in rows.alarms if alarm.measure == EFFECTIVE_SIZE.name} == set(Role)
    assert set(members) == {member.id for member in state.population.members}


# Drift


def test_members_that_learn_drift_from_the_base_and_from_each_other(tmp_path: Path):
    ran = race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": 2}, "rl": {"lr": 1e-2}}))
    drifts = ran.figures(DRIFT.name, 2)
    learned = {row["subject"] for row in ran.rows("metrics", name="updated", value=1.0)}
    assert learned and all(drifts[adapter] > 0 for adapter in learned)
    assert ran.figures(FUNCTION_DISTANCE.name, 2).keys() == {str(role) for role in Role}


def test_members_that_learn_nothing_stay_where_the_base_is(tmp_path: Path):
    ran = race_to_the_end(tmp_path / "run", settings(changes={"rl": {"frozen": "students", "lr": 1e-2}}))
    drifts = ran.figures(DRIFT.name)
    assert {drift for member, drift in drifts.items() if member.startswith("s")} == {0.0}
    assert ran.figures(FUNCTION_DISTANCE.name)["student"] == 0.0 < max(drifts.values())


# Dashboards


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not installed")
def test_figures_go_to_tensorboard(place: Path, blank: str):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    changes = {"run": {"steps": 2}, "tasks": {"proposal_tokens": 8}, "track": {"to": ["tensorboard"]}}
    ran = race_to_the_end(place / "tracked", settings(blank, changes))
    logged = EventAccumulator(str(ran.folder / "tensorboard")).Reload()
    assert [event.step for event in logged.Scalars("t0/reward")] == [1, 2]
    assert [event.value for event in logged.Scalars("t0/reward")] == [-1, -1]


def test_the_temperature_of_the_settings_is_that_of_every_text(tmp_path, monkeypatch):
    scored: list[ScoreRequest] = []
    score = LocalEngine.score

    def heard(self, requests):
        scored.extend(requests)
        return score(self, requests)

    monkeypatch.setattr(LocalEngine, "score", heard)
    of = settings(changes={"rl": {"temperature": 0.7, "kl": 0.05}, "run": {"steps": 1, "measure_every": 10}})
    with listening() as asked:
        race_to_the_end(tmp_path / "run", of)
    assert scored
    assert {each.temperature for batch in (*asked.samples, *asked.updates) for each in batch} == {0.7}
    assert {each.temperature for each in scored} == {0.7}
