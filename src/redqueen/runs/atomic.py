"""Files and folders that are whole or not there at all, whatever happens while they are written.

They are written aside, flushed to the disk and renamed. What a crash leaves behind is called `*.partial` or `*.old`,
and is cleared away the next time.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARTIAL = "partial"
"""Not finished."""
OLD = "old"
"""On its way out."""
# SQLite keeps files of its own beside a database, with names that are longer.
_LEFTOVER = re.compile(rf".+\.[0-9a-f]{{8}}\.({PARTIAL}|{OLD})(-[a-z]+)?")


def beside(path: Path, ending: str) -> Path:
    """A name in the same folder that nothing has yet."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.{ending}")


@contextmanager
def put_in_place(path: Path) -> Iterator[Path]:
    """A place to write a file or a folder to, which becomes `path` at the end, or is removed after an error."""
    aside = beside(path, PARTIAL)
    try:
        yield aside
        flush(aside)
        os.rename(aside, path)
        flush_entry(path.parent)
    except Exception:
        # Not after what ends the process: a kill does not clear up either, and one way to go on is enough.
        remove(aside)
        raise


def write_text(path: Path, text: str) -> None:
    with put_in_place(path) as aside:
        aside.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """Have the disk keep a file, or a folder with all that is in it."""
    if path.is_dir():
        for entry in sorted(path.iterdir()):
            flush(entry)
    flush_entry(path)


def flush_entry(path: Path) -> None:
    """The same for a file, or for the names in a folder."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def clear_away(path: Path) -> None:
    """Remove a folder so that it is never seen in parts."""
    aside = beside(path, OLD)
    os.rename(path, aside)
    flush_entry(path.parent)
    remove(aside)


def clear_leftovers(folder: Path) -> None:
    """Remove what a crash left behind."""
    for path in sorted(folder.iterdir()):
        if leftover(path.name):
            remove(path)


def leftover(name: str) -> bool:
    return _LEFTOVER.fullmatch(name) is not None


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
