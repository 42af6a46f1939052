"""Members that have lost what no race asks: measured beside the base, called back, more careful from then on."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from loop.making import at_the_start, clock, random_base, same_weights, settings
from redqueen.engine.protocol import MemberState
from redqueen.loop import one_step
from redqueen.phases.elsewhere import BACK, REQUESTS, TOKENS, call_back, look_elsewhere
from redqueen.phases.record import summary
from redqueen.phases.state import Health, restored
from redqueen.population.members import Birth, Member, Role
from redqueen.runs.metrics import BASE, ELSEWHERE, ELSEWHERE_ENTROPY, ELSEWHERE_LENGTH
from redqueen.settings import Config

CEILING = 0.003
FAR = 30.0
"""What makes a base of no weight to speak of say something else."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_base(tmp_path_factory.mktemp("elsewhere") / "base")


def of(base: Path, ceiling: float = CEILING, form: str = "direct") -> Config:
    tasks = {"form": form, "seeds": None, "kinds": ["code_o"], "proposal_tokens": 8, "attempt_tokens": 8}
    return settings(str(base), {"guard": {"drift_ceiling": ceiling, "entropy_floor": 0.0}, "tasks": tasks})


def far(member: MemberState, by: float) -> MemberState:
    """With an update that no learning made."""
    torch.manual_seed(1)
    factors = {module: (a, by * torch.randn_like(b)) for module, (a, b) in member.factors.items()}
    return replace(member, factors=factors)


def test_who_has_learnt_nothing_is_where_the_base_is(base):
    with at_the_start(of(base)) as (race, state, engine):
        seen = asyncio.run(look_elsewhere(race, state.population))
        assert seen is not None
        assert seen.distance == dict.fromkeys(engine.members, 0.0)
        assert len(set(seen.length.values())) == len(set(seen.entropy.values())) == 1, "the base's among them"
        assert 0 < seen.length[None] <= TOKENS
        assert len(seen.probes) == len(REQUESTS)
        assert asyncio.run(call_back(race, state.population, seen)) == ()


def test_who_has_gone_too_far_is_called_back_and_the_others_are_left_alone(base):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        before = {id: engine.read(id) for id in engine.members}
        after, rows = await one_step(race, state, clock(1))
        now = {id: engine.read(id) for id in engine.members}
        return before, now, after, rows, await look_elsewhere(race, after.population)

    with at_the_start(of(base)) as (race, state, engine):
        before, now, after, rows, seen = asyncio.run(lead(race, state, engine))
        told = summary(race, after, rows, {}, [])
    [alarm] = [row for row in rows.alarms if row.measure == ELSEWHERE.name]
    assert (alarm.subject, alarm.floor) == ("s0", CEILING)
    assert alarm.value is not None and alarm.value > CEILING
    assert alarm.value == rows.figures("s0")[ELSEWHERE]
    assert alarm.says.startswith("s0 was ") and "learns at half its rate from now on" in alarm.says
    assert alarm.says in told.alarms
    assert (
        f"furthest from the base elsewhere is s0, {alarm.value:.2g} nats a token; 0.003 is the ceiling" in told.events
    )
    assert 0 < seen.distance["s0"] <= CEILING
    for module, (a, b) in now["s0"].factors.items():
        assert torch.equal(a, before["s0"].factors[module][0])
        kept = b / before["s0"].factors[module][1]
        assert kept.max() - kept.min() < 1e-6
        assert min(abs(float(kept.max()) - BACK**times) for times in range(1, 26)) < 1e-6
    assert all(same_weights(now[id], before[id]) for id in now if id != "s0")
    assert after.health.rates == {"s0": 0.5}
    assert rows.figures(BASE)[ELSEWHERE_LENGTH] == rows.figures("s1")[ELSEWHERE_LENGTH]
    assert rows.figures("s0")[ELSEWHERE_ENTROPY] != rows.figures(BASE)[ELSEWHERE_ENTROPY]


