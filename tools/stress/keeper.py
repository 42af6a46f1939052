"""The process that holds a load, and takes it away when it is told to or when the process that wanted it is gone.

Started by `loads.under`. However the script ends, SIGKILL included, the kernel tells the keeper (PR_SET_PDEATHSIG),
which ends its workers, lets go on what it had stopped and removes its group; should the keeper be killed itself, the
kernel kills the workers. It imports nothing of the package, whose versions are what is measured.
"""

import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from quota import Refused, limited
from stopping import Stopper

_PR_SET_PDEATHSIG = 1
MEMORY_BYTES = 512 << 20


def fork_for_ever() -> NoReturn:
    """The kernel copies page tables and takes them down again."""
    while True:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def touch_for_ever() -> NoReturn:
    """New pages each time, so that the kernel has to find and clear every one of them."""
    while True:
        with mmap.mmap(-1, MEMORY_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
            area.madvise(mmap.MADV_NOHUGEPAGE)
            area[:: mmap.PAGESIZE] = bytes(MEMORY_BYTES // mmap.PAGESIZE)


def spin_for_ever() -> NoReturn:
    while True:
        pass


WORKERS: dict[str, tuple[Callable[[], NoReturn], ...]] = {
    "forks": (fork_for_ever,) * 12,
    "memory": (touch_for_ever,) * 6,
    "busy": (spin_for_ever,) * 24,
    "moderate": (fork_for_ever,) * 3 + (touch_for_ever,),
}
"""Loads that are processes of their own, beside what is measured."""


def die_with(parent: int, how: signal.Signals) -> None:
    """Get this signal when the parent, whose id this is, dies; leave at once where it is dead already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _start(work: Callable[[], NoReturn], keeper: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with(keeper, signal.SIGKILL)
        work()
    finally:
        # Nothing of the keeper's may run here.
        os._exit(1)


@contextmanager
def working(works: tuple[Callable[[], NoReturn], ...]) -> Iterator[None]:
    """Processes that do this work until the end."""
    children: list[int] = []
    try:
        for work in works:
            children.append(_start(work, os.getpid()))
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    # Once is enough: what is being taken away must not be interrupted.
    signal.signal(number, signal.SIG_IGN)
    sys.exit()


def _hold(name: str, parent: int) -> None:
    """Put the load in place, say so, and wait for the signal that ends it."""
    if name == "stopped":
        with Stopper(parent) as stopper:
            print("ready", flush=True)
            stopper.work()
    with limited(parent) if name == "quota" else working(WORKERS[name]):
        print("ready", flush=True)
        while True:
            time.sleep(3600)


def main(parent: int, name: str, *command: str) -> int:
    if name == "command":
        die_with(parent, signal.SIGTERM)
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, _leave)
    die_with(parent, signal.SIGTERM)
    try:
        _hold(name, parent)
    except Refused as refused:
        print(refused, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
