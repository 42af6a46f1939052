"""What is known of workers: where members are, what calls take, what became of whom."""

import time

import pytest

from redqueen.analysis.slowness import beside_others
from redqueen.cluster.watched import WatchedWorkers
from redqueen.runs.rows import WorkerRow
from workers.flaky import Flaky
from workers.making import MEMBERS, opened, worked


def row(worker: str, **seconds: float) -> WorkerRow:
    return WorkerRow(step=1, worker=worker, machine="here", process=1, members=(), seconds=seconds)


def test_a_slow_worker_stands_out_in_the_call_in_which_it_is_slowest():
    rows = [row("a", sample=1.0, update=1.0), row("b", sample=1.2, update=3.0), row("c", sample=0.8), row("d")]
    assert beside_others(rows) == pytest.approx({"a": 1.0, "b": 3.0, "c": 0.8 / 1.1})
    assert beside_others([row("a", sample=1.0), row("b", update=1.0)]) == {}
    assert beside_others([row("a", sample=0.0), row("b", sample=0.0)]) == {}


def test_members_have_their_workers_and_calls_their_seconds():
    with opened(2, 2) as engine:
        worked(engine)
        watched = WatchedWorkers(engine, "")
        rows = watched.rows(7)
        assert {member for row in rows for member in row.members} == {"t0", "t1", "s0", "s1.1"}
        assert {row.worker for row in rows} == {"worker 0", "worker 1"}
        for row in rows:
            assert row.step == 7 and row.process > 0 and row.machine and len(row.members) == 2
            assert {"sample", "score", "update", "take"} == row.seconds.keys()
            assert all(0 < seconds < 60 for seconds in row.seconds.values())
        assert [event.what for event in watched.take_events(7)] == ["opened", "opened"]
        assert watched.take_events(8) == []


def test_a_race_sees_its_own_members_under_its_own_names():
    with opened(2, 2) as engine:
        assert sorted(m for row in WatchedWorkers(engine, "t").rows(1) for m in row.members) == ["0", "1"]


def test_who_died_what_stopped_answering_and_who_took_their_members_is_told_in_order():
    began = time.time()
    hows = {6: "before", 12: "silent"}
    flaky = Flaky(lambda number, method: hows.get(number))  # pyright: ignore[reportArgumentType]
    with opened(2, 2, flaky, patience_s=8.0) as engine:
        watched = WatchedWorkers(engine, "")
        first = watched.take_events(0)
        worked(engine)
        events = watched.take_events(3)
    assert flaky.lost == 2
    assert [event.what for event in first] == ["opened", "opened"]
    died, stopped = (next(e for e in events if e.what == what) for what in ("died", "stopped answering"))
    assert died.cause == "it has ended" and stopped.step == 3
    assert "silent for " in stopped.cause or " takes " in stopped.cause
    taken = [event.cause.split(", ") for event in events if event.what == "took members"]
    assert taken and {member for members in taken for member in members} <= {*MEMBERS, "s1.1"}
    assert began < events[0].time <= events[-1].time < time.time()
    assert [e.time for e in events] == sorted(e.time for e in events)
    # Those that came in their place.
    assert {event.worker for event in events if event.what == "opened"} <= {"worker 2", "worker 3"}
