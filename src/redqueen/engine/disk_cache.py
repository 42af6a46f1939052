"""The folder for whatever can be fetched or made again, such as converted bases."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError

CONVERSION = 1
"""Part of the name of every converted base: raise it when the conversion changes, so that none made before is used."""


def cache() -> Path:
    """The folder for whatever can be fetched or made again."""
    if own := os.environ.get("REDQUEEN_CACHE"):
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "redqueen"


def converted_folder(name: str, *identity: object) -> Path:
    """Where the conversion of a file is kept; `identity` is what makes the file that one and no other."""
    digest = hashlib.sha256(repr((CONVERSION, *identity)).encode()).hexdigest()
    return cache() / "bases" / f"{name}-{digest[:12]}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only process that makes `folder`. The lock ends with the process, however that ends."""
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
    """Say what is wrong with the disk, if something is."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder} cannot be used: {error.strerror or one_line(error)}", "mend it, or set REDQUEEN_CACHE=FOLDER"
        ) from None
