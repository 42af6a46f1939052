"""`redqueen base ...`: the bases that are known by name."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

import tyro

from redqueen.commands.command import Command, Reporting
from redqueen.console import TextReport, printable


@dataclass(frozen=True, kw_only=True)
class BaseListCommand(Reporting):
    """List the bases that are known by name, and which of them are installed."""

    def report(self) -> TextReport:
        from redqueen.engine import pull

        bases, lines = pull.listing(), []
        for base in bases:
            size = f"{base.bytes / 1e6:.0f} MB"
            place = f"here, {size}: {base.where}" if base.present else f"`redqueen base pull {base.name}` ({size})"
            lines += [f"{base.name}  {base.about}", f"  {printable(place)}"]
        lines.append(
            "Also a folder with a transformers model, a .gguf file or a hub id (ORG/MODEL, needs the network)."
        )
        return TextReport({"bases": [dataclasses.asdict(base) for base in bases]}, lines)


@dataclass(frozen=True, kw_only=True)
class BasePullCommand(Command):
    """Download a base that is known by name. An interrupted download is resumed."""

    name: Annotated[str, tyro.conf.arg(metavar="BASE")]
    """A name from `redqueen base list`."""

    def run(self) -> None:
        from redqueen.engine import pull

        with pull.progress_bar(self.name) as progress:
            folder = pull.pull(self.name, progress)
        print(printable(f"{self.name} is here: {folder}"))
