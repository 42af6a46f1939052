"""Whether a run is held, and that asking keeps nobody out."""

import os
import threading

import pytest

from redqueen.errors import RunError
from redqueen.runs.lock import LOCK, held, take


def test_a_run_is_held_from_when_it_is_taken_until_it_is_let_go(tmp_path):
    assert not held(tmp_path), "a run that was copied without its lock"
    lock = take(tmp_path)
    assert held(tmp_path)
    with pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
        take(tmp_path)
    os.close(lock)
    assert not held(tmp_path)
    assert (tmp_path / LOCK).exists()


def test_whoever_only_looks_keeps_nobody_out(tmp_path):
    os.close(take(tmp_path))
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            held(tmp_path)
            ended.wait(0.01)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(200):
            os.close(take(tmp_path))
    finally:
        ended.set()
        for looker in lookers:
            looker.join()


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path):
    (tmp_path / LOCK).symlink_to(tmp_path / "other")
    with pytest.raises(RunError, match="cannot be read"):
        held(tmp_path)
