"""`redqueen completion`: Tab completes commands, options, settings, presets, names and the members of runs.

A shell's script asks this program what can stand at the end of a line, so that it knows which plug-ins are installed
and which runs there are. Where nothing is known, the shell completes files as usual.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from redqueen.commands import arguments
from redqueen.commands.command import Command
from redqueen.commands.index import COMMANDS, find_command, group
from redqueen.console import printable
from redqueen.engine.known import BY_NAME
from redqueen.errors import InputError, UserError, did_you_mean
from redqueen.plugins import BENCHMARKS, FAMILIES, OPERATORS, REGISTRIES
from redqueen.runs import CHECKPOINTS
from redqueen.settings import presets, types
from redqueen.ui.trackers import TRACKERS

SCRIPTS = {
    "bash": """\
_redqueen() {
    local IFS=$'\\n'
    COMPREPLY=($("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _redqueen redqueen
""",
    "zsh": """\
_redqueen() {
    local found=(${(f)"$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -Q -- $found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _redqueen redqueen
""",
    "fish": """\
function __redqueen
    set -l line (commandline -opc) (commandline -ct)
    $line[1] completion words -- $line[2..] 2>/dev/null
end
complete -c redqueen -a '(__redqueen)'
""",
}
WORDS = "words"
_ID = re.compile(r"[A-Za-z]+[0-9]*(\.[0-9]+)*")
STANDING_FOR_ONE = ("student", "teacher", "soup")
"""Members of a run that need no id."""


def _arms() -> Iterable[str]:
    from redqueen.training.arms import ARMS, POPULATION

    return [POPULATION, *ARMS]


_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "PRESET": presets,
    "ARM": _arms,
    "BASE": lambda: BY_NAME,
    "BENCHMARK": BENCHMARKS.names,
    "FAMILY": FAMILIES.names,
    "OPERATOR": OPERATORS.names,
}
"""What a word of the help in capitals stands for."""
_SETTINGS: Mapping[str, Callable[[], Iterable[str]]] = {
    "engine.base": lambda: BY_NAME,
    "track.to": lambda: TRACKERS,
    **{registry.setting: registry.names for registry in REGISTRIES},
}


@dataclass(frozen=True, kw_only=True)
class CompletionCommand(Command):
    """Print a script with which Tab completes commands, options, presets and names in a shell."""

    shell: Annotated[str, tyro.conf.arg(metavar="bash|zsh|fish")]
    """The shell. `words` instead prints what could stand in the place of the last WORD, a line each."""
    line: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[-- WORD...]", help_behavior_hint="")] = field(
        metadata={"least": 0}
    )
    """After `words`: a command line up to where Tab is pressed, without the program."""

    def run(self) -> None:
        if self.shell == WORDS:
            for word in candidates(self.line):
                print(printable(word))
            return
        if self.shell not in SCRIPTS:
            known = ", ".join(SCRIPTS)
            raise InputError(f"there is no script for {self.shell}", did_you_mean(self.shell, SCRIPTS, f"use {known}"))
        print(SCRIPTS[self.shell], end="")


def candidates(line: Sequence[str]) -> list[str]:
    """What could stand in the place of the last word of a line, without the names of files."""
    *done, part = line or [""]
    if part == "=":  # bash makes it a word of its own
        part = ""
    done = [word for word in done if word != "="]
    if not done or (len(done) == 1 and group(done[0])):
        names = [name.removeprefix(" ".join([*done, ""])) for name in (group(done[0]) if done else COMMANDS)]
        return _beginning(part, dict.fromkeys(name.partition(" ")[0] for name in names))
    try:
        name, rest = find_command(done)
    except UserError:
        return []
    command = COMMANDS[name].load()
    options, shorts = arguments.options(command), arguments.shorts(command)
    option, attached, value = part.partition("=")
    if attached and option.startswith("--"):
        return [f"{option}={word}" for word in _list(value, _values(command, option))]
    before = shorts.get(rest[-1], rest[-1]) if rest else ""
    if options.get(before) or (before.startswith("--") and "." in before):
        return _list(part, _values(command, before))
    if part.startswith("-"):
        dotted = (f"--{key.replace('_', '-')}" for key in arguments.used_settings(command))
        return _beginning(part, ["--help", *options, *dotted])
    names = [word for each in arguments.positionals(command) for word in _words(each)]
    return _beginning(part, dict.fromkeys(names)) or _members(part)


def _beginning(part: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(part)]


def _list(part: str, words: Iterable[str]) -> list[str]:
    """For the last of several values with commas between them."""
    before, comma, last = part.rpartition(",")
    return [before + comma + word for word in _beginning(last, words)]


def _values(command: type, option: str) -> Iterable[str]:
    """What can follow an option or a setting."""
    key = option.removeprefix("--").replace("-", "_")
    if "." in key:
        if key in _SETTINGS:
            return _SETTINGS[key]()
        kind = types().get(key)
        return ["true", "false"] if kind is bool else _choices(kind)
    return [word for each in arguments.fields_of(command, option) for word in _words(each)]


def _words(field: Field[Any]) -> list[str]:
    """The values that the type of a field names, or its help: small words as they stand, others for what there is."""
    shown = next((mark.metavar for mark in getattr(field.type, "__metadata__", ()) if mark.metavar), "")
    found = _choices(field.type)
    for word in re.findall(r"\w+(?:\.\w+)*", shown):
        found += _NAMES[word]() if word in _NAMES else [word] if word == word.lower() else []
    return list(dict.fromkeys(found))


def _choices(kind: Any) -> list[str]:
    """The values of a Literal, wherever it stands in a type."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    parts = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return [value for part in parts for value in _choices(part)]


def _members(part: str) -> list[str]:
    """The members of the run that stands before the slash, at its newest checkpoint."""
    folder, slash, _ = part.rpartition("/")
    kept = sorted((Path(folder) / CHECKPOINTS).glob("step-*/members")) if slash else []
    # A folder may be somebody else's, and a shell runs what else a name may hold.
    ids = sorted(each.name for each in kept[-1].iterdir() if _ID.fullmatch(each.name)) if kept else []
    return _beginning(part, [f"{folder}/{id}" for id in [*STANDING_FOR_ONE, *ids]]) if kept else []
