"""`redqueen watch`: the live page."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import Command
from redqueen.commands.report import needs
from redqueen.console import printable
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.ui.page.server import Address


@dataclass(frozen=True, kw_only=True)
class Watch(Command):
    """A live page of runs in the browser: ratings, solve rates, complexity, matches, lineage, every task."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
    """The runs, under way or finished; of several also the arms, laid over each other."""
    port: int = 0
    """Where the page is; 0 takes one that is free."""
    host: str = "127.0.0.1"
    """Who can reach it: by default this machine alone. Elsewhere the address has a random token, and whoever has it
    can read the runs."""

    def run(self) -> None:
        needs("starlette", "uvicorn", "plotly")
        if not 0 <= self.port <= 65535:
            raise InputError(f"--port cannot be {self.port}", "use 0 to 65535")
        from redqueen.ui.page.server import serve

        serve(self.folders, self.host, self.port, _say)


def _say(address: "Address") -> None:
    print(printable(f"the page is at {address.url}"), flush=True)
    if address.token:
        print("whoever has this address can read the runs; it changes with every start", flush=True)
    print("Ctrl-C ends it; the run goes on", flush=True)
