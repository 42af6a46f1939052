"""M1, spectral: the singular values jitter, both bases turn a little, the norm stays."""

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import Spectrum, refactored, spectrum_of
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M1", Use.LIVE, norm=(1, 1), cosine=(0.97, 1))
def spectral(parents: Parents, draws: Draws, *, sigma: float = 0.1) -> Adapter:
    """Singular values times exp(sigma z), both bases turned by about sigma, the norm of every slot kept."""
    [parent] = parents

    def change(stack: Stack) -> Stack:
        old = spectrum_of(stack)
        s_S_R = old.s_S_R * torch.exp(sigma * draws.normal(*old.s_S_R.shape))
        before_S_1, after_S_1 = (s.norm(dim=1, keepdim=True) for s in (old.s_S_R, s_S_R))
        s_S_R = s_S_R * torch.where(after_S_1 > 0, before_S_1 / after_S_1, 1.0)
        # A rank above the slot's own width: what lies beyond is zero in u and repeated in v, not part of a basis.
        turned = min(stack.rank, old.u_S_O_R.shape[1], old.v_S_I_R.shape[1])
        u_S_O_R, v_S_I_R = (_turned(x_S_N_R, turned, draws, sigma) for x_S_N_R in (old.u_S_O_R, old.v_S_I_R))
        return refactored(stack, Spectrum(u_S_O_R, s_S_R, v_S_I_R))

    return parent.map(change)


def _turned(x_S_N_R: Tensor, count: int, draws: Draws, angle: float) -> Tensor:
    rotated_S_N_K = x_S_N_R[:, :, :count] @ _rotation(draws, len(x_S_N_R), count, angle)
    return torch.cat([rotated_S_N_K, x_S_N_R[:, :, count:]], dim=2)


def _rotation(draws: Draws, slots: int, rank: int, angle: float) -> Tensor:
    """Cayley's rotation of a random skew matrix: exactly orthogonal, each direction turned by about `angle`.

    The angle of a sum of `rank` random turns grows with the root of the rank, hence the division.
    """
    x_S_R_R = draws.normal(slots, rank, rank)
    half_S_R_R = (x_S_R_R - x_S_R_R.mT) * (angle / (2 * (2 * rank) ** 0.5))
    eye_R_R = torch.eye(rank, device=x_S_R_R.device)
    return torch.linalg.solve(eye_R_R - half_S_R_R, eye_R_R + half_S_R_R)
