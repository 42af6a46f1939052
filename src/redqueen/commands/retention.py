"""`redqueen retention`: do children come back to what their parent earns?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Command, positive
from redqueen.console import show
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RetentionTest(Command):
    """The retention test: how many updates a member's children need to earn what it earns, by operator.

    Children of every operator in the run's settings, of two controls and fresh members practise on the newest
    checkpoint; the run is left as it is.
    """

    run_folder: Annotated[Path, tyro.conf.arg(name="run", metavar="RUN")]
    """The run."""
    member: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """Whose children, such as s0."""
    children: int = 3
    """Of each operator."""
    updates: int = 20
    """How long they practise."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.evolution.retention import WINDOW
        from redqueen.training.retention import examine

        if self.updates < WINDOW:
            raise InputError(f"--updates cannot be {self.updates}", f"use {WINDOW} or more")
        if self.member is None:
            raise InputError("retention needs --member", "name one of the run's living members, such as s0")
        children, updates = positive("--children", self.children), positive("--updates", self.updates)
        show(examine(self.run_folder, self.member, children, updates), as_json=self.json)
