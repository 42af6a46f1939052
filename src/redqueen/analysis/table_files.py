"""Rows of a table as a file: JSON lines or Parquet, a row at a time, so that an archive of any size can be written.

A file is whole or it is not there at all.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, get_type_hints

from redqueen.analysis.browse import row_record
from redqueen.errors import ConfigError, InputError
from redqueen.runs.atomic import put_in_place
from redqueen.runs.rows import RejectionRow, TaskRow

AT_ONCE = 1000
"""Rows of a Parquet row group: their texts are in memory together."""

Row = TaskRow | RejectionRow


def write(path: Path, row_type: type[Row], rows: Iterable[Row]) -> int:
    """Write rows of this type to a file that is not there yet; how many there were."""
    if path.suffix not in _WRITERS:
        raise InputError(f"{path} is of no known format", f"use a name that ends in {' or '.join(_WRITERS)}")
    if path.exists():
        raise InputError(f"{path} is there already", "name another file, or remove it")
    writer = _WRITERS[path.suffix]
    try:
        with put_in_place(path) as aside:
            return writer(aside, row_type, rows)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}", "name another file") from None


def _jsonl(path: Path, row_type: type[Row], rows: Iterable[Row]) -> int:
    count = 0
    with path.open("w", encoding="ascii") as file:
        for row in rows:
            file.write(json.dumps(row_record(row)) + "\n")
            count += 1
    return count


def _parquet(path: Path, row_type: type[Row], rows: Iterable[Row]) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError("Parquet files need pyarrow", "pip install 'redqueen[parquet]', or use .jsonl") from None
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    hints = get_type_hints(row_type)
    columns = [(field.name, types.get(hints[field.name], pyarrow.string())) for field in fields(row_type)]
    if row_type is TaskRow:
        columns.append(("solve_rate", pyarrow.float64()))
    schema = pyarrow.schema(columns)
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for some in _in_groups(rows):
            plain = [{name: _cell(value) for name, value in row_record(row).items()} for row in some]
            writer.write_table(pyarrow.Table.from_pylist(plain, schema=schema))
            count += len(some)
    return count


def _in_groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while some := list(islice(left, AT_ONCE)):
        yield some


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        # A model may write lone surrogates, which are not UTF-8.
        return value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value


_WRITERS: dict[str, Callable[[Path, type[Row], Iterable[Row]], int]] = {".jsonl": _jsonl, ".parquet": _parquet}
