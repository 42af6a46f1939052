"""`redqueen export`: a member out of a run."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from redqueen.commands.command import Command
from redqueen.console import printable
from redqueen.errors import InputError
from redqueen.runs.naming import named_in_run

ALL = "all"
"""Every living member."""


@dataclass(frozen=True, kw_only=True)
class ExportCommand(Command):
    """Export a member of a run: as a PEFT folder, or merged into a copy of its base."""

    what: Annotated[str, tyro.conf.arg(metavar="RUN/MEMBER|RUN:STEP/MEMBER")]
    """A member of a run, finished or under way, such as runs/demo/s0.2; `student` and `teacher` mean the best one by
    what `exam` or `eval` found of all of them, by its rating where they found nothing; `soup` is the mean of all
    students, `all` every living member, each in a folder of its own. Without a step the newest checkpoint with whole
    adapters is meant."""
    member: Annotated[str | None, tyro.conf.arg(metavar="ID|student|teacher|soup|all")] = None
    """The member, where the argument is the run alone."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where it is written; the folder must not exist yet."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The dtype of a PEFT folder's weights; bfloat16 takes half the space."""
    base: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The name of the base in the PEFT folder, such as a hub id; by default that of the run."""
    step: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The checkpoint of this step, where the argument has none."""
    scale: float = 1.0
    """What the member's update is multiplied by: less than 1 keeps it nearer to its base."""
    merged: bool = False
    """Write the whole base with the member merged into its weights: a model that needs no PEFT."""

    def run(self) -> None:
        if self.to is None:
            raise InputError("export needs to know where to write the member", "add --to FOLDER")
        if self.to.exists():
            raise InputError(f"{self.to} is there already", "name another folder, or remove it")
        if not 0 < self.scale < math.inf:
            raise InputError(f"--scale cannot be {self.scale:g}", "use a number above 0, such as 0.6")
        if self.base == "":
            raise InputError("--base is empty", "give a name, or leave it out")
        if self.merged and (self.base is not None or self.dtype != "float32"):
            option = "--dtype" if self.base is None else "--base"
            raise InputError(f"{option} is for PEFT folders, and a merged model is none", "leave one of the two out")
        found = named_in_run(self.what, self.member, self.step)
        if found.member is None:
            mend = f"name one, such as {self.what}/student, or teacher, soup, all or an id"
            raise InputError("export needs to know which member", mend)
        import torch

        from redqueen.analysis import export
        from redqueen.evolution.consensus import exported

        checkpoint, notes = export.find(found.run, found.step)
        for note in notes:
            print(printable(note))
        if found.member == ALL:
            members = {id: self.to / id for id in export.members(checkpoint)}
        else:
            id, notes = export.named(found.run, checkpoint, found.member)
            for note in notes:
                print(printable(note))
            members = {id: self.to}
        dtype = torch.bfloat16 if self.dtype == "bfloat16" else None
        scaled = "" if self.scale == 1 else f"its update times {self.scale:g}, "
        merged = "merged into its base, " if self.merged else ""
        told: set[str] = set()
        for member, to in members.items():
            state, like = exported(checkpoint, member)
            if self.merged:
                notes = export.merged(found.run, state.scaled(self.scale), to)
            else:
                notes = export.adapter(
                    found.run, checkpoint, member, state, to,
                    like=like, scale=self.scale, base_name=self.base, dtype=dtype,
                )  # fmt: skip
            for note in notes:
                if note not in told:
                    print(printable(note))
            told.update(notes)
            step = export.step_of(checkpoint)
            print(printable(f"{member}, {scaled}{merged}as it was after step {step}, is in {to}"))
