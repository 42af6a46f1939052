"""The settings of a run: `models` has every section and field, `reading` goes from TOML and overrides to them."""

from redqueen.settings.fields import Affects
from redqueen.settings.models import Config, Section
from redqueen.settings.reading import (
    BEFORE,
    Overrides,
    affecting,
    dump,
    flat,
    keys,
    load,
    load_run,
    override,
    presets,
    types,
    unwritten,
)

__all__ = [
    "BEFORE",
    "Affects",
    "Config",
    "Overrides",
    "Section",
    "affecting",
    "dump",
    "flat",
    "keys",
    "load",
    "load_run",
    "override",
    "presets",
    "types",
    "unwritten",
]
