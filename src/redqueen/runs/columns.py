"""Rows as SQLite keeps them: from a dataclass to a table's columns and back, whatever a model wrote."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from redqueen.population.board import Meeting
from redqueen.runs.rows import (
    AlarmRow,
    AttemptRow,
    EventRow,
    EvidenceRow,
    MetricRow,
    RejectionRow,
    TaskRow,
    TimelineRow,
    Timing,
    WorkerEventRow,
    WorkerRow,
)

TABLES: dict[type, str] = {
    Meeting: "matches",
    TaskRow: "tasks",
    RejectionRow: "rejections",
    EvidenceRow: "evidence",
    AttemptRow: "attempts",
    EventRow: "events",
    AlarmRow: "alarms",
    MetricRow: "metrics",
    Timing: "timings",
    TimelineRow: "timelines",
    WorkerRow: "workers",
    WorkerEventRow: "worker_events",
}
LASTING = (WorkerEventRow,)
"""Rows that are not part of a step: they stay when it is forgotten."""
BESIDE = {RejectionRow: EvidenceRow}
"""Rows whose last fields are in a table of their own, under the same step and place."""


def insert(db: sqlite3.Connection, rows: Iterable[object]) -> None:
    rows = list(rows)
    if rows:
        made = type(rows[0])
        names = _own(made)
        sql = f"INSERT INTO {TABLES[made]} ({_listed(names)}) VALUES ({', '.join('?' * len(names))})"
        db.executemany(sql, ([_encoded(getattr(row, name)) for name in names] for row in rows))


def select(row: type, index: str | None = None) -> str:
    """Everything that rows of this type have, from their table and from the one beside it."""
    sql = f"SELECT {_listed(_names(row))} FROM {TABLES[row]}"
    # Named, because without statistics the planner prefers the index of the primary key.
    sql += f" INDEXED BY {index}" if index is not None else ""
    return sql + (f" LEFT JOIN {TABLES[BESIDE[row]]} USING (step, place)" if row in BESIDE else "")


def _names(row: type) -> list[str]:
    return [field.name for field in fields(row)]


def _own(row: type) -> list[str]:
    """The fields that are columns of the row's own table."""
    beside = set(_names(BESIDE[row])) - {"step", "place"} if row in BESIDE else set()
    return [name for name in _names(row) if name not in beside]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


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


def _whole(value: Any) -> int:
    # SQLite lets any column hold anything.
    if not isinstance(value, int):
        raise ValueError("what is no whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise ValueError("what is no text")
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _number(value: Any) -> float:
    """SQLite keeps no NaN: it writes NULL."""
    if not isinstance(value, int | float | None):
        raise ValueError("what is no number")
    return math.nan if value is None else value


def _json(value: Any, wanted: type = object) -> Any:
    try:
        decoded = json.loads(_text(value))
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    if not isinstance(decoded, wanted):
        raise ValueError(f"JSON that is no {wanted.__name__}")
    return decoded


_DECODERS: dict[Any, Callable[[Any], Any]] = {
    int: _whole,
    str: _text,
    float: _number,
    object: _json,
    bool: lambda value: bool(_whole(value)),
}


@cache
def decoder(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of this type of what a column holds; `object` is any JSON. It raises a ValueError that says
    what the column holds instead."""
    if hint in _DECODERS:
        return _DECODERS[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if isinstance(hint, UnionType):
        [inner] = (decoder(option) for option in get_args(hint) if option is not NoneType)
        return lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        return lambda value: tuple(map(_text, _json(value, list)))
    return lambda value: _json(value, dict)


HINTS = {row: get_type_hints(row) for row in TABLES}
