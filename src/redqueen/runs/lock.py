"""The lock of a run's directory, by which one process writes there and everybody else can tell whether it does."""

import errno
import fcntl
import os
import re
import stat
import time
from pathlib import Path

from redqueen.errors import RunError

LOCK = "lock"
_HOLDER = re.compile(rb"[0-9]*\n?")
"""What a lock holds: the number of the process that has the run, or had it last."""
_LOOK_SECONDS = 0.05
"""Longer than `held` keeps others out."""


def take(folder: Path) -> int:
    """Held until it is closed, or the process ends however it may."""
    path = folder / LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise RunError(f"{path} is a symbolic link", "remove it: what it leads to would be written over") from None
    try:
        _refuse_other_files(path, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Somebody may only be looking whether the run is held.
            time.sleep(_LOOK_SECONDS)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "?"
        os.close(lock)
        raise RunError(f"{folder} is in use by process {holder}", "wait until that is done, or stop it") from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def held(folder: Path) -> bool:
    """Whether a process has the run. The lock is taken for a moment together with whoever else is looking: nothing
    tells without that."""
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # a run that was copied without it
        return False
    except OSError as error:
        raise RunError(
            f"{folder / LOCK} cannot be read: {error.strerror}", "make it a file that you may read"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _refuse_other_files(path: Path, lock: int) -> None:
    """A lock is a file of its own and holds a process's number: anything else would be lost to somebody."""
    about = os.fstat(lock)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or not _HOLDER.fullmatch(os.pread(lock, 32, 0)):
        raise RunError(f"{path} is not the lock of a run", "move it out of the way, or name another folder")
