"""DELLA: as DARE, but small entries are dropped more often than large ones, and signs are elected as in TIES.

An entry's rank in its row is estimated by a normal distribution with the row's spread: sorting the rows of a large slot
would take longer than everything else.
"""

from math import sqrt

from torch import Tensor

from redqueen.errors import ConfigError
from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.dense import elected, merged
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, crossover

_LEAST = 1e-3
"""Entries that are kept with a smaller chance would be scaled up beyond use."""


@crossover("DELLA-Merging, arXiv 2406.11617", Use.TRIED, norm=(0.8, 2.3), cosine=(0.3, 1))
def della(parents: Parents, draws: Draws, *, drop: float = 0.7, spread: float = 0.2) -> Adapter:
    """Entries dropped with a chance that falls with their rank in the row, within drop +- spread / 2; signs elected."""
    if not spread / 2 <= drop <= 1 - spread / 2 - _LEAST:
        raise ConfigError(
            f"della cannot drop {drop:g} +- {spread / 2:g} of the entries",
            "use drop and spread that stay within 0 and 1",
        )

    def kept(delta_O_I: Tensor) -> Tensor:
        return pruned(delta_O_I, draws, drop, spread)

    return merged(parents, draws, lambda first, second: elected(kept(first.delta()), kept(second.delta())))


def pruned(delta_O_I: Tensor, draws: Draws, drop: float, spread: float) -> Tensor:
    """Equal to `delta_O_I` in expectation."""
    keep_O_I = _rank(delta_O_I).mul_(spread).add_(1 - drop - spread / 2)
    return (delta_O_I * (draws.uniform(*delta_O_I.shape) < keep_O_I)).div_(keep_O_I)


def _rank(delta_O_I: Tensor) -> Tensor:
    """Where an entry's size stands in its row, from 0 for the smallest to 1 for the largest."""
    rms_O_1 = delta_O_I.square().mean(dim=1, keepdim=True).sqrt()
    return (delta_O_I.abs() / (sqrt(2) * rms_O_1.clamp_min(1e-30))).erf_()
