"""`redqueen retention`: do children recover their parent's reward?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Reporting, positive
from redqueen.console import Report
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RetentionCommand(Reporting):
    """Test how many updates a member's children need to reach its reward, for each operator.

    Children of every operator in the run's settings, of two controls and fresh members train from a checkpoint. The
    run itself is not changed. Where all members of the role are alike, as after averaging, crossovers are left out.
    """

    run_folder: Annotated[Path, tyro.conf.arg(name="run", metavar="RUN")]
    """The run."""
    member: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """The parent, such as s0."""
    step: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The checkpoint of this step; the newest when left out."""
    children: int = 3
    """Children of each operator."""
    updates: int = 20
    """How many updates they train for."""

    def report(self) -> Report:
        from redqueen.evolution.retention import WINDOW
        from redqueen.training.retention import measure_retention

        if self.updates < WINDOW:
            raise InputError(f"--updates cannot be {self.updates}", f"use {WINDOW} or more")
        if self.member is None:
            raise InputError("retention needs --member", "name one of the run's living members, such as s0")
        children = positive("--children", self.children)
        return measure_retention(self.run_folder, self.step, self.member, children, self.updates)
