"""What else the machine does while something is measured."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redqueen.errors import InputError

LOADS = {
    "quiet": "nothing",
    "forks": "12 processes that fork in a loop",
    "memory": "6 processes that each touch 512 MB of new pages in a loop",
    "busy": "24 busy loops",
    "moderate": "3 fork loops and 1 memory loop",
    "stopped": "the pool's processes are stopped 80 % of the time, for 20-200 ms at once",
    "quota": "a CPU quota of 20 % of the machine for the script and its pool",
}
BESIDE = ("quiet", "forks", "memory", "busy", "moderate")
"""Loads that stand beside anything; the others are for what the script itself runs."""
_KEEPER = Path(__file__).with_name("keeper.py")


def _kept(*words: str) -> list[str]:
    return [sys.executable, "-s", "-S", str(_KEEPER), str(os.getpid()), *words]


def dying_with_us(command: Sequence[str]) -> list[str]:
    """The same command, told to end when the thread that starts it does."""
    return _kept("command", *command)


@contextmanager
def under(name: str) -> Iterator[None]:
    """Hold a load. Call it from the main thread: the keeper ends with the thread that started it."""
    if name == "quiet":
        yield
        return
    with subprocess.Popen(_kept(name), stdout=subprocess.PIPE, text=True, process_group=0) as keeper:
        assert keeper.stdout is not None
        try:
            if (said := keeper.stdout.readline().strip()) != "ready":
                raise InputError(f"the load {name} cannot be had", said or "its keeper died: see above")
            yield
            if keeper.poll() is not None:
                raise RuntimeError(f"the load {name} ended by itself: nothing was measured")
        finally:
            keeper.terminate()
            keeper.wait()
