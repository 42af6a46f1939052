"""Who has which shard, and who is taken for dead, whatever comes in whichever order: with workers that do as told."""

import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
import torch

import redqueen.commands.main  # noqa: F401 (with all errors that there are)
from redqueen.cluster.hands import Job
from redqueen.cluster.ledger import Ledger, Update
from redqueen.cluster.links import Lost
from redqueen.cluster.packed import Packed
from redqueen.cluster.staff import Staff
from redqueen.cluster.worker import Greeting, Opening
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import Recipe, Trajectory
from redqueen.engine.split.group import Lost as PartLost
from redqueen.errors import MachineError, UserError
from redqueen.settings.models import EngineConfig

NOW = 0.02
OPEN = Greeting(
    machine="here", process=1, device="cpu", exact=True, computes_on="cpu", dtype=torch.float32,
    limits=Limits(1, 1, 1), norms={},
)  # fmt: skip


class Told:
    """Implements `Workers` and their links: they answer what they are asked at once, or when told to."""

    def __init__(self) -> None:
        self.links: list[ToldLink] = []
        self.loading = False
        """Those that begin now answer that they are there, and are not open."""

    def start(self) -> "ToldLink":
        self.links.append(ToldLink(f"worker {len(self.links)}", loading=self.loading))
        return self.links[-1]

    def close(self) -> None: ...


class ToldLink:
    def __init__(self, name: str, *, loading: bool) -> None:
        self.name, self.loading = name, loading
        self.holding, self.ended = False, False
        self.held: list[Future[Any]] = []
        self.fails: list[BaseException] = []
        """What the next jobs fail with."""

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        job = method in ("sample", "score", "update", "take")
        if self.ended:
            answer.set_exception(Lost("it has ended"))
        elif method == "open" and not self.loading:
            answer.set_result(OPEN)
        elif method == "open" or (job and self.holding):
            self.held.append(answer)
        elif job and self.fails:
            answer.set_exception(self.fails.pop())
        else:
            answer.set_result({} if job else None)
        return answer

    def answer(self) -> None:
        self.holding = False
        for held in self.held:
            held.set_result({})

    def end(self) -> None:
        self.ended = True
        for held in self.held:
            if not held.done():
                held.set_exception(Lost("it has ended"))


def staff_of(members: Sequence[str | None], workers: int, patience_s: float = 60.0) -> tuple[Staff, Told]:
    """Shards with a member each, or none."""
    ledgers = [Ledger() for _ in members]
    for ledger, member in zip(ledgers, members, strict=True):
        if member is not None:
            ledger.write(member, Packed(torch.zeros(1), 1))
    told = Told()
    opening = Opening(engine=EngineConfig().model_dump(), seed=0, room=0, sharing=1, threads=1, trains=True)
    return Staff(told, ledgers, opening, count=workers, patience_s=patience_s), told


def update(shard: int, member: str) -> Job:
    text = Trajectory(member=member, prompt=(1,), completion=(2,), logprobs=(-1.0,), advantages=1.0)
    learned = Update((text,), Recipe(lr=1e-3))
    return Job(shard, "update", (learned,), size=1, update=learned)


def names(staff: Staff) -> list[str | None]:
    return [None if hand is None else hand.link.name for hand in staff._homes]


def until(staff: Staff, true: Any) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        staff.wait(NOW)


def lose(staff: Staff, *links: ToldLink) -> None:
    """They end, and a beat says so."""
    for link in links:
        link.end()
    gone = {link.name for link in links}
    until(staff, lambda: not gone & {worker.name for worker in staff.now})


def test_a_shard_of_nobody_moves_too():
    staff, told = staff_of(["t0", None, None, "s0"], workers=2, patience_s=1.0)
    staff.ask([update(0, "t0"), update(3, "s0")])
    lose(staff, told.links[1])
    until(staff, lambda: len(staff.now) == 2)
    for shard, member in ((0, "t0"), (3, "s0")):
        staff.ledgers[shard].snapshot({member: Packed(torch.zeros(1), 1)})
    staff.settle()
    assert sorted(map(str, names(staff))) == ["worker 0", "worker 0", "worker 2", "worker 2"]


def test_a_loss_takes_nothing_off_those_that_are_at_work():
    members = ["t0", "t1", "s1", "s0"]
    staff, told = staff_of(members, workers=4, patience_s=1.0)
    staff.ask([update(shard, member) for shard, member in enumerate(members)])
    lose(staff, *told.links[1:])
    until(staff, lambda: len(staff.now) == 4)
    assert names(staff) == ["worker 0"] * 4
    busy = told.links[0]
    busy.holding = True
    jobs = [update(shard, member) for shard, member in enumerate(members)]
    for job in jobs:
        staff.send(job)
    lose(staff, told.links[4])
    assert names(staff) == ["worker 0"] * 4
    busy.answer()
    until(staff, lambda: all(job.done for job in jobs))
    assert [ledger.updates for ledger in staff.ledgers] == [2] * 4


def test_nobody_is_lost_because_the_driver_was_stopped():
    staff, told = staff_of(["t0", "s0"], workers=2, patience_s=1.0)
    staff.ask([update(0, "t0"), update(1, "s0")])
    for link in told.links:
        link.holding = True
    jobs = [update(0, "t0"), update(1, "s0")]
    for job in jobs:
        staff.send(job)
    staff.wait(NOW)
    time.sleep(2.5)
    staff.wait(NOW)
    staff.wait(NOW)
    for link in told.links:
        link.answer()
    until(staff, lambda: all(job.done for job in jobs))
    assert {event.what for event in staff.events} == {"opened", "took members"}


def test_one_that_begins_is_waited_for_as_long_as_it_says_that_it_is_there():
    staff, told = staff_of(["t0", "s0"], workers=1, patience_s=1.0)
    staff.ask([update(0, "t0")])
    told.loading = True
    lose(staff, told.links[0])
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        staff.wait(NOW)
    told.links[1].held[0].set_result(OPEN)
    staff.ask([update(1, "s0")])
    assert names(staff) == ["worker 1"] * 2


def test_a_part_of_a_base_that_is_gone_costs_its_worker():
    staff, told = staff_of(["t0", "s0"], workers=2)
    told.links[0].fails.append(PartLost())
    staff.ask([update(0, "t0"), update(1, "s0")])
    assert told.links[0].ended and [ledger.updates for ledger in staff.ledgers] == [1, 1]
    assert [event.what for event in staff.events if event.worker == "worker 0"][-1] == "died"


def test_what_a_machine_did_to_an_update_goes_to_all_who_wait_for_it():
    staff, told = staff_of(["t0", "s0"], workers=2)
    told.links[0].fails.append(MachineError("the disk is full", "make room"))
    with pytest.raises(MachineError, match="the disk is full"):
        staff.ask([update(0, "t0"), update(1, "s0")])
    assert [ledger.updates for ledger in staff.ledgers] == [0, 1]


def test_a_worker_that_has_answered_nothing_yet_has_no_seconds():
    staff, _ = staff_of(["t0"], workers=1)
    assert staff._here[0].took["update"].maxlen is not None
    assert [dict(worker.seconds) for worker in staff.now] == [{}]


def errors(of: type[UserError] = UserError) -> Iterator[type[UserError]]:
    yield of
    for each in of.__subclasses__():
        yield from errors(each)


@pytest.mark.parametrize("kind", sorted(set(errors()), key=lambda kind: kind.__qualname__))
def test_an_error_comes_from_another_process_as_it_was(kind: type[UserError]):
    error = kind("it is broken", "mend it")
    came = pickle.loads(pickle.dumps(error))
    assert type(came) is kind and str(came) == str(error)
