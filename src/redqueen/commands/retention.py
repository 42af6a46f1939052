"""`redqueen retention`: do children recover their parent's reward?"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from redqueen.commands.command import Reporting, positive
from redqueen.console import Report
from redqueen.errors import InputError
from redqueen.runs.naming import named_in_run


@dataclass(frozen=True, kw_only=True)
class RetentionCommand(Reporting):
    """Test how many updates a member's children need to reach its reward, for each operator.

    Children of every operator in the run's settings, of two controls and fresh members train from a checkpoint. The
    run itself is not changed. Where all members of the role are alike, as after averaging, crossovers are left out.
    """

    what: Annotated[str, tyro.conf.arg(metavar="RUN/MEMBER|RUN:STEP/MEMBER")]
    """The parent, a member of a run, such as runs/a/s0.2; runs/a/student and runs/a/teacher mean the best one, as in
    `export`."""
    member: Annotated[str | None, tyro.conf.arg(metavar="ID|student|teacher")] = None
    """The parent, where the argument is the run alone."""
    step: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The checkpoint of this step, where the argument has none; by default the newest of both."""
    children: int = 3
    """Children of each operator."""
    updates: int = 20
    """How many updates they train for."""

    def report(self) -> Report:
        children = positive("--children", self.children)
        from redqueen.evolution.retention import WINDOW
        from redqueen.training.retention import measure_retention

        if self.updates < WINDOW:
            raise InputError(f"--updates cannot be {self.updates}", f"use {WINDOW} or more")
        parent = named_in_run(self.what, self.member, self.step)
        if parent.member is None:
            raise InputError("retention needs to know which member", f"name one, such as {self.what}/student")
        return measure_retention(parent.run, parent.step, parent.member, children, self.updates)
