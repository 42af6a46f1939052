"""Variation: operators that make a child's weights from its parents'.

An operator is one file with one pure function `(parents, draws) -> child`, and one line here. `adapter` has what it
gets and gives, `draws` its random numbers, `lowrank` the algebra of B @ A, `dense` merges of single entries. Operators
of one's own come from a file, `FILE.py:NAME`; docs/extending.md has a worked example.
"""

import difflib
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from redqueen.engine.protocol import MemberState
from redqueen.errors import ConfigError, InputError
from redqueen.evolution.variation.adapter import Adapter, Stack, stacked, unstacked
from redqueen.evolution.variation.component_mask import component_mask
from redqueen.evolution.variation.copy_parent import copy_parent
from redqueen.evolution.variation.dare import dare
from redqueen.evolution.variation.della import della
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.extrapolation import extrapolation
from redqueen.evolution.variation.fisher import fisher
from redqueen.evolution.variation.full_noise import full_noise
from redqueen.evolution.variation.input_noise import input_noise
from redqueen.evolution.variation.layer_wise import layer_wise
from redqueen.evolution.variation.linear import linear
from redqueen.evolution.variation.linear_0_5 import linear_0_5
from redqueen.evolution.variation.lowrank import inner
from redqueen.evolution.variation.operator import Kind, Operator, Range, Use
from redqueen.evolution.variation.rank_perturbation import rank_perturbation
from redqueen.evolution.variation.slerp import slerp
from redqueen.evolution.variation.slot_noise import slot_noise
from redqueen.evolution.variation.spectral import spectral
from redqueen.evolution.variation.svd_subspace import svd_subspace
from redqueen.evolution.variation.ties import ties


def _built_in(
    kind: Kind,
    make: Callable[..., Adapter],
    reference: str,
    use: Use,
    norm: Range,
    cosine: Range,
    moments: bool = False,
) -> Operator:
    """Named as its function is."""
    return Operator(
        name=make.__name__,
        kind=kind,
        make=make,
        reference=reference,
        use=use,
        norm=norm,
        cosine=cosine,
        moments=moments,
    )


_MUTATION, _CROSSOVER = Kind.MUTATION, Kind.CROSSOVER
_LIVE, _TRIED, _CONTROL = Use.LIVE, Use.TRIED, Use.CONTROL

_ALL = (
    _built_in(_MUTATION, spectral, "PopuLoRA M1", _LIVE, norm=(1, 1), cosine=(0.97, 1)),
    _built_in(_MUTATION, slot_noise, "PopuLoRA M2", _LIVE, norm=(0.99, 1.03), cosine=(0.98, 1)),
    _built_in(_MUTATION, component_mask, "PopuLoRA M3", _LIVE, norm=(0.6, 0.97), cosine=(0.6, 0.97)),
    _built_in(_MUTATION, full_noise, "PopuLoRA M4", _LIVE, norm=(0.99, 1.05), cosine=(0.96, 0.99)),
    _built_in(
        _MUTATION, input_noise, "PopuLoRA M5; NEFTune, arXiv 2310.05914", _TRIED, norm=(0.98, 1.03), cosine=(0.98, 1)
    ),
    _built_in(_MUTATION, rank_perturbation, "PopuLoRA M6", _TRIED, norm=(0.15, 1), cosine=(0.15, 1)),
    _built_in(_CROSSOVER, dare, "PopuLoRA X1; DARE, arXiv 2311.03099", _LIVE, norm=(0.45, 1.55), cosine=(0.3, 1)),
    _built_in(_CROSSOVER, layer_wise, "PopuLoRA X2", _LIVE, norm=(1, 1), cosine=(-0.1, 1)),
    _built_in(_CROSSOVER, svd_subspace, "PopuLoRA X3", _LIVE, norm=(0.9, 1.15), cosine=(-0.1, 1)),
    _built_in(_CROSSOVER, extrapolation, "PopuLoRA X4", _LIVE, norm=(1, 1.6), cosine=(-0.35, 1)),
    _built_in(_CROSSOVER, linear, "model soups, arXiv 2203.05482", _TRIED, norm=(0.5, 1), cosine=(-0.1, 1)),
    _built_in(_CROSSOVER, ties, "TIES-Merging, arXiv 2306.01708", _TRIED, norm=(0.6, 1.2), cosine=(0.4, 1)),
    _built_in(_CROSSOVER, della, "DELLA-Merging, arXiv 2406.11617", _TRIED, norm=(0.8, 2.3), cosine=(0.3, 1)),
    _built_in(_CROSSOVER, slerp, "Shoemake 1985", _TRIED, norm=(0.7, 1), cosine=(0.4, 1)),
    _built_in(
        _CROSSOVER, fisher, "Fisher merging, arXiv 2111.09832", _TRIED, norm=(0.5, 1), cosine=(-0.1, 1), moments=True
    ),
    _built_in(_MUTATION, copy_parent, "control", _CONTROL, norm=(1, 1), cosine=(1, 1)),
    _built_in(_CROSSOVER, linear_0_5, "control", _CONTROL, norm=(0.5, 1), cosine=(0.4, 1)),
)
_VALUE = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)")
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _ALL}


