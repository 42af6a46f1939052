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
        with suppress(PermissionError):  # only root's goes before others; anybody else's comes late at times
            os.setpriority(os.PRIO_PROCESS, 0, -20)
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
            stop = pid in self._stopped
            if pid not in self._until:
                stop = self._rng.random() < SHARE
                self._until[pid] = now + self._length(stop)
            # From when it was due: to come late must not change the share.
            while self._until[pid] <= now:
                stop = not stop
                self._until[pid] += self._length(stop)
            self._set(pid, stop)

    def _length(self, stop: bool) -> float:
        length = self._rng.uniform(*STOPPED_S)
        return length if stop else length * (1 - SHARE) / SHARE

    def _set(self, pid: int, stop: bool) -> None:
        if stop and pid not in self._stopped:
            self._stop(pid)
        elif not stop:
            self._continue(pid)

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
