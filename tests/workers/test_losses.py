"""What becomes of workers changes nothing in the result: each is lost at some call, before it or after it."""

import asyncio
import time
from random import Random

import pytest

from redqueen.cluster import staff
from redqueen.engine.protocol import Recipe, Trajectory
from redqueen.errors import MachineError
from workers.flaky import Flaky, How
from workers.making import opened, worked

SHARDS = 2
DEADLINE_S = 120


@pytest.fixture(scope="module")
def left_alone() -> tuple[str, list[str]]:
    """What came of it, and the calls."""
    workers = Flaky()
    with opened(SHARDS, 2, workers) as engine:
        return worked(engine), workers.calls


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("method", ["sample", "score", "update", "take"])
def test_a_worker_that_is_lost_in_a_call_changes_nothing(left_alone, method: str, how: How):
    expected, calls = left_alone
    places = [place for place, called in enumerate(calls) if called == method]
    # In the second step, before members are read whole: the first step's updates must be done again.
    place = places[len(places) // 2]
    workers = Flaky(lambda number, _: how if number == place else None)
    with opened(SHARDS, 2, workers) as engine:
        assert worked(engine) == expected
    assert workers.lost == 1 and workers.calls[place] == method


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_many_losses_change_nothing(left_alone, workers: int):
    expected, calls = left_alone
    rng = Random(workers)
    hows: dict[int, How] = {place: rng.choice(["before", "after"]) for place in rng.sample(range(len(calls)), 6)}
    flaky = Flaky(lambda number, _: hows.get(number))
    with opened(SHARDS, workers, flaky) as engine:
        assert worked(engine) == expected
    assert flaky.lost == 6


def test_a_worker_that_says_nothing_any_more_is_taken_for_dead(left_alone):
    expected, calls = left_alone
    place = max(place for place, called in enumerate(calls) if called == "update")
    flaky = Flaky(lambda number, _: "silent" if number == place else None)
    with opened(SHARDS, 2, flaky, patience_s=8.0) as engine:
        assert worked(engine) == expected
    assert flaky.lost == 1


@pytest.mark.parametrize(
    "how, what, why",
    [
        ("stuck", "stopped answering", "update takes "),
        ("device", "its device failed", "CUDA error: an illegal memory access"),
    ],
)
def test_one_that_never_ends_a_call_or_whose_device_fails_is_taken_for_dead(left_alone, how: How, what: str, why: str):
    expected, calls = left_alone
    place = max(place for place, called in enumerate(calls) if called == "update")
    flaky = Flaky(lambda number, _: how if number == place else None)
    with opened(SHARDS, 2, flaky, patience_s=4.0) as engine:
        assert worked(engine) == expected
        [lost] = [event for event in engine.events if event.what == what]
    assert flaky.lost == 1 and lost.cause.startswith(why)


def test_an_update_that_a_machine_had_no_room_for_is_not_tried_again():
    """Other shards of the same turn have learnt already."""
    full = []

    def once(number: int, method: str) -> How | None:
        if method == "update" and not full:
            full.append(number)
            return "full"
        return None

    texts = [
        Trajectory(member=member, prompt=(1,), completion=(2,), logprobs=(-1.0,), advantages=1.0)
        for member in ("t0", "s0")
    ]
    with opened(SHARDS, 2, flaky := Flaky(once)) as engine:

        async def both() -> list[BaseException | object]:
            asked = [engine.update([text], Recipe(lr=1e-3)) for text in texts]
            return await asyncio.gather(*asked, return_exceptions=True)

        assert [str(each) for each in asyncio.run(both())] == ["the store is full; make room"] * 2
    assert flaky.calls.count("update") == 2


def test_without_any_worker_left_the_race_stops_after_its_patience():
    flaky = Flaky(lambda number, _: "before" if number == 2 else None, starts=1)
    told = "no worker is left, and none came within 2 s; the same command goes on"
    with opened(SHARDS, 1, flaky, patience_s=2.0) as engine, pytest.raises(MachineError, match=told):
        worked(engine)


def test_one_that_does_not_start_is_told_before_the_race(monkeypatch):
    monkeypatch.setattr(staff, "START_S", 10.0)
    with pytest.raises(MachineError, match="worker 1 could not be opened: silent for 10 s; look at its log"):
        opened(SHARDS, 2, Flaky(starts=1), patience_s=2.0)


def test_a_call_that_costs_worker_after_worker_is_given_up():
    flaky = Flaky(lambda number, method: "before" if method == "update" else None)
    told = r"5 workers were lost over the same call \(update"
    with opened(1, 1, flaky) as engine, pytest.raises(MachineError, match=told):
        worked(engine)


def test_one_that_comes_late_gets_its_part_once_nothing_has_to_be_done_again(left_alone):
    expected, _ = left_alone
    text = Trajectory(member="t0", prompt=(1,), completion=(2,), logprobs=(-1.0,), advantages=1.0)
    with opened(SHARDS, 2, Flaky(lambda number, _: "before" if number == 1 else None)) as engine:
        assert worked(engine) == expected
        end = time.monotonic() + DEADLINE_S
        while "worker 2" not in engine.homes:
            assert time.monotonic() < end
            asyncio.run(engine.update([text], Recipe(lr=1e-3)))
            # Now all is known of it.
            engine.read("t0", optimiser=True)
        assert len(set(engine.homes)) == 2
