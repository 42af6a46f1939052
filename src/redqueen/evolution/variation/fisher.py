"""Fisher merging: each entry from the parent that has learnt more about it.

How much one has learnt is what its optimiser remembers: the second moments of its gradients, which stand for the
diagonal of the Fisher information. They are those of A and B; an entry of Delta W takes the geometric mean of its row's
mean in B and its column's mean in A.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter
from redqueen.evolution.variation.dense import Slot, merged
from redqueen.evolution.variation.draws import Draws


def fisher(parents: Sequence[Adapter], draws: Draws) -> Adapter:
    """The mean of both Delta W, entry by entry, weighted by what the optimisers remember."""

    def merge(one: Slot, other: Slot) -> Tensor:
        (row_O, column_I), (other_row_O, other_column_I) = _information(one), _information(other)
        odds_O_I = (row_O - other_row_O)[:, None] + (column_I - other_column_I)[None, :]
        odds_O_I /= 2
        # Nobody knows anything, or each knows what the other does not: half and half.
        share_O_I = odds_O_I.nan_to_num_(0.0).sigmoid_()
        return torch.lerp(other.delta(), one.delta(), share_O_I)

    return merged(parents, draws, merge)


def _information(slot: Slot) -> tuple[Tensor, Tensor]:
    """Logarithms of the rows' and columns' means, as products of squared gradients may be too small for float32."""
    if slot.moments is None:
        nothing = torch.full((), -torch.inf, device=slot.a_R_I.device)
        return nothing.expand(slot.b_O_R.shape[0]), nothing.expand(slot.a_R_I.shape[1])
    a_R_I, b_O_R = slot.moments
    return b_O_R.double().mean(dim=1).log().float(), a_R_I.double().mean(dim=0).log().float()
