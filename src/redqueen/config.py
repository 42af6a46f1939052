"""Settings: frozen models that refuse what they do not know, read from TOML and dotted overrides.

A field's docstring is its help text on the command line. Whatever is wrong with a file or an override
becomes one `ConfigError` that says how to mend it, so no caller ever sees a validator's own report.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, get_args, get_origin

import tyro
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.fields import FieldInfo

from redqueen.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from redqueen.engine.local import LocalEngine
    from redqueen.verifier import LocalVerifier

Overrides = Mapping[str, str] | Sequence[tuple[str, str]]


class Section(BaseModel):
    """What every part of the settings has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class VerifierConfig(Section):
    """How untrusted programs are run."""

    tier: Literal["best", "full", "seccomp"] = "best"
    """The isolation: the strongest that this machine offers, or exactly this one."""
    minimum: Literal["full", "seccomp"] = "seccomp"
    """Refuse to run programs under anything weaker than this."""
    run_unprotected: bool = False
    """Run model-written programs with no isolation where the machine offers none: they can then read, change
    and send whatever you can."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """Programs that run at the same time; one per core when left out."""

    @model_validator(mode="after")
    def _agree(self) -> "VerifierConfig":
        if self.tier == "seccomp" and self.minimum == "full":
            raise ConfigError(
                'verifier.tier = "seccomp" is weaker than verifier.minimum = "full"',
                'set verifier.tier to "best", or verifier.minimum to "seccomp"',
            )
        if self.run_unprotected and (self.tier != "best" or self.minimum == "full"):
            demand = f'verifier.tier = "{self.tier}"' if self.tier != "best" else 'verifier.minimum = "full"'
            raise ConfigError(
                f"verifier.run_unprotected allows no isolation at all, and {demand} demands some",
                "leave one of the two out",
            )
        return self


def _as_tuple(value: Any) -> Any:
    # Settings are frozen, lists in TOML are not.
    return tuple(value) if isinstance(value, list) else value


class EngineConfig(Section):
    """The base, and the shape of its members' adapters."""

    base: str = Field(default="smollm2-135m", min_length=1)
    """The frozen language model: a name that `redqueen base list` knows, a folder, a .gguf file or a hub id."""
    rank: int = Field(default=16, ge=1, le=4096)
    """The rank of every member's adapter."""
    alpha: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """An adapter counts alpha / rank times; twice the rank when left out."""
    target_modules: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...] | None,
        Field(min_length=1, examples=[["q_proj", "v_proj"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,NAME"),
    ] = None
    """The linear layers that are adapted, by the end of their names; all of the base's blocks when left out."""
    rows: int | None = Field(default=None, ge=1, le=65536)
    """Completions that grow at the same time; as many as suit the device when left out."""
    device: Literal["best", "cuda", "cpu"] = "best"
    """Where models run: CUDA if there is any, or exactly this one."""
    dtype: Literal["best", "bfloat16", "float32"] = "best"
    """What the base computes in: bfloat16 on CUDA and float32 on the CPU, or exactly this one."""


class PopulationConfig(Section):
    """Who races."""

    teachers: int = Field(default=4, ge=1, le=1024)
    """Members that propose tasks."""
    students: int = Field(default=4, ge=1, le=1024)
    """Members that solve them."""


class MatchConfig(Section):
    """Who meets whom, and who wins."""

    maker: Literal["pfsp", "uniform", "round_robin", "all"] = "pfsp"
    """How a teacher gets its student: preferably one of its own strength, any, each in turn, or all at once."""
    panel: int | None = Field(default=None, ge=1, le=1024)
    """Students who attempt a teacher's tasks; one when left out, and all of them with the maker "all"."""
    exclude: Annotated[
        tuple[str, ...],
        Field(examples=[["t0:s0", "t1:s1"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="t0:s0,t1:s1"),
    ] = ()
    """Seats that never meet, by the founders' names; whoever takes such a seat later inherits this."""
    rule: Literal["ours", "paper"] = "ours"
    """What counts in a match: "ours" leaves out tasks that nobody solved and calls a draw what chance explains,
    "paper" compares the plain solve rate with the expected one."""

    @model_validator(mode="after")
    def _agree(self) -> "MatchConfig":
        for entry in self.exclude:
            if not re.fullmatch("t[0-9]+:s[0-9]+", entry, re.ASCII):
                raise ConfigError(
                    f"match.exclude cannot hold {_shown(entry, quote=True)}",
                    "name a teacher's seat and a student's, such as \"t0:s0\"",
                )
        return self

    @property
    def kept_apart(self) -> frozenset[tuple[str, str]]:
        """The excluded pairs, as a teacher's seat and a student's."""
        return frozenset((teacher, student) for teacher, _, student in (each.partition(":") for each in self.exclude))


class EvolutionConfig(Section):
    """Who is replaced, and by whom."""

    every: int = Field(default=10, ge=0, le=1_000_000)
    """Steps from one replacement to the next; 0 turns evolution off."""
    share: float = Field(default=0.25, gt=0, lt=1, allow_inf_nan=False)
    """The part of each role that is replaced, rounded down, but one at least."""
    elites: int = Field(default=1, ge=0, le=1024)
    """Members of each role, its best, that are never replaced."""
    fitness: Literal["rating", "reward", "rate"] = "rating"
    """What makes a member good: its rating, its mean reward since the last replacement, or its solve rate (a
    teacher's: the rate at which it stumps) over the opponents it met."""
    selection: Literal["truncation", "tournament", "sharing"] = "truncation"
    """How parents are chosen: any of the best, the best of three, or the best with crowds of similar ones marked
    down."""
    rule: Literal["ours", "paper"] = "ours"
    """Who dies: "ours" the lowest rating's mean once it is old enough, its child starting at its role's mean;
    "paper" the lowest bound, newborns included, its child starting from the prior."""
    operators: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(min_length=1, examples=[["dare", "my.py:NAME"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,FILE.py:NAME"),
    ] = (
        "spectral",
        "slot_noise",
        "component_mask",
        "full_noise",
        "dare",
        "layer_wise",
        "svd_subspace",
        "extrapolation",
    )
    """What makes a child of its parents, each as likely as the next: names, or FILE.py:NAME for one of your own."""
    inject: bool = False
    """Put a fresh member in the place of one that dies when its role has become too much alike."""


class RlConfig(Section):
    """How members learn."""

    update: Literal["reinforce", "none"] = "reinforce"
    """What changes weights from step to step: the rewards, or nothing, which leaves them to evolution alone."""


class Config(Section):
    """All settings of a run."""

    verifier: VerifierConfig = VerifierConfig()
    engine: EngineConfig = EngineConfig()
    population: PopulationConfig = PopulationConfig()
    match: MatchConfig = MatchConfig()
    evolution: EvolutionConfig = EvolutionConfig()
    rl: RlConfig = RlConfig()

    @model_validator(mode="after")
    def _agree(self) -> "Config":
        self._matches_can_be_made()
        for role, count in (("teachers", self.population.teachers), ("students", self.population.students)):
            if self.evolution.every and count > 1 and self.evolution.elites >= count:
                raise ConfigError(
                    f"evolution.elites = {self.evolution.elites} spares all of population.{role} = {count}",
                    "use fewer elites, or turn evolution off with evolution.every = 0",
                )
        if self.rl.update == "none":
            if self.evolution.every == 0:
                raise ConfigError(
                    'with rl.update = "none" and evolution.every = 0 nothing would ever change',
                    "let one of the two work",
                )
            if self.population.teachers == self.population.students == 1:
                raise ConfigError(
                    'rl.update = "none" leaves everything to evolution, which replaces nobody in a role of one',
                    "set population.teachers or population.students to 2 or more",
                )
            if "fisher" in self.evolution.operators:
                raise ConfigError(
                    'the operator "fisher" in evolution.operators weighs by the optimiser\'s moments, and with '
                    'rl.update = "none" there are none',
                    "leave one of the two out",
                )
        return self

    def _matches_can_be_made(self) -> None:
        teachers = [f"t{index}" for index in range(self.population.teachers)]
        students = [f"s{index}" for index in range(self.population.students)]
        panel = self.match.panel or 1
        if panel > len(students):
            raise ConfigError(
                f"match.panel = {panel} wants more students than population.students = {len(students)}",
                f"use a panel of at most {len(students)}, or more students",
            )
        apart = self.match.kept_apart
        for seats, seated in ((teachers, [t for t, _ in apart]), (students, [s for _, s in apart])):
            for seat in sorted(set(seated) - set(seats)):
                raise ConfigError(
                    f"match.exclude names {_shown(seat)}, and there is no such seat",
                    f"the seats are {seats[0]} to {seats[-1]}" if len(seats) > 1 else f"the only one is {seats[0]}",
                )
        for seat in students if apart else ():
            if all((teacher, seat) in apart for teacher in teachers):
                raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
        for seat in teachers if apart else ():
            left = sum((seat, student) not in apart for student in students)
            if left == 0:
                raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
            if left < panel:
                raise ConfigError(
                    f"match.panel = {panel} wants more students than match.exclude leaves to {seat}",
                    f"use a panel of at most {left}, or exclude fewer pairs",
                )


def open_verifier(settings: VerifierConfig) -> "LocalVerifier":
    """A running pool as the settings ask for it. Close it, or use it in a `with` statement."""
    from redqueen.verifier import LocalVerifier, Tier

    return LocalVerifier(
        tier=None if settings.tier == "best" else Tier(settings.tier),
        minimum=Tier(settings.minimum),
        run_unprotected=settings.run_unprotected,
        workers=settings.workers,
    )


def open_engine(settings: EngineConfig, members: Sequence[str]) -> "LocalEngine":
    """The base with these members, as the settings ask for it. Close it, or use it in a `with` statement."""
    from redqueen.engine.base import load as load_base
    from redqueen.engine.local import LocalEngine

    device, dtype = place(settings)
    return LocalEngine(
        load_base(settings.base, device=device, dtype=dtype),
        members=members,
        rank=settings.rank,
        alpha=settings.alpha,
        target_modules=settings.target_modules,
        rows=settings.rows,
    )


def place(settings: EngineConfig) -> "tuple[torch.device, torch.dtype]":
    """The device and the dtype that the settings come to on this machine."""
    import torch

    cuda = torch.cuda.is_available()
    if settings.device == "cuda" and not cuda:
        raise ConfigError(
            'engine.device is "cuda", and torch finds no CUDA device here',
            'set engine.device to "best" or "cpu"; `redqueen doctor` says what is missing',
        )
    device = torch.device("cuda" if cuda and settings.device != "cpu" else "cpu")
    if settings.dtype != "best":
        return device, torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32
    return device, torch.bfloat16 if device.type == "cuda" else torch.float32


def presets() -> list[str]:
    """The names of the settings files that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _preset_folder().iterdir() if p.name.endswith(".toml"))


def load(source: str | None = None, overrides: Overrides = ()) -> Config:
    """The settings from `source` (a preset's name or the path of a .toml file), with `overrides` on top.

    An override is a dotted key and its value as text: `("verifier.minimum", "full")`.
    """
    data = {} if source is None else _read(source)
    pairs = overrides.items() if isinstance(overrides, Mapping) else overrides
    overridden = {_override(data, key, text) for key, text in pairs}
    try:
        return Config.model_validate(data, strict=True)
    except ValidationError as error:
        _refuse(error, source, overridden)


def dump(config: Config) -> str:
    """TOML text that `load` reads back as an equal `Config`."""
    return to_toml(config.model_dump(exclude_none=True))


def to_toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A table of plain values, lists of them and further tables as TOML."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in inner]
    if path:
        lines.insert(0, f"[{'.'.join(_key(part) for part in path)}]")
    blocks = ["\n".join(lines) + "\n"] if lines else []
    return "\n".join(blocks + [to_toml(value, (*path, key)) for key, value in inner.items()])


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are TOML's, but for DEL, which TOML wants escaped as well.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(_value(item) for item in value)}]"
        case _:
            raise TypeError(f"no TOML for {type(value).__name__}")


def _preset_folder() -> Traversable:
    return files("redqueen") / "presets"


def _read(source: str) -> dict[str, Any]:
    place = _preset_folder() / f"{source}.toml" if source in presets() else Path(source)
    name = _shown(source)
    try:
        return tomllib.loads(place.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"there is no settings file {name}",
            f"give the path of a .toml file or one of the presets ({', '.join(presets())})",
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


def _override(data: dict[str, Any], key: str, text: str) -> str:
    """Put one override into `data`; its dotted key as the models spell it."""
    key = key.replace("-", "_")
    field = dict(_fields(Config)).get(key)
    if field is None or _section(field) is not None:
        raise ConfigError(f"unknown setting {_shown(key)}", _nearest(key))
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
    if _is_list(field):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    try:
        kind: Any = field.annotation
        return TypeAdapter(kind).validate_strings(text)
    except ValidationError:
        return text


def _is_list(field: FieldInfo) -> bool:
    return any(get_origin(kind) is tuple for kind in (field.annotation, *get_args(field.annotation)))


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _fields(model: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield prefix + name, field
        section = _section(field)
        if section is not None:
            yield from _fields(section, f"{prefix}{name}.")


def _refuse(error: ValidationError, source: str | None, overridden: set[str]) -> NoReturn:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    # What is wrong with an item of a list is wrong with the setting.
    mine = any(key == name or key.startswith(f"{name}.") for name in overridden)
    where = f"{_shown(source)}: " if source is not None and not mine else ""
    if first["type"] == "extra_forbidden":
        raise ConfigError(f"{where}unknown setting {_shown(key)}", _nearest(key)) from None
    raise ConfigError(f"{where}{key} cannot be {_shown(first['input'], quote=True)}", _remedy(first)) from None


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
            examples = dict(_fields(Config))[".".join(map(str, error["loc"]))].examples or [[]]
            return f"write a list, such as {_value(examples[0])}"
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
    close = difflib.get_close_matches(key, known, 1) or [
        by_last[last] for last in difflib.get_close_matches(key.rpartition(".")[2], by_last, 1)
    ]
    if close:
        return f"did you mean {close[0]}?"
    return f"the settings are {', '.join(name for name, field in _fields(Config) if _section(field) is None)}"


def _shown(value: object, *, quote: bool = False) -> str:
    """A value for a message, as TOML would have it: one line, printable, short."""
    if isinstance(value, int) and value.bit_length() > 64:
        # `repr` of a very large number would run into Python's limit on digits; hexadecimal has none.
        text = hex(value)
    elif isinstance(value, str):
        plain = bool(value) and value.isprintable() and " " not in value and not quote
        text = value if plain else f'"{value}"' if value.isprintable() else repr(value)
    else:
        text = _value(value) if isinstance(value, bool | int | float) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
