"""The records of a run, in SQLite: written a step at a time, read by anybody at any time.

A step is there whole or not at all, and on the disk before `write` returns, so that no checkpoint can be newer than
the records that it stands on. Readers never wait for the writer, nor it for them.
"""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from redqueen.errors import InputError, RunError
from redqueen.population.board import Meeting, Tally
from redqueen.population.members import Role
from redqueen.population.ratings import Result
from redqueen.runs.atomic import put_in_place
from redqueen.runs.columns import HINTS, TABLES, decoder, insert, select
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, Metric, RejectionRow, StepRecord, TaskRow, Timing
from redqueen.runs.schema import check, make
from redqueen.runs.sqlite import connect, damaged, readable

RECORDS = "records.sqlite"
_SAVED = "saved"
"""The fact that is the run's own business: of which step its newest checkpoint is."""
_AT_ONCE = 500
"""Keys in one query: SQLite bounds how many a statement may have."""

Row = TypeVar("Row")


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
            found = path.is_file()
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error.strerror}", "give the folder of a run") from None
        if not found:
            raise InputError(f"{folder} is no run: there is no {RECORDS} in it", "give the folder of a run")
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
                    for each in (path, log):
                        shutil.copyfile(each, Path(aside.name, each.name))
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
                [each.evidence for each in record.rejections if each.evidence is not None],
                record.attempts,
                record.events,
                record.alarms,
                record.metrics,
                timings,
            ):
                insert(db, rows)

    def add_timing(self, step: int, phase: str, seconds: float) -> None:
        """What is known only after the step was written."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO timings VALUES (?, ?, ?)", (step, phase, seconds))

    def drop_after(self, step: int) -> None:
        """Forget the steps after this one; the journal stays."""
        with self._transaction() as db:
            for table in ("steps", *TABLES.values()):
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

    def mark_saved(self, step: int) -> None:
        """There is a checkpoint of this step: if none can be found one day, they are lost and not yet to be made."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_SAVED, str(step)))

    # Reading

    def last_step(self) -> int:
        """The last whole step; 0 before the first."""
        return self._count("SELECT coalesce(max(step), 0) FROM steps")

    def saved(self) -> bool:
        """Whether there ever was a checkpoint."""
        return self._count("SELECT count(*) FROM facts WHERE name = ?", (_SAVED,)) > 0

    def facts(self) -> dict[str, str]:
        return dict(self._query("SELECT name, value FROM facts WHERE name <> ? ORDER BY name", [str, str], [_SAVED]))

    def journal_get(self, keys: Collection[str]) -> dict[str, Any]:
        """Those of the keys that have an entry, and its value."""
        wanted, found = list(dict.fromkeys(keys)), {}
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT key, value FROM journal WHERE key IN ({marks})"
            found.update(self._query(sql, [str, object], some))
        return {key: found[key] for key in wanted if key in found}

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
        before: tuple[int, int] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[TaskRow]:
        """The tasks that fit every filter, one at a time, by step and place.

        `since` and `until` are steps and belong to the range; `before` is a step and a place and does not. A task
        without attempts has no solve rate, and fits none.
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
            *_before(before),
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
        before: tuple[int, int] | None = None,
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
            *_before(before),
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
        return dict(self._query(f"SELECT reason, count(*) FROM rejections {where} {group}", [str, int], values))

    def outline(self) -> Iterator[tuple[int, int, str, int, int, bool]]:
        """Step, place, kind, solved, attempts and whether its difficulty counts: every task, from the index alone."""
        columns = "step, place, kind, solved, attempts, trivial IS NULL"
        sql = f"SELECT {columns} FROM tasks INDEXED BY browse_tasks ORDER BY step, place"
        return self._query(sql, [int, int, str, int, int, bool])

    def task(self, step: int, place: int) -> TaskRow | None:
        return next(self._select(TaskRow, [("step = ?", step), ("place = ?", place)]), None)

    def rejection(self, step: int, place: int) -> RejectionRow | None:
        return next(self._select(RejectionRow, [("step = ?", step), ("place = ?", place)]), None)

    def attempts(self, step: int, place: int) -> list[AttemptRow]:
        """All attempts at one task, by student and number."""
        return list(self._select(AttemptRow, [("step = ?", step), ("place = ?", place)], "student, number"))

    def keys(self) -> Iterator[tuple[str, str]]:
        """Kind and near key of every task."""
        return self._query("SELECT kind, near_key FROM tasks ORDER BY step, place", [str, str])

    def shapes(self) -> Iterator[tuple[str, str, tuple[int, int, int, int], str | None]]:
        """Kind, descriptor, figures of complexity and behaviour that some task had."""
        columns = "kind, descriptor, depth, cyclomatic, lines, variables, behaviour"
        hints = [str, str, int, int, int, int, str | None]
        for kind, descriptor, *figures, behaviour in self._query(f"SELECT DISTINCT {columns} FROM tasks", hints):
            depth, cyclomatic, lines, variables = figures
            yield kind, descriptor, (depth, cyclomatic, lines, variables), behaviour

    def meetings(self) -> Iterator[Meeting]:
        """What a `Board` is made of, in the order in which it was written."""
        return self._select(Meeting, order="step, rowid")

    def events(self) -> Iterator[EventRow]:
        """In the order in which they were written."""
        return self._select(EventRow, order="step, rowid")

    def alarms(self, newest: int | None = None) -> list[AlarmRow]:
        """In the order in which they were written; of many the newest."""
        return list(self._select(AlarmRow, order="step DESC, number DESC", limit=newest))[::-1]

    def players(self) -> dict[str, Role]:
        """Everybody who has played, by role and name."""
        sides = [(role, f"SELECT DISTINCT {role} FROM matches ORDER BY 1") for role in Role]
        return {member: role for role, sql in sides for (member,) in self._query(sql, [str])}

    def tallies(self, since: int, until: int) -> dict[tuple[str, str], Tally]:
        """What teachers and students did against each other in these steps, by teacher and student."""
        found: dict[tuple[str, str], Tally] = {}
        hints = [str, str, Result, *[int] * 6]
        for teacher, student, result, matches, *sums in self._query(_TALLIES, hints, (since, until)):
            won = {f"{result}_wins" if result != Result.DRAW else "draws": matches}
            counted = dict(zip(("tasks", "unsolved", "attempts", "unsolved_attempts", "solved"), sums, strict=True))
            pair = teacher, student
            found[pair] = found.get(pair, Tally()) + Tally(matches=matches, **won, **counted)
        return found

    def figures(self, name: str, since: int, by_kind: str) -> Iterator[tuple[str, str, int, float | None]]:
        """Subject, kind, step and value of a metric after a step, from the index alone: of all kinds together, and of
        the subject `by_kind` also each kind's."""
        columns = "subject, kind, step, value FROM metrics INDEXED BY browse_metrics"
        wanted = "name = ? AND step > ? AND (kind = '' OR subject = ?)"
        sql = f"SELECT {columns} WHERE {wanted} ORDER BY step"
        return self._query(sql, [str, str, int, float | None], (name, since, by_kind))

    def metrics(self, name: str | None = None, subject: str | None = None, kind: str | None = None) -> Iterator[Metric]:
        """By step, subject, kind and name. None takes all; the kind "" is all kinds together."""
        where = [("name = ?", name), ("subject = ?", subject), ("kind = ?", kind)]
        index = None if name is None else "browse_metrics"
        return self._select(Metric, where, "step, subject, kind, name", index=index)

    def timings(self, since: int = 0) -> Iterator[Timing]:
        """After a step."""
        return self._select(Timing, [("step > ?", since)], order="step, phase")

    def counts(self, *only: str) -> dict[str, int]:
        """How many rows each table of the steps has, and how many steps there are; or those tables alone."""
        tables = only or ("steps", *TABLES.values())
        return {table: self._count(f"SELECT count(*) FROM {table}") for table in tables}

    def copy_to(self, folder: Path) -> None:
        """Put records that are these, as they are now, into a folder that has none yet."""
        path = _vacant(folder)
        with readable(path), put_in_place(path) as aside, closing(connect(aside)) as db:
            self._db.backup(db)

    def shrink(self) -> None:
        """Give the room of what was dropped back to the disk."""
        with readable(self.folder / RECORDS):
            self._db.execute("VACUUM")

    # SQLite

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
            for found in self._db.execute(sql, tuple(values)):
                try:
                    yield tuple(decode(value) for decode, value in zip(decoders, found, strict=True))
                except ValueError as error:
                    raise damaged(path, f"it holds {error}") from None

    def _count(self, sql: str, values: Iterable[Any] = ()) -> int:
        return next(self._query(sql, [int], values))[0]

    def _select(
        self,
        row: type[Row],
        where: Iterable[tuple[str, object]] = (),
        order: str | None = None,
        limit: int | None = None,
        index: str | None = None,
    ) -> Iterator[Row]:
        conditions, values = _where(where)
        sql = f"{select(row, index)} {conditions}"
        sql += f" ORDER BY {order}" if order is not None else ""
        sql += f" LIMIT {limit:d}" if limit is not None else ""
        for found in self._query(sql, HINTS[row].values(), values):
            yield row(**dict(zip(HINTS[row], found, strict=True)))


