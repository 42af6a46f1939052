"""The settings that a run was begun with, beside those that are asked for. Nothing heavy is imported: a mistake is told
at once."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from redqueen.errors import RunError
from redqueen.settings import BEFORE, Config
from redqueen.settings.toml import value_text


def settled(path: Path, wanted_toml: str, free: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings in a run's file, and those wanted. Others than it was begun with are refused, but for the free."""
    try:
        here = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}", "restore it from a copy") from None
    wanted = tomllib.loads(wanted_toml)
    differ = differences(here, wanted, free)
    if differ:
        raise RunError(
            f"{path.parent} was begun with other settings: {'; '.join(differ)}",
            "leave them as they are, name another folder, or fork the run",
        )
    return here, wanted


def differences(here: Mapping[str, Any], wanted: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    """How two tables of settings differ, a line for each dotted key that is not free. A key that one of them lacks, as
    one that was written by an older version may, is there as that version behaved."""
    usual = {**dict(_flat(Config().model_dump(mode="json", exclude_none=True))), **BEFORE}
    ours, theirs = usual | dict(_flat(here)), usual | dict(_flat(wanted))
    return [
        f"{key}: {_shown(ours.get(key))} here, {_shown(theirs.get(key))} asked"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key) and not any(key == name or key.startswith(f"{name}.") for name in free)
    ]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _shown(value: object) -> str:
    return "none" if value is None else value_text(value)
