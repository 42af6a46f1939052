"""`redqueen report`: the page of one run or several as one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Command, write_output
from redqueen.console import printable
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ReportCommand(Command):
    """Write the page of `redqueen watch` as one file that needs no network."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
    """The runs, under way or finished. Several runs are also shown as arms, in the same charts."""
    to: Annotated[Path | None, tyro.conf.arg(aliases=["--output", "-o"], metavar="FILE.html")] = None
    """Where the report is written; report.html in the run's folder when left out."""

    def run(self) -> None:
        if self.to is None and len(self.folders) > 1:
            raise InputError("a report of several runs needs a name", "add --to FILE.html")
        from redqueen.ui.page.document import report

        path = self.to or next(iter(self.folders)) / "report.html"
        if path.is_dir():
            raise InputError(f"{path} is a folder", "name a file, such as report.html")
        text = report(self.folders)
        write_output(path, text)
        print(printable(f"{path}: {len(text.encode()) / 1e6:.1f} MB, opens in any browser"))
