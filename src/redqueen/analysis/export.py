"""A member out of a run: as the PEFT folder that its checkpoint holds, or merged into its base."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from redqueen.analysis.best import best
from redqueen.analysis.card import card
from redqueen.engine import peft
from redqueen.engine.base import config as base_config
from redqueen.engine.base import load as load_base
from redqueen.engine.known import BY_NAME
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError, RunError, UserError
from redqueen.population.members import SOLO, Role
from redqueen.runs import checkpoints
from redqueen.runs.atomic import put_in_place
from redqueen.runs.store import Store
from redqueen.settings import load as load_settings


def find(run: Path, step: int | None, *, optimisers: bool = False) -> tuple[Path, list[str]]:
    """The checkpoint of a step, or the newest with whole adapters, and optimisers where they are wanted; and what
    should be said about the others."""
    Store.read(run).close()
    folder = run / "checkpoints"
    if step is not None:
        path = folder / checkpoints.name(step)
        if not path.is_dir():
            there = ", ".join(map(str, checkpoints.steps(folder)))
            mend = f"its checkpoints are of steps {there}" if there else "it has none yet: let it run on"
            raise InputError(f"{run} has no checkpoint of step {step}", mend)
        if why := checkpoints.damage(path, optimisers=optimisers):
            raise RunError(f"the checkpoint of step {step} is damaged: {why}", "use another step")
        return path, []
    newest, passed_over = checkpoints.newest(folder, optimisers=optimisers)
    notes = [f"{path.name} is damaged ({why}) and was passed over" for path, why in passed_over]
    if newest is None:
        if notes:
            raise RunError(f"{run} has no whole checkpoint: {notes[0]}", "restore one from a copy")
        raise RunError(f"{run} has no checkpoint yet", "it gets one every run.checkpoint_every steps")
    return newest, notes


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def named(run: Path, checkpoint: Path, member: str) -> tuple[str, list[str]]:
    """A member's id, and what should be said about it: `student` and `teacher` stand for the best ones."""
    if member not in tuple(Role):
        return member, []
    if (checkpoint / checkpoints.MEMBERS / SOLO).is_dir():
        return SOLO, []
    id, why = best(run, checkpoints.population(checkpoint), step_of(checkpoint), Role(member))
    return id, [why]


def adapter(
    run: Path,
    checkpoint: Path,
    member: str,
    state: MemberState,
    to: Path,
    *,
    like: Path,
    scale: float,
    base_name: str | None,
    dtype: torch.dtype | None,
) -> list[str]:
    """Write a member as a PEFT folder of its own, its update times `scale`, with a card that says what it is; what
    should be said about it. It adapts what the PEFT folder `like` does."""
    base = base_name or peft.base_of(like)
    # Nobody else knows our own names for bases: PEFT would look for them on the hub.
    own = base_name is None and base in BY_NAME
    loaded = str(BY_NAME[base].folder) if own else base
    notes, told = [], None
    try:
        told = card(run, checkpoint, step_of(checkpoint), member, base, loaded, scale)
    except UserError as error:
        notes.append(f"without a card, since what it is made of cannot be read: {error}")
    peft.save_like(state.scaled(scale), to, like, base_name=loaded, dtype=dtype, card=told)
    if own:
        notes.append(f"it names its base as {loaded}, which is on this machine alone; --base gives it another name")
    return notes


def merged(run: Path, state: MemberState, to: Path) -> list[str]:
    """Write the run's base with a member added to its weights, in the base's own dtype; what should be said about
    it."""
    settings = load_settings(str(run / "config.toml")).engine
    name = settings.base
    # What the run computed in may be more than the base has, or less.
    own = getattr(base_config(name), "dtype", None)
    base = load_base(name, device=torch.device("cpu"), dtype=own if isinstance(own, torch.dtype) else torch.float32)
    merge(base.model, state)
    try:
        to.absolute().parent.mkdir(parents=True, exist_ok=True)
        with put_in_place(to.absolute()) as aside:
            # Its bar would stand in the way of our one line.
            transformers_logging.disable_progress_bar()
            base.model.save_pretrained(aside)
            if base.tokenizer is not None:
                base.tokenizer.save_pretrained(aside)
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        raise InputError(f"{to} cannot be written: {why}", "mend it, or name another folder") from None
    if settings.quantise == "none":
        return []
    return [f"the run had its base in {settings.quantise}, and the member is merged into the base as it was before"]


@torch.no_grad()
def merge(model: torch.nn.Module, state: MemberState) -> None:
    """Add a member to a model's weights, in place: in float32, then rounded once."""
    for module, (a_R_I, b_O_R) in state.factors.items():
        weight_O_I: Any = model.get_submodule(module).weight
        update_O_I = state.alpha / state.rank * (b_O_R.float() @ a_R_I.float())
        weight_O_I.copy_(weight_O_I.float() + update_O_I.to(weight_O_I.device))


def members(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / checkpoints.MEMBERS).iterdir() if path.is_dir())


def member_folder(checkpoint: Path, member: str) -> Path:
    there = members(checkpoint)
    if member not in there:
        raise InputError(
            f"there is no member {member} at step {step_of(checkpoint)}",
            f"the members are {', '.join(there)}; student and teacher are the best ones, soup the mean of all students",
        )
    return checkpoint / checkpoints.MEMBERS / member
