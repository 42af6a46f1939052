"""M2, slot noise: full noise, on a random third of the slots."""

from dataclasses import replace

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.full_noise import noisy
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M2", Use.LIVE, norm=(0.99, 1.03), cosine=(0.98, 1), keeps_factors=True)
def slot_noise(parents: Parents, draws: Draws, *, sigma: float = 0.1, share: float = 0.33) -> Adapter:
    """Gaussian noise, sigma times each factor's standard deviation, on a random share of the slots."""
    [parent] = parents
    chosen_S = draws.subset(max(1, round(share * parent.slots)), parent.slots)[0]

    stacks: list[Stack] = []
    for stack, part_S in parent.split(chosen_S):
        noisy_at, same_at = part_S.nonzero().flatten(), (~part_S).nonzero().flatten()
        if len(noisy_at):
            stacks.append(noisy(stack.part(noisy_at), draws, sigma))
        # One by one, which are views: what stays as it is need not be copied.
        stacks += [stack.part(slice(index, index + 1)) for index in same_at.tolist()]
    return replace(parent, stacks=tuple(stacks))
