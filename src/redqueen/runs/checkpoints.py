"""Checkpoints: everything that a race needs to go on, in one folder for each step that was saved.

    checkpoints/step-000120/{members/<id>/ (PEFT), optimiser.safetensors, state.json, SHA256SUMS}

A folder of this name was whole when it got it, and its checksums tell whether it still is. One that is not is passed
over and kept: what is left of it may be worth something to its owner.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from redqueen.engine import peft
from redqueen.engine.protocol import MemberId, MemberState, OptimiserState
from redqueen.errors import Fault, InputError, RunError
from redqueen.population.members import Population, restore
from redqueen.runs.atomic import beside, clear_away, clear_leftovers, flush_entry, put_in_place

MEMBERS = "members"
OPTIMISER = "optimiser.safetensors"
STATE = "state.json"
SUMS = "SHA256SUMS"
_FOLDER = re.compile(r"step-([0-9]{6,})")
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a checkpoint holds."""

    step: int
    state: Mapping[str, Any]
    """The loop's own, as plain values."""
    members: Mapping[MemberId, MemberState]
    """In the order in which they were saved."""


def name(step: int) -> str:
    return f"step-{step:06d}"


def population(folder: Path) -> Population:
    """Whom a checkpoint holds, with their ratings; it is for the caller to know that it is whole."""
    with _loadable(folder):
        return restore(json.loads((folder / STATE).read_text())["state"]["population"])


def save(
    folder: Path,
    step: int,
    state: Mapping[str, Any],
    members: Mapping[MemberId, MemberState],
    *,
    base_name: str,
    modules: Iterable[str],
) -> Path:
    """Write the checkpoint of a step into `folder`, the one that holds a run's checkpoints.

    What has its name already was passed over when the run was resumed: it is moved aside, and kept.
    """
    for id, member in members.items():
        if not _ID.fullmatch(id):
            raise Fault(f"a member called {id!r} cannot be a folder")
        if not all(bool(factor.isfinite().all()) for pair in member.factors.values() for factor in pair):
            # It would not load again.
            raise Fault(f"the weights of {id} are not finite")
    modules = list(modules)
    path = folder / name(step)
    with _plain(f"the checkpoint of step {step} cannot be written"), put_in_place(path) as aside:
        aside.mkdir()
        (aside / MEMBERS).mkdir()
        for id, member in members.items():
            peft.save(member, aside / MEMBERS / id, base_name=base_name, modules=modules)
        save_file(_moments(members), aside / OPTIMISER)
        # The modules in their order, which a file of tensors does not keep.
        order = {id: list(member.factors) for id, member in members.items()}
        whole_state = {"step": step, "members": order, "state": state}
        (aside / STATE).write_text(json.dumps(whole_state) + "\n")
        files = sorted(file.relative_to(aside).as_posix() for file in aside.rglob("*") if file.is_file())
        (aside / SUMS).write_text("".join(f"{_sum(aside / file)}  {file}\n" for file in files))
        if path.exists():
            set_aside(path)
    return path


def load(path: Path) -> Loaded:
    """The checkpoint in this folder, of which `damage` found nothing, optimisers included."""
    with _loadable(path):
        saved = json.loads((path / STATE).read_text())
        moments = load_file(path / OPTIMISER)
        members = {}
        for id, modules in saved["members"].items():
            bare = peft.load(path / MEMBERS / id)
            factors = {module: bare.factors[module] for module in modules}
            members[id] = MemberState(bare.rank, bare.alpha, factors, _optimiser(id, modules, moments))
        return Loaded(saved["step"], dict(saved["state"]), members)


def copy(path: Path, folder: Path) -> None:
    """Put a copy of a checkpoint into another folder of checkpoints, which has none of this step."""
    with _plain(f"{path} cannot be copied"), put_in_place(folder / path.name) as aside:
        for file in sorted(filter(Path.is_file, path.rglob("*"))):
            to = aside / file.relative_to(path)
            to.parent.mkdir(parents=True, exist_ok=True)
            # Without its rights: a copy of what is read-only is the run's own to prune.
            shutil.copyfile(file, to)
        if (why := damage(aside)) is not None:
            raise RunError(f"{path} cannot be copied: {why}", "use the checkpoint of another step")


def whole(path: Path) -> bool:
    return damage(path) is None


def damage(path: Path, *, optimisers: bool = True) -> str | None:
    """What is wrong with a checkpoint, by its checksums; None when it is whole. Without the optimisers' moments, two
    thirds of it, when they will not be read."""
    try:
        sums = _sums(path)
        if sums is None:
            return f"{SUMS} is damaged"
        ids = [member.name for member in (path / MEMBERS).iterdir() if member.is_dir()]
        files = [f"{MEMBERS}/{id}/{file}" for id in ids for file in (peft.CONFIG, peft.WEIGHTS)]
        for file in sorted({OPTIMISER, STATE, *files} - sums.keys()):
            # A list that was cut off between two lines still reads well.
            return f"{SUMS} does not list {file}"
        read = {file: expected for file, expected in sums.items() if optimisers or file != OPTIMISER}
        for file in read:
            if not (path / file).is_file():
                return f"{file} is missing"
        # Checksums are made without the interpreter: many adapters on many cores.
        with ThreadPoolExecutor() as pool:
            for file, found in zip(read, pool.map(lambda file: _sum(path / file), read), strict=True):
                if found != read[file]:
                    return f"{file} has changed"
    except UnicodeDecodeError:
        return f"{SUMS} is damaged"
    except OSError as error:
        return f"{Path(error.filename).name if error.filename else path.name}: {error.strerror}"
    return None


