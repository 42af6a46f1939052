"""Fisher merging: entries are weighted by their Fisher information.

Its diagonal is estimated by the optimiser's second moments of the gradients, which are those of A and B: an entry of
Delta W takes the geometric mean of its row's mean in B and its column's mean in A.
"""

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.dense import Slot, merged
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, crossover


@crossover("Fisher merging, arXiv 2111.09832", Use.TRIED, norm=(0.5, 1), cosine=(-0.1, 1), moments=True)
def fisher(parents: Parents, draws: Draws) -> Adapter:
    """The mean of both Delta W, entry by entry, weighted by the optimisers' second moments."""

    def merge(first: Slot, second: Slot) -> Tensor:
        (row_O, column_I), (second_row_O, second_column_I) = _information(first), _information(second)
        odds_O_I = (row_O - second_row_O)[:, None] + (column_I - second_column_I)[None, :]
        odds_O_I /= 2
        # Where neither has information, or each where the other has none: half and half.
        share_O_I = odds_O_I.nan_to_num_(0.0).sigmoid_()
        return torch.lerp(second.delta(), first.delta(), share_O_I)

    return merged(parents, draws, merge)


def _information(slot: Slot) -> tuple[Tensor, Tensor]:
    """Logarithms of the rows' and columns' means, as products of squared gradients may be too small for float32."""
    if slot.moments is None:
        nothing = torch.full((), -torch.inf, device=slot.a_R_I.device)
        return nothing.expand(slot.b_O_R.shape[0]), nothing.expand(slot.a_R_I.shape[1])
    a_R_I, b_O_R = slot.moments
    return b_O_R.double().mean(dim=1).log().float(), a_R_I.double().mean(dim=0).log().float()
