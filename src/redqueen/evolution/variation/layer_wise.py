"""X2, layer-wise: every slot comes whole from one parent or the other."""

from dataclasses import replace

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack, pairs
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, crossover


@crossover("PopuLoRA X2", Use.LIVE, norm=(1, 1), cosine=(-0.1, 1), keeps_factors=True)
def layer_wise(parents: Parents, draws: Draws, *, share: float = 0.5) -> Adapter:
    """Each slot is the better parent's with this chance, otherwise the other's."""
    better = parents[0]
    first_S = draws.coins(share, better.slots)
    stacks: list[Stack] = []
    for (first, second), (_, part_S) in zip(pairs(parents), better.split(first_S), strict=True):
        # One by one, which are views: nothing need be copied.
        for index, from_first in enumerate(part_S.tolist()):
            stacks.append((first if from_first else second).part(slice(index, index + 1)))
    return replace(better, stacks=tuple(stacks))
