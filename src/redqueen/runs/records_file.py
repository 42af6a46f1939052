"""The file of a run's records: opened for the one that writes or for anybody that reads, and asked in SQL.

A transaction is there whole or not at all, and on the disk before it ends. Readers never wait for the writer, nor it
for them.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from redqueen.errors import InputError, RunError, nearest
from redqueen.runs.atomic import put_in_place
from redqueen.runs.columns import HINTS, decoder, select
from redqueen.runs.schema import check, make
from redqueen.runs.sqlite import connect, damaged, readable

RECORDS = "records.sqlite"

Row = TypeVar("Row")


class RecordsFile:
    """Close it, or use it in a `with` statement. It belongs to the thread that opened it."""

    def __init__(self, folder: Path, db: sqlite3.Connection, aside: "tempfile.TemporaryDirectory[str] | None" = None):
        self.folder = folder
        self._db = db
        self._aside = aside

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Empty records in a folder that has none yet, open for writing."""
        path = _vacant(folder)
        with readable(path), put_in_place(path) as aside, closing(connect(aside)) as db:
            # Not with a log beside it yet: on a full disk that would be left behind with the schema still in it.
            make(db)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """For the one process that writes."""
        path = folder / RECORDS
        with readable(path):
            db = connect(f"file:{quote(str(path.absolute()))}?mode=rw")
            try:
                check(db, path, writable=True)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
            except BaseException:
                db.close()
                raise
        return cls(folder, db)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """For everybody else: beside a writer, after it, and where nothing can be written."""
        path = folder / RECORDS
        try:
            exists = path.is_file()
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error.strerror}", "give the folder of a run") from None
        if not exists:
            mend = meant(folder) or "give the folder of a run"
            raise InputError(f"{folder} is not a run folder: there is no {RECORDS} in it", mend)
        with readable(path):
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            db = connect(uri)
            try:
                try:
                    check(db, path)
                    return cls(folder, db)
                except sqlite3.OperationalError as error:
                    # Beside its records SQLite wants files of its own, and cannot make them here.
                    if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                        raise
                db.close()
                aside = None
                log = path.with_name(f"{RECORDS}-wal")
                if log.exists() and log.stat().st_size:
                    # The last steps are in the log alone: it is read in again where that is possible.
                    aside = tempfile.TemporaryDirectory(prefix="redqueen-")
                    for file in (path, log):
                        shutil.copyfile(file, Path(aside.name, file.name))
                    db = connect(Path(aside.name, RECORDS))
                else:
                    db = connect(f"{uri}&immutable=1")
                check(db, path)
                return cls(folder, db, aside)
            except BaseException:
                db.close()
                raise

    def close(self) -> None:
        with readable(self.folder / RECORDS):
            self._db.close()
        if self._aside is not None:
            self._aside.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def copy_to(self, folder: Path) -> None:
        """Put records that are these, as they are now, into a folder that has none yet."""
        path = _vacant(folder)
        with readable(path), put_in_place(path) as aside, closing(connect(aside)) as db:
            self._db.backup(db)

    def shrink(self) -> None:
        """Give the room of what was dropped back to the disk."""
        with readable(self.folder / RECORDS):
            self._db.execute("VACUUM")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with readable(self.folder / RECORDS):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back itself where it could not go on.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _query(self, sql: str, hints: Iterable[Any], values: Iterable[Any] = ()) -> Iterator[Any]:
        """Rows of values of these types."""
        decoders, path = [decoder(hint) for hint in hints], self.folder / RECORDS
        with readable(path):
            for row in self._db.execute(sql, tuple(values)):
                try:
                    yield tuple(decode(value) for decode, value in zip(decoders, row, strict=True))
                except ValueError as error:
                    raise damaged(path, f"it holds {error}") from None

    def _count(self, sql: str, values: Iterable[Any] = ()) -> int:
        return next(self._query(sql, [int], values))[0]

    def _select(
        self,
        row: type[Row],
        conditions: Iterable[tuple[str, Any]] = (),
        order: str | None = None,
        limit: int | None = None,
        index: str | None = None,
    ) -> Iterator[Row]:
        condition, values = where(conditions)
        sql = f"{select(row, index)} {condition}"
        sql += f" ORDER BY {order}" if order is not None else ""
        sql += f" LIMIT {limit:d}" if limit is not None else ""
        for fields in self._query(sql, HINTS[row].values(), values):
            yield row(**dict(zip(HINTS[row], fields, strict=True)))


def meant(folder: Path) -> str | None:
    """How to mend the name of a run that is not there: the run beside it whose name looks like it, if one does."""
    close = nearest(folder.name, (records.parent.name for records in folder.parent.glob(f"*/{RECORDS}")))
    return None if close is None else f"did you mean {folder.with_name(close)}?"


def where(conditions: Iterable[tuple[str, Any]]) -> tuple[str, list[Any]]:
    """Those conditions that have a value, or a tuple of values, in SQL; and the values."""
    given = [(sql, value) for sql, value in conditions if value is not None]
    values = [item for _, value in given for item in (value if isinstance(value, tuple) else (value,))]
    return f"WHERE {' AND '.join(sql for sql, _ in given)}" if given else "", values


def _vacant(folder: Path) -> Path:
    path = folder / RECORDS
    if path.exists():
        raise RunError(f"{path} is there already", "name another folder")
    return path
