"""`redqueen operators`: what makes children, and which of these evolution uses."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redqueen.commands.command import Configured, Reporting

if TYPE_CHECKING:
    from rich.console import Console

    from redqueen.evolution.variation import Operator

_USES = {
    "live": "the paper's own, and the default",
    "tried": "tried by the paper's authors",
    "control": "what every operator must beat",
    "ours": "this project's, not the paper's",
    "own": "from a file or a package",
}


@dataclass(frozen=True, kw_only=True)
class OperatorsCommand(Reporting, Configured):
    """List the operators that make children, and which of them evolution uses."""

    uses = ("evolution.operators",)

    def report(self) -> "OperatorList":
        from redqueen.evolution.variation import resolve
        from redqueen.plugins import OPERATORS

        used = resolve(self.settings.evolution.operators)
        return OperatorList(list((OPERATORS.all() | used).values()), used.keys())


@dataclass(frozen=True, slots=True)
class OperatorList:
    operators: "Sequence[Operator]"
    used: Collection[str]
    """The names of those that the settings use."""

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "name": operator.name,
                "kind": str(operator.kind),
                "use": str(operator.use),
                "used": operator.name in self.used,
                "defaults": operator.defaults,
                "norm": operator.norm,
                "cosine": operator.cosine,
                "about": operator.about,
                "reference": operator.reference,
            }
            for operator in self.operators
        ]
        return {"operators": rows}

    def render(self, console: "Console") -> None:
        for use in dict.fromkeys(operator.use for operator in self.operators):
            console.print(f"{use}: {_USES[use]}", style="bold", soft_wrap=True)
            for operator in self.operators:
                if operator.use == use:
                    mark = "*" if operator.name in self.used else " "
                    line = f"{mark} {operator.name:<17} {operator.kind:<9} {operator.about}"
                    console.print(line, soft_wrap=True, highlight=False)
                    defaults = ", ".join(f"{name} {value:g}" for name, value in operator.defaults.items())
                    details = f"{operator.reference}{'; ' if defaults else ''}{defaults}"
                    console.print(f"{'':30}{details}", style="dim", soft_wrap=True, highlight=False)
        console.print("* in evolution.operators, from which evolution draws", soft_wrap=True)
