"""`redqueen breed`: a child of adapters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.command import Configured, Reporting
from redqueen.console import TextReport, printable, say
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class BreedCommand(Reporting, Configured):
    """Make a child of one or two adapters: a new PEFT folder. The parents stay as they are."""

    uses = ("engine.device",)
    operator: Annotated[str, tyro.conf.arg(metavar="OPERATOR")]
    """A name from `redqueen operators`, or FILE.py:NAME, code that you trust: it runs with all your rights."""
    parents: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN/MEMBER|FOLDER")]
    """Adapters on one base with the same rank and alpha, the better one first: PEFT folders, or members of runs (see
    `exam --help`)."""
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
        from redqueen.evolution.adapters import read_adapters
        from redqueen.evolution.variation import child, find, portrait
        from redqueen.resources import place

        operator = find(self.operator)
        if operator.moments:
            raise InputError(
                f"{operator.name} needs the parents' optimiser states, which PEFT folders do not hold",
                "use another operator",
            )
        adapters, notes = read_adapters(self.parents, whole_runs=False)
        for note in notes:
            say(note)
        peft.same_base([adapter.like for adapter in adapters])
        parents = [adapter.state for adapter in adapters]
        state = child(operator, parents, seed=self.seed, device=place(self.settings.engine)[0])
        norm, cosines = portrait(state, parents)
        peft.save_like(state, self.to, adapters[0].like)
        about = {"child": str(self.to), "operator": operator.name, "parents": list(self.parents)}
        similarity = ", ".join(f"{cosine:.3f} to {path}" for cosine, path in zip(cosines, self.parents, strict=True))
        lines = [
            f"{operator.name} made {self.to}: {operator.about[:1].lower()}{operator.about[1:]}",
            f"norm {norm:.3f} of its parents', cosine {similarity}",
        ]
        return TextReport(
            {**about, "seed": self.seed, "norm": norm, "cosines": cosines}, [printable(line) for line in lines]
        )
