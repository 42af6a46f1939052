"""What all commands have in common: their settings, their reports, and the values that options may take."""

import re
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import tyro

from redqueen.console import Report, show
from redqueen.errors import InputError
from redqueen.settings import Config

N = TypeVar("N", int, float)
DEFAULTS = Config()
ENGINE_OPTIONS = (
    "engine.base", "engine.device", "engine.dtype", "engine.quantise", "engine.rows", "engine.memory",
    "engine.tensor_parallel",
)  # fmt: skip
"""The engine's settings for commands whose adapters bring the rest."""
CLUSTER_OPTIONS = (
    "cluster.address", "cluster.workers", "cluster.verifiers", "cluster.gpus_per_worker", "cluster.patience_s",
)  # fmt: skip
"""For commands that may have members on a cluster, and no race whose result hangs on their shards."""
Whats = Annotated[
    tuple[str, ...], tyro.conf.arg(metavar="RUN|RUN:STEP|RUN/MEMBER|FOLDER|BASE...", help_behavior_hint="")
]
"""Who is asked: see `runs.naming`."""
_COUNT = re.compile("[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command. Fields with a default are options, the others positional arguments."""

    @abstractmethod
    def run(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Reporting(Command):
    """A command that ends with a report."""

    json: bool = False
    """Print one line of JSON."""

    @abstractmethod
    def report(self) -> Report: ...

    def run(self) -> None:
        show(self.report(), as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class Configured(Command):
    uses: ClassVar[tuple[str, ...] | None] = None
    """The settings that it reads, as sections (`engine`) or keys (`rl.temperature`); None for all."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.toml|PRESET")] = None
    """Settings from a file or a preset. The options below override it."""
    settings: Annotated[Config, tyro.conf.Suppress] = DEFAULTS
    """Read from the dotted options, which tyro sees in the help alone."""

    @property
    def source(self) -> str | None:
        """The settings file or preset, before the options override it."""
        return self.config


@dataclass(frozen=True, kw_only=True)
class OfRace(Configured):
    """A command about races, whose settings may be named first: `redqueen train demo`."""

    preset: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[PRESET|FILE.toml]", help_behavior_hint="")] = field(
        metadata={"least": 0, "most": 1}
    )
    """The settings, as with --config. The defaults when left out."""

    @property
    def source(self) -> str | None:
        if self.preset and self.config is not None:
            raise InputError("the settings are named twice", "leave out --config")
        return self.preset[0] if self.preset else self.config


def positive(option: str, value: N) -> N:
    if not 0 < value < float("inf"):
        raise InputError(f"{option} cannot be {value}", "use a number above 0")
    return value


def optional_positive(option: str, value: N | None) -> N | None:
    return None if value is None else positive(option, value)


def counts(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers, separated by commas."""
    parts = text.split(",")
    if not all(_COUNT.fullmatch(part) for part in parts):
        raise InputError(f"{option} cannot be {text}", "write whole numbers above 0, such as 1,8")
    return tuple(map(int, parts))


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers above 0, separated by commas."""
    try:
        return tuple(positive(option, float(part)) for part in text.split(","))
    except (ValueError, InputError):
        raise InputError(f"{option} cannot be {text}", "write numbers above 0, such as 1e-3,3e-3") from None


def span(option: str, text: str | None) -> tuple[int, int] | None:
    """LOW-HIGH, or None where the option is left out."""
    if text is None:
        return None
    low, _, high = text.partition("-")
    if not (_COUNT.fullmatch(low) and _COUNT.fullmatch(high) and int(low) <= int(high)):
        raise InputError(f"{option} cannot be {text}", "write LOW-HIGH, such as 32-256")
    return int(low), int(high)


def pass_at(attempts: int, k: int | None) -> int:
    """The k of pass@k: the number of attempts when left out."""
    k = attempts if k is None else positive("--k", k)
    if k > attempts:
        raise InputError(f"pass@{k} cannot be computed from {attempts} attempts", f"use --attempts {k} or more")
    return k


def needs(extra: str, *modules: str) -> None:
    """Refuse to go on without these modules, which an extra of the package installs."""
    if missing := [name for name in modules if find_spec(name) is None]:
        raise InputError(f"{', '.join(missing)} must be installed for this", f"run `pip install 'redqueen[{extra}]'`")


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, before the work for it is done."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.absolute().parent}", "make it, or name another file")
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder", "name another file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "name another file") from None


def write_output(path: Path, text: str) -> None:
    from redqueen.runs.atomic import write_text

    try:
        write_text(path, text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "name another file") from None