def find(text: str) -> Operator:
    """The operator that `text` names, or defines as `FILE.py:NAME`, with other values than its defaults if it says so:
    `spectral sigma=0.2`."""
    words = text.split(" ")
    values: dict[str, float] = {}
    while len(words) > 1 and (match := _VALUE.fullmatch(words[-1])):
        values[match["name"]] = _number(text, match["value"])
        words.pop()
    found = _named(" ".join(words))
    return found.given(dict(reversed(values.items()))) if values else found


def resolve(texts: Sequence[str]) -> dict[str, Operator]:
    """Operators by name, as a race needs them: a name must say which one made a child."""
    found: dict[str, Operator] = {}
    for operator in map(find, texts):
        if operator.name in found or (operator.use is Use.OWN and operator.name in OPERATORS):
            raise ConfigError(f"there are two operators named {operator.name}", "give each a name of its own")
        found[operator.name] = operator
    return found


def _named(name: str) -> Operator:
    if name in OPERATORS:
        return OPERATORS[name]
    path, colon, inside = name.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), inside)
    close = difflib.get_close_matches(name, OPERATORS, 1)
    mend = f"did you mean {close[0]}?" if close else f"use FILE.py:NAME or one of {', '.join(OPERATORS)}"
    raise ConfigError(f"there is no operator {name!r}", mend)


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
    if len(parents) != operator.parents:
        raise InputError(
            f"{operator.name} makes a child of {operator.parents}, not of {len(parents)}",
            f"name {operator.parents} {'parent' if operator.parents == 1 else 'parents'}",
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

    norm, *norms = (product(each, each) ** 0.5 for each in adapters)
    cosines = [
        product(adapters[0], parent) / (norm * own) if norm * own else 0.0
        for parent, own in zip(adapters[1:], norms, strict=True)
    ]
    mean = sum(norms) / len(norms)
    return (norm / mean if mean else 0.0), tuple(cosines)


def _shapes(state: MemberState) -> dict[str, tuple[torch.Size, torch.Size]]:
    return {name: (a_R_I.shape, b_O_R.shape) for name, (a_R_I, b_O_R) in state.factors.items()}


def _from_file(path: Path, name: str) -> Operator:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", "give the path of the file that defines the operator")
    spec = importlib.util.spec_from_file_location(f"redqueen_operators_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be imported", "give a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise ConfigError(
            f"{path} fails when it is imported: {type(error).__name__}: {error}", "mend it there"
        ) from error
    found = getattr(module, name, None)
    if not isinstance(found, Operator):
        own = [key for key, value in vars(module).items() if isinstance(value, Operator)]
        raise ConfigError(f"{path} defines no Operator {name!r}", f"it has {', '.join(own) or 'none'}")
    return found


__all__ = ["OPERATORS", "Adapter", "Draws", "Kind", "Operator", "Stack", "Use", "child", "find", "portrait", "resolve"]
