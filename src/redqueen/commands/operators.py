"""`redqueen operators`: what makes children, and which of these evolution uses."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.commands.command import Configured
from redqueen.console import show

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    kind: str
    use: str
    used: bool
    """By the settings."""
    defaults: Mapping[str, float]
    norm: tuple[float, float]
    cosine: tuple[float, float]
    about: str
    reference: str


def _row(operator: "Operator", used: bool) -> _Row:
    return _Row(
        name=operator.name,
        kind=str(operator.kind),
        use=str(operator.use),
        used=used,
        defaults=dict(operator.defaults),
        norm=operator.norm,
        cosine=operator.cosine,
        about=operator.about,
        reference=operator.reference,
    )


@dataclass(frozen=True, slots=True)
class _Listing:
    rows: Sequence[_Row]

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