@pytest.mark.parametrize("rl", [{"frozen": "students"}, {"update": "none"}])
def test_who_does_not_learn_is_left_where_it_is(base, rl):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        before = engine.read("s0")
        after, rows = await one_step(race, state, clock(1))
        return before, engine.read("s0"), after, rows

    evolving = {"evolution": {"every": 10}} if "update" in rl else {}
    still = settings(str(base), {**of(base).model_dump(), "rl": rl, **evolving})
    with at_the_start(still) as (race, state, engine):
        before, now, after, rows = asyncio.run(lead(race, state, engine))
    assert same_weights(before, now)
    assert rows.figures("s0")[ELSEWHERE] > CEILING, "but it is seen"
    assert not [row for row in rows.alarms if row.measure == ELSEWHERE.name]
    assert after.health.rates == {}


def test_averaged_members_are_seen_as_they_go_on(base):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        alone = await look_elsewhere(race, state.population)
        after, rows = await one_step(race, state, clock(1))
        return alone, rows, await look_elsewhere(race, after.population)

    averaged = {"every": 0, "pull": 1.0, "pull_every": 1}
    with at_the_start(settings(str(base), {**of(base, 0.0).model_dump(), "evolution": averaged})) as (
        race,
        state,
        engine,
    ):
        alone, rows, after = asyncio.run(lead(race, state, engine))
    seen = {id: rows.figures(id)[ELSEWHERE] for id in ("s0", "s1")}
    assert alone.distance["s1"] == 0 < seen["s0"] < alone.distance["s0"]
    assert seen["s0"] == seen["s1"] == after.distance["s0"]


def test_averaged_members_beyond_the_ceiling_are_called_back_alike(base):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        after, rows = await one_step(race, state, clock(1))
        return after, rows, engine.read("s0"), engine.read("s1")

    averaged = {"every": 0, "pull": 1.0, "pull_every": 1}
    of_it = settings(str(base), {**of(base, 1e-4).model_dump(), "evolution": averaged})
    with at_the_start(of_it) as (race, state, engine):
        after, rows, one, other = asyncio.run(lead(race, state, engine))
    assert {row.subject for row in rows.alarms if row.measure == ELSEWHERE.name} == {"s0", "s1"}
    assert same_weights(one, other)
    assert after.health.rates == {"s0": 0.5, "s1": 0.5}


def test_who_cannot_be_brought_within_the_ceiling_is_said_to_be_beyond(base):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        return await one_step(race, state, clock(1))

    with at_the_start(of(base, 1e-6)) as (race, state, engine):
        _, rows = asyncio.run(lead(race, state, engine))
    [alarm] = [row for row in rows.alarms if row.measure == ELSEWHERE.name]
    assert "moved back to 0.0038 of its update" in alarm.says and "which is still beyond it," in alarm.says


@pytest.mark.parametrize(("ceiling", "form", "seen"), [(0.0, "direct", True), (CEILING, "short", False)])
def test_nobody_is_called_back_without_a_ceiling_or_by_a_base_that_knows_nothing_else(base, ceiling, form, seen):
    async def lead(race, state, engine):
        engine.write("s0", far(engine.read("s0", optimiser=True), FAR))
        return await one_step(race, state, clock(1))

    with at_the_start(of(base, ceiling, form)) as (race, state, engine):
        after, rows = asyncio.run(lead(race, state, engine))
        changed = engine.read("s0")
        assert same_weights(changed, far(changed, FAR))
    assert (ELSEWHERE in rows.figures("s0")) is seen
    assert not [row for row in rows.alarms if row.measure == ELSEWHERE.name]
    assert after.health.rates == {}


def test_a_child_is_as_careful_as_its_parents_and_a_checkpoint_remembers(base):
    health = Health().see({}, {}, ["s0"]).see({}, {}, ["s0", "s1"])
    assert health.rates == {"s0": 0.25, "s1": 0.5}

    def child(id: str, *parents: str) -> Member:
        return Member(id=id, role=Role.STUDENT, seat=id[:2], birth=Birth(step=2, operator="dare", parents=parents))

    health = health.born([child("s2.1", "s1", "s0"), child("s3.1", "s3"), child("s4.1")])
    assert health.rates == {"s0": 0.25, "s1": 0.5, "s2.1": 0.25}
    with at_the_start(of(base)) as (_, state, _engine):
        state = replace(state, health=health)
        again = restored(state.as_record(), state.board, state.archive, state.cells, state.behaviours)
        assert again.health == health
        older = {name: value for name, value in state.as_record().items() if name != "rates"}
        assert restored(older, state.board, state.archive, state.cells, state.behaviours).health.rates == {}
