"""`redqueen diversity`: how far apart adapters are."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from redqueen.commands.command import Configured, Reporting
from redqueen.console import Report, say
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class DiversityCommand(Reporting, Configured):
    """Measure how far apart adapters are: in their weights, and with --base in what they say."""

    uses = ("engine.device", "engine.dtype", "engine.rows", "engine.memory", "engine.quantise")
    what: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN|RUN/MEMBER|FOLDER...", help_behavior_hint="")]
    """Two or more adapters on one base: PEFT folders, members of runs (see `exam --help`) or all members of a run."""
    base: Annotated[str | None, tyro.conf.arg(metavar="BASE")] = None
    """Also compare what they say on a few prompts with this base: a known name, a folder or a hub id (slow on CPU)."""

    def report(self) -> Report:
        from redqueen.analysis import folders
        from redqueen.evolution.adapters import read_adapters

        adapters, notes = read_adapters(self.what, whole_runs=True)
        for note in notes:
            say(note)
        if len(adapters) < 2:
            raise InputError("one adapter has nothing to be compared with", "name two or more")
        return folders.compare(adapters, self.base, self.settings.engine)
