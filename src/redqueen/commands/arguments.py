"""Reading the command line: the options of a command, and dotted overrides of the settings.

A command is a frozen dataclass; tyro writes its help and converts its values. The words are matched here first,
because a mistake must come back as one line with the nearest known word, and because the value of an option may begin
with a dash (`--input -5`).
"""

import contextlib
import dataclasses
import io
import re
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from pydantic import create_model

from redqueen.commands.command import Configured
from redqueen.errors import InputError, nearest
from redqueen.settings import Config, Section, keys, load
from redqueen.settings.fields import Metavar
from redqueen.settings.reading import section_of

C = TypeVar("C")

_MARKERS = (
    tyro.conf.PositionalRequiredArgs,
    tyro.conf.FlagCreatePairsOff,
    # Without it `--config None` would mean that there is no settings file.
    tyro.conf.DisallowNone,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read(command: type[C], name: str, words: Sequence[str]) -> C | None:
    """The command with its options and settings; None if `--help` was asked for, which has been printed."""
    plain, overrides = _split(command, name, words)
    shown = _with_used_settings(command) if plain in (["-h"], ["--help"]) else command
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            parsed = tyro.cli(shown, prog=f"redqueen {name}", args=plain, config=_MARKERS)
    except SystemExit as stop:
        if not stop.code:
            return None
        raise InputError(_one_line(errors.getvalue()), _see(name)) from None
    if not isinstance(parsed, Configured):
        return parsed
    # It imports tasks and the verifier, which commands without settings do without.
    from redqueen.training.checks import check, with_kinds

    settings = with_kinds(load(parsed.source, overrides))
    check(settings)
    return dataclasses.replace(parsed, settings=settings)


def _split(command: type, name: str, words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Arguments for tyro, each option joined to its value, apart from the dotted overrides."""
    known, short = options(command), shorts(command)
    positional: list[str] = []
    plain: list[str] = []
    overrides: list[tuple[str, str]] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("-h", "--help"):
            return [word], []
        if word == "--":
            positional += left
            break
        if not word.startswith("-") or word == "-":
            positional.append(word)
            continue
        option, attached, value = word.partition("=")
        option = short.get(option, option)
        dotted = option.startswith("--") and "." in option
        takes_value = dotted or known.get(option)
        if takes_value is None:
            raise InputError(f"unknown option {option}", _meant(command, name, option))
        if not takes_value:
            if attached:
                raise InputError(f"{option} takes no value", f"leave out ={value}")
            plain.append(option)
            continue
        if not attached:
            if not left:
                raise InputError(f"{option} needs a value", _see(name))
            value = left.pop(0)
        if dotted:
            _check_used(command, name, option)
            overrides.append((option.removeprefix("--"), value))
        else:
            plain.append(f"{option}={value}")
    _count(command, name, positional)
    return [*plain, "--", *positional], overrides


def _meant(command: type, name: str, option: str) -> str:
    """What an unknown option may have been meant to be: one of the command's, or a setting without its section."""
    spelled: dict[str, list[str]] = {each.removeprefix("--"): [each] for each in options(command)}
    for key in used_settings(command):
        dotted = key.replace("_", "-")
        for word in (dotted.rpartition(".")[2], dotted.replace(".", "-")):
            spelled.setdefault(word, []).append(f"--{dotted}")
    close = nearest(option.lstrip("-"), spelled)
    return _see(name) if close is None else f"did you mean {' or '.join(spelled[close])}?"


def used_settings(command: type) -> list[str]:
    """The dotted names of the settings that a command reads."""
    if not issubclass(command, Configured):
        return []
    return sorted(key for key in keys() if command.uses is None or {key, key.partition(".")[0]} & set(command.uses))


def _check_used(command: type, name: str, option: str) -> None:
    """Refuse a setting that the command does not read. Unknown settings are refused where settings are read."""
    if not issubclass(command, Configured):
        raise InputError(f"{name} has no settings, so {option} cannot be used", _see(name))
    key = option.removeprefix("--").replace("-", "_")
    if key in keys() and key not in used_settings(command):
        raise InputError(f"{name} does not use {option}", f"leave it out, or {_see(name)}")


def _with_used_settings(command: type[C]) -> type[C]:
    """The command with its settings as fields, for its help."""
    if not issubclass(command, Configured):
        return command
    used: Any = _part(Config, command.uses)
    kind = Annotated[tyro.conf.FlagConversionOff[used], tyro.conf.arg(name="")]
    fields = [("settings", kind, used())]
    shown = dataclasses.make_dataclass(command.__name__, fields, bases=(command,), frozen=True, kw_only=True)
    shown.__doc__ = command.__doc__
    return shown


def _part(model: type[Section], uses: Collection[str] | None, prefix: str = "") -> type[Section]:
    """A model of the used settings alone; None for all."""
    fields: dict[str, Any] = {}
    kinds = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        key, section = prefix + name, section_of(field)
        whole = uses is None or key in uses
        if section is None and whole:
            metavar = next((mark.text for mark in field.metadata if isinstance(mark, Metavar)), None)
            # As one line: tyro would keep the breaks of the docstring.
            help_text = " ".join((field.description or "").split())
            fields[name] = (Annotated[kinds[name], tyro.conf.arg(metavar=metavar, help=help_text)], field)
        elif section is not None and (whole or any(used.startswith(f"{key}.") for used in uses or ())):
            part = _part(section, None if whole else uses, f"{key}.")
            fields[name] = (part, part())
    return create_model(model.__name__, __base__=Section, __doc__=model.__doc__, **fields)


def _count(command: type, name: str, positional: Sequence[str]) -> None:
    needed = positionals(command)
    least = sum(field.metadata.get("least", 1) for field in needed)
    if len(positional) < least:
        raise InputError(f"{name} needs {needed[len(positional)].name.upper()}", _see(name))
    most = sum(field.metadata.get("most", float("inf") if _takes_rest(field) else 1) for field in needed)
    if len(positional) > most:
        raise InputError(f"unexpected argument {positional[int(most)]}", _see(name))


def _takes_rest(field: dataclasses.Field[Any]) -> bool:
    """Whether an argument takes several words (`tuple[Path, ...]`), as only the last one may. The field's metadata may
    give the `least` and `most` number of words; otherwise one or more."""
    hint = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
    return get_origin(hint) is tuple


def options(command: type) -> dict[str, bool]:
    """The options of a command, and whether each takes a value. A field without a default is positional."""
    return {
        f"--{_option_name(field)}": field.type is not bool
        for field in dataclasses.fields(command)
        if field.default is not dataclasses.MISSING and not isinstance(field.default, Config)
    }


def positionals(command: type) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(command) if field.default is dataclasses.MISSING]


def fields_of(command: type, option: str) -> list[dataclasses.Field[Any]]:
    """The field that an option is for, if the command has the option."""
    return [field for field in dataclasses.fields(command) if f"--{_option_name(field)}" == option]


def shorts(command: type) -> dict[str, str]:
    """Short spellings of options, such as `-o`."""
    return {
        short: f"--{_option_name(field)}"
        for field in dataclasses.fields(command)
        for marker in getattr(field.type, "__metadata__", ())
        for short in getattr(marker, "aliases", None) or ()
    }


def _option_name(field: dataclasses.Field[Any]) -> str:
    """The name that the field's annotation gives it, or else the field's own."""
    names = [getattr(marker, "name", None) for marker in getattr(field.type, "__metadata__", ())]
    return next((name for name in names if name), field.name.replace("_", "-"))


def _one_line(box: str) -> str:
    """The first paragraph of tyro's boxed error message, as one line."""
    lines = [_COLOUR.sub("", line).strip("│╭╮╰╯ ") for line in box.splitlines()[1:]]
    parts = [" ".join(part) for is_text, part in groupby(lines, lambda line: bool(line.strip("─-"))) if is_text]
    return " ".join(parts[0].split()).rstrip(".") if parts else "these arguments cannot be used"


def _see(name: str) -> str:
    return f"try `redqueen {name} --help`"
