"""Rotary embeddings, with the norms of heads before them."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power


@triton.jit
def _rope(
    qkv_ptr, out_ptr, position_ptr, cos_ptr, sin_ptr, width, rotated, sign,
    HALF: tl.constexpr, HALF_PADDED: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """One program per token; `HEADS` rows of a tile are heads, all of them, and those from `rotated` on are copied."""
    row = tl.program_id(0).to(tl.int64)
    position = tl.load(position_ptr + row)
    head = tl.arange(0, HEADS)[:, None]
    column = tl.arange(0, HALF_PADDED)[None, :]
    inside = column < HALF
    cos = tl.load(cos_ptr + position * 2 * HALF + column, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + position * 2 * HALF + column, mask=inside, other=0.0) * sign
    turn = head < rotated
    cos = tl.where(turn, cos, 1.0)
    sin = tl.where(turn, sin, 0.0)
    at = head * 2 * HALF + column
    mask = inside & (at + HALF < width)
    first = tl.load(qkv_ptr + row * width + at, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(qkv_ptr + row * width + at + HALF, mask=mask, other=0.0).to(tl.float32)
    kind = out_ptr.dtype.element_ty
    tl.store(out_ptr + row * width + at, (first * cos - second * sin).to(kind), mask=mask)
    tl.store(out_ptr + row * width + at + HALF, (second * cos + first * sin).to(kind), mask=mask)


def rope(
    qkv_N_O: Tensor, position_N: Tensor, cos_T_D: Tensor, sin_T_D: Tensor, rotated: int, *, inverse: bool = False
) -> Tensor:
    rows, width = qkv_N_O.shape
    dim = cos_T_D.shape[1]
    out_N_O = torch.empty_like(qkv_N_O)
    sign = -1.0 if inverse else 1.0
    _rope[(rows,)](
        qkv_N_O, out_N_O, position_N, cos_T_D, sin_T_D, width, rotated, sign,
        HALF=dim // 2, HALF_PADDED=power(dim // 2, 1), HEADS=power(width // dim, 1),
    )  # fmt: skip
    return out_N_O


@triton.jit
def head_norms(first, second, q_norm_ptr, k_norm_ptr, column, for_query, for_key, eps, HALF: tl.constexpr):
    """Both halves of heads, normed as queries or as keys."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    scale = tl.rsqrt(square / (2 * HALF) + eps)[:, None]
    norm = tl.load(q_norm_ptr + column, mask=for_query, other=0.0).to(tl.float32)
    norm += tl.load(k_norm_ptr + column, mask=for_key, other=0.0).to(tl.float32)
    norm_2 = tl.load(q_norm_ptr + HALF + column, mask=for_query, other=0.0).to(tl.float32)
    norm_2 += tl.load(k_norm_ptr + HALF + column, mask=for_key, other=0.0).to(tl.float32)
    return first * scale * norm, second * scale * norm_2


@triton.jit
def _rope_write(
    qkv_ptr, q_norm_ptr, k_norm_ptr, position_ptr, start_ptr, capacity_ptr, cos_ptr, sin_ptr, k_ptr, v_ptr,
    eps, heads, kv_heads, width, NORM: tl.constexpr, HALF: tl.constexpr, HALF_PADDED: tl.constexpr,
    HEADS: tl.constexpr,
):  # fmt: skip
    """One program per row and some of its heads: queries are rotated in place, keys rotated into the cache, values
    copied there."""
    row = tl.program_id(0).to(tl.int64)
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[:, None]
    column = tl.arange(0, HALF_PADDED)[None, :]
    position = tl.load(position_ptr + row).to(tl.int64)
    is_query = head < heads
    is_value = head >= heads + kv_heads
    inside = (column < HALF) & (head < heads + 2 * kv_heads)
    at = qkv_ptr + row * width + head * 2 * HALF + column
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        normed, normed_2 = head_norms(
            first, second, q_norm_ptr, k_norm_ptr, column, inside & is_query, inside & (is_query == 0), eps, HALF
        )
        first = tl.where(is_value, first, normed)
        second = tl.where(is_value, second, normed_2)
    cos = tl.load(cos_ptr + position * 2 * HALF + column, mask=column < HALF, other=0.0)
    sin = tl.load(sin_ptr + position * 2 * HALF + column, mask=column < HALF, other=0.0)
    turned = tl.where(is_value, first, first * cos - second * sin)
    turned_2 = tl.where(is_value, second, second * cos + first * sin)
    kind = qkv_ptr.dtype.element_ty
    tl.store(at, turned.to(kind), mask=inside & is_query)
    tl.store(at + HALF, turned_2.to(kind), mask=inside & is_query)
    start = tl.load(start_ptr + row).to(tl.int64)
    capacity = tl.load(capacity_ptr + row).to(tl.int64)
    kv_head = tl.where(is_value, head - heads - kv_heads, head - heads)
    place = (start * kv_heads + kv_head * capacity + position) * 2 * HALF + column
    is_key = (is_query == 0) & (is_value == 0)
    tl.store(k_ptr + place, turned.to(kind), mask=inside & is_key)
    tl.store(k_ptr + place + HALF, turned_2.to(kind), mask=inside & is_key)
    tl.store(v_ptr + place, turned.to(kind), mask=inside & is_value)
    tl.store(v_ptr + place + HALF, turned_2.to(kind), mask=inside & is_value)


HEADS = 8
"""Of a row that one program rotates."""


def rope_write_(
    qkv_R_O: Tensor,
    norms: tuple[Tensor, Tensor, float] | None,
    position_R: Tensor,
    start_R: Tensor,
    capacity_R: Tensor,
    cos_T_D: Tensor,
    sin_T_D: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    heads: int,
    kv_heads: int,
) -> None:
    rows, width = qkv_R_O.shape
    q_norm_D, k_norm_D, eps = norms or (qkv_R_O, qkv_R_O, 0.0)
    _rope_write[(rows, triton.cdiv(heads + 2 * kv_heads, HEADS))](
        qkv_R_O, q_norm_D, k_norm_D, position_R, start_R, capacity_R, cos_T_D, sin_T_D, k_cache, v_cache,
        eps, heads, kv_heads, width, NORM=norms is not None, HALF=cos_T_D.shape[1] // 2,
        HALF_PADDED=power(cos_T_D.shape[1] // 2, 1), HEADS=HEADS, num_warps=2,
    )  # fmt: skip
