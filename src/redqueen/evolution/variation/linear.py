"""Linear merge of Delta W.

The products B @ A are summed and truncated to the rank: a sum of the factors would mix every component of one parent
with every component of the other.
"""

from redqueen.evolution.variation.adapter import Adapter, Parents, zip_map
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import combined, refactored
from redqueen.evolution.variation.operator import Use, crossover


@crossover("model soups, arXiv 2203.05482", Use.TRIED, norm=(0.5, 1), cosine=(-0.1, 1))
def linear(parents: Parents, draws: Draws) -> Adapter:
    """w times the better parent and 1 - w times the other, w ~ U(0, 1)."""
    return weighted(parents, draws.number(0, 1))


def weighted(parents: Parents, weight: float) -> Adapter:
    """`weight` times the first parent and 1 - `weight` times the second; the weight may lie outside of 0..1."""
    return zip_map(parents, lambda first, second: refactored(first, combined([(weight, first), (1 - weight, second)])))
