"""`redqueen operators` and `redqueen breed`: what operators there are, and a child of adapters that lie on the disk."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from redqueen.command import Configured, print_json, printable, show
from redqueen.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from redqueen.evolution.variation import Operator


@dataclass(frozen=True, kw_only=True)
class Operators(Configured):
    """The operators that make children, and which of them evolution uses."""

    uses = ("evolution.operators",)
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.evolution.variation import OPERATORS, resolve

        used = resolve(self.settings.evolution.operators)
        rows = [_row(operator, operator.name in used) for operator in (OPERATORS | used).values()]
        show(_Listing(rows), as_json=self.json)


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
        from redqueen.config import place
        from redqueen.engine import peft
        from redqueen.evolution.variation import child, find, portrait

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


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    kind: str
    use: str
    used: bool
    """By the settings."""
    defaults: dict[str, float]
    norm: tuple[float, float]
    cosine: tuple[float, float]
    about: str
    reference: str


def _row(operator: "Operator", used: bool) -> _Row:
    return _Row(
        operator.name,
        str(operator.kind),
        str(operator.use),
        used,
        dict(operator.defaults),
        operator.norm,
        operator.cosine,
        operator.about,
        operator.reference,
    )


@dataclass(frozen=True, slots=True)
class _Listing:
    rows: list[_Row]

    def as_json(self) -> dict[str, Any]:
        return {"operators": [asdict(row) for row in self.rows]}

    def render(self, console: "Console") -> None:
        for use in dict.fromkeys(row.use for row in self.rows):
            console.print(f"{use}: {_USES[use]}", style="bold", soft_wrap=True)
            for row in self.rows:
                if row.use == use:
                    defaults = ", ".join(f"{name} {value:g}" for name, value in row.defaults.items())
                    mark = "*" if row.used else " "
                    console.print(f"{mark} {row.name:<17} {row.kind:<9} {row.about}", soft_wrap=True, highlight=False)
                    details = f"{row.reference}{'; ' if defaults else ''}{defaults}"
                    console.print(f"{'':30}{details}", style="dim", soft_wrap=True, highlight=False)
        console.print("* in evolution.operators, from which evolution draws", soft_wrap=True)


_USES = {
    "live": "the paper's own, and the default",
    "tried": "tried by the paper's authors",
    "control": "what every operator must beat",
    "own": "from a file",
}
