"""M3, component mask: some singular components are set to zero; their directions in A stay and can learn."""

from dataclasses import replace
from math import ceil

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import refactored, spectrum_of
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M3", Use.LIVE, norm=(0.6, 0.97), cosine=(0.6, 0.97))
def component_mask(parents: Parents, draws: Draws, *, share: float = 0.3) -> Adapter:
    """A random share of each slot's singular components set to zero; at least one stays."""
    [parent] = parents

    def change(stack: Stack) -> Stack:
        old = spectrum_of(stack)
        # A rank above the slot's own width: what lies beyond is zero anyway.
        count = min(stack.rank, old.u_S_O_R.shape[1], old.v_S_I_R.shape[1])
        silenced_S_K = draws.subset(min(count - 1, ceil(share * count)), count, rows=len(stack))
        s_S_R = old.s_S_R.clone()
        s_S_R[:, :count].masked_fill_(silenced_S_K, 0.0)
        return refactored(stack, replace(old, s_S_R=s_S_R))

    return parent.map(change)
