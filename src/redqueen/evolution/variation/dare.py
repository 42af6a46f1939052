"""X1, DARE: most entries of either Delta W are dropped, the others scaled up for them, and both are averaged.

On Delta W, not on the factors: dropping entries of A and B is not the same in expectation.
"""

from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.dense import Slot, merged
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, crossover


@crossover("PopuLoRA X1; DARE, arXiv 2311.03099", Use.LIVE, norm=(0.45, 1.55), cosine=(0.3, 1))
def dare(parents: Parents, draws: Draws, *, drop: float = 0.7) -> Adapter:
    """The mean of both Delta W after entries were dropped with this chance and the rest rescaled."""

    def merge(first: Slot, second: Slot) -> Tensor:
        return sparse(first.delta(), draws, drop).add_(sparse(second.delta(), draws, drop)).div_(2)

    return merged(parents, draws, merge)


def sparse(delta_O_I: Tensor, draws: Draws, drop: float) -> Tensor:
    """Equal to `delta_O_I` in expectation."""
    return (delta_O_I * draws.coins(1 - drop, *delta_O_I.shape)).div_(draws.coin(1 - drop))
