"""Rows as SQLite keeps them: from a dataclass to a table's columns and back, whatever a model wrote."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, get_origin, get_type_hints

from redqueen.population.board import Meeting
from redqueen.population.ratings import Result
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, Metric, RejectionRow, TaskRow, Timing

TABLES: dict[type, str] = {
    Meeting: "matches",
    TaskRow: "tasks",
    RejectionRow: "rejections",
    AttemptRow: "attempts",
    EventRow: "events",
    AlarmRow: "alarms",
    Metric: "metrics",
    Timing: "timings",
}


def insert(db: sqlite3.Connection, rows: Iterable[object]) -> None:
    rows = list(rows)
    if rows:
        names = [field.name for field in fields(type(rows[0]))]  # pyright: ignore[reportArgumentType]
        sql = f"INSERT INTO {TABLES[type(rows[0])]} ({columns(type(rows[0]))}) VALUES ({', '.join('?' * len(names))})"
        db.executemany(sql, ([_encoded(getattr(row, name)) for name in names] for row in rows))


def columns(row: type) -> str:
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


DECODERS = {row: [_decoder(hint) for hint in get_type_hints(row).values()] for row in TABLES}
