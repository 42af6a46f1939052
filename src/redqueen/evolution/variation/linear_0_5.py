"""Control: the mean of both parents."""

from collections.abc import Sequence

from redqueen.evolution.variation.adapter import Adapter
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.linear import weighted


def linear_0_5(parents: Sequence[Adapter], draws: Draws) -> Adapter:
    """The mean of both parents' Delta W."""
    return weighted(parents, 0.5)
