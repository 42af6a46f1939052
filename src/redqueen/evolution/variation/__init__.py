"""Variation: operators that make a child's weights from its parents'.

An operator is one file with one pure function `(parents, draws) -> child`, marked as a mutation or a crossover.
`adapter` has what it gets and gives, `draws` its random numbers, `lowrank` the algebra of B @ A, `dense` merges of
single entries. docs/extending.md has a worked example.
"""

import math
from collections.abc import Sequence

import torch

from redqueen.engine.protocol import MemberState
from redqueen.errors import ConfigError, InputError
from redqueen.evolution.variation.adapter import Adapter, Stack, stacked, unstacked
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import inner
from redqueen.evolution.variation.operator import Kind, Operator, Use, crossover, merge, mutation
from redqueen.plugins import OPERATORS, name_and_values


def find(text: str) -> Operator:
    """The operator that `text` names, or defines as `FILE.py:NAME`, with other values than its defaults if it says so:
    `spectral sigma=0.2`."""
    name, values = name_and_values(text)
    operator: Operator = OPERATORS.get(name)
    return operator.given({key: _number(text, value) for key, value in values.items()}) if values else operator


def resolve(texts: Sequence[str]) -> dict[str, Operator]:
    """Operators by name, as a race needs them: a name must say which one made a child."""
    operators: dict[str, Operator] = {}
    for operator in map(find, texts):
        if operator.name in operators or (operator.use is Use.OWN and operator.name in OPERATORS.builtins):
            raise ConfigError(f"there are two operators named {operator.name}", "give each a name of its own")
        operators[operator.name] = operator
    return operators


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"the operator {text!r} is given {value!r}", "use a number")
    return number


def child(
    operator: Operator, parents: Sequence[MemberState], *, seed: int, device: torch.device | None = None
) -> MemberState:
    """What `operator` makes of `parents`, the better one first; they stay as they are. Its optimiser is fresh."""
    if len(parents) != (operator.parents or max(1, len(parents))):
        wanted = operator.parents or 1
        raise InputError(
            f"{operator.name} makes a child of {wanted}, not of {len(parents)}",
            f"name {wanted} {'parent' if wanted == 1 else 'parents'}{'' if operator.parents else ' or more'}",
        )
    device = device or torch.device("cpu")
    made = unstacked(operator(stacked(parents, device), Draws(seed, device)))
    if _shapes(made) != _shapes(parents[0]):
        raise ConfigError(
            f"the operator {operator.name} made a child of another shape than its parents",
            "mend it where it is defined",
        )
    return made


def portrait(made: MemberState, parents: Sequence[MemberState]) -> tuple[float, tuple[float, ...]]:
    """A child's likeness: the norm of its Delta W to the mean of its parents', and the cosine to each."""
    adapters = stacked([made, *parents], torch.device("cpu"))

    def product(one: Adapter, other: Adapter) -> float:
        return sum(float(inner(*both).sum()) for both in zip(one.stacks, other.stacks, strict=True))

    norm, *norms = (product(adapter, adapter) ** 0.5 for adapter in adapters)
    cosines = [
        product(adapters[0], parent) / (norm * own) if norm * own else 0.0
        for parent, own in zip(adapters[1:], norms, strict=True)
    ]
    mean = sum(norms) / len(norms)
    return (norm / mean if mean else 0.0), tuple(cosines)


def _shapes(state: MemberState) -> dict[str, tuple[torch.Size, torch.Size]]:
    return {name: (a_R_I.shape, b_O_R.shape) for name, (a_R_I, b_O_R) in state.factors.items()}


__all__ = [
    "Adapter", "Draws", "Kind", "Operator", "Stack", "Use", "child", "crossover", "find", "merge", "mutation",
    "portrait", "resolve",
]  # fmt: skip
