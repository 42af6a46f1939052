"""`redqueen watch`: the live page."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import Command, needs
from redqueen.console import printable
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.ui.page.server import Address


@dataclass(frozen=True, kw_only=True)
class WatchCommand(Command):
    """Show runs on a live page in the browser: ratings, solve rates, complexity, matches, lineage, every task."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
    """The runs, under way or finished. Several runs are also shown as arms, in the same charts."""
    port: int = 0
    """The port of the page; 0 takes a free one."""
    host: str = "127.0.0.1"
    """The address to listen on. If others can reach it, the URL holds a token, and whoever has it can read the runs."""

    def run(self) -> None:
        needs("page", "starlette", "uvicorn")
        if not 0 <= self.port <= 65535:
            raise InputError(f"--port cannot be {self.port}", "use 0 to 65535")
        from redqueen.ui.page.server import serve

        serve(self.folders, self.host, self.port, _announce)


def _announce(address: "Address") -> None:
    print(printable(f"the page is at {address.url}"), flush=True)
    if address.token:
        print("whoever has this URL can read the runs; it changes with every start", flush=True)
    print("Ctrl-C stops the page; the run goes on", flush=True)
