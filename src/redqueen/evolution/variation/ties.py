"""TIES: the largest entries of either Delta W, and of those the ones that agree in sign with the sum."""

from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.dense import elected, merged, threshold
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, crossover


@crossover("TIES-Merging, arXiv 2306.01708", Use.TRIED, norm=(0.6, 1.2), cosine=(0.4, 1))
def ties(parents: Parents, draws: Draws, *, density: float = 0.2) -> Adapter:
    """This share of the largest entries of either, then the mean of those that agree on the sign."""

    def trimmed(delta_O_I: Tensor) -> Tensor:
        size_O_I = delta_O_I.abs()
        return delta_O_I * (size_O_I > threshold(size_O_I, 1 - density, draws))

    return merged(parents, draws, lambda first, second: elected(trimmed(first.delta()), trimmed(second.delta())))
