"""The algebra of B @ A without forming it: QR of both factors, SVD of the small core, and the way back.

The way back is made for learning. Rows of A get the length of fresh ones, and the singular values go into B, so that a
component of size zero still has a row in A, through which B gets a gradient. Balanced factors would leave it dead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import ROW_NORM, Stack

_CHUNK = 2048
_SMALL, _LARGE = 1e-8, 1e8
"""Entries within these can be multiplied and summed in float32."""
_EASY, _HARD = 1e3, 1e6
"""Condition numbers: up to the first, products in float32 are exact enough; beyond the second only Householder's QR."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """B @ A as u @ diag(s) @ v^T, the largest first; every column of v has length 1, also where s is 0."""

    u_S_O_R: Tensor
    s_S_R: Tensor
    v_S_I_R: Tensor


def orthonormal(x_S_N_K: Tensor) -> tuple[Tensor, Tensor]:
    """QR: columns that are orthonormal in float32, and the triangular factor.

    Two rounds of Cholesky on the Gram matrix, the first in double precision, which is fast. Where the columns are
    nearly dependent it is Householder's QR, several times slower.
    """
    if x_S_N_K.shape[1] < x_S_N_K.shape[2]:
        return torch.linalg.qr(x_S_N_K)
    first_S_K_K, inverse_S_K_K, condition_S = _triangle(_gram(x_S_N_K))
    q_S_N_K = x_S_N_K @ inverse_S_K_K.float()
    for at in ((condition_S > _EASY) & (condition_S <= _HARD)).nonzero().flatten().tolist():
        q_S_N_K[at] = (x_S_N_K[at].double() @ inverse_S_K_K[at]).float()
    second_S_K_K, inverse_S_K_K, again_S = _triangle((q_S_N_K.mT @ q_S_N_K).double())
    q_S_N_K = q_S_N_K @ inverse_S_K_K.float()
    r_S_K_K = (second_S_K_K @ first_S_K_K).float()
    hard_S = ((condition_S > _HARD) | (again_S > _EASY)).nonzero().flatten()
    if len(hard_S):
        q_S_N_K[hard_S], r_S_K_K[hard_S] = torch.linalg.qr(x_S_N_K[hard_S])
    return q_S_N_K, r_S_K_K


def spectrum(a_S_K_I: Tensor, b_S_O_K: Tensor, rank: int) -> Spectrum:
    """The `rank` largest components of B @ A; K may be larger or smaller than that."""
    qa_S_I_K, ra_S_K_K = orthonormal(a_S_K_I.mT)
    qb_S_O_K, rb_S_K_K = orthonormal(b_S_O_K)
    # All of v: a component that is zero needs a direction in A too.
    uc_S_K_K, s_S_K, vc_S_K_K = torch.linalg.svd(rb_S_K_K @ ra_S_K_K.mT, full_matrices=True)
    u_S_O_R = padded(qb_S_O_K @ uc_S_K_K[:, :, : min(rank, s_S_K.shape[1])], rank)
    s_S_R = padded(s_S_K[:, None], rank)[:, 0]
    v_S_I_K = qa_S_I_K @ vc_S_K_K.mT[:, :, : min(rank, vc_S_K_K.shape[1])]
    return Spectrum(u_S_O_R, s_S_R, repeated(v_S_I_K, rank))


def spectrum_of(stack: Stack) -> Spectrum:
    return spectrum(stack.a_S_R_I, stack.b_S_O_R, stack.rank)


def combined(terms: Sequence[tuple[Tensor | float, Stack]]) -> Spectrum:
    """The weighted sum of B @ A over stacks (a weight is one number, or one for each slot), truncated to their rank."""
    used = [(weight, stack) for weight, stack in terms if isinstance(weight, Tensor) or weight != 0] or terms[:1]
    a_S_K_I = torch.cat([stack.a_S_R_I for _, stack in used], dim=1)
    b_S_O_K = torch.cat([_times(stack.b_S_O_R, weight) for weight, stack in used], dim=2)
    return spectrum(a_S_K_I, b_S_O_K, terms[0][1].rank)


