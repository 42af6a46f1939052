"""`redqueen compare`: arms side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Command
from redqueen.console import show


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Runs side by side: those that differ in nothing but their seed are one arm, with intervals over its seeds."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN RUN...", help_behavior_hint="")]
    """The runs; the arm of the first is what the others are compared with."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.analysis.compare import compare

        show(compare(self.folders), as_json=self.json)
