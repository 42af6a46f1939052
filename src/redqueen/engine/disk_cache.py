"""The folder for what can be fetched or made again, such as converted bases."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError

CONVERSION = 2
"""Part of the name of every converted base: increase it when the conversion changes."""


def cache() -> Path:
    if folder := os.environ.get("REDQUEEN_CACHE"):
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "redqueen"


def converted_folder(name: str, *identity: object) -> Path:
    """Where the conversion of a file is kept; `identity` tells the file from any other."""
    digest = hashlib.sha256(repr((CONVERSION, *identity)).encode()).hexdigest()
    return cache() / "bases" / f"{name}-{digest[:12]}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only process that makes `folder`. The lock ends with the process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is making {folder}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder} cannot be used: {error.strerror or one_line(error)}", "fix that, or set REDQUEEN_CACHE=FOLDER"
        ) from None
