"""What all commands have in common: their settings, and the values that options may take."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeVar

import tyro

from redqueen.errors import InputError
from redqueen.settings import Config

N = TypeVar("N", int, float)
DEFAULTS = Config()
COMPUTED = ("engine.base", "engine.device", "engine.dtype", "engine.rows")
"""What of the engine is this machine's business, where adapters bring the rest."""
_COUNT = re.compile("[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """One command: its fields are its options, those without a default its arguments."""

    @abstractmethod
    def run(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Configured(Command):
    """A command that has settings."""

    uses: ClassVar[tuple[str, ...] | None] = None
    """Which it looks at, sections (`engine`) or single ones (`rl.temperature`); None for all of them."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.toml|PRESET")] = None
    """Settings from a file or a preset; the options below win over it."""
    settings: Annotated[Config, tyro.conf.Suppress] = DEFAULTS
    """Read from the dotted options, which tyro sees in the help alone."""

    @property
    def source(self) -> str | None:
        """Where the settings come from, before the options that win over it."""
        return self.config


@dataclass(frozen=True, kw_only=True)
class OfRace(Configured):
    """A command about races, whose settings may be named first: `redqueen train demo`."""

    preset: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[PRESET|FILE.toml]", help_behavior_hint="")] = field(
        metadata={"least": 0, "most": 1}
    )
    """The settings, as with --config; the defaults when left out."""

    @property
    def source(self) -> str | None:
        if self.preset and self.config is not None:
            raise InputError("the settings are named twice", "leave out --config")
        return self.preset[0] if self.preset else self.config


def positive(option: str, value: N) -> N:
    if not 0 < value < float("inf"):
        raise InputError(f"{option} cannot be {value}", "use a number above 0")
    return value


def counts(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers, separated by commas."""
    parts = text.split(",")
    if not all(_COUNT.fullmatch(part) for part in parts):
        raise InputError(f"{option} cannot be {text}", "write whole numbers above 0, such as 1,8")
    return tuple(map(int, parts))


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers above 0, separated by commas."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 < value < float("inf") for value in values):
        raise InputError(f"{option} cannot be {text}", "write numbers above 0, such as 1e-3,3e-3")
    return values


def span(option: str, text: str) -> tuple[int, int]:
    """The least and the most."""
    low, _, high = text.partition("-")
    if not (_COUNT.fullmatch(low) and _COUNT.fullmatch(high) and int(low) <= int(high)):
        raise InputError(f"{option} cannot be {text}", "write LOW-HIGH, such as 32-256")
    return int(low), int(high)