def alike(path: Path, members: Collection[MemberId]) -> bool:
    """Whether all of these members of a whole checkpoint have the same weights, as after averaging."""
    sums = _sums(path) or {}
    return len({sums.get(f"{MEMBERS}/{id}/{peft.WEIGHTS}", id) for id in members}) == 1


def _sums(path: Path) -> dict[str, str] | None:
    """The checksums of its files; None where the list of them is damaged."""
    # A line that has lost its end is none.
    *lines, _ = (path / SUMS).read_bytes().decode().split("\n")
    matches = [_SUM.fullmatch(line) for line in lines]
    sums = {match[2]: match[1] for match in matches if match is not None}
    return sums if len(sums) == len(lines) else None


def steps(folder: Path) -> list[int]:
    """The steps that have a checkpoint, whole or not, in order."""
    if not folder.is_dir():
        return []
    names = [_FOLDER.fullmatch(path.name) for path in folder.iterdir()]
    return sorted(int(match[1]) for match in names if match is not None)


def newest(
    folder: Path, until: int = sys.maxsize, *, optimisers: bool = True
) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest whole checkpoint up to a step, and the damaged ones after it, each with what is wrong with it; with or
    without the optimisers, as for `damage`."""
    passed_over: list[tuple[Path, str]] = []
    for step in reversed([saved for saved in steps(folder) if saved <= until]):
        path = folder / name(step)
        why = damage(path, optimisers=optimisers)
        if why is None:
            return path, passed_over
        passed_over.append((path, why))
    return None, passed_over


def set_aside(path: Path) -> Path:
    """Take the name of a checkpoint that cannot be used away from it."""
    aside = beside(path, "unused")
    os.rename(path, aside)
    flush_entry(path.parent)
    return aside


def prune(folder: Path, last: int, every: int, *, known: Collection[int] = ()) -> set[int]:
    """Remove all whole checkpoints but the newest `last` and those of each `every`-th step (0: of none).

    `known` are steps whose checkpoints are known to be whole: reading them all again at every save would take longer
    than the save. Gives the steps that are known to be whole now. Damaged ones stay.
    """
    if last < 1:
        raise Fault("a run without a checkpoint cannot be resumed")
    sound: set[int] = set()
    recent = 0
    with _plain(f"old checkpoints in {folder} cannot be removed"):
        clear_leftovers(folder)
        for step in reversed(steps(folder)):
            path = folder / name(step)
            kept = bool(every) and step % every == 0
            if kept and recent >= last:
                sound |= {step} & set(known)
            elif step in known or whole(path):
                recent += 1
                if kept or recent <= last:
                    sound.add(step)
                else:
                    clear_away(path)
    return sound


def _moments(members: Mapping[MemberId, MemberState]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for id, member in members.items():
        if (optimiser := member.optimiser) is None:
            continue
        tensors[f"{id}/step"] = torch.tensor(optimiser.step, dtype=torch.int64)
        for moment, modules in zip(_MOMENTS, (optimiser.exp_avg, optimiser.exp_avg_sq), strict=True):
            for module, pair in modules.items():
                for factor, tensor in zip("AB", pair, strict=True):
                    # A copy, because a file of tensors holds none that share memory.
                    copied = tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
                    tensors[f"{id}/{module}/{moment}/{factor}"] = copied
    return tensors


def _optimiser(id: MemberId, modules: Iterable[str], moments: Mapping[str, Tensor]) -> OptimiserState | None:
    if f"{id}/step" not in moments:
        return None
    exp_avg, exp_avg_sq = (
        {
            # Copies: what the file holds is mapped, not read, and the file will be removed one day.
            module: (moments[f"{id}/{module}/{moment}/A"].clone(), moments[f"{id}/{module}/{moment}/B"].clone())
            for module in modules
        }
        for moment in _MOMENTS
    )
    return OptimiserState(int(moments[f"{id}/step"]), exp_avg, exp_avg_sq)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError, InputError,
)  # fmt: skip
"""What comes of files that are not what we write."""


@contextmanager
def _loadable(path: Path) -> Iterator[None]:
    """What is wrong with a checkpoint's content, in one line."""
    try:
        yield
    except _UNREADABLE as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"{path} cannot be loaded: {why}", "remove it to go on from an older checkpoint") from None


@contextmanager
def _plain(what: str) -> Iterator[None]:
    """What the disk says, in one line."""
    try:
        yield
    except (OSError, SafetensorError, InputError) as error:
        why = error.what if isinstance(error, InputError) else getattr(error, "strerror", None) or str(error)
        mend = "mend that and run the same command again: it goes on from the last whole checkpoint"
        raise RunError(f"{what}: {why.splitlines()[0]}", mend) from None
