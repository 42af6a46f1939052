"""Proposals are attempted as soon as they are verified; what depends on the whole step is settled by place."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tasks.proposing import fence, pair

from loop.making import race_to_the_end, settings
from loop.scripted import Script, race, sample, state
from redqueen.engine.protocol import Sample, SampleRequest
from redqueen.phases import propose
from redqueen.phases.clock import Stopped, shared_seconds
from redqueen.phases.exchange import Texts, exchange, settled
from redqueen.phases.propose import askings
from redqueen.phases.race import Race
from redqueen.population.matchmaking import Match
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.tasks.archive import Archive, Entry
from redqueen.tasks.code import FAMILY
from redqueen.tasks.guards import Guards
from redqueen.tasks.protocol import Form, Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Job, LocalVerifier, Outcome

ALONE = [Match("t0", ("s0", "s1"))]
ATTEMPTS = 2


class Writing(Script):
    """Teachers write these texts, one after the other; students answer 8."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = iter(texts)
        self.batches: list[Counter[str | None]] = []

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        self.batches.append(Counter(request.member for request in requests))
        return [
            sample(next(self._texts) if (request.member or "").startswith("t") else fence("output", "8"))
            for request in requests
        ]


def adds(number: int) -> str:
    return pair(f"def f(x):\n    return [x, x + {number}][1]", "1")


def raced(texts: Sequence[str], verifier: Any, changes: Mapping[str, Any] | None = None) -> tuple[Race, Writing]:
    engine = Writing(texts)
    tasks = {"prompts": 1, "proposals": len(texts), "kinds": ["code_o"], "attempts": ATTEMPTS}
    of = race({"tasks": tasks, **(changes or {})}, engine, verifier)
    return replace(of, kinds={"code_o": FAMILY.kinds(Form.SHORT)["code_o"]}), engine


def exchanged(of: Race, archive: Archive | None = None) -> Texts:
    where = state() if archive is None else replace(state(), archive=archive)

    async def lead() -> Texts:
        asked = askings(of, where, 1, ALONE)
        return await settled(of, where, 1, await exchange(of, where, 1, ALONE, asked, lambda: None))

    return asyncio.run(lead())


def test_each_task_is_attempted_by_its_panel_and_all_is_in_the_order_of_the_places(verifier):
    of, engine = raced([adds(1), "no task", adds(7)], verifier)
    texts = exchanged(of)
    assert [isinstance(each.became, Task) for each in texts.proposals] == [True, False, True]
    places = [(each.place, each.member, each.number) for each in texts.attempts]
    assert places == [(place, student, number) for place in (0, 2) for student in ("s0", "s1") for number in (0, 1)]
    assert [each.became.correct for each in texts.attempts] == [False] * 4 + [True] * 4
    assert engine.batches[0] == {"t0": 3} and sum(engine.batches[1:], Counter()) == {"s0": 4, "s1": 4}
    assert not texts.spare and texts.verifier_runs.keys() == {"t0", "s0", "s1"}
    known = {name for each in texts.proposals if isinstance(each.became, Task) for name in vars(each.became)}
    assert known >= {"shape_key", "descriptor", "complexity"}, "before anybody asks"


def test_proposals_are_checked_a_few_at_a_time(verifier, monkeypatch):
    texts = [adds(number) for number in (1, 2, 2, 3, 4, 5)]
    right = exchanged(raced(texts, verifier)[0])
    now = most = 0
    checked = propose.checked

    async def counted(*arguments):
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await checked(*arguments)
        finally:
            now -= 1

    monkeypatch.setattr(propose, "checked", counted)
    monkeypatch.setattr("redqueen.phases.exchange.CHECKED_AT_ONCE", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    mine = exchanged(raced(texts, verifier)[0])
    assert most == 2
    assert [each.became for each in mine.proposals] == [each.became for each in right.proposals]
    assert [each.place for each in mine.attempts] == [each.place for each in right.attempts]


def test_of_equal_proposals_the_first_by_place_stays_and_attempts_at_the_others_are_spare(verifier):
    of, _ = raced([adds(3), adds(3), adds(4)], verifier)
    texts = exchanged(of)
    refused = texts.proposals[1].became
    assert isinstance(refused, Rejection) and refused.reason is Reason.DUPLICATE
    assert {each.place for each in texts.attempts} == {0, 2}
    assert [each.place for each in texts.spare] == [1] * 2 * ATTEMPTS


def test_what_is_refused_whatever_else_is_proposed_is_not_attempted(verifier):
    first, _ = raced([adds(5), adds(6)], verifier)
    task, other = (each.became for each in exchanged(first).proposals)
    assert isinstance(task, Task) and isinstance(other, Task)
    known = Archive().add([Entry(task=task, step=1, teacher="t0", solved=1, attempts=2)])
    of, engine = raced([adds(5), adds(6), adds(8)], verifier)
    of = replace(of, guards=Guards(held_out=frozenset(other.part_keys)))
    texts = exchanged(of, known)
    reasons = [each.became.reason for each in texts.proposals if isinstance(each.became, Rejection)]
    assert reasons == [Reason.DUPLICATE, Reason.HELD_OUT]
    assert sum(sum(batch.values()) for batch in engine.batches) == 3 + 2 * ATTEMPTS and not texts.spare


def test_a_race_that_shall_stop_makes_no_attempts(verifier):
    of, engine = raced([adds(1), adds(2)], verifier)

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        asyncio.run(exchange(of, state(), 1, ALONE, askings(of, state(), 1, ALONE), stop))
    assert engine.batches == [{"t0": 2}]


def test_how_long_the_verifier_takes_changes_no_bit_of_a_race(tmp_path: Path, monkeypatch):
    of = settings(changes={"run": {"steps": 2}, "tasks": {"prompts": 3}})
    prompt = race_to_the_end(tmp_path / "prompt", of)
    run, random = LocalVerifier.run, Random(0)

    async def slow(self: LocalVerifier, jobs: Sequence[Job]) -> list[Outcome]:
        await asyncio.sleep(random.choice([0.0, 0.05, 0.3]))
        return await run(self, jobs)

    monkeypatch.setattr(LocalVerifier, "run", slow)
    late = race_to_the_end(tmp_path / "late", of)
    assert late.tables == prompt.tables
    for file in (prompt.folder / CHECKPOINTS / checkpoints.name(2)).rglob("*.safetensors"):
        assert (late.folder / file.relative_to(prompt.folder)).read_bytes() == file.read_bytes()


def test_seconds_go_to_whoever_was_at_work():
    spans = {"propose": [(0.0, 2.0), (0.0, 4.0)], "solve": [(2.0, 4.0), (6.0, 7.0)]}
    assert shared_seconds(spans) == {"propose": pytest.approx(3.0), "solve": pytest.approx(2.0)}
    assert shared_seconds({"propose": [], "solve": []}) == {"propose": 0.0, "solve": 0.0}
