"""Small files of results beside a run's records: a list of rows, written whole or not at all."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from redqueen.errors import InputError
from redqueen.runs.atomic import write_text

R = TypeVar("R")


def write(path: Path, rows: Sequence[Any]) -> None:
    write_text(path, json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def read(path: Path, kind: type[R], again: str) -> list[R]:
    """The rows; none where there is no file. `again` says how to get a new one."""
    if not path.is_file():
        return []
    try:
        return [kind(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise InputError(f"{path} cannot be read", f"remove it, and {again}") from None
