"""The commands by name. None is imported before it is needed, so help and mistakes come at once."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from redqueen.errors import InputError
from redqueen.plugins import about

if TYPE_CHECKING:
    from redqueen.commands.command import Command


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that need not be imported yet: `bench step` is the class `BenchStepCommand` in `bench.py`."""

    name: str

    @property
    def _module(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def _class(self) -> str:
        return f"{self.name.title().replace(' ', '')}Command"

    def load(self) -> "type[Command]":
        return getattr(import_module(f"redqueen.commands.{self._module}"), self._class)

    def about(self) -> str:
        """The first line of its docstring, read without importing it."""
        return about(f"redqueen.commands.{self._module}:{self._class}")


COMMANDS: Mapping[str, CommandEntry] = {
    name: CommandEntry(name)
    for name in (
        "train", "study", "watch", "report", "tasks", "compare", "crossplay", "eval", "exam", "export", "retention",
        "doctor", "verify", "examples", "check", "diversity", "plugins", "operators", "breed", "base list", "base pull",
        "completion",
        "bench verifier", "bench sample", "bench update", "bench members", "bench operators", "bench step",
        "simulate ratings", "simulate lineage",
    )
}  # fmt: skip


def group(first: str) -> dict[str, CommandEntry]:
    return {name: command for name, command in COMMANDS.items() if name.startswith(f"{first} ")}


def find_command(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The name of the command that `argv` begins with, and the words after it."""
    for count in (1, 2):
        name = " ".join(argv[:count])
        if name in COMMANDS:
            return name, list(argv[count:])
    first, *rest = argv
    if first.startswith("-"):
        raise InputError(f"unknown option {first}", "try `redqueen --help`")
    longer = group(first)
    if longer and (not rest or rest[0].startswith("-")):
        known = " or ".join(f"`redqueen {name}`" for name in longer)
        raise InputError(f"{first} needs a second word", f"try {known}")
    given = f"{first} {rest[0]}" if longer else first
    # It may be one word or two, as in `bnech step`.
    found = (difflib.get_close_matches(words, COMMANDS, 1, 0.5) for words in (given, " ".join(argv[:2])))
    close = next(filter(None, found), None)
    mend = f"did you mean `redqueen {close[0]}`?" if close else "try `redqueen --help`"
    raise InputError(f"unknown command {given}", mend)
