"""Between the products of a decoding step: sums, norms, and the norm times the next product's A, in one pass over each
row."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import Groups, power


@triton.jit
def _add_norm_shrink(
    y_ptr, u_ptr, b_ptr, a_ptr, group_ptr, member_ptr, h_ptr, norm_ptr, x_ptr, out_ptr, rows, width, lanes, b_stride,
    a_stride, scale, eps, Y_PARTS: tl.constexpr, U_PARTS: tl.constexpr, SHRINK: tl.constexpr, RANK: tl.constexpr,
    RANK_PADDED: tl.constexpr, LANES: tl.constexpr, STEP: tl.constexpr, CHUNKS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One program per row: the sum of what it had and a product's parts with its update, the norm of that, and the norm
    times the next product's A."""
    row = tl.program_id(0).to(tl.int64)
    member = tl.load(member_ptr + tl.load(group_ptr + row)).to(tl.int64)
    kind = h_ptr.dtype.element_ty
    rank = tl.arange(0, RANK_PADDED)
    u = tl.zeros([RANK_PADDED], tl.float32)
    for part in tl.static_range(U_PARTS):
        u += tl.load(u_ptr + (part * rows + row) * RANK + rank, mask=rank < RANK, other=0.0)
    h = tl.zeros([CHUNK], tl.float32)
    square = 0.0
    for chunk in range(CHUNKS):
        column = chunk * CHUNK + tl.arange(0, CHUNK)
        inside = column < width
        h = tl.load(h_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
        if Y_PARTS > 0:
            b = tl.load(
                b_ptr + member * b_stride + column[:, None] * RANK + rank[None, :],
                mask=inside[:, None] & (rank < RANK)[None, :], other=0.0,
            )  # fmt: skip
            y = tl.zeros([CHUNK], tl.float32)
            for part in tl.static_range(Y_PARTS):
                y += tl.load(y_ptr + (part * rows + row) * width + column, mask=inside, other=0.0).to(tl.float32)
            y += tl.sum(b.to(tl.float32) * u.to(b.dtype).to(tl.float32)[None, :], 1)
            # Rounded as each would be stored.
            stored = (h + y.to(kind).to(tl.float32)).to(kind)
            tl.store(h_ptr + row * width + column, stored, mask=inside)
            h = stored.to(tl.float32)
        square += tl.sum(h * h)
    factor = tl.rsqrt(square / width + eps)
    if CHUNKS > 1:
        tl.debug_barrier()
    for first in range(0, LANES, STEP):
        lane = first + tl.arange(0, STEP)
        shrunk = tl.zeros([STEP], tl.float32)
        for chunk in range(CHUNKS):
            column = chunk * CHUNK + tl.arange(0, CHUNK)
            inside = column < width
            if CHUNKS > 1:
                h = tl.load(h_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
            norm = tl.load(norm_ptr + column, mask=inside, other=0.0).to(tl.float32)
            x = (h * factor * norm).to(kind)
            if first == 0:
                tl.store(x_ptr + row * width + column, x, mask=inside)
            if SHRINK:
                a = tl.load(
                    a_ptr + member * a_stride + lane[:, None] * width + column[None, :],
                    mask=(lane < lanes)[:, None] & inside[None, :], other=0.0,
                )  # fmt: skip
                shrunk += tl.sum(a.to(tl.float32) * x.to(tl.float32)[None, :], 1)
        if SHRINK:
            tl.store(out_ptr + row * lanes + lane, shrunk * scale, mask=lane < lanes)


def add_norm_shrink_(
    h_R_H: Tensor,
    added: tuple[Tensor, Tensor, Tensor] | None,
    groups: Groups,
    norm_H: Tensor,
    eps: float,
    following: tuple[Tensor, float] | None,
) -> tuple[Tensor, Tensor]:
    """Add a product to `h_R_H` in place; returns the norm of the sum, and that times A. `added` is the product's parts,
    those of its rows times A, and B; None adds nothing. `following` is the next product's A and the adapters' scale;
    without it the second result is empty."""
    rows, width = h_R_H.shape
    x_R_H = torch.empty_like(h_R_H)
    y_P_R_H, u_P_R_L, b_A_H_R = added or (h_R_H[None], h_R_H[None], h_R_H[:, :, None])
    rank = b_A_H_R.shape[2]
    a_A_L_H, scale = following or (h_R_H[:, None], 1.0)
    lanes = a_A_L_H.shape[1] if following is not None else 0
    out_R_L = torch.empty(rows, lanes, dtype=torch.float32, device=h_R_H.device)
    chunk = min(power(width), 1024, max(64, 16384 // power(rank, 1)))
    _add_norm_shrink[(rows,)](
        y_P_R_H, u_P_R_L, b_A_H_R, a_A_L_H, *groups, h_R_H, norm_H, x_R_H, out_R_L, rows, width, lanes,
        b_A_H_R.stride(0), a_A_L_H.stride(0), scale, eps, Y_PARTS=len(y_P_R_H) if added is not None else 0,
        U_PARTS=len(u_P_R_L) if added is not None else 0, SHRINK=following is not None, RANK=rank,
        RANK_PADDED=power(rank, 1), LANES=power(lanes), STEP=min(32, power(lanes)), CHUNKS=triton.cdiv(width, chunk),
        CHUNK=chunk, num_warps=8,
    )  # fmt: skip
    return x_R_H, out_R_L
