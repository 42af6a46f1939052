"""Who is evaluated: from what the user names (runs, members, PEFT folders, a base) to adapters of one base.

A run's adapters are read from its checkpoint one by one, without their optimisers, which may be larger than the base.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from redqueen.analysis import export
from redqueen.analysis.distance import first_alike
from redqueen.engine import peft
from redqueen.engine.base import config as base_config
from redqueen.engine.known import EMBEDDED, KNOWN
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError
from redqueen.population.members import SOLO, Role
from redqueen.runs import CHECKPOINTS, CONFIG, checkpoints
from redqueen.runs.naming import Named, named
from redqueen.runs.records_file import meant
from redqueen.settings import Config, load_run

if TYPE_CHECKING:
    from redqueen.engine.queued import QueuedEngine

Roles = Literal["students", "teachers", "all"]
"""Whom of a run."""
BARE = ""
"""The bare base among the subjects: no member has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Adapters that are reported together: a run's students or teachers, or a single one."""

    what: str
    """As the user named it."""
    step: int | None
    """Of the run's checkpoint; None for an adapter from elsewhere."""
    role: Role | None
    """None for an adapter that has both, or none that we know of."""
    members: Mapping[str, MemberState]
    """By names that no two of an evaluation share."""
    run: Path | None = None
    """Where they are from; None for an adapter from elsewhere."""

    @property
    def ids(self) -> dict[str, MemberId]:
        """What their run calls them."""
        return {name: name.rpartition("/")[2] for name in self.members}

    @property
    def whole(self) -> bool:
        """Whether it is all that a run has of a role, or its only adapter."""
        return self.run is not None and (self.role is not None or SOLO in self.ids.values())


@dataclass(frozen=True)
class Subjects:
    """Everybody who is evaluated."""

    base: str
    """Of all of them."""
    groups: tuple[Group, ...]
    runs: Mapping[str, Config]
    """The runs' settings, by what the user named them."""
    notes: tuple[str, ...]

    @property
    def members(self) -> dict[str, MemberState]:
        return {name: state for group in self.groups for name, state in group.members.items()}

    @cached_property
    def in_engine(self) -> dict[str, MemberId | None]:
        """As the engine knows them: the bare base first, then every member under its own name, or that of the first
        with its weights. All weights are compared for it, once."""
        return {BARE: None, **first_alike(self.members)}


ReadMember = Callable[[Path, str], MemberState]
"""The weights of a member, or of what is made of several, from a checkpoint."""


def read_member(checkpoint: Path, member: str) -> MemberState:
    return peft.load(export.member_folder(checkpoint, member))


def find_subjects(
    whats: Sequence[str],
    roles: Roles,
    base_name: str | None = None,
    read: ReadMember = read_member,
    every: int | None = None,
) -> Subjects:
    """Everybody that these runs (as `runs.naming` reads them), PEFT folders and bases have; they must share one base.
    `base_name` is for PEFT folders that call it otherwise, `read` for an ID that stands for more than a member. With
    `every` they are runs, each at all its checkpoints of every so many steps."""
    if every is not None:
        whats = [at for what in whats for at in _checkpoints_of(what, every)]
    bases: dict[str, str] = {}
    groups: list[Group] = []
    runs: dict[str, Config] = {}
    notes: list[str] = []
    alone: set[str] = set()
    for what in whats:
        if what in bases:
            raise InputError(f"{what} is named twice", "name it once")
        prefix = f"{what}/" if every is not None or len(whats) > 1 else ""
        of_run = named(what)
        if of_run is not None:
            run = of_run.run
            runs[what] = load_run(run / CONFIG)
            checkpoint, told = export.find(run, of_run.step)
            notes += told
            if of_run.member is None:
                groups += _of_run(what, prefix, run, checkpoint, runs[what], roles)
            else:
                id, told = export.named(run, checkpoint, of_run.member)
                notes += told
                own = f"{what.removesuffix(of_run.member)}{id}"
                if own in alone:
                    raise InputError(f"{own} is named twice", "name it once")
                alone.add(own)
                step, members = export.step_of(checkpoint), {own: read(checkpoint, id)}
                groups.append(Group(what=what, step=step, role=None, members=members, run=run))
            base = runs[what].engine.base
        elif (Path(what) / peft.CONFIG).is_file():
            groups.append(Group(what=what, step=None, role=None, members={what: peft.load(what)}))
            base = base_name or json.loads((Path(what) / peft.CONFIG).read_text()).get("base_model_name_or_path")
            if not isinstance(base, str) or not base:
                raise InputError(f"the adapter in {what} does not say what base it is for", "say it with --engine.base")
        else:
            _base(what)
            base = what
        bases[what] = _one_name(base)
    first, base = next(iter(bases.items()))
    for what, other in bases.items():
        if other != base:
            raise InputError(
                f"{first} is of the base {base}, {what} of {other}", "examine them apart: one base at a time"
            )
    notes += [f"{', '.join(group.members)} have the same weights" for group in groups if _all_alike(group.members)]
    subjects = Subjects(base, tuple(groups), runs, tuple(notes))
    of_one_shape(subjects.members)
    return subjects