def refactored(like: Stack, child: Spectrum) -> Stack:
    """A child's factors in the slots of `like`, with the A of `like` where the child is zero."""
    a_S_R_I = ROW_NORM * child.v_S_I_R.mT
    b_S_O_R = child.u_S_O_R * (child.s_S_R / ROW_NORM)[:, None, :]
    silent_S = child.s_S_R.amax(dim=1) == 0
    a_S_R_I = torch.where(silent_S[:, None, None], like.a_S_R_I, a_S_R_I)
    return like.with_factors(a_S_R_I.contiguous(), b_S_O_R)


def inner(first: Stack, second: Stack) -> Tensor:
    """The inner product of two B @ A, slot by slot [S]."""
    (a_S_R_I, a_S), (b_S_O_R, b_S), (c_S_R_I, c_S), (d_S_O_R, d_S) = map(
        _scaled, (first.a_S_R_I, first.b_S_O_R, second.a_S_R_I, second.b_S_O_R)
    )
    products_S_R_R = (b_S_O_R.mT @ d_S_O_R).double() * (a_S_R_I @ c_S_R_I.mT).double()
    return products_S_R_R.sum(dim=(1, 2)) * a_S * b_S * c_S * d_S


def norm(stack: Stack) -> Tensor:
    """The Frobenius norm of B @ A, slot by slot [S]."""
    return inner(stack, stack).clamp_min(0).sqrt()


def _scaled(x_S_N_K: Tensor) -> tuple[Tensor, Tensor]:
    """Divided by its largest entry where products could overflow or vanish; and that divisor."""
    low_S, high_S = (bound.double() for bound in torch.aminmax(x_S_N_K.flatten(1), dim=1))
    largest_S = torch.maximum(high_S, -low_S)
    largest_S = torch.where(((largest_S > 0) & (largest_S < _SMALL)) | (largest_S > _LARGE), largest_S, 1.0)
    if bool((largest_S == 1).all()):
        return x_S_N_K, largest_S
    return x_S_N_K / largest_S.to(x_S_N_K.dtype)[:, None, None], largest_S


def _times(b_S_O_R: Tensor, weight: Tensor | float) -> Tensor:
    return b_S_O_R * (weight.to(b_S_O_R.dtype)[:, None, None] if isinstance(weight, Tensor) else weight)


def padded(x_S_N_K: Tensor, rank: int) -> Tensor:
    """The first `rank` columns, filled up with zeros."""
    return torch.nn.functional.pad(x_S_N_K[:, :, :rank], (0, max(0, rank - x_S_N_K.shape[2])))


def repeated(v_S_I_K: Tensor, rank: int) -> Tensor:
    """The first `rank` directions. With a rank above the slot's width they repeat; B is zero there."""
    return v_S_I_K.repeat(1, 1, -(-rank // v_S_I_K.shape[2]))[:, :, :rank]


def _gram(x_S_N_K: Tensor) -> Tensor:
    """The Gram matrix in double precision, in pieces that fit a processor's cache."""
    if x_S_N_K.device.type != "cpu":
        wide_S_N_K = x_S_N_K.double()
        return wide_S_N_K.mT @ wide_S_N_K
    total_S_K_K = torch.zeros(len(x_S_N_K), *(2 * x_S_N_K.shape[2:]), dtype=torch.float64)
    for x_N_K, total_K_K in zip(x_S_N_K, total_S_K_K, strict=True):
        for piece_N_K in x_N_K.split(_CHUNK):
            wide_N_K = piece_N_K.double()
            total_K_K.addmm_(wide_N_K.mT, wide_N_K)
    return total_S_K_K


def _triangle(gram_S_K_K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The upper Cholesky factor, its inverse, and its condition number, infinite where there is no factor."""
    eye_K_K = torch.eye(gram_S_K_K.shape[1]).to(gram_S_K_K)
    lower_S_K_K, info_S = torch.linalg.cholesky_ex(gram_S_K_K)
    upper_S_K_K = torch.where((info_S == 0)[:, None, None], lower_S_K_K.mT, eye_K_K)
    inverse_S_K_K = torch.linalg.solve_triangular(upper_S_K_K, eye_K_K, upper=True)
    condition_S = torch.linalg.matrix_norm(upper_S_K_K) * torch.linalg.matrix_norm(inverse_S_K_K)
    # Frobenius norms: K for an orthonormal matrix.
    condition_S = condition_S / gram_S_K_K.shape[1]
    return upper_S_K_K, inverse_S_K_K, torch.where((info_S == 0) & condition_S.isfinite(), condition_S, torch.inf)
