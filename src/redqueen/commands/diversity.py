"""`redqueen diversity`: how far apart adapters are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Configured, Reporting
from redqueen.console import Report
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class DiversityCommand(Reporting, Configured):
    """Measure how far apart adapters are: in their weights, and with --base in what they say."""

    uses = ("engine.device", "engine.dtype", "engine.rows", "engine.memory", "engine.quantise")
    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER FOLDER...", help_behavior_hint="")]
    """Two or more PEFT folders of adapters on one base."""
    base: Annotated[str | None, tyro.conf.arg(metavar="BASE")] = None
    """Also compare what they say on a few prompts with this base: a known name, a folder or a hub id (slow on CPU)."""

    def report(self) -> Report:
        if len(self.folders) < 2:
            raise InputError("one adapter has nothing to be compared with", "name two folders or more")
        from redqueen.analysis import folders

        return folders.compare(self.folders, self.base, self.settings.engine)
