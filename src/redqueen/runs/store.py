"""The records of a run, in SQLite: written a step at a time, read by anybody at any time.

A step is there whole or not at all, and on the disk before `write` returns, so that no checkpoint can be newer than
the records that it stands on. Readers never wait for the writer, nor it for them.
"""

import json
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, get_origin, get_type_hints
from urllib.parse import quote

from redqueen.errors import InputError, RunError, UserError
from redqueen.population.board import Meeting
from redqueen.population.ratings import Result
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, Metric, RejectionRow, StepRecord, TaskRow, Timing
from redqueen.runs.whole import put_in_place

RECORDS = "records.sqlite"
VERSION = 1
"""Of the schema."""
BUSY_SECONDS = 30
"""To wait for another program's lock: backups and copies hold one for moments."""
_AT_ONCE = 500
"""Keys in one query: SQLite bounds how many a statement may have."""

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (step INTEGER PRIMARY KEY);
CREATE TABLE matches (
    step INTEGER NOT NULL, match INTEGER NOT NULL, teacher TEXT NOT NULL, student TEXT NOT NULL, kind TEXT NOT NULL,
    tasks INTEGER NOT NULL, unsolved INTEGER NOT NULL, attempts INTEGER NOT NULL, unsolved_attempts INTEGER NOT NULL,
    solved INTEGER NOT NULL, foretold REAL NOT NULL, result TEXT NOT NULL, match_result TEXT NOT NULL,
    teacher_reward REAL, student_reward REAL,
    PRIMARY KEY (step, match, kind));
CREATE TABLE tasks (
    step INTEGER NOT NULL, place INTEGER NOT NULL, match INTEGER NOT NULL, teacher TEXT NOT NULL, kind TEXT NOT NULL,
    group_ INTEGER NOT NULL, id TEXT NOT NULL, near_key TEXT NOT NULL, descriptor TEXT NOT NULL, record TEXT NOT NULL,
    text TEXT NOT NULL, solved INTEGER NOT NULL, attempts INTEGER NOT NULL, reward REAL NOT NULL,
    depth INTEGER NOT NULL, cyclomatic INTEGER NOT NULL, lines INTEGER NOT NULL, variables INTEGER NOT NULL,
    answer_chars INTEGER NOT NULL, behaviour TEXT, trivial TEXT, oversight INTEGER NOT NULL,
    PRIMARY KEY (step, place));
CREATE TABLE rejections (
    step INTEGER NOT NULL, place INTEGER NOT NULL, match INTEGER NOT NULL, teacher TEXT NOT NULL, kind TEXT NOT NULL,
    group_ INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, text TEXT NOT NULL, reward REAL NOT NULL,
    PRIMARY KEY (step, place));
CREATE TABLE attempts (
    step INTEGER NOT NULL, place INTEGER NOT NULL, student TEXT NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL,
    grade TEXT NOT NULL, reason TEXT, status TEXT, detail TEXT NOT NULL, reward REAL NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (step, place, student, number));
CREATE TABLE events (
    step INTEGER NOT NULL, role TEXT NOT NULL, seat TEXT NOT NULL, dead TEXT NOT NULL, child TEXT NOT NULL,
    operator TEXT, parents TEXT NOT NULL, seed TEXT NOT NULL,
    PRIMARY KEY (step, seat));
CREATE TABLE alarms (
    step INTEGER NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL, measure TEXT NOT NULL, value REAL,
    floor REAL, says TEXT NOT NULL,
    PRIMARY KEY (step, number));
CREATE TABLE metrics (
    step INTEGER NOT NULL, subject TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, value REAL,
    PRIMARY KEY (step, subject, kind, name)) WITHOUT ROWID;
CREATE TABLE timings (
    step INTEGER NOT NULL, phase TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (step, phase)) WITHOUT ROWID;
