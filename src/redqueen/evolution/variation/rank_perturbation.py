"""M6, rank perturbation: a lower effective rank, filled up with random directions."""

from dataclasses import replace

import torch

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import refactored, spectrum_of
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M6", Use.TRIED, norm=(0.15, 1), cosine=(0.15, 1))
def rank_perturbation(parents: Parents, draws: Draws) -> Adapter:
    """The k largest components stay, k ~ U{1..r-1}; the others become fresh directions of size zero."""
    [parent] = parents
    kept = draws.integer(1, max(1, parent.rank - 1))

    def change(stack: Stack) -> Stack:
        old = spectrum_of(stack)
        v_S_I_K = old.v_S_I_R[:, :, :kept]
        fresh_S_I_N = draws.normal(len(stack), v_S_I_K.shape[1], stack.rank - kept)
        if v_S_I_K.shape[1] > kept:
            fresh_S_I_N = fresh_S_I_N - v_S_I_K @ (v_S_I_K.mT @ fresh_S_I_N)
        fresh_S_I_N = fresh_S_I_N / fresh_S_I_N.norm(dim=1, keepdim=True)
        s_S_R = old.s_S_R.clone()
        s_S_R[:, kept:] = 0
        return refactored(stack, replace(old, s_S_R=s_S_R, v_S_I_R=torch.cat([v_S_I_K, fresh_S_I_N], dim=2)))

    return parent.map(change)