_TALLIES = """
SELECT teacher, student, match_result, count(*), sum(tasks), sum(unsolved), sum(attempts), sum(unsolved_attempts),
    sum(solved)
FROM (SELECT teacher, student, match_result, sum(tasks) AS tasks, sum(unsolved) AS unsolved, sum(attempts) AS attempts,
        sum(unsolved_attempts) AS unsolved_attempts, sum(solved) AS solved
    FROM matches WHERE step BETWEEN ? AND ? GROUP BY step, match)
GROUP BY teacher, student, match_result"""
_BY_PLACE = {False: "step, place", True: "step DESC, place DESC"}


def _before(place: tuple[int, int] | None) -> list[tuple[str, object]]:
    if place is None:
        return []
    step, number = place
    return [("step <= ?", step), (f"(step < {step:d} OR place < ?)", number)]


def _where(conditions: Iterable[tuple[str, object]]) -> tuple[str, list[object]]:
    """Those conditions that have a value."""
    asked = [(sql, value) for sql, value in conditions if value is not None]
    return f"WHERE {' AND '.join(sql for sql, _ in asked)}" if asked else "", [value for _, value in asked]


def _vacant(folder: Path) -> Path:
    path = folder / RECORDS
    if path.exists():
        raise RunError(f"{path} is there already", "name another folder")
    return path
