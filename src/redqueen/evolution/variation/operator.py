"""An operator: a pure function from parents to a child, with its name, its kind and its reference."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import torch

from redqueen.engine.products import quick_products
from redqueen.errors import ConfigError, RedQueenError
from redqueen.evolution.variation.adapter import Adapter, Parents

if TYPE_CHECKING:
    from redqueen.evolution.variation.draws import Draws

Make = Callable[..., Adapter]
Range = tuple[float, float]
_MOST = {"density": 1.0, "drop": 0.99, "share": 1.0, "sigma": 2.0, "spread": 0.99, "way": 1.0}
"""The largest allowed values of parameters with these names; the least is 0."""


class Kind(StrEnum):
    MUTATION = "mutation"
    """Makes a child of one parent."""
    CROSSOVER = "crossover"
    """Makes a child of two parents of the same role."""
    MERGE = "merge"
    """Makes a child of all members of a role that survive."""


class Use(StrEnum):
    LIVE = "live"
    """The paper's runs use it; the default."""
    TRIED = "tried"
    """The paper's authors tried it."""
    CONTROL = "control"
    """What every operator must beat."""
    OURS = "ours"
    """This project's, not the paper's."""
    OWN = "own"
    """A user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """`make(parents, draws)` gives a child's adapter and leaves the parents as they are; the better one comes first."""

    name: str
    kind: Kind
    make: Make
    reference: str
    use: Use = Use.OWN
    norm: Range = (0.0, float("inf"))
    """The norm of the child's Delta W relative to the mean of its parents', over all slots, at rank 4 and above, for
    parents that have one norm in every slot and do not point away from each other."""
    cosine: Range = (-1.0, 1.0)
    """Of the child's Delta W and each parent's, likewise."""
    moments: bool = False
    """It needs the parents' optimiser states."""
    keeps_factors: bool = False
    """The child's factors are those of a parent, slot by slot, changed in place: they can be averaged with others'."""
    copies: bool = False
    """The child is its parent again: alone it makes nothing new."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Parameters that differ from the function's defaults."""

    def __call__(self, parents: "Parents", draws: "Draws") -> "Adapter":
        with quick_products(draws.device, torch.float32), torch.no_grad():
            try:
                made = self.make(parents, draws, **self.values)
            except RedQueenError:
                raise
            except Exception as error:
                if self.use is not Use.OWN:
                    raise
                why = f"{type(error).__name__}: {error}"
                raise ConfigError(f"the operator {self.name} failed: {why}", "mend it where it is defined") from error
        if not isinstance(made, Adapter):
            raise ConfigError(f"the operator {self.name} gave no Adapter", "mend it where it is defined")
        return made

    def given(self, values: Mapping[str, float]) -> "Operator":
        """The operator with these parameters, and a name that says so."""
        for name in values.keys() - self.defaults.keys():
            known = ", ".join(self.defaults)
            raise ConfigError(
                f"the operator {self.name} takes no {name}", f"it takes {known}" if known else "it takes nothing"
            )
        for name, value in values.items():
            most = _MOST.get(name, float("inf"))
            if not 0 <= value <= most:
                bounds = f"from 0 to {most:g}" if name in _MOST else "of 0 or more"
                raise ConfigError(f"the operator {self.name} cannot take {name}={value:g}", f"use a number {bounds}")
        whole = {name for name, default in self.defaults.items() if type(default) is int}
        for name in whole & {name for name, value in values.items() if value != int(value)}:
            raise ConfigError(f"the operator {self.name} cannot take {name}={values[name]:g}", "use a whole number")
        values = {name: int(value) if name in whole else value for name, value in values.items()}
        name = " ".join([self.name, *(f"{name}={value:g}" for name, value in values.items())])
        return replace(self, name=name, values={**self.values, **values})

    @property
    def parents(self) -> int:
        """How many it takes; 0 means any number."""
        return {Kind.MUTATION: 1, Kind.CROSSOVER: 2, Kind.MERGE: 0}[self.kind]

    @property
    def about(self) -> str:
        """The first line of its function's docstring."""
        return (inspect.getdoc(self.make) or "").partition("\n")[0]

    @property
    def defaults(self) -> dict[str, float]:
        """The parameters of its function, with their values."""
        parameters = inspect.signature(self.make).parameters.values()
        named = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
        return {**{parameter.name: parameter.default for parameter in named}, **self.values}


def mutation(reference: str, use: Use = Use.OWN, **fields: Any) -> "Callable[[Make], Operator]":
    """Turns a function of one parent into the operator of its name; `fields` are others of `Operator`."""
    return lambda make: Operator(
        name=make.__name__, kind=Kind.MUTATION, make=make, reference=reference, use=use, **fields
    )


def crossover(reference: str, use: Use = Use.OWN, **fields: Any) -> "Callable[[Make], Operator]":
    """As `mutation`, for a function of two parents."""
    return lambda make: replace(mutation(reference, use, **fields)(make), kind=Kind.CROSSOVER)


def merge(reference: str, use: Use = Use.OWN, **fields: Any) -> "Callable[[Make], Operator]":
    """As `mutation`, for a function of any number of parents."""
    return lambda make: replace(mutation(reference, use, **fields)(make), kind=Kind.MERGE)
