"""Who sits an exam: from what the user names (runs, PEFT folders, a base) to adapters of one base.

A run's adapters are read from its checkpoint one by one, without their optimisers, which may be larger than the base.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from redqueen.config import load, open_engine
from redqueen.engine import peft
from redqueen.engine.base import config as base_config
from redqueen.engine.known import EMBEDDED, KNOWN
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.measure.distance import difference
from redqueen.phases.race import SOLO
from redqueen.population.members import Role
from redqueen.runs import checkpoints, export
from redqueen.runs.run import CONFIG
from redqueen.runs.store import RECORDS
from redqueen.settings import Config
from redqueen.toml import shown

if TYPE_CHECKING:
    from redqueen.engine.local import LocalEngine

Asked = Literal["students", "teachers", "all"]


@dataclass(frozen=True, slots=True)
class Group:
    """Adapters that are reported together: a run's students or teachers, or a single one."""

    what: str
    """As the user named it."""
    step: int | None
    """Of the run's checkpoint; None for an adapter from elsewhere."""
    role: Role | None
    """None for an adapter that has both, or none that we know of."""
    members: Mapping[str, MemberState]
    """By names that no two of an exam share."""


@dataclass(frozen=True, slots=True)
class Examinees:
    """Everybody."""

    base: str
    """Of all of them."""
    groups: tuple[Group, ...]
    settings: Mapping[str, Config]
    """The runs', by what the user named them."""
    notes: tuple[str, ...]

    @property
    def members(self) -> dict[str, MemberState]:
        return {name: state for group in self.groups for name, state in group.members.items()}


def find(whats: Sequence[str], asked: Asked, options: Config) -> Examinees:
    """Everybody that these runs (`RUN`, `RUN:STEP`), PEFT folders and bases have; they must share one base, which the
    options may name for PEFT folders that call it otherwise."""
    given = options.engine.base if "base" in options.engine.model_fields_set else None
    bases: dict[str, str] = {}
    groups: list[Group] = []
    settings: dict[str, Config] = {}
    notes: list[str] = []
    for what in whats:
        if what in bases:
            raise InputError(f"{what} is named twice", "name it once")
        prefix = f"{what}/" if len(whats) > 1 else ""
        run, step, member = _run(what)
        if run is not None:
            settings[what] = load(str(run / CONFIG))
            checkpoint, told = export.find(run, step)
            notes += told
            if member is None:
                groups += _of_run(what, prefix, checkpoint, settings[what], asked)
            else:
                state = peft.load(export.member_folder(checkpoint, member))
                groups.append(Group(what, export.step_of(checkpoint), None, {what: state}))
            named = settings[what].engine.base
        elif (Path(what) / peft.CONFIG).is_file():
            groups.append(Group(what, None, None, {what: peft.load(what)}))
            named = given or json.loads((Path(what) / peft.CONFIG).read_text()).get("base_model_name_or_path")
            if not isinstance(named, str) or not named:
                raise InputError(f"the adapter in {what} does not say what base it is for", "say it with --engine.base")
        else:
            _base(what)
            named = what
        bases[what] = _one_name(named)
    first, base = next(iter(bases.items()))
    for what, other in bases.items():
        if other != base:
            raise InputError(
                f"{first} is of the base {base}, {what} of {other}", "examine them apart: one base at a time"
            )
    found = Examinees(base, tuple(groups), settings, tuple(notes))
    _fit(found.members)
    return found


def _base(what: str) -> None:
    """Refuse what is no base either."""
    try:
        base_config(what)
    except InputError as error:
        if what in KNOWN or Path(what).expanduser().exists():
            raise
        raise InputError(f"{what} is no run, no member and no PEFT folder, and {error.what}", error.mend) from None


def _run(what: str) -> tuple[Path | None, int | None, str | None]:
    """The folder of the run that is meant, if one is, the step, and the member if only one is meant."""
    if (Path(what) / RECORDS).is_file():
        return Path(what), None, None
    for name, member in ((what, None), (str(Path(what).parent), Path(what).name)):
        if member is not None and (Path(name) / RECORDS).is_file() and not Path(what).exists():
            return Path(name), None, member
        folder, _, step = name.rpartition(":")
        if folder and step.isascii() and step.isdigit() and (Path(folder) / RECORDS).is_file():
            return Path(folder), int(step), member
    return None, None, None


def _of_run(what: str, prefix: str, checkpoint: Path, settings: Config, asked: Asked) -> list[Group]:
    wanted: dict[Role | None, list[str]] = {}
    if settings.population.single:
        wanted[None] = [SOLO]
    else:
        living = checkpoints.population(checkpoint)
        for role in (Role.STUDENT, Role.TEACHER):
            if asked in ("all", f"{role}s"):
                wanted[role] = [member.id for member in living.of(role)]
    folder, step = checkpoint / checkpoints.MEMBERS, export.step_of(checkpoint)
    return [
        Group(what, step, role, {f"{prefix}{id}": peft.load(folder / id) for id in ids}) for role, ids in wanted.items()
    ]


def _one_name(base: str) -> str:
    """What this base is called here: the same for its name and for the folder that it is in."""
    known = {**EMBEDDED, **KNOWN}
    if base in known or not Path(base).expanduser().exists():
        return base
    path = Path(base).expanduser().resolve()
    return next((name for name, each in known.items() if each.folder.resolve() == path), str(path))


def _fit(members: Mapping[str, MemberState]) -> None:
    """Refuse adapters that one engine cannot hold together."""
    for name, state in members.items():
        first, other = next(iter(members.items()))
        if (state.rank, state.alpha) != (other.rank, other.alpha):
            why = f"rank {other.rank} and alpha {other.alpha:g}, {name} {state.rank} and {state.alpha:g}"
            raise InputError(f"{first} has {why}", "examine them apart: they get the same random numbers")
        if why := difference(other, state):
            raise InputError(f"{first} and {name} cannot be examined together: {why}", "examine them apart")


@contextmanager
def seated(examinees: Examinees, settings: Config) -> Iterator["LocalEngine"]:
    """An engine with everybody's adapters, computing as the runs did unless the options say otherwise."""
    runs = examinees.settings
    fitting: dict[str, Any] = {
        "base": examinees.base,
        "dtype": agreed("engine", "dtype", settings, runs, settings.engine.dtype),
    }
    if examinees.members:
        state = next(iter(examinees.members.values()))
        fitting |= {"rank": state.rank, "alpha": state.alpha, "target_modules": tuple(state.factors)}
    with open_engine(settings.engine.model_copy(update=fitting), list(examinees.members)) as engine:
        for name, state in examinees.members.items():
            engine.write(name, state)
        yield engine


def agreed(section: str, name: str, given: Config, runs: Mapping[str, Config], otherwise: Any) -> Any:
    """What the options say; or what the runs say, which must agree; or what there is otherwise."""
    mine = getattr(given, section)
    if name in mine.model_fields_set:
        return getattr(mine, name)
    theirs = {what: getattr(getattr(settings, section), name) for what, settings in runs.items()}
    for what, value in theirs.items():
        first, other = next(iter(theirs.items()))
        if value != other:
            raise InputError(
                f"{first} has {section}.{name} = {shown(other)}, and {what} has {shown(value)}",
                f"say what the exam shall have with --{section}.{name.replace('_', '-')}",
            )
    return next(iter(theirs.values()), otherwise)
