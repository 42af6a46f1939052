"""Races on a machine that fails: what could not be judged counts for nobody, and is said."""

import asyncio
import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loop.making import at_the_start, clock, settings
from loop.scripted import proposal, race, riddle, state, tries
from redqueen.errors import MachineError
from redqueen.loop import one_step
from redqueen.phases.judge import judge, outcomes
from redqueen.phases.race import Race
from redqueen.population.matchmaking import Match
from redqueen.runs.rows import StepRecord
from redqueen.tasks.verdicts import NOT_JUDGED_ATTEMPT, Grade, Reason, Rejection
from redqueen.verifier import LocalVerifier, machine, zygotes

LOST = Rejection(Reason.NOT_JUDGED)


def lost(place: int, attempts: int, student: str = "s0"):
    return [replace(each, became=NOT_JUDGED_ATTEMPT) for each in tries(place, "W" * attempts, student)]


def test_what_could_not_be_judged_is_paid_to_nobody_and_taught_to_nobody():
    attempts = [*tries(0, "CW"), *lost(0, 2)]
    rollouts = judge(race(), state(), 1, [riddle(0), proposal(1, LOST)], attempts)
    assert [each.reward for each in rollouts] == [0.5, 0.0, 1.0, -0.5, 0.0, 0.0], "rates are of what was judged"
    assert [each.counts for each in rollouts] == [True, False, True, True, False, False]
    assert rollouts[0].entry is not None, "the task stands"
    [outcome] = outcomes([Match("t0", ("s0",))], rollouts)
    [kind] = outcome.kinds.values()
    assert (kind.teacher_reward, [(score.solved, score.attempts) for score in kind.scores]) == (0.5, [(1, 2)])


def test_a_task_without_an_attempt_that_was_judged_could_not_be_judged_either():
    first, *rest = judge(race(), state(), 1, [riddle(0)], lost(0, 4))
    assert isinstance(first.became, Rejection)
    assert first.became.reason is Reason.NOT_JUDGED
    assert [each.reward for each in (first, *rest)] == [0.0] * 5
    assert not any(each.counts for each in (first, *rest))


def test_nobody_wins_a_match_of_which_nothing_was_judged():
    panel = [Match("t0", ("s0", "s1"))]
    assert outcomes(panel, judge(race(), state(), 1, [proposal(0, LOST)], [])) == []
    rollouts = judge(race(), state(), 1, [riddle(0)], [*tries(0, "CW", "s0"), *lost(0, 2, "s1")])
    [only] = outcomes(panel, rollouts)
    assert only.student == "s0"


# A real step, in which the zygotes cannot fork some of the runs, however often they try.

FEW = {"tasks": {"prompts": 4}}


def break_zygotes(monkeypatch, folder: Path, works: str, of: Race) -> None:
    """From now on they fork for these messages only: the old ones are killed, as an administrator might."""
    shutil.copytree(zygotes.GUEST, folder, ignore=shutil.ignore_patterns("__pycache__"))
    service = folder / "service.py"
    text = service.read_text()
    assert text.count("pid = _fork()") == 1
    service.write_text(text.replace("pid = _fork()", f"pid = _fork() if {works} else None"))
    renew_zygotes(monkeypatch, folder, of)


def renew_zygotes(monkeypatch, folder: Path, of: Race) -> None:
    monkeypatch.setattr(zygotes, "GUEST", folder)
    assert isinstance(of.verifier, LocalVerifier)
    old = of.verifier.zygote_pids()
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    while set(old) & set(of.verifier.zygote_pids()):
        time.sleep(0.05)


def became(rows: StepRecord) -> dict[int, str]:
    """By place, what the proposals were found to be."""
    return {row.place: row.id for row in rows.tasks} | {row.place: row.reason for row in rows.rejections}


def test_a_step_on_a_machine_that_fails_some_runs_costs_nobody_anything(monkeypatch, tmp_path):
    with at_the_start(settings(changes=FEW)) as (of, first, _):
        _, sound = asyncio.run(one_step(of, first, clock(1)))
    with at_the_start(settings(changes=FEW)) as (of, first, _):
        break_zygotes(monkeypatch, tmp_path / "guest", "size % 16", of)
        monkeypatch.setattr(machine, "RETRY_S", 0.3)
        _, rows = asyncio.run(one_step(of, first, clock(1)))
    proposals = [row for row in rows.rejections if row.reason == Reason.NOT_JUDGED]
    attempts = [row for row in rows.attempts if row.reason == Reason.NOT_JUDGED]
    assert proposals or attempts, "the machine failed some"
    assert {row.reward for row in (*proposals, *attempts)} == {0.0}
    assert {(row.grade, row.status) for row in attempts} <= {(Grade.VOID, "fault")}
    judged = {place: what for place, what in became(rows).items() if what != Reason.NOT_JUDGED}
    assert judged.items() <= became(sound).items(), "all others are what they are on a sound machine"
    made = Counter(row.place for row in rows.attempts if row.reason != Reason.NOT_JUDGED)
    assert {row.place: row.attempts for row in rows.tasks} == {row.place: made[row.place] for row in rows.tasks}
    share = (len(proposals) + len(attempts)) / (len(rows.tasks) + len(rows.rejections) + len(rows.attempts))
    said = [alarm for alarm in rows.alarms if alarm.measure == Reason.NOT_JUDGED]
    assert bool(said) == (share > 0.05)
    for alarm in said:
        assert alarm.value == pytest.approx(share)
        assert "could not be judged and count for nobody" in alarm.says


def test_a_machine_that_fails_everything_stops_the_race_and_the_same_step_is_judged_anew(monkeypatch, tmp_path):
    guest = zygotes.GUEST
    with at_the_start(settings()) as (of, first, _):
        _, sound = asyncio.run(one_step(of, first, clock(1)))
    with at_the_start(settings()) as (of, first, _):
        with monkeypatch.context() as patch:
            break_zygotes(patch, tmp_path / "guest", "False", of)
            patch.setattr(machine, "RETRY_S", 0.3)
            with pytest.raises(MachineError, match=r"the programs of \d+ of \d+ texts .*same command"):
                asyncio.run(one_step(of, first, clock(1)))
        renew_zygotes(monkeypatch, guest, of)
        _, rows = asyncio.run(one_step(of, first, clock(1)))
    assert became(rows) == became(sound)
    assert not any(row.reason == Reason.NOT_JUDGED for row in (*rows.rejections, *rows.attempts))
    assert [row.reward for row in rows.attempts] == [row.reward for row in sound.attempts]
