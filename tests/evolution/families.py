"""Parents for tests of variation: members of a few small slots with one norm in each, unrelated or of some cosine."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from redqueen.engine.protocol import MemberState, OptimiserState
from redqueen.evolution.variation.adapter import Stack

Shapes = Sequence[tuple[int, int]]
"""Outputs and inputs of every slot."""
SMALL: Shapes = ((24, 32), (8, 32), (32, 24), (24, 32)) * 2
WIDE: Shapes = ((96, 64), (64, 128), (160, 64)) * 2
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def member(
    shapes: Shapes = SMALL, rank: int = 4, *, seed: int = 0, flat: bool = False, norm: float = 1.0
) -> MemberState:
    """Random factors, every slot of this norm; components that fall off as those of trained members do, or `flat`."""
    numbers = torch.Generator().manual_seed(seed)
    falling_R = torch.ones(rank) if flat else (1 + torch.arange(rank)) ** -0.5
    factors = {}
    for index, (outputs, inputs) in enumerate(shapes):
        a_R_I = (2 * torch.rand(rank, inputs, generator=numbers) - 1) / math.sqrt(inputs)
        b_O_R = torch.randn(outputs, rank, generator=numbers) * falling_R
        factors[f"layer{index}"] = a_R_I, b_O_R * (norm / (b_O_R @ a_R_I).norm())
    return MemberState(rank, 2.0 * rank, factors)


def sibling(of: MemberState, cosine: float, *, seed: int = 1) -> MemberState:
    """A member with the same A and a B of its own: about this cosine to `of`, and its norm in every slot."""
    other = member([(len(b), a.shape[1]) for a, b in of.factors.values()], of.rank, seed=seed)
    factors = {}
    for name, (a_R_I, b_O_R) in of.factors.items():
        own_O_R = other.factors[name][1]
        mixed_O_R = cosine * b_O_R / b_O_R.norm() + math.sqrt(1 - cosine**2) * own_O_R / own_O_R.norm()
        factors[name] = a_R_I, mixed_O_R * ((b_O_R @ a_R_I).norm() / (mixed_O_R @ a_R_I).norm())
    return MemberState(of.rank, of.alpha, factors)


def trained(of: MemberState, size: float = 1.0, *, seed: int = 0) -> MemberState:
    """With an optimiser that remembers squared gradients of about this size."""
    numbers = torch.Generator().manual_seed(seed)

    def drawn(tensor: Tensor) -> Tensor:
        return size * torch.rand(tensor.shape, generator=numbers).add_(0.1)

    zero = {name: (torch.zeros_like(a), torch.zeros_like(b)) for name, (a, b) in of.factors.items()}
    squares = {name: (drawn(a), drawn(b)) for name, (a, b) in of.factors.items()}
    return MemberState(of.rank, of.alpha, of.factors, OptimiserState(3, zero, squares))


def silenced(of: MemberState, names: Sequence[str] | None = None) -> MemberState:
    """With B = 0 in these slots, or in all."""
    factors = {
        name: (a, torch.zeros_like(b) if names is None or name in names else b) for name, (a, b) in of.factors.items()
    }
    return MemberState(of.rank, of.alpha, factors, of.optimiser)


def deltas(state: MemberState) -> dict[str, Tensor]:
    """Every slot's B @ A [O, I], in double precision."""
    return {name: b.double() @ a.double() for name, (a, b) in state.factors.items()}


def distance(one: MemberState, other: MemberState) -> float:
    """The largest relative difference of the two Delta W in any slot."""
    mine, theirs = deltas(one), deltas(other)
    assert mine.keys() == theirs.keys()
    return max(
        float((mine[name] - theirs[name]).norm() / theirs[name].norm().clamp_min(1e-30)) if theirs[name].any()
        else float(mine[name].norm())
        for name in mine
    )  # fmt: skip


def stack(a_S_R_I: Tensor, b_S_O_R: Tensor) -> Stack:
    return Stack(tuple(f"layer{index}" for index in range(len(a_S_R_I))), a_S_R_I, b_S_O_R)
