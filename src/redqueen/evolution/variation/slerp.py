"""SLERP: the mean on the sphere, slot by slot: halfway in direction, halfway in length."""

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack, zip_map
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import combined, inner, norm, refactored
from redqueen.evolution.variation.operator import Use, crossover

_PARALLEL = 1e-6
"""Sines below this: the arc is a straight line."""


@crossover("Shoemake 1985", Use.TRIED, norm=(0.7, 1), cosine=(0.4, 1))
def slerp(parents: Parents, draws: Draws, *, way: float = 0.5) -> Adapter:
    """Along the arc between both parents' Delta W, the norm changing evenly."""

    def change(first: Stack, second: Stack) -> Stack:
        return refactored(first, combined(list(zip(_weights(first, second, way), (first, second), strict=True))))

    return zip_map(parents, change)


def _weights(first: Stack, second: Stack, way: float) -> tuple[Tensor, Tensor]:
    """What the two Delta W count in every slot; where one of them is zero, or both point the same way, linearly."""
    first_S, second_S = norm(first), norm(second)
    both_S = first_S * second_S
    angle_S = (inner(first, second) / both_S.clamp_min(torch.finfo(both_S.dtype).tiny)).clamp(-1, 1).acos()
    straight_S = (both_S == 0) | (angle_S.sin() < _PARALLEL)
    sine_S = torch.where(straight_S, 1.0, angle_S.sin())
    target_S = (1 - way) * first_S + way * second_S

    def weight(part: float, own_S: Tensor) -> Tensor:
        curved_S = (part * angle_S).sin() / sine_S * target_S / torch.where(own_S > 0, own_S, 1.0)
        return torch.where(straight_S, part, curved_S)

    return weight(1 - way, first_S), weight(way, second_S)