def _checkpoints_of(what: str, every: int) -> list[str]:
    """A run at each of its checkpoints of every so many steps, as `find_subjects` takes it."""
    of_run = named(what)
    if of_run is None or of_run != Named(of_run.run):
        raise InputError(f"{what} is not a run folder", "--every is for whole runs: name their folders")
    kept = checkpoints.steps(of_run.run / CHECKPOINTS)
    wanted = [step for step in kept if step % every == 0]
    if not wanted:
        raise InputError(
            f"{what} has no checkpoint of every {every} steps, only of {', '.join(map(str, kept)) or 'none'}",
            "name a divisor of these; a race keeps those of every run.keep_every steps",
        )
    return [f"{what}:{step}" for step in wanted]


def _all_alike(members: Mapping[str, MemberState]) -> bool:
    return len(members) > 1 and len(set(first_alike(members).values())) == 1


def _base(what: str) -> None:
    """Refuse what is no base either."""
    try:
        base_config(what)
    except InputError as error:
        if what in KNOWN or Path(what).expanduser().exists():
            raise
        mend = meant(Path(what)) or error.mend
        raise InputError(f"{what} is not a run folder, a member or a PEFT folder, and {error.what}", mend) from None


def _of_run(what: str, prefix: str, run: Path, checkpoint: Path, settings: Config, roles: Roles) -> list[Group]:
    wanted: dict[Role | None, list[str]] = {}
    if settings.population.single:
        wanted[None] = [SOLO]
    else:
        living = checkpoints.population(checkpoint)
        for role in (Role.STUDENT, Role.TEACHER):
            if roles in ("all", f"{role}s"):
                wanted[role] = [member.id for member in living.of(role)]
    folder, step = checkpoint / checkpoints.MEMBERS, export.step_of(checkpoint)
    return [
        Group(what=what, step=step, role=role, members={f"{prefix}{id}": peft.load(folder / id) for id in ids}, run=run)
        for role, ids in wanted.items()
    ]


def _one_name(base: str) -> str:
    """What this base is called here: the same for its name and for the folder that it is in."""
    known = {**EMBEDDED, **KNOWN}
    if base in known or not Path(base).expanduser().exists():
        return base
    path = Path(base).expanduser().resolve()
    return next((name for name, model in known.items() if model.folder.resolve() == path), str(path))


def of_one_shape(members: Mapping[str, MemberState]) -> dict[str, MemberState]:
    """The same updates as adapters that one engine can hold: of the highest rank, for all modules that one of them
    adapts. Who has that shape stays as it is; adapters of different bases are refused."""
    if not members:
        return {}
    widest = max(members.values(), key=lambda state: state.rank)
    sizes: dict[str, tuple[int, int]] = {}
    for name, state in members.items():
        for module, (a_R_I, b_O_R) in state.factors.items():
            size = a_R_I.shape[1], b_O_R.shape[0]
            if sizes.setdefault(module, size) != size:
                why = f"{module} is {sizes[module]} for others and {size} for it"
                raise InputError(f"{name} is of another base: {why}", "evaluate it with that base, apart")
    return {name: _reshaped(state, widest.rank, widest.alpha, sizes) for name, state in members.items()}


def _reshaped(state: MemberState, rank: int, alpha: float, sizes: Mapping[str, tuple[int, int]]) -> MemberState:
    if (state.rank, state.alpha, state.factors.keys()) == (rank, alpha, sizes.keys()):
        return state
    by = (state.alpha / state.rank) / (alpha / rank)
    factors: dict[str, tuple[Tensor, Tensor]] = {}
    for module, (inputs, outputs) in sizes.items():
        a_R_I, b_O_R = torch.zeros(rank, inputs), torch.zeros(outputs, rank)
        if module in state.factors:
            own_a_R_I, own_b_O_R = state.factors[module]
            a_R_I[: state.rank] = own_a_R_I
            b_O_R[:, : state.rank] = own_b_O_R * by
        factors[module] = a_R_I, b_O_R
    return MemberState(rank=rank, alpha=alpha, factors=factors)


@contextmanager
def open_subjects(subjects: Subjects, settings: "Config") -> Iterator["QueuedEngine"]:
    """An engine with everybody's adapters."""
    from redqueen.cluster.connect import open_members

    fitting: dict[str, Any] = {"base": subjects.base}
    members = of_one_shape(subjects.members)
    if members:
        state = next(iter(members.values()))
        fitting |= {"rank": state.rank, "alpha": state.alpha, "target_modules": tuple(state.factors)}
    parts: dict[str, Any] = {"engine": settings.engine.model_copy(update=fitting)}
    parts |= {"cluster": settings.cluster.model_copy(update={"shards": settings.cluster.workers})}
    settings = settings.model_copy(update=parts)
    with open_members(settings, list(members), trains=False) as engine:
        for name, state in members.items():
            engine.write(name, state)
        yield engine


def computed_on(engine: "QueuedEngine") -> dict[str, str]:
    """What figures depend on in their last bits."""
    return {
        "device": engine.device_type,
        "dtype": str(engine.dtype).removeprefix("torch."),
        "quantise": engine.base.quantise,
    }
