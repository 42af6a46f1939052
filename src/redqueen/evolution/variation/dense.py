"""Merges of single entries of Delta W, formed a few slots at a time and truncated to the rank.

The result of a merge is no longer of low rank. The child is its best approximation of the parents' rank, found by a
subspace iteration that starts with the parents' own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack, pairs
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import Spectrum, orthonormal, padded, refactored, repeated

_SMALL = {"cpu": 256, "cuda": 0}
"""Slots with a side of at most this are decomposed whole, which on CUDA takes longer than the iteration."""
_ENTRIES = {"cpu": 1, "cuda": 1 << 27}
"""Entries of Delta W that are formed at a time, one slot at least: CUDA takes as long for one slot as for many."""
_SPARE = 8
"""Random directions beyond the parents', so that the iteration sees what a merge adds."""
_ROUNDS = 1
"""Of the iteration: what a merge adds is spread over all directions and far below the parents' own."""


@dataclass(frozen=True, slots=True)
class Slot:
    a_R_I: Tensor
    b_O_R: Tensor
    moments: tuple[Tensor, Tensor] | None

    def delta(self) -> Tensor:
        """Delta W, without the factor alpha / rank [O, I]."""
        return self.b_O_R @ self.a_R_I


Merge = Callable[[Slot, Slot], Tensor]


def merged(parents: Parents, draws: Draws, merge: Merge) -> Adapter:
    """The child whose Delta W in every slot is the merge of the parents', truncated to the rank."""
    children = []
    for first, second in pairs(parents):
        outputs, inputs = first.b_S_O_R.shape[1], first.a_S_R_I.shape[2]
        together = max(1, _ENTRIES[first.a_S_R_I.device.type] // (outputs * inputs))
        spectra = []
        for start in range(0, len(first), together):
            indices = range(start, min(start + together, len(first)))
            delta_S_O_I, starts = first.a_S_R_I.new_empty(len(indices), outputs, inputs), []
            for delta_O_I, index in zip(delta_S_O_I, indices, strict=True):
                slots = _slot(first, index), _slot(second, index)
                starts.append(torch.cat([slots[0].a_R_I, slots[1].a_R_I, draws.normal(_SPARE, inputs)]).mT)
                delta_O_I.copy_(merge(*slots))
            spectra.append(truncated(delta_S_O_I, first.rank, torch.stack(starts)))
        u, s, v = (torch.cat(parts) for parts in zip(*spectra, strict=True))
        children.append(refactored(first, Spectrum(u, s, v)))
    return replace(parents[0], stacks=tuple(children))


def truncated(delta_S_O_I: Tensor, rank: int, start_S_I_K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The `rank` largest components of each, by an iteration that starts from `start_S_I_K`: u [S, O, R], s [S, R],
    v [S, I, R]."""
    if min(delta_S_O_I.shape[1:]) <= max(_SMALL[delta_S_O_I.device.type], start_S_I_K.shape[2]):
        u_S_O_K, s_S_K, vt_S_K_I = torch.linalg.svd(delta_S_O_I, full_matrices=False)
        return padded(u_S_O_K, rank), padded(s_S_K[:, None], rank)[:, 0], repeated(vt_S_K_I.mT, rank)
    u_S_O_K = _basis(delta_S_O_I @ _basis(start_S_I_K))
    for _ in range(_ROUNDS):
        u_S_O_K = _basis(delta_S_O_I @ _basis(delta_S_O_I.mT @ u_S_O_K))
    # delta ~ u (v core)^T
    v_S_I_K, core_S_K_K = orthonormal(delta_S_O_I.mT @ u_S_O_K)
    # Matrices this small are decomposed on the CPU before CUDA has begun.
    uc_S_K_K, s_S_K, vct_S_K_K = (part.to(delta_S_O_I.device) for part in torch.linalg.svd(core_S_K_K.mT.cpu()))
    return u_S_O_K @ uc_S_K_K[:, :, :rank], s_S_K[:, :rank], v_S_I_K @ vct_S_K_K.mT[:, :, :rank]


def threshold(values: Tensor, share: float, draws: Draws, most: int = 1 << 20) -> Tensor:
    """The value that this share of `values` lies below, estimated on at most a million of them."""
    flat = values.flatten()
    if len(flat) > most:
        flat = flat[(draws.uniform(most).double() * len(flat)).long().clamp_max(len(flat) - 1)]
    return flat.kthvalue(max(1, min(len(flat), round(share * len(flat))))).values


def elected(first_O_I: Tensor, second_O_I: Tensor) -> Tensor:
    """The mean of the entries that agree in sign with the sum of both: TIES's election and disjoint mean."""
    sign_O_I = (first_O_I + second_O_I).sign_()
    # Entries that agree with the sign are positive once multiplied by it.
    first_O_I, second_O_I = ((part_O_I * sign_O_I).clamp_min_(0) for part_O_I in (first_O_I, second_O_I))
    voices_O_I = (first_O_I > 0).to(torch.uint8) + (second_O_I > 0)
    return first_O_I.add_(second_O_I).mul_(sign_O_I).div_(voices_O_I.clamp_min_(1))


def _slot(stack: Stack, index: int) -> Slot:
    moments = None if stack.moments is None else (stack.moments[0][index], stack.moments[1][index])
    return Slot(stack.a_S_R_I[index], stack.b_S_O_R[index], moments)


def _basis(x_S_N_K: Tensor) -> Tensor:
    return orthonormal(x_S_N_K)[0]
