"""`redqueen base ...`: the bases that are known by name."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

import tyro

from redqueen.commands.command import Command
from redqueen.console import print_json, printable


@dataclass(frozen=True, kw_only=True)
class BaseList(Command):
    """The bases that are known by name, and which of them are here."""

    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.engine import pull

        bases = pull.listing()
        if self.json:
            print_json({"bases": [dataclasses.asdict(base) for base in bases]})
            return
        for base in bases:
            print(f"{base.name}  {base.about}")
            size = f"{base.bytes / 1e6:.0f} MB"
            place = f"here, {size}: {base.where}" if base.present else f"`redqueen base pull {base.name}` ({size})"
            print(f"  {printable(place)}")
        print(
            "A folder with a transformers model, a .gguf file or a hub id (ORG/MODEL, needs the network) will do too."
        )


@dataclass(frozen=True, kw_only=True)
class BasePull(Command):
    """Fetch a known base, once; an interrupted download goes on where it stopped."""

    name: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """One of those that `redqueen base list` lists."""

    def run(self) -> None:
        from redqueen.engine import pull

        with pull.Bar(self.name) as bar:
            folder = pull.pull(self.name, bar)
        print(printable(f"{self.name} is here: {folder}"))
