"""X3, SVD subspace: the largest components of one parent, the smaller ones of the other."""

import torch

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack, zip_map
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import Spectrum, refactored, spectrum_of
from redqueen.evolution.variation.operator import Use, crossover


@crossover("PopuLoRA X3", Use.LIVE, norm=(0.9, 1.15), cosine=(-0.1, 1))
def svd_subspace(parents: Parents, draws: Draws) -> Adapter:
    """The k largest components of the better parent, k ~ U{1..r-1}, the rest from the other."""
    rank = parents[0].rank
    kept = draws.integer(1, max(1, rank - 1))

    def change(first: Stack, second: Stack) -> Stack:
        large, small = spectrum_of(first), spectrum_of(second)
        return refactored(
            first,
            Spectrum(
                torch.cat([large.u_S_O_R[:, :, :kept], small.u_S_O_R[:, :, kept:]], dim=2),
                torch.cat([large.s_S_R[:, :kept], small.s_S_R[:, kept:]], dim=1),
                torch.cat([large.v_S_I_R[:, :, :kept], small.v_S_I_R[:, :, kept:]], dim=2),
            ),
        )

    return zip_map(parents, change)
