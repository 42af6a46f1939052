"""A stand-in for a host that takes the CPU away: processes of the verifier's pool stand still most of the time."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NoReturn, Self

STOPPED_S = (0.02, 0.2)
SHARE = 0.8
"""Of the time that a process is stopped. It runs for as much less, in between."""
_EVERY_S = 0.005
_POOL = b"verifier/guest/zygote.py"
"""In the command line of a zygote, and of its children, which are forks."""


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    found: list[int] = []
    with suppress(OSError):  # it ended while we looked
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found + [further for child in found for further in descendants(child)]


def of_pool(pid: int) -> bool:
    try:
        return _POOL in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # it ended while we looked


class Stopper:
    """Stops and continues the pools below a process. Leaving it lets everything go on."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._rng = Random(top)
        self._until: dict[int, float] = {}
        """Process -> when its turn ends."""
        self._stopped: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._stopped):
            self._continue(pid)

    def work(self) -> NoReturn:
        while True:
            self.turn(time.monotonic())
            time.sleep(_EVERY_S)

    def turn(self, now: float) -> None:
        """Stop and continue what it is time for."""
        pool = {pid for pid in descendants(self._top) if of_pool(pid)}
        # Those of a killed race hang below another process now, and must go on to see that it is dead.
        for pid in self._until.keys() - pool:
            self._continue(pid)
            del self._until[pid]
        for pid in pool:
            if pid not in self._until:
                self._next(pid, now, self._rng.random() < SHARE)
            elif self._until[pid] <= now:
                # From when it was due: to come late must not change the share.
                self._next(pid, self._until[pid], pid not in self._stopped)

    def _next(self, pid: int, start: float, stop: bool) -> None:
        length = self._rng.uniform(*STOPPED_S)
        if stop:
            self._stop(pid)
        else:
            self._continue(pid)
            length *= (1 - SHARE) / SHARE
        self._until[pid] = start + length

    def _stop(self, pid: int) -> None:
        # First, so that a signal that comes between the two lines leaves nothing stopped.
        self._stopped.add(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

    def _continue(self, pid: int) -> None:
        if pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self._stopped.remove(pid)
