"""SQLite's connections and complaints: what the disk does to a file, in one line that says how to mend it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redqueen.errors import RunError, UserError

BUSY_SECONDS = 30
"""To wait for another program's lock: backups and copies hold one for moments."""
_RESTORE = "restore it from a copy, or start another run"
_MENDS = {
    sqlite3.SQLITE_FULL: ("the disk of {path} is full", "free some space and run the same command again"),
    sqlite3.SQLITE_READONLY: ("{path} cannot be written to", "make it writable, or use another folder"),
    sqlite3.SQLITE_CANTOPEN: ("{path} cannot be opened", "mend the rights of its folder, or use another one"),
    sqlite3.SQLITE_PERM: ("{path} cannot be opened", "mend the rights of its folder, or use another one"),
    sqlite3.SQLITE_CORRUPT: ("{path} is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("{path} is damaged", _RESTORE),
    sqlite3.SQLITE_BUSY: ("{path} is locked by another program", "close that program and try again"),
    sqlite3.SQLITE_LOCKED: ("{path} is locked by another program", "close that program and try again"),
    sqlite3.SQLITE_IOERR: ("{path} cannot be read or written: {error}", "check its disk (is it full?) and try again"),
    sqlite3.SQLITE_PROTOCOL: ("{path} cannot be locked", "use a disk of this machine"),
}


def connect(place: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=BUSY_SECONDS, isolation_level=None, uri=isinstance(place, str))


def damaged(path: Path, how: str) -> RunError:
    return RunError(f"{path} is damaged: {how}", _RESTORE)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What the disk does to the records, in one line. What we do wrong stays what it is."""
    try:
        yield
    except UserError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and isinstance(error, sqlite3.OperationalError):
            # Of all that goes wrong while rows are read, Python itself finds only this.
            raise damaged(path, "it holds text that is not UTF-8") from None
        if code is None or code & 0xFF not in _MENDS:
            raise
        # The low byte is the kind of error, what is above it the details.
        what, mend = _MENDS[code & 0xFF]
        raise RunError(what.format(path=path, error=error), mend) from None
    except OSError as error:
        raise RunError(f"{path} cannot be read or written: {error.strerror}", "check its disk and its rights") from None