CREATE TABLE journal (key TEXT PRIMARY KEY, step INTEGER NOT NULL, value TEXT NOT NULL);
-- Every filter is answered from the index alone, in order: rows with long texts are read only when they are wanted.
CREATE INDEX browse_tasks ON tasks (step, place, kind, teacher, solved, attempts, trivial, oversight);
CREATE INDEX browse_rejections ON rejections (step, place, kind, teacher, reason);
CREATE INDEX browse_metrics ON metrics (name, step, subject, kind, value);
CREATE INDEX journal_steps ON journal (step);
"""

Row = TypeVar("Row")

_TABLES: dict[type, str] = {
    Meeting: "matches",
    TaskRow: "tasks",
    RejectionRow: "rejections",
    AttemptRow: "attempts",
    EventRow: "events",
    AlarmRow: "alarms",
    Metric: "metrics",
    Timing: "timings",
}


class Store:
    """The records of one run. Close it, or use it in a `with` statement. It belongs to the thread that opened it."""

    def __init__(self, folder: Path, db: sqlite3.Connection, aside: "tempfile.TemporaryDirectory[str] | None" = None):
        self.folder = folder
        self._db = db
        self._aside = aside

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Empty records in a folder that has none yet, open for writing."""
        path = _vacant(folder)
        with _readable(path), put_in_place(path) as aside, closing(_connect(aside)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """For the one process that writes."""
        path = folder / RECORDS
        with _readable(path):
            db = _connect(f"file:{quote(str(path.absolute()))}?mode=rw")
            try:
                _check_version(db, path)
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
            found = path.is_file()
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error.strerror}", "give the folder of a run") from None
        if not found:
            raise InputError(f"{folder} is no run: there is no {RECORDS} in it", "give the folder of a run")
        with _readable(path):
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            db = _connect(uri)
            try:
                try:
                    _check_version(db, path)
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
                    for each in (path, log):
                        shutil.copyfile(each, Path(aside.name, each.name))
                    db = _connect(Path(aside.name, RECORDS))
                else:
                    db = _connect(f"{uri}&immutable=1")
                _check_version(db, path)
                return cls(folder, db, aside)
            except BaseException:
                db.close()
                raise

    def close(self) -> None:
        with _readable(self.folder / RECORDS):
            self._db.close()
        if self._aside is not None:
            self._aside.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    def write(self, record: StepRecord) -> None:
        """A step, whole, in one transaction. A step is written once."""
        with self._transaction() as db:
            db.execute("INSERT INTO steps VALUES (?)", (record.step,))
            timings = [Timing(record.step, phase, seconds) for phase, seconds in record.timings.items()]
            for rows in (
                record.matches,
                record.tasks,
                record.rejections,
                record.attempts,
                record.events,
                record.alarms,
                record.metrics,
                timings,
            ):
                _insert(db, rows)

    def add_timing(self, step: int, phase: str, seconds: float) -> None:
        """What is known only after the step was written."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO timings VALUES (?, ?, ?)", (step, phase, seconds))

    def drop_after(self, step: int) -> None:
        """Forget the steps after this one; the journal stays."""
        with self._transaction() as db:
            for table in ("steps", *_TABLES.values()):
                db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """What the run runs on. Facts of other names stay as they are."""
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def journal_put(self, step: int, entries: Mapping[str, Any]) -> None:
        """Plain values by key, for a step that is still under way."""
        rows = [(key, step, json.dumps(value)) for key, value in entries.items()]
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO journal VALUES (?, ?, ?)", rows)

    def journal_prune(self, step: int) -> None:
        """Forget the entries of this step and of those before it."""
        with self._transaction() as db:
            db.execute("DELETE FROM journal WHERE step <= ?", (step,))

    # Reading

    def last_step(self) -> int:
        """The last whole step; 0 before the first."""
        return self._one("SELECT coalesce(max(step), 0) FROM steps")

    def facts(self) -> dict[str, str]:
        return dict(self._query("SELECT name, value FROM facts ORDER BY name"))

    def journal_get(self, keys: Collection[str]) -> dict[str, Any]:
        """Those of the keys that have an entry, and its value."""
        wanted, found = list(dict.fromkeys(keys)), {}
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            found.update(self._query(f"SELECT key, value FROM journal WHERE key IN ({marks})", some))
        return {key: json.loads(found[key]) for key in wanted if key in found}

    def tasks(
        self,
        *,
        kind: str | None = None,
        teacher: str | None = None,
        since: int | None = None,
        until: int | None = None,
        min_rate: float | None = None,
        max_rate: float | None = None,
        trivial: bool | None = None,
        oversight: bool | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[TaskRow]:
        """The tasks that fit every filter, one at a time, by step and place.

        `since` and `until` are steps and belong to the range. A task without attempts has no solve rate, and fits none.
        """
        where = [
            ("kind = ?", kind),
            ("teacher = ?", teacher),
            ("step >= ?", since),
            ("step <= ?", until),
            ("CAST(solved AS REAL) / attempts >= ?", min_rate),
            ("CAST(solved AS REAL) / attempts <= ?", max_rate),
            ("(trivial IS NOT NULL) = ?", trivial),
            ("oversight = ?", oversight),
        ]
        return self._select(TaskRow, where, _BY_PLACE[newest_first], limit, "browse_tasks")

    def rejections(
        self,
        *,
        kind: str | None = None,
        teacher: str | None = None,
        since: int | None = None,
        until: int | None = None,
        reason: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[RejectionRow]:
        """The rejections that fit every filter, one at a time, by step and place."""
        where = [
            ("kind = ?", kind),
            ("teacher = ?", teacher),
            ("step >= ?", since),
            ("step <= ?", until),
            ("reason = ?", reason),
        ]
        return self._select(RejectionRow, where, _BY_PLACE[newest_first], limit, "browse_rejections")

    def reasons(
        self,
        *,
        kind: str | None = None,
        teacher: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> dict[str, int]:
        """How often proposals were rejected for each reason, the most frequent first."""
        where, values = _where(
            [("kind = ?", kind), ("teacher = ?", teacher), ("step >= ?", since), ("step <= ?", until)]
        )
        group = "GROUP BY reason ORDER BY count(*) DESC, reason"
        return dict(self._query(f"SELECT reason, count(*) FROM rejections {where} {group}", values))

    def task(self, step: int, place: int) -> TaskRow | None:
        return next(self._select(TaskRow, [("step = ?", step), ("place = ?", place)]), None)

    def rejection(self, step: int, place: int) -> RejectionRow | None:
        return next(self._select(RejectionRow, [("step = ?", step), ("place = ?", place)]), None)

    def attempts(self, step: int, place: int) -> list[AttemptRow]:
        """All attempts at one task, by student and number."""
        return list(self._select(AttemptRow, [("step = ?", step), ("place = ?", place)], "student, number"))

    def keys(self) -> Iterator[tuple[str, str]]:
        """Kind and near key of every task."""
        return self._query("SELECT kind, near_key FROM tasks ORDER BY step, place")

    def shapes(self) -> Iterator[tuple[str, str, tuple[int, int, int, int], str | None]]:
        """Kind, descriptor, figures of complexity and behaviour that some task had."""
        columns = "kind, descriptor, depth, cyclomatic, lines, variables, behaviour"
        for kind, descriptor, *figures, behaviour in self._query(f"SELECT DISTINCT {columns} FROM tasks"):
            depth, cyclomatic, lines, variables = figures
            yield kind, descriptor, (depth, cyclomatic, lines, variables), behaviour

    def meetings(self) -> Iterator[Meeting]:
        """What a `Board` is made of, in the order in which it was written."""
        return self._select(Meeting, order="step, rowid")

    def events(self) -> Iterator[EventRow]:
        """In the order in which they were written."""
        return self._select(EventRow, order="step, rowid")

    def alarms(self) -> Iterator[AlarmRow]:
        return self._select(AlarmRow, order="step, number")

    def metrics(self, name: str | None = None, subject: str | None = None, kind: str | None = None) -> Iterator[Metric]:
        """By step, subject, kind and name. None takes all; the kind "" is all kinds together."""
        where = [("name = ?", name), ("subject = ?", subject), ("kind = ?", kind)]
        index = None if name is None else "browse_metrics"
        return self._select(Metric, where, "step, subject, kind, name", index=index)

    def timings(self) -> Iterator[Timing]:
        return self._select(Timing, order="step, phase")

    def counts(self) -> dict[str, int]:
        """How many rows each table of the steps has, and how many steps there are."""
        tables = ("steps", *_TABLES.values())
        return {table: self._one(f"SELECT count(*) FROM {table}") for table in tables}

    def copy_to(self, folder: Path) -> None:
        """Put records that are these, as they are now, into a folder that has none yet."""
        path = _vacant(folder)
        with _readable(path), put_in_place(path) as aside, closing(_connect(aside)) as db:
            self._db.backup(db)

    def shrink(self) -> None:
        """Give the room of what was dropped back to the disk."""
        with _readable(self.folder / RECORDS):
            self._db.execute("VACUUM")

    # SQLite

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _readable(self.folder / RECORDS):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back itself where it could not go on.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _query(self, sql: str, values: Iterable[Any] = ()) -> Iterator[Any]:
        with _readable(self.folder / RECORDS):
            yield from self._db.execute(sql, tuple(values))

    def _one(self, sql: str) -> Any:
        return next(self._query(sql))[0]

    def _select(
        self,
        row: type[Row],
        where: Iterable[tuple[str, object]] = (),
        order: str | None = None,
        limit: int | None = None,
        index: str | None = None,
    ) -> Iterator[Row]:
        conditions, values = _where(where)
        sql = f"SELECT {_columns(row)} FROM {_TABLES[row]}"
        # Named, because without statistics the planner prefers the index of the primary key.
        sql += f" INDEXED BY {index}" if index is not None else ""
        sql += f" {conditions}"
        sql += f" ORDER BY {order}" if order is not None else ""
        sql += f" LIMIT {limit:d}" if limit is not None else ""
        decoders = _DECODERS[row]
        for found in self._query(sql, values):
            yield row(*(decode(value) for decode, value in zip(decoders, found, strict=True)))


_BY_PLACE = {False: "step, place", True: "step DESC, place DESC"}


def _where(conditions: Iterable[tuple[str, object]]) -> tuple[str, list[object]]:
    """Those conditions that have a value."""
    asked = [(sql, value) for sql, value in conditions if value is not None]
    return f"WHERE {' AND '.join(sql for sql, _ in asked)}" if asked else "", [value for _, value in asked]


def _insert(db: sqlite3.Connection, rows: Iterable[object]) -> None:
    rows = list(rows)
    if rows:
        names = [field.name for field in fields(type(rows[0]))]  # pyright: ignore[reportArgumentType]
        sql = f"INSERT INTO {_TABLES[type(rows[0])]} ({_columns(type(rows[0]))}) VALUES ({', '.join('?' * len(names))})"
        db.executemany(sql, ([_encoded(getattr(row, name)) for name in names] for row in rows))


def _columns(row: type) -> str:
    return ", ".join(f'"{field.name}"' for field in fields(row))


def _encoded(value: object) -> object:
    match value:
        case int() | float() | None:
            return value
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                # A model may write lone surrogates, which no TEXT can hold: the same column takes their bytes.
                return value.encode("utf-8", "surrogatepass")
            return value
        case Mapping() | tuple() | list():
            return json.dumps(value)
        case _:
            raise TypeError(f"no column holds {type(value).__name__}")


def _text(value: Any) -> Any:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _number(value: Any) -> float:
    """SQLite keeps no NaN: it writes NULL."""
    return math.nan if value is None else value


def _decoder(hint: Any) -> Callable[[Any], Any]:
    if hint in (bool, Result):
        return hint
    if hint is float:
        return _number
    if get_origin(hint) is tuple:
        return lambda value: tuple(json.loads(value))
    if get_origin(hint) is not None and issubclass(get_origin(hint) or object, Mapping):
        return json.loads
    return _text


_DECODERS = {row: [_decoder(hint) for hint in get_type_hints(row).values()] for row in _TABLES}


def _vacant(folder: Path) -> Path:
    path = folder / RECORDS
    if path.exists():
        raise RunError(f"{path} is there already", "name another folder")
    return path


def _connect(place: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=BUSY_SECONDS, isolation_level=None, uri=isinstance(place, str))


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise RunError(
            f"{path} was written by a newer Red Queen (records {version}, this one reads {VERSION})",
            "use that version, or a newer one",
        )
    if version < VERSION:
        raise RunError(f"{path} does not hold the records of a run", "give the folder of a run")


_MENDS = {
    sqlite3.SQLITE_FULL: ("the disk of {path} is full", "free some space and run the same command again"),
    sqlite3.SQLITE_READONLY: ("{path} cannot be written to", "make it writable, or use another folder"),
    sqlite3.SQLITE_CANTOPEN: ("{path} cannot be opened", "mend the rights of its folder, or use another one"),
    sqlite3.SQLITE_PERM: ("{path} cannot be opened", "mend the rights of its folder, or use another one"),
    sqlite3.SQLITE_CORRUPT: ("{path} is damaged", "restore it from a copy, or start another run"),
    sqlite3.SQLITE_NOTADB: ("{path} is damaged", "restore it from a copy, or start another run"),
    sqlite3.SQLITE_BUSY: ("{path} is locked by another program", "close that program and try again"),
    sqlite3.SQLITE_LOCKED: ("{path} is locked by another program", "close that program and try again"),
    sqlite3.SQLITE_IOERR: ("{path} cannot be read or written: {error}", "check its disk and try again"),
    sqlite3.SQLITE_PROTOCOL: ("{path} cannot be locked", "use a disk of this machine"),
}


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the disk does to the records, in one line. What we do wrong stays what it is."""
    try:
        yield
    except UserError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or code & 0xFF not in _MENDS:
            raise
        # The low byte is the kind of error, what is above it the details.
        what, mend = _MENDS[code & 0xFF]
        raise RunError(what.format(path=path, error=error), mend) from None
    except OSError as error:
        raise RunError(f"{path} cannot be read or written: {error.strerror}", "check its disk and its rights") from None
