"""Ray's daemon and head are watched: that they have gone is known at once, and an end that is wanted is not told."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redqueen.cluster import daemons
from redqueen.cluster.daemons import DaemonLost, Daemons

DEADLINE_S = 60


def until(come_true: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not come_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def listening(port: int = 0) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    with closing(socket.socket(socket.AF_UNIX)) as daemon:
        path = str(tmp_path / "daemon")
        daemon.bind(path)
        daemon.listen()
        yield path, daemon


def test_the_end_of_the_daemon_is_told_once(place: tuple[str, socket.socket]):
    path, daemon = place
    told: list[DaemonLost] = []
    with listening() as head:
        watched = Daemons(path, head.getsockname(), told.append)
        line, _ = daemon.accept()
        line.close()
        until(lambda: bool(told))
        watched.close()
    [lost] = told
    assert str(lost).startswith("Ray's daemon on this machine has ended; ")


def test_an_end_that_is_wanted_is_told_to_nobody(place: tuple[str, socket.socket], monkeypatch, capsys):
    monkeypatch.setattr(daemons, "LOOK_S", 0.02)
    path, daemon = place
    told: list[DaemonLost] = []
    with listening() as head:
        watched = Daemons(path, head.getsockname(), told.append)
        line, _ = daemon.accept()
        watched.close()
    line.close()
    time.sleep(0.2)
    assert told == [] and capsys.readouterr().err == ""


def test_a_head_that_goes_and_comes_back_is_said(place: tuple[str, socket.socket], monkeypatch, capsys):
    monkeypatch.setattr(daemons, "LOOK_S", 0.02)
    said: list[str] = []
    monkeypatch.setattr(daemons, "say", said.append)
    path, _ = place
    with listening() as head:
        port = head.getsockname()[1]
        watched = Daemons(path, ("127.0.0.1", port), lambda lost: None)
        time.sleep(0.1)
        assert said == []
    until(lambda: len(said) == 1)
    assert said[0].startswith("the cluster's head does not answer; unless it comes back within a minute, Ray ends")
    with listening(port):
        until(lambda: len(said) == 2)
        watched.close()
    assert said[1] == "the cluster's head answers again"
