"""Ray's own processes and nodes, which are killed, stopped and removed: the result is that of one process."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

pytest.importorskip("ray")

from ray import exceptions
from ray.cluster_utils import Cluster

from redqueen.cluster import ray as of_ray
from redqueen.cluster.links import Link, Lost
from redqueen.cluster.ray import RayLink, RayWorkers
from workers.making import opened, worked

SHARDS = 2
Strike = Callable[[int], None]
"""What happens to a worker's process."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head on which nobody works, and two nodes with room for two workers each."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            made.add_node(num_cpus=2)
        yield made
    finally:
        made.shutdown()


@pytest.fixture(scope="module")
def expected() -> str:
    with opened(SHARDS) as engine:
        return worked(engine)


class Struck:
    """Implements `Workers` on Ray: at one call of a kind, by its number from 1, something happens to who is called."""

    def __init__(self, address: str, method: str, number: int, strike: Strike) -> None:
        self._ray = RayWorkers(address, SHARDS)
        self._method, self._left, self._strike = method, number, strike
        self.struck = 0

    def start(self) -> Link:
        return StruckLink(self, self._ray.start())

    def close(self) -> None:
        self._ray.close()

    def hit(self, method: str, process: int) -> None:
        self._left -= method == self._method
        if method == self._method and self._left == 0:
            self._strike(process)
            self.struck += 1


class StruckLink:
    """Implements `Link`."""

    def __init__(self, workers: Struck, link: Link) -> None:
        self.name = link.name
        self._workers, self._link, self._process = workers, link, 0

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        answer = self._link.call(method, *arguments)
        if method == "open":
            answer.add_done_callback(self._greeted)
        else:
            self._workers.hit(method, self._process)
        return answer

    def end(self) -> None:
        self._link.end()

    def _greeted(self, answer: "Future[Any]") -> None:
        self._process = answer.result().process


def killed(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def stopped(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


@pytest.mark.parametrize(
    "method, number, strike, told",
    [
        ("sample", 6, killed, "died"),
        ("score", 4, killed, "died"),
        ("update", 4, killed, "died"),
        ("update", 4, stopped, "stopped answering"),
    ],
)
def test_a_worker_that_is_killed_or_stopped_changes_nothing(
    cluster: Cluster, expected: str, capsys, method: str, number: int, strike: Strike, told: str
):
    patience_s = 15 if strike is stopped else 120
    workers = Struck(cluster.address, method, number, strike)
    with opened(SHARDS, 2, workers, patience_s) as engine:
        assert worked(engine) == expected
        assert told in [event.what for event in engine.events]
    assert workers.struck == 1
    assert " is lost (" in capsys.readouterr().err


def test_a_node_that_is_lost_changes_nothing(cluster: Cluster, expected: str, capsys):
    nodes = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]

    def removed(process: int) -> None:
        cluster.remove_node(nodes[0], allow_graceful=False)

    workers = Struck(cluster.address, "update", 4, removed)
    with opened(SHARDS, 2, workers) as engine:
        assert worked(engine) == expected
        assert "machine lost" in [event.what for event in engine.events]
    assert workers.struck == 1
    assert " is lost (" in capsys.readouterr().err


class Unreachable:
    """An actor every call of which fails, as Ray says of one whose machine it cannot reach any more."""

    def __getattr__(self, method: str) -> "Unreachable":
        return self

    def remote(self, *arguments: object) -> "Unreachable":
        return self

    def future(self) -> "Future[Any]":
        failed: Future[Any] = Future()
        failed.set_exception(exceptions.ActorDiedError())
        return failed


def test_whoever_asks_an_unreachable_machine_is_not_held_up_while_it_is_looked_for(monkeypatch):
    looks: list[tuple[str, int]] = []

    def looked(host: str, port: int) -> bool:
        looks.append((host, port))
        time.sleep(1.0)
        return False

    monkeypatch.setattr(of_ray, "reachable", looked)
    daemon: Future[tuple[str, int]] = Future()
    daemon.set_result(("10.0.0.5", 1))
    link = RayLink("worker 0", Unreachable(), daemon)
    began = time.monotonic()
    answers = [link.call("beat") for _ in range(3)]
    assert time.monotonic() - began < 0.9 and not any(answer.done() for answer in answers)
    errors = [answer.exception(30) for answer in answers]
    assert all(isinstance(error, Lost) and error.what == "machine lost" for error in errors)
    assert looks == [("10.0.0.5", 1)], "once for all of them"
