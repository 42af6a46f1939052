"""The tables of a run's records, how they are made, and whether a file has them all.

A file that lacks one was damaged or is another program's: it is refused when it is opened, in one line, and not by
whatever would miss it first.
"""

import sqlite3
from functools import cache
from pathlib import Path

from redqueen.errors import RunError
from redqueen.runs.sqlite import damaged

VERSION = 4
"""Of the schema. Records of older versions, which lack some tables, are read as they are and get them when they are
written to."""

_EVIDENCE = """TABLE evidence (
    step INTEGER NOT NULL, place INTEGER NOT NULL, program TEXT NOT NULL, runs TEXT NOT NULL,
    PRIMARY KEY (step, place))"""
_TIMELINES = "TABLE timelines (step INTEGER PRIMARY KEY, timeline TEXT NOT NULL)"
_WORKERS = """TABLE workers (
    step INTEGER NOT NULL, worker TEXT NOT NULL, machine TEXT NOT NULL, process INTEGER NOT NULL,
    members TEXT NOT NULL, seconds TEXT NOT NULL,
    PRIMARY KEY (step, worker))"""
_WORKER_EVENTS = """TABLE worker_events (
    step INTEGER NOT NULL, time REAL NOT NULL, worker TEXT NOT NULL, what TEXT NOT NULL, cause TEXT NOT NULL)"""
_SINCE = {_EVIDENCE: 2, _TIMELINES: 3, _WORKERS: 4, _WORKER_EVENTS: 4}
"""The version that brought a table."""
_SCHEMA = f"""
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
CREATE {_EVIDENCE};
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
CREATE {_TIMELINES};
CREATE {_WORKERS};
CREATE {_WORKER_EVENTS};
CREATE TABLE journal (key TEXT PRIMARY KEY, step INTEGER NOT NULL, value TEXT NOT NULL);
-- Every filter is answered from the index alone, in order: rows with long texts are read only when they are wanted.
CREATE INDEX browse_tasks ON tasks (step, place, kind, teacher, solved, attempts, trivial, oversight);
CREATE INDEX browse_rejections ON rejections (step, place, kind, teacher, reason);
CREATE INDEX browse_metrics ON metrics (name, step, subject, kind, value);
CREATE INDEX journal_steps ON journal (step);
"""

_PARTS = """
SELECT made.name, part.name FROM sqlite_master AS made, pragma_table_info(made.name) AS part WHERE made.type = 'table'
UNION ALL SELECT name, '' FROM sqlite_master WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite%'"""
"""Tables, indexes but for those that SQLite makes by itself, and tables with each of their columns."""


def make(db: sqlite3.Connection) -> None:
    """All tables in an empty file, or none."""
    db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")


def check(db: sqlite3.Connection, path: Path, *, writable: bool = False) -> None:
    """Refuse what are not the records of a run, whole and of a version that is known here; where they are of an older
    one, have them look like one of this."""
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise RunError(
            f"{path} was written by a newer Red Queen (records {version}, this one reads {VERSION})",
            "use that version, or a newer one",
        )
    if version < 1:
        raise RunError(f"{path} does not hold the records of a run", "give the folder of a run")
    lacking = sorted(_expected(version) - set(db.execute(_PARTS)))
    if whole := [name for name, column in lacking if not column]:
        raise damaged(path, f"it has no {', '.join(whole)}")
    if lacking:
        raise damaged(path, f"it has no {', '.join(map('.'.join, lacking))}")
    newer = _newer(version)
    if newer and writable:
        made = " ".join(f"CREATE {table};" for table in newer)
        db.executescript(f"BEGIN IMMEDIATE; {made} PRAGMA user_version = {VERSION}; COMMIT;")
        return
    for table in newer:
        db.execute(f"CREATE TEMP {table}")  # this connection's own, beside a file that stays as it is


def _newer(version: int) -> list[str]:
    """The tables that records of this version do not have."""
    return [table for table, since in _SINCE.items() if since > version]


@cache
def _expected(version: int) -> frozenset[tuple[str, str]]:
    db = sqlite3.connect(":memory:")
    try:
        make(db)
        for table in _newer(version):
            db.execute(f"DROP {table.partition('(')[0]}")
        return frozenset(db.execute(_PARTS))
    finally:
        db.close()
