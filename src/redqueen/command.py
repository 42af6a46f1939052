"""What all commands have in common: their settings, the values that options may take, and the ways to answer."""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar

import tyro

from redqueen.errors import InputError
from redqueen.settings import Config

if TYPE_CHECKING:
    from rich.console import Console

N = TypeVar("N", int, float)
DEFAULTS = Config()
COMPUTED = ("engine.base", "engine.device", "engine.dtype", "engine.rows")
"""What of the engine is this machine's business, where adapters bring the rest."""
_COUNT = re.compile("[1-9][0-9]{0,8}", re.ASCII)


class Report(Protocol):
    """What a command found out, and the two ways to show it."""

    def as_json(self) -> dict[str, Any]: ...

    def render(self, console: "Console") -> None: ...


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
    settings: Annotated[tyro.conf.FlagConversionOff[Config], tyro.conf.arg(name="")] = DEFAULTS

    @property
    def source(self) -> str | None:
        """Where the settings come from, before the options that win over it."""
        return self.config


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


def span(option: str, text: str) -> tuple[int, int]:
    """The least and the most."""
    low, _, high = text.partition("-")
    if not (_COUNT.fullmatch(low) and _COUNT.fullmatch(high) and int(low) <= int(high)):
        raise InputError(f"{option} cannot be {text}", "write LOW-HIGH, such as 32-256")
    return int(low), int(high)


def printable(text: str, keep: str = "") -> str:
    """`text` with every character that a terminal might obey written as an escape."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer))


def show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
    else:
        report.render(console())


def console() -> "Console":
    from rich.console import Console

    class Plain(Console):
        """A console that leaves a broken pipe to `main`."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)

    return Plain()
