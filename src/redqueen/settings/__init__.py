"""The settings of a run: `models` has every section and field, `reading` goes from TOML and overrides to them."""

from redqueen.settings.fields import Affects
from redqueen.settings.models import Config, Section
from redqueen.settings.reading import Overrides, affecting, dump, flat, keys, load, override, presets

__all__ = [
    "Affects",
    "Config",
    "Overrides",
    "Section",
    "affecting",
    "dump",
    "flat",
    "keys",
    "load",
    "override",
    "presets",
]
