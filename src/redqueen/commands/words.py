"""Which command is meant: the words that the command line begins with, and the nearest known ones for a mistake."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TypeVar

from redqueen.errors import InputError

T = TypeVar("T")


def group(first: str, commands: Mapping[str, T]) -> dict[str, T]:
    """The commands of two words that begin with this one."""
    return {name: command for name, command in commands.items() if name.startswith(f"{first} ")}


def match(argv: Sequence[str], commands: Mapping[str, object]) -> tuple[str, list[str]]:
    """The name of the command that `argv` begins with, and the words after it."""
    for count in (1, 2):
        name = " ".join(argv[:count])
        if name in commands:
            return name, list(argv[count:])
    first, *rest = argv
    if first.startswith("-"):
        raise InputError(f"unknown option {first}", "try `redqueen --help`")
    longer = group(first, commands)
    if longer and (not rest or rest[0].startswith("-")):
        known = " or ".join(f"`redqueen {name}`" for name in longer)
        raise InputError(f"{first} needs a further word", f"try {known}")
    given = f"{first} {rest[0]}" if longer else first
    close = difflib.get_close_matches(given, commands, 1, 0.5)
    mend = f"did you mean `redqueen {close[0]}`?" if close else "try `redqueen --help`"
    raise InputError(f"unknown command {given}", mend)
