"""The bare base as a ruler: it attempts the step's tasks, what it solves is recorded, and the race does not notice."""

import asyncio
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

import redqueen.loop as loop
from loop.making import at_the_start, clock, listening, race_to_the_end, same_weights, settings
from loop.scripted import NoVerifier
from redqueen.engine.protocol import SampleRequest, Stop
from redqueen.keys import key
from redqueen.loop import one_step
from redqueen.phases.ruler import ruler
from redqueen.runs.metrics import RULER
from redqueen.settings import dump
from redqueen.tasks.protocol import Attempt


def test_its_solve_rate_is_that_of_the_bare_bases_attempts_and_is_journalled(monkeypatch):
    of = settings(changes={"run": {"ruler_every": 1}})
    seen = []

    async def noted(race, step, rollouts):
        seen.append((race, step, rollouts))
        return await ruler(race, step, rollouts)

    async def lead(race, state, engine):
        _, rows = await one_step(race, state, clock(1))
        right = defaultdict(list)
        for row in rows.tasks:
            task, kind = race.families.restore(row.record), race.kinds[row.kind]
            requests = [
                SampleRequest(
                    prompt=race.tokens(kind.solve_prompt(task)),
                    key=key(of.run.seed, 1, "ruler", row.place, number),
                    max_tokens=of.tasks.attempt_tokens,
                )
                for number in range(of.tasks.attempts)
            ]
            attempts = [Attempt(task, s.text, s.stop is Stop.LENGTH) for s in await engine.sample(requests)]
            for verdict in await kind.grade(attempts, race.verifier):
                right[""].append(verdict.correct)
                right[row.kind].append(verdict.correct)
        [(_, step, rollouts)] = seen
        again = await ruler(replace(race, verifier=NoVerifier()), step, rollouts)
        return rows, {kind: sum(own) / len(own) for kind, own in right.items()}, again

    monkeypatch.setattr(loop, "ruler", noted)
    with at_the_start(of) as (race, state, engine):
        rows, expected, again = asyncio.run(lead(race, state, engine))
    recorded = {row.kind: row.value for row in rows.metrics if row.name == RULER.name}
    assert recorded == again == expected, "the verdicts of a step that is done again are in the journal"
    assert recorded.keys() == {"", "code_o"} and 0 < recorded[""] < 1
    assert {row.subject for row in rows.metrics if row.name == RULER.name} == {"race"}


def test_the_race_is_what_it_is_without_it(place: Path):
    changes = {"steps": 3, "keep_last": 3}
    plain = race_to_the_end(place / "unruled", settings(changes={"run": changes}))
    with listening() as asked:
        ruled = race_to_the_end(place / "ruled", settings(changes={"run": {**changes, "ruler_every": 2}}))
    tables = dict(ruled.tables)
    own = [row for row in tables["metrics"] if row["name"] == RULER.name]
    assert {row["step"] for row in own} == {2}
    tables["metrics"] = [row for row in tables["metrics"] if row["name"] != RULER.name]
    assert tables == plain.tables, "its tokens, operations and runs are on nobody's account either"
    for id, member in plain.members(3).items():
        assert same_weights(member, ruled.members(3)[id])
    tasks, attempts = len(ruled.rows("tasks", step=2)), ruled.settings.tasks.attempts
    assert tasks * attempts in [len(call) for call in asked.samples if {request.member for request in call} == {None}]
    assert {row["phase"] for row in ruled.rows("timings", step=2)} - {
        row["phase"] for row in ruled.rows("timings", step=1)
    } == {"ruler"}


def test_it_may_be_turned_on_when_a_run_goes_on(place: Path, redqueen):
    folder, file = place / "later", place / "later.toml"
    file.write_text(dump(settings()))
    assert redqueen("train", file, "--run", folder, "--quiet", "--run.steps", 1)[0] == 0
    assert redqueen("train", file, "--run", folder, "--quiet", "--run.steps", 2, "--run.ruler-every", 1)[0] == 0
    status, out, _ = redqueen("compare", folder)
    assert status == 0 and f"{RULER.title}, last quarter" in out
    assert f"{RULER.title} " in (folder / "report.md").read_text()


def test_a_step_without_tasks_has_nothing_to_measure(blank: str):
    of = settings(blank, {"run": {"ruler_every": 1}})

    async def lead(race, state):
        return (await one_step(race, state, clock(1)))[1]

    with at_the_start(of) as (race, state, _):
        rows = asyncio.run(lead(race, state))
    assert not rows.tasks
    assert RULER.name not in {row.name for row in rows.metrics}


@pytest.mark.parametrize("every", [-1, 0.5])
def test_what_cannot_be_is_refused(redqueen, place: Path, every: float):
    status, _, err = redqueen("train", "demo", "--run", place / "none", "--run.ruler-every", every)
    assert status == 2 and "run.ruler_every cannot be" in err and err.count("\n") == 1
