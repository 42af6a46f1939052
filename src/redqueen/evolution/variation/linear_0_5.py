"""Control: the mean of both parents."""

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.linear import weighted
from redqueen.evolution.variation.operator import Use, crossover


@crossover("control", Use.CONTROL, norm=(0.5, 1), cosine=(0.4, 1))
def linear_0_5(parents: Parents, draws: Draws) -> Adapter:
    """The mean of both parents' Delta W."""
    return weighted(parents, 0.5)
