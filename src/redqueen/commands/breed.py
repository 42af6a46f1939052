"""`redqueen breed`: a child of adapters in PEFT folders."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Configured, Reporting
from redqueen.console import TextReport, printable
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class BreedCommand(Reporting, Configured):
    """Make a child of one or two adapters: a new PEFT folder. The parents stay as they are."""

    uses = ("engine.device",)
    operator: Annotated[str, tyro.conf.arg(metavar="OPERATOR")]
    """A name from `redqueen operators`, or FILE.py:NAME, code that you trust: it runs with all your rights."""
    parents: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER")]
    """PEFT folders of adapters on one base, with the same rank and alpha; the better one first."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the child is written; the folder must not exist yet."""
    seed: int = 0
    """The random seed: the same seed makes the same child."""

    def report(self) -> TextReport:
        if self.to is None:
            raise InputError("breed needs to know where to write the child", "add --to FOLDER")
        if not 0 <= self.seed < 1 << 64:
            raise InputError(f"--seed cannot be {self.seed}", "use a whole number from 0 to 2^64 - 1")
        if self.to.exists():
            raise InputError(f"{self.to} exists already", "name another folder, or remove it")
        from redqueen.engine import peft
        from redqueen.evolution.variation import child, find, portrait
        from redqueen.resources import place

        operator = find(self.operator)
        if operator.moments:
            raise InputError(
                f"{operator.name} needs the parents' optimiser states, which PEFT folders do not hold",
                "use another operator",
            )
        parents = [peft.load(folder) for folder in self.parents]
        peft.same_base(self.parents)
        state = child(operator, parents, seed=self.seed, device=place(self.settings.engine)[0])
        norm, cosines = portrait(state, parents)
        peft.save_like(state, self.to, self.parents[0])
        about = {"child": str(self.to), "operator": operator.name, "parents": list(map(str, self.parents))}
        similarity = ", ".join(f"{cosine:.3f} to {path}" for cosine, path in zip(cosines, self.parents, strict=True))
        lines = [
            f"{operator.name} made {self.to}: {operator.about[:1].lower()}{operator.about[1:]}",
            f"norm {norm:.3f} of its parents', cosine {similarity}",
        ]
        return TextReport(
            {**about, "seed": self.seed, "norm": norm, "cosines": cosines}, [printable(line) for line in lines]
        )
