"""Members of a role that move towards their mean: what one of them has learnt reaches the others.

A member keeps its A, so that its optimiser's moments still fit, and gets the B with which it is nearest to where it
should be: B' = (1 - way) B + way M A^T (A A^T)^-1, with the mean M of all B @ A. What of the mean lies outside the rows
of its A is lost to it. All members begin with one A, so that is little.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from redqueen.engine.protocol import MemberState
from redqueen.evolution.variation import child
from redqueen.evolution.variation.adapter import Stack, stacked
from redqueen.evolution.variation.mean import mean

RIDGE = 1e-6
"""Of the mean diagonal of A A^T, in case two rows of A have become one."""


@torch.no_grad()
def pulled(states: Sequence[MemberState], way: float, device: torch.device) -> list[MemberState]:
    """The members, each `way` (from 0 to 1) nearer to the mean of them all. Their optimisers stay."""
    adapters = stacked(states, device)
    moved: list[MemberState] = []
    for at, state in enumerate(states):
        factors = dict(state.factors)
        for stacks in zip(*(adapter.stacks for adapter in adapters), strict=True):
            b_S_O_R = _nearest(stacks[at], stacks, way).cpu()
            for name, b_O_R in zip(stacks[at].names, b_S_O_R, strict=True):
                factors[name] = factors[name][0], b_O_R.contiguous()
        moved.append(replace(state, factors=factors))
    return moved


def soup(states: Sequence[MemberState]) -> MemberState:
    """The mean of members, as one member of their rank."""
    return child(mean, states, seed=0)


def _nearest(own: Stack, stacks: Sequence[Stack], way: float) -> torch.Tensor:
    a_S_I_R = own.a_S_R_I.mT
    product_S_O_R = torch.stack([other.b_S_O_R @ (other.a_S_R_I @ a_S_I_R) for other in stacks]).mean(0)
    gram_S_R_R = own.a_S_R_I @ a_S_I_R
    ridge_S = RIDGE * gram_S_R_R.diagonal(dim1=1, dim2=2).mean(1)
    gram_S_R_R = gram_S_R_R + ridge_S[:, None, None] * torch.eye(own.rank, device=gram_S_R_R.device)
    mean_S_O_R = torch.linalg.solve(gram_S_R_R, product_S_O_R.mT).mT
    return torch.lerp(own.b_S_O_R, mean_S_O_R, way)
