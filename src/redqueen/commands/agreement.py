"""The settings that several runs are evaluated with: those of the options, or those that all runs were trained with."""

from collections.abc import Mapping
from typing import Any

from redqueen.errors import InputError
from redqueen.settings import Config
from redqueen.settings.toml import shown


def agreed(section: str, name: str, options: Config, runs: Mapping[str, Config], default: Any) -> Any:
    """The value in the options, or else the one that all runs share, or else the default."""
    if name in getattr(options, section).model_fields_set:
        return getattr(getattr(options, section), name)
    values = {run: getattr(getattr(settings, section), name) for run, settings in runs.items()}
    first = next(iter(values), "")
    for run, value in values.items():
        if value != values[first]:
            raise InputError(
                f"{first} has {section}.{name} = {shown(values[first])}, and {run} has {shown(value)}",
                f"choose one with --{section}.{name.replace('_', '-')}",
            )
    return values.get(first, default)


def agreed_engine(options: Config, runs: Mapping[str, Config]) -> Config:
    """The options, with the runs' dtype and quantisation unless they name others."""
    own = {name: agreed("engine", name, options, runs, getattr(options.engine, name)) for name in ("dtype", "quantise")}
    engine = options.engine.model_copy(update=own)
    engine.refuse()
    return options.model_copy(update={"engine": engine})


def named_base(options: Config) -> str | None:
    return options.engine.base if "base" in options.engine.model_fields_set else None
