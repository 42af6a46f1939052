"""Control: the mean of both parents."""

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.linear import weighted


def linear_0_5(parents: Parents, draws: Draws) -> Adapter:
    """The mean of both parents' Delta W."""
    return weighted(parents, 0.5)
