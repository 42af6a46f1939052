"""`redqueen compare`: arms side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Reporting
from redqueen.console import Report


@dataclass(frozen=True, kw_only=True)
class CompareCommand(Reporting):
    """Compare runs side by side. Runs that differ only in their seed are one arm, with intervals over its seeds."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN RUN...", help_behavior_hint="")]
    """The runs. The arm of the first is what the others are compared with."""

    def report(self) -> Report:
        from redqueen.analysis.compare import compare

        return compare(self.folders)
