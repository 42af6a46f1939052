"""`redqueen breed`: a child of adapters that lie on the disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Configured
from redqueen.console import print_json, printable
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Breed(Configured):
    """Make a child of one or two adapters: a new PEFT folder. The parents stay as they are."""

    uses = ("engine.device",)
    operator: Annotated[str, tyro.conf.arg(metavar="OPERATOR")]
    """One of those that `redqueen operators` lists, or FILE.py:NAME, code that you trust: it runs with your rights."""
    parents: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER")]
    """PEFT folders of adapters on one base, with one rank and alpha; the better one first."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the child goes; the folder must not be there yet."""
    seed: int = 0
    """What the random numbers come from: the same seed makes the same child."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        if self.to is None:
            raise InputError("breed needs to know where the child goes", "add --to FOLDER")
        if not 0 <= self.seed < 1 << 64:
            raise InputError(f"--seed cannot be {self.seed}", "use a whole number from 0 to 2^64 - 1")
        if self.to.exists():
            raise InputError(f"{self.to} is there already", "name another folder, or remove it")
        from redqueen.engine import peft
        from redqueen.evolution.variation import child, find, portrait
        from redqueen.resources import place

        operator = find(self.operator)
        if operator.moments:
            raise InputError(
                f"{operator.name} weighs its parents by their optimisers, which PEFT folders do not hold",
                "use another operator",
            )
        states = [peft.load(folder) for folder in self.parents]
        peft.same_base(self.parents)
        made = child(operator, states, seed=self.seed, device=place(self.settings.engine)[0])
        norm, cosines = portrait(made, states)
        peft.save_like(made, self.to, self.parents[0])
        if self.json:
            made_of = {"parents": [str(folder) for folder in self.parents], "seed": self.seed}
            print_json({"child": str(self.to), "operator": operator.name, **made_of, "norm": norm, "cosines": cosines})
            return
        print(printable(f"{operator.name} made {self.to}: {operator.about[:1].lower()}{operator.about[1:]}"))
        near = ", ".join(f"{cosine:.3f} to {folder}" for cosine, folder in zip(cosines, self.parents, strict=True))
        print(printable(f"norm {norm:.3f} of its parents', cosine {near}"))
