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
    member: Annotated[str | None, tyro.conf.arg(metavar="ID|student|teacher")] = None
    """The parent, such as s0.2; `student` and `teacher` mean the best one, as in `export`."""
    step: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The checkpoint of this step; the newest when left out."""
    children: int = 3
    """Children of each operator."""
    updates: int = 20
    """How many updates they train for."""

    def report(self) -> Report:
        if self.member is None:
            mend = "name one of the run's living members, or student or teacher for the best one"
            raise InputError("retention needs --member", mend)
        children = positive("--children", self.children)
        from redqueen.evolution.retention import WINDOW
        from redqueen.training.retention import measure_retention

        if self.updates < WINDOW:
            raise InputError(f"--updates cannot be {self.updates}", f"use {WINDOW} or more")
        return measure_retention(self.run_folder, self.step, self.member, children, self.updates)
