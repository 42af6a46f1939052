"""`redqueen watch` and `redqueen report`: runs to look at, live or as a file."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.command import Command, printable
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.report.server import Address


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
        _needs("starlette", "uvicorn", "plotly")
        if not 0 <= self.port <= 65535:
            raise InputError(f"--port cannot be {self.port}", "use 0 to 65535")
        from redqueen.report.server import serve

        serve(self.folders, self.host, self.port, _say)


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    """The same views as one file that needs no network: charts, matches, lineage, tasks, settings, compute."""

    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
    """The runs, under way or finished; of several also the arms, laid over each other."""
    to: Annotated[Path | None, tyro.conf.arg(name="output", aliases=["-o"], metavar="FILE.html")] = None
    """Where the report goes; report.html in the folder of a single run when left out."""

    def run(self) -> None:
        _needs("plotly")
        first, *others = self.folders
        if self.to is None and others:
            raise InputError("a report of several runs needs a name", "add -o FILE.html")
        from redqueen.report.document import report
        from redqueen.runs.whole import write_text

        path = self.to or first / "report.html"
        if path.is_dir():
            raise InputError(f"{path} is a folder", "name a file, such as report.html")
        text = report(self.folders)
        try:
            write_text(path, text)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}", "name another file") from None
        print(printable(f"{path}: {len(text.encode()) / 1e6:.1f} MB, opens in any browser"))


def _say(address: "Address") -> None:
    print(printable(f"the page is at {address.url}"), flush=True)
    if address.token:
        print("whoever has this address can read the runs; it changes with every start", flush=True)
    print("Ctrl-C ends it; the run goes on", flush=True)


def _needs(*modules: str) -> None:
    if missing := [name for name in modules if importlib.util.find_spec(name) is None]:
        raise InputError(f"the page needs {', '.join(missing)}", "run `pip install redqueen[page]`")
