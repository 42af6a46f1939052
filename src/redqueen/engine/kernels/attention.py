"""New tokens of sequences: rotated, put into the KV cache, and attending to what it has."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power, precision
from redqueen.engine.routing import BUNDLE, PROMPT_TILE


@triton.jit
def _walk(
    q, k_ptr, v_ptr, base, first, end, position, scale, WINDOW: tl.constexpr, DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Queries at these positions over the keys from `first` to before `end`: what they see, and the logarithm of its
    weight. Without keys that is nothing, and as good as no weight."""
    column = tl.arange(0, DIM_PADDED)
    inside = column < DIM
    high = tl.full([LANES], -1e30, tl.float32)
    total = tl.zeros([LANES], tl.float32)
    out = tl.zeros([LANES, DIM_PADDED], tl.float32)
    for at in range(first, end, BLOCK):
        key = at + tl.arange(0, BLOCK)
        place = base + key[:, None] * DIM + column[None, :]
        mask = (key < end)[:, None] & inside[None, :]
        k = tl.load(k_ptr + place, mask=mask, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        seen = (key < end)[None, :] & (key[None, :] <= position[:, None])
        if WINDOW > 0:
            seen = seen & (key[None, :] > position[:, None] - WINDOW)
        score = tl.where(seen, score, float("-inf"))
        new_high = tl.maximum(high, tl.max(score, 1))
        weight = tl.exp(score - new_high[:, None])
        shrink = tl.exp(high - new_high)
        total = total * shrink + tl.sum(weight, 1)
        v = tl.load(v_ptr + place, mask=mask, other=0.0)
        out = out * shrink[:, None] + tl.dot(weight.to(v.dtype), v, input_precision=PRECISION)
        high = new_high
    return out / tl.maximum(total, 1e-30)[:, None], high + tl.log(tl.maximum(total, 1e-30))


@triton.jit
def _attend(
    q_ptr, k_ptr, v_ptr, out_ptr, weight_ptr, position_ptr, start_ptr, capacity_ptr, shared_ptr, first_ptr, count_ptr,
    scale, q_stride, groups, kv_heads, rows, WINDOW: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr,
    BLOCK: tl.constexpr, GROUPS: tl.constexpr, TILE: tl.constexpr, BUNDLE: tl.constexpr, OWN: tl.constexpr,
    SHARED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per row, key head and part of the row's own keys: all queries that share the head. With bundles as
    many more, one per bundle, key head and part of the keys that its rows share: all their queries. There are `OWN` and
    `SHARED` parts."""
    block = tl.program_id(0)
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    column = tl.arange(0, DIM_PADDED)
    inside = column < DIM
    if (block < rows) & (part < OWN):
        row = block.to(tl.int64)
        last = tl.load(position_ptr + row).to(tl.int32)
        start = tl.load(start_ptr + row).to(tl.int64)
        capacity = tl.load(capacity_ptr + row).to(tl.int64)
        first = 0
        if SHARED > 0:
            first = tl.load(shared_ptr + row).to(tl.int32)
        if WINDOW > 0:
            first = tl.maximum(first, (last - WINDOW + 1) // BLOCK * BLOCK)
        end = last + 1
        if OWN > 1:
            share = tl.cdiv(tl.cdiv(end - first, OWN), BLOCK) * BLOCK
            first += part * share
            end = tl.minimum(end, first + share)
        query = tl.arange(0, TILE)
        asked = (query < groups)[:, None] & inside[None, :]
        q_at = row * q_stride + (kv_head * groups + query)[:, None] * DIM + column[None, :]
        q = tl.load(q_ptr + q_at, mask=asked, other=0.0)
        base = (start * kv_heads + kv_head * capacity) * DIM
        position = tl.full([TILE], 0, tl.int32) + last
        out, weight = _walk(
            q, k_ptr, v_ptr, base, first, end, position, scale, WINDOW, DIM, DIM_PADDED, BLOCK, TILE, PRECISION
        )
        slot = ((row * kv_heads + kv_head) * groups + query) * (SHARED + OWN) + SHARED + part
        tl.store(out_ptr + slot[:, None] * DIM + column[None, :], out.to(out_ptr.dtype.element_ty), mask=asked)
        if SHARED + OWN > 1:
            tl.store(weight_ptr + slot, weight, mask=query < groups)
    elif SHARED > 0:
        count = tl.load(count_ptr + block - rows, mask=(block >= rows) & (part < SHARED), other=0).to(tl.int32)
        if count > 0:
            begin = tl.load(first_ptr + block - rows).to(tl.int64)
            start_b = tl.load(start_ptr + begin).to(tl.int64)
            capacity_b = tl.load(capacity_ptr + begin).to(tl.int64)
            lane = tl.arange(0, BUNDLE * GROUPS)
            row_b = begin + lane // GROUPS
            query_b = lane % GROUPS
            there = (lane // GROUPS < count) & (query_b < groups)
            position_b = tl.load(position_ptr + row_b, mask=there, other=0).to(tl.int32)
            first_b = 0
            end_b = tl.load(shared_ptr + begin).to(tl.int32)
            if WINDOW > 0:
                lowest = tl.min(tl.where(there, position_b, 1 << 30))
                first_b = tl.maximum(lowest - WINDOW + 1, 0) // BLOCK * BLOCK
            if SHARED > 1:
                share_b = tl.cdiv(tl.cdiv(end_b - first_b, SHARED), BLOCK) * BLOCK
                first_b += part * share_b
                end_b = tl.minimum(end_b, first_b + share_b)
            asked_b = there[:, None] & inside[None, :]
            q_at_b = row_b[:, None] * q_stride + (kv_head * groups + query_b)[:, None] * DIM + column[None, :]
            q_b = tl.load(q_ptr + q_at_b, mask=asked_b, other=0.0)
            base_b = (start_b * kv_heads + kv_head * capacity_b) * DIM
            out_b, weight_b = _walk(
                q_b, k_ptr, v_ptr, base_b, first_b, end_b, position_b, scale, WINDOW, DIM, DIM_PADDED, BLOCK,
                BUNDLE * GROUPS, PRECISION,
            )  # fmt: skip
            slot_b = ((row_b * kv_heads + kv_head) * groups + query_b) * (SHARED + OWN) + part
            tl.store(out_ptr + slot_b[:, None] * DIM + column[None, :], out_b, mask=asked_b)
            tl.store(weight_ptr + slot_b, weight_b, mask=there)


@triton.jit
def _merge(
    part_ptr, weight_ptr, out_ptr, parts, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One program per query: the mean of its parts by the sums of their weights, which are logarithms."""
    head = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)
    column = tl.arange(0, DIM_PADDED)
    inside = column < DIM
    weight = tl.load(weight_ptr + head * parts + part, mask=part < parts, other=float("-inf"))
    weight = tl.exp(weight - tl.max(weight))
    at = (head * parts + part)[:, None] * DIM + column[None, :]
    seen = tl.load(part_ptr + at, mask=(part < parts)[:, None] & inside[None, :], other=0.0)
    out = tl.sum(seen * weight[:, None], 0) / tl.sum(weight)
    tl.store(out_ptr + head * DIM + column, out.to(out_ptr.dtype.element_ty), mask=inside)


PROGRAMS = 256
"""Enough to keep a GPU busy: a batch with fewer has its keys split."""
MOST_PARTS = 16


def attend(
    q_R_O: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    position_R: Tensor,
    start_R: Tensor,
    capacity_R: Tensor,
    bundles: tuple[Tensor, Tensor, Tensor] | None = None,
    *,
    heads: int,
    kv_heads: int,
    dim: int,
    scale: float,
    window: int,
) -> Tensor:
    """`q_R_O` may be wider than its queries (a fused q, k, v): they come first. Neighbours whose first tokens are the
    same can be a bundle of up to `BUNDLE` rows: `bundles` is how many first tokens each row shares, and the first row
    and the number of rows of each bundle (0: none). Every row is in one, or gets anything."""
    rows, groups = q_R_O.shape[0], heads // kv_heads
    out_R_O = q_R_O.new_empty(rows, heads * dim)
    own, shared = _parts(rows * kv_heads), 0
    if bundles is not None:
        # What a text has of its own is short.
        own, shared = min(own, 4), _parts(rows * kv_heads // BUNDLE)
    slots = own + shared
    part_R_H_P_D, weight_R_H_P = out_R_O, out_R_O
    if slots > 1:
        part_R_H_P_D = torch.empty(rows, heads, slots, dim, dtype=torch.float32, device=q_R_O.device)
        weight_R_H_P = torch.empty(rows, heads, slots, dtype=torch.float32, device=q_R_O.device)
    shared_R, first_Q, count_Q = bundles or (position_R, position_R, position_R[:0])
    lanes = power(BUNDLE * power(groups, 1)) // BUNDLE
    _attend[(rows + len(count_Q), kv_heads, max(own, shared))](
        q_R_O, k_cache, v_cache, part_R_H_P_D, weight_R_H_P, position_R, start_R, capacity_R, shared_R, first_Q,
        count_Q, scale, q_R_O.stride(0), groups, kv_heads, rows, WINDOW=window, DIM=dim, DIM_PADDED=power(dim),
        BLOCK=64, GROUPS=lanes, TILE=power(groups), BUNDLE=BUNDLE, OWN=own, SHARED=shared,
        PRECISION=precision(q_R_O), num_warps=(4 if dim > 64 else 2) if bundles is None else (8 if dim > 64 else 4),
        num_stages=3 if dim <= 128 else 2,
    )  # fmt: skip
    if slots > 1:
        _merge[(rows * heads,)](
            part_R_H_P_D, weight_R_H_P, out_R_O, slots, DIM=dim, DIM_PADDED=power(dim, 1), PARTS=power(slots, 1),
            num_warps=1,
        )  # fmt: skip
    return out_R_O


def _parts(programs: int) -> int:
    """That the keys are split into where there are so many programs without."""
    parts = 1
    while parts < MOST_PARTS and programs * parts < PROGRAMS:
        parts *= 2
    return parts


@triton.jit
def _attend_prompts(
    q_ptr, k_ptr, v_ptr, out_ptr, first_ptr, count_ptr, position_ptr, start_ptr, capacity_ptr, scale, q_stride,
    groups, kv_heads, WINDOW: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, BLOCK: tl.constexpr,
    TOKENS: tl.constexpr, GROUPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per tile of tokens that are neighbours in one sequence, and key head: all their queries that share
    the head, over the keys that the sequence has up to each token."""
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    count = tl.load(count_ptr + tile).to(tl.int32)
    if count > 0:
        row = tl.load(first_ptr + tile).to(tl.int64)
        position = tl.load(position_ptr + row).to(tl.int32)
        start = tl.load(start_ptr + row).to(tl.int64)
        capacity = tl.load(capacity_ptr + row).to(tl.int64)
        lane = tl.arange(0, TOKENS * GROUPS)
        token = lane // GROUPS
        group = lane % GROUPS
        column = tl.arange(0, DIM_PADDED)
        inside = column < DIM
        asked = ((token < count) & (group < groups))[:, None] & inside[None, :]
        head = kv_head * groups + group
        q = tl.load(q_ptr + ((row + token) * q_stride + head * DIM)[:, None] + column[None, :], mask=asked, other=0.0)
        lowest = 0
        if WINDOW > 0:
            lowest = tl.maximum(position - WINDOW + 1, 0) // BLOCK * BLOCK
        base = (start * kv_heads + kv_head * capacity) * DIM
        out, _ = _walk(
            q, k_ptr, v_ptr, base, lowest, position + count, position + token, scale, WINDOW, DIM, DIM_PADDED, BLOCK,
            TOKENS * GROUPS, PRECISION,
        )  # fmt: skip
        at_out = ((row + token) * kv_heads * groups + head)[:, None] * DIM + column[None, :]
        tl.store(out_ptr + at_out, out.to(out_ptr.dtype.element_ty), mask=asked)


def attend_prompts(
    q_N_O: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    tiles: tuple[Tensor, Tensor],
    position_N: Tensor,
    start_N: Tensor,
    capacity_N: Tensor,
    *,
    heads: int,
    kv_heads: int,
    dim: int,
    scale: float,
    window: int,
) -> Tensor:
    """As `attend`, for rows of which several are neighbours in one sequence: the first row of each tile of up to
    `PROMPT_TILE`, and how many it has (0: none). Rows without a tile get zeros."""
    groups = heads // kv_heads
    out_N_O = q_N_O.new_zeros(q_N_O.shape[0], heads * dim)
    _attend_prompts[(tiles[0].shape[0], kv_heads)](
        q_N_O, k_cache, v_cache, out_N_O, *tiles, position_N, start_N, capacity_N, scale, q_N_O.stride(0), groups,
        kv_heads, WINDOW=window, DIM=dim, DIM_PADDED=power(dim), BLOCK=64, TOKENS=PROMPT_TILE,
        GROUPS=power(groups, 1), PRECISION=precision(q_N_O), num_warps=8 if dim > 64 else 4,
        num_stages=3 if dim <= 128 else 2,
    )  # fmt: skip
    return out_N_O


@triton.jit
def _copy_prefixes(
    k_ptr, v_ptr, copy_ptr, copies, layer_stride, kv_heads, DIM: tl.constexpr, DIM_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One program per copy, layer and key head, and block of tokens."""
    copy = tl.program_id(0).to(tl.int64)
    layer = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = tl.program_id(1) % kv_heads
    count = tl.load(copy_ptr + 4 * copies + copy)
    token = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, DIM_PADDED)
    mask = (token < count)[:, None] & (column < DIM)[None, :]
    old = tl.load(copy_ptr + copy) * kv_heads + kv_head * tl.load(copy_ptr + copies + copy)
    new = tl.load(copy_ptr + 2 * copies + copy) * kv_heads + kv_head * tl.load(copy_ptr + 3 * copies + copy)
    of = layer * layer_stride + (old + token)[:, None] * DIM + column[None, :]
    to = layer * layer_stride + (new + token)[:, None] * DIM + column[None, :]
    tl.store(k_ptr + to, tl.load(k_ptr + of, mask=mask, other=0.0), mask=mask)
    tl.store(v_ptr + to, tl.load(v_ptr + of, mask=mask, other=0.0), mask=mask)


def copy_prefixes_(k_L_X_D: Tensor, v_L_X_D: Tensor, copy_5_S: Tensor, *, longest: int, kv_heads: int) -> None:
    """Copy the first tokens of regions to others, in all layers: `copy_5_S` has start and capacity of the one and of
    the other, and how many tokens, at most `longest`."""
    layers, _, dim = k_L_X_D.shape
    copies, block = copy_5_S.shape[1], 64
    _copy_prefixes[(copies, layers * kv_heads, triton.cdiv(longest, block))](
        k_L_X_D, v_L_X_D, copy_5_S, copies, k_L_X_D.stride(0), kv_heads, DIM=dim, DIM_PADDED=power(dim, 1), BLOCK=block
    )
