"""The settings of a run: `models` has every section and field, `reading` goes from TOML and overrides to them."""

from redqueen.settings.models import Config, Section
from redqueen.settings.reading import Overrides, dump, keys, load, override, presets

__all__ = ["Config", "Overrides", "Section", "dump", "keys", "load", "override", "presets"]
