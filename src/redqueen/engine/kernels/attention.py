"""The newest token of each sequence: rotated, put into the cache, and attending to what the cache has."""

import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power, precision


@triton.jit
def _rope_write(
    qkv_ptr, q_norm_ptr, k_norm_ptr, position_ptr, start_ptr, capacity_ptr, cos_ptr, sin_ptr, k_ptr, v_ptr,
    eps, heads, kv_heads, width, NORM: tl.constexpr, HALF: tl.constexpr,
    HALF_PADDED: tl.constexpr,
):  # fmt: skip
    """One program per row and head: a query is rotated in place, a key rotated into the cache, a value copied there."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    position = tl.load(position_ptr + row).to(tl.int64)
    column = tl.arange(0, HALF_PADDED)
    inside = column < HALF
    at = qkv_ptr + row * width + head * 2 * HALF + column
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
    is_value = head >= heads + kv_heads
    is_query = head < heads
    if NORM:
        scale = tl.rsqrt((tl.sum(first * first) + tl.sum(second * second)) / (2 * HALF) + eps)
        norm_ptr = k_norm_ptr
        if is_query:
            norm_ptr = q_norm_ptr
        if is_value == 0:
            first = first * scale * tl.load(norm_ptr + column, mask=inside, other=0.0).to(tl.float32)
            second = second * scale * tl.load(norm_ptr + HALF + column, mask=inside, other=0.0).to(tl.float32)
    kind = qkv_ptr.dtype.element_ty
    if is_value == 0:
        cos = tl.load(cos_ptr + position * 2 * HALF + column, mask=inside, other=0.0)
        sin = tl.load(sin_ptr + position * 2 * HALF + column, mask=inside, other=0.0)
        turned = first * cos - second * sin
        second = second * cos + first * sin
        first = turned
    if is_query:
        tl.store(at, first.to(kind), mask=inside)
        tl.store(at + HALF, second.to(kind), mask=inside)
    else:
        kv_head = (head - heads) % kv_heads
        start = tl.load(start_ptr + row).to(tl.int64)
        capacity = tl.load(capacity_ptr + row).to(tl.int64)
        place = ((start * kv_heads) + kv_head * capacity + position) * 2 * HALF + column
        if is_value:
            tl.store(v_ptr + place, first.to(kind), mask=inside)
            tl.store(v_ptr + place + HALF, second.to(kind), mask=inside)
        else:
            tl.store(k_ptr + place, first.to(kind), mask=inside)
            tl.store(k_ptr + place + HALF, second.to(kind), mask=inside)


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
    _rope_write[(rows, heads + 2 * kv_heads)](
        qkv_R_O, q_norm_D, k_norm_D, position_R, start_R, capacity_R, cos_T_D, sin_T_D, k_cache, v_cache,
        eps, heads, kv_heads, width, NORM=norms is not None, HALF=cos_T_D.shape[1] // 2,
        HALF_PADDED=power(cos_T_D.shape[1] // 2, 1), num_warps=1,
    )  # fmt: skip


@triton.jit
def _attend(
    q_ptr, k_ptr, v_ptr, out_ptr, position_ptr, start_ptr, capacity_ptr, scale, q_stride, groups, kv_heads,
    WINDOW: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per row and key head: all queries that share the head, over the keys that the row has."""
    row = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    last = tl.load(position_ptr + row).to(tl.int32)
    start = tl.load(start_ptr + row).to(tl.int64)
    capacity = tl.load(capacity_ptr + row).to(tl.int64)
    query = tl.arange(0, TILE)
    column = tl.arange(0, DIM_PADDED)
    inside = column < DIM
    at_q = row * q_stride + (kv_head * groups + query)[:, None] * DIM + column[None, :]
    q = tl.load(q_ptr + at_q, mask=(query < groups)[:, None] & inside[None, :], other=0.0)
    first = 0
    if WINDOW > 0:
        first = tl.maximum(last - WINDOW + 1, 0) // BLOCK * BLOCK
    base = (start * kv_heads + kv_head * capacity) * DIM
    high = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    out = tl.zeros([TILE, DIM_PADDED], tl.float32)
    for at in range(first, last + 1, BLOCK):
        key = at + tl.arange(0, BLOCK)
        seen = key <= last
        if WINDOW > 0:
            seen = seen & (key > last - WINDOW)
        place = base + key[:, None] * DIM + column[None, :]
        mask = seen[:, None] & inside[None, :]
        k = tl.load(k_ptr + place, mask=mask, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        score = tl.where(seen[None, :], score, float("-inf"))
        new_high = tl.maximum(high, tl.max(score, 1))
        weight = tl.exp(score - new_high[:, None])
        shrink = tl.exp(high - new_high)
        total = total * shrink + tl.sum(weight, 1)
        v = tl.load(v_ptr + place, mask=mask, other=0.0)
        out = out * shrink[:, None] + tl.dot(weight.to(v.dtype), v, input_precision=PRECISION)
        high = new_high
    out = out / total[:, None]
    at_out = (row * kv_heads * groups + kv_head * groups + query)[:, None] * DIM + column[None, :]
    tl.store(out_ptr + at_out, out.to(out_ptr.dtype.element_ty), mask=(query < groups)[:, None] & inside[None, :])


def attend(
    q_R_O: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    position_R: Tensor,
    start_R: Tensor,
    capacity_R: Tensor,
    *,
    heads: int,
    kv_heads: int,
    dim: int,
    scale: float,
    window: int,
) -> Tensor:
    """`q_R_O` may be wider than its queries (a fused q, k, v): they come first."""
    rows, groups = q_R_O.shape[0], heads // kv_heads
    out_R_O = q_R_O.new_empty(rows, heads * dim)
    _attend[(rows, kv_heads)](
        q_R_O, k_cache, v_cache, out_R_O, position_R, start_R, capacity_R, scale, q_R_O.stride(0), groups, kv_heads,
        WINDOW=window, DIM=dim, DIM_PADDED=power(dim), BLOCK=64, TILE=power(groups), PRECISION=precision(q_R_O),
        num_warps=4 if dim > 64 else 2,
    )  # fmt: skip
    return out_R_O
