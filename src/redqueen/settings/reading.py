"""Settings from TOML and dotted overrides.

Whatever is wrong with a file or an override becomes one `ConfigError` that says how to mend it, so no caller ever sees
a validator's own report.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from redqueen.errors import ConfigError, did_you_mean, nearest
from redqueen.settings.fields import Affects
from redqueen.settings.models import Config, Section
from redqueen.settings.toml import shown, to_toml, value_text

Overrides = Mapping[str, str] | Sequence[tuple[str, str]]

BEFORE: Mapping[str, str] = {
    "guard.shortcuts": "allow",
    "guard.drift_ceiling": "0",
    "tasks.briefs": "false",
    "evolution.scatter": "0",
}
"""How runs behaved before a setting existed, by its dotted name, where that is not today's default."""


def presets() -> list[str]:
    """The names of the settings files that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _preset_folder().iterdir() if p.name.endswith(".toml"))


def load(source: str | None = None, overrides: Overrides = ()) -> Config:
    """The settings from `source` (a preset's name or the path of a .toml file), with `overrides` on top.

    An override is a dotted key and its value as text: `("verifier.minimum", "full")`.
    """
    return _overridden({} if source is None else _read(source), overrides, source)


def load_run(path: Path) -> Config:
    """The settings that a run wrote down. One that its version did not have yet is as the run behaved."""
    return _overridden(_read(str(path)), unwritten(path), str(path))


def unwritten(path: Path) -> dict[str, str]:
    """How a run behaved where its settings lack one that its version did not have yet, as overrides."""
    data = _read(str(path))
    return {key: value for key, value in BEFORE.items() if not _has(data, key)}


def override(config: Config, overrides: Overrides) -> Config:
    """The settings with `overrides` on top."""
    return _overridden(config.model_dump(), overrides, None)


def _overridden(data: dict[str, Any], overrides: Overrides, source: str | None) -> Config:
    pairs = overrides.items() if isinstance(overrides, Mapping) else overrides
    overridden = {_override(data, key, text) for key, text in pairs}
    try:
        return Config.model_validate(data, strict=True)
    except ValidationError as error:
        _refuse(error, source, overridden)


def keys() -> frozenset[str]:
    """The dotted names of all settings."""
    return frozenset(key for key, field in _fields(Config) if section_of(field) is None)


def types() -> dict[str, Any]:
    """The type of each setting, by its dotted name."""
    return {key: field.annotation for key, field in _fields(Config) if section_of(field) is None}


def affecting(*effects: Affects) -> frozenset[str]:
    """The dotted names of the settings that affect this, as their fields say."""
    return frozenset(key for key, effect in _effects(Config) if effect in effects)


def _effects(
    model: type[Section], prefix: str = "", inherited: Affects = Affects.RACE
) -> Iterator[tuple[str, Affects]]:
    for name, field in model.model_fields.items():
        effect = next((mark for mark in field.metadata if isinstance(mark, Affects)), inherited)
        section = section_of(field)
        if section is None:
            yield prefix + name, effect
        else:
            yield from _effects(section, f"{prefix}{name}.", effect)


def flat(config: Config) -> dict[str, Any]:
    """Every setting by its dotted name, in the order of the models."""
    values = config.model_dump()
    return {key: reduce(lambda table, part: table[part], key.split("."), values) for key, _ in _effects(Config)}


def dump(config: Config, without: Iterable[str] = ()) -> str:
    """TOML text that `load` reads back as an equal `Config`, but for settings that are left out, by dotted name."""
    tables = config.model_dump(exclude_none=True)
    for section, _, name in (key.partition(".") for key in without):
        del tables[section][name]
    return to_toml(tables)


def _preset_folder() -> Traversable:
    return files("redqueen.settings") / "presets"


def _read(source: str) -> dict[str, Any]:
    place = _preset_folder() / f"{source}.toml" if source in presets() else Path(source)
    name = shown(source)
    try:
        return tomllib.loads(place.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        known = presets()
        raise ConfigError(
            f"there is no settings file {name}",
            did_you_mean(source, known, f"give the path of a .toml file or one of the presets ({', '.join(known)})"),
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not UTF-8 text", "give a .toml file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {error}", "mend it there") from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply", "write plain sections and keys") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"{name} cannot be read: {reason}", "give a readable .toml file") from None


def _has(data: Mapping[str, Any], key: str) -> bool:
    *sections, last = key.split(".")
    for section in sections:
        data = data.get(section, {})
        if not isinstance(data, dict):
            return True  # which validation refuses
    return last in data


def _override(data: dict[str, Any], key: str, text: str) -> str:
    """Put one override into `data`; its dotted key as the models spell it."""
    key = key.replace("-", "_")
    field = dict(_fields(Config)).get(key)
    if field is None or section_of(field) is not None:
        raise ConfigError(f"unknown setting {shown(key)}", _nearest(key))
    *path, last = key.split(".")
    table = data
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            # The file has a plain value where a section belongs: validation says so.
            return key
    table[last] = _from_text(field, text)
    return key


def _from_text(field: FieldInfo, text: str) -> Any:
    """The value that `text` means for this field, or the text itself for validation to refuse."""
    if text.lower() == "none" and field.default is None:
        return None
    if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("whole"):
        return [text] if text else []
    if _is_list(field.annotation):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    try:
        kind: Any = field.annotation
        return TypeAdapter(kind).validate_strings(text)
    except ValidationError:
        return text


def _is_list(kind: Any) -> bool:
    """Whether it is one, or may be one."""
    return get_origin(kind) is tuple or any(map(_is_list, get_args(kind)))


def section_of(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _fields(model: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield prefix + name, field
        section = section_of(field)
        if section is not None:
            yield from _fields(section, f"{prefix}{name}.")


def _refuse(error: ValidationError, source: str | None, overridden: set[str]) -> NoReturn:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    # What is wrong with an item of a list is wrong with the setting.
    mine = any(key == name or key.startswith(f"{name}.") for name in overridden)
    where = f"{shown(source)}: " if source is not None and not mine else ""
    if first["type"] == "extra_forbidden":
        raise ConfigError(f"{where}unknown setting {shown(key)}", _nearest(key)) from None
    raise ConfigError(f"{where}{key} cannot be {shown(first['input'], quote=True)}", _remedy(first)) from None


def _remedy(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error":
            return f"use {context['expected']}"
        case "greater_than_equal":
            return f"use {context['ge']} or more"
        case "greater_than":
            return f"use a number above {context['gt']:g}"
        case "less_than_equal":
            return f"use {context['le']} or less"
        case "less_than":
            return f"use a number below {context['lt']:g}"
        case "float_type" | "float_parsing":
            return "use a number"
        case "tuple_type":
            field = dict(_fields(Config))[".".join(map(str, error["loc"]))]
            return f"write a list, such as {value_text((field.examples or [field.default])[0])}"
        case "too_short":
            return "name at least one, or leave it out"
        case "int_type" | "int_parsing" | "int_from_float":
            return "use a whole number"
        case "string_type":
            return "write it in quotes"
        case "string_too_short":
            return "write a name"
        case "bool_type" | "bool_parsing":
            return "use true or false"
        case "model_type" | "model_attributes_type":
            return f"write it as a section, [{'.'.join(map(str, error['loc']))}]"
        case _:
            return error["msg"][:1].lower() + error["msg"][1:]


def _nearest(key: str) -> str:
    """What to do about an unknown key: the known one that looks like it, or all there are."""
    known = [name for name, _ in _fields(Config) if name != key]
    by_last = {name.rpartition(".")[2]: name for name in known}
    close = nearest(key, known) or by_last.get(nearest(key.rpartition(".")[2], by_last) or "")
    if close:
        return f"did you mean {close}?"
    return f"the settings are {', '.join(name for name, field in _fields(Config) if section_of(field) is None)}"
