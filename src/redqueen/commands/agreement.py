"""What several runs are evaluated with: what the options say, or what all of the runs were trained with."""

from collections.abc import Mapping
from typing import Any

from redqueen.errors import InputError
from redqueen.settings import Config
from redqueen.settings.models import EngineConfig
from redqueen.settings.toml import shown


def agreed(section: str, name: str, given: Config, runs: Mapping[str, Config], otherwise: Any) -> Any:
    """What the options say; or what the runs say, which must agree; or what there is otherwise."""
    mine = getattr(given, section)
    if name in mine.model_fields_set:
        return getattr(mine, name)
    theirs = {what: getattr(getattr(settings, section), name) for what, settings in runs.items()}
    for what, value in theirs.items():
        first, other = next(iter(theirs.items()))
        if value != other:
            raise InputError(
                f"{first} has {section}.{name} = {shown(other)}, and {what} has {shown(value)}",
                f"say what the exam shall have with --{section}.{name.replace('_', '-')}",
            )
    return next(iter(theirs.values()), otherwise)


def agreed_engine(given: Config, runs: Mapping[str, Config]) -> EngineConfig:
    """The engine of the options, which computes as the runs did unless they say otherwise."""
    dtype = agreed("engine", "dtype", given, runs, given.engine.dtype)
    return given.engine.model_copy(update={"dtype": dtype})


def named_base(given: Config) -> str | None:
    """The base that the options name, if they do."""
    return given.engine.base if "base" in given.engine.model_fields_set else None
