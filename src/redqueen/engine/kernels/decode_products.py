"""Products of a decoding step with the base's weights, which take the adapters' part along, and what follows them at
once: rotation into the KV cache, the gated activation.

Rows are in the order of their members, and members of a batch are numbered in that order (groups). A product's rows of
several members are told apart by lanes: one for each member and rank, zero where the row is another member's.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.rotary import head_norms
from redqueen.engine.kernels.tiles import Groups, power, precision


@triton.jit
def _shrunk(u_ptr, member_ptr, group, row, at, last, lane_at, lanes, RANK: tl.constexpr, RANK_PADDED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Some groups' lanes, from the group `at` on: each row's product with A, the ranks, the members, which are in
    use."""
    lane = tl.arange(0, CHUNK)
    rank = lane % RANK_PADDED
    of = at + lane // RANK_PADDED
    used = (of <= last) & (rank < RANK)
    member = tl.load(member_ptr + of, mask=used, other=0)
    own = (group[:, None] == of[None, :]) & used[None, :]
    u = tl.load(u_ptr + row[:, None] * lanes + (lane_at + rank)[None, :], mask=own, other=0.0)
    return u, rank, member, used


@triton.jit
def _factor(b_ptr, rank, member, used, column, inside, b_stride, RANK: tl.constexpr):
    """The B of some groups' lanes."""
    return tl.load(
        b_ptr + member[:, None] * b_stride + column[None, :] * RANK + rank[:, None],
        mask=used[:, None] & inside[None, :], other=0.0,
    )  # fmt: skip


@triton.jit
def _updated(total, u, b, PRECISION: tl.constexpr):
    """A product and the update by some lanes. What is no number in B counts as 0: other members' rows are multiplied by
    it too, with zeros."""
    b = tl.where(tl.abs(b.to(tl.float32)) < float("inf"), b, 0.0).to(b.dtype)
    return tl.dot(u.to(b.dtype), b, total, input_precision=PRECISION)


@triton.jit
def _twin_lanes(
    u_ptr, b_ptr, member_ptr, group, row, at, last, column, inside, apart, lane_at, lane_at_2, lanes, b_stride,
    RANK: tl.constexpr, RANK_PADDED: tl.constexpr, CHUNK: tl.constexpr, ALIKE: tl.constexpr,
):  # fmt: skip
    """Of some groups' lanes, each row's products with A, and B, for both of the products of `_twins`."""
    u, rank, member, used = _shrunk(u_ptr, member_ptr, group, row, at, last, lane_at, lanes, RANK, RANK_PADDED, CHUNK)
    u_2 = u
    if not ALIKE:
        u_2, _, _, _ = _shrunk(u_ptr, member_ptr, group, row, at, last, lane_at_2, lanes, RANK, RANK_PADDED, CHUNK)
    b = _factor(b_ptr, rank, member, used, column, inside, b_stride, RANK)
    b_2 = _factor(b_ptr, rank, member, used, column + apart, inside, b_stride, RANK)
    return u, u_2, b, b_2


@triton.jit
def _twins(
    x_ptr, w_ptr, w_2_ptr, u_ptr, b_ptr, group_ptr, member_ptr, begin, rows, inputs, column, inside, apart, lane_at,
    lane_at_2, lanes, b_stride, RANK: tl.constexpr, RANK_PADDED: tl.constexpr, CHUNK: tl.constexpr, ALIKE: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Two products of a tile of rows, which may have several members: some columns, and those so far `apart` from them.
    The rows' products with A are the lanes from `lane_at` and `lane_at_2` on, which may be `ALIKE`."""
    row = begin + tl.arange(0, ROWS)
    known = row < rows
    row = tl.where(known, row, begin).to(tl.int64)
    lowest = tl.load(group_ptr + begin).to(tl.int32)
    highest = tl.load(group_ptr + tl.minimum(begin + ROWS, rows) - 1).to(tl.int32)
    group = tl.load(group_ptr + row)
    # The adapters' part of the first groups, mostly all, is under way while the base's is computed.
    u, u_2, b, b_2 = _twin_lanes(
        u_ptr, b_ptr, member_ptr, group, row, lowest, highest, column, inside, apart, lane_at, lane_at_2, lanes,
        b_stride, RANK, RANK_PADDED, CHUNK, ALIKE,
    )  # fmt: skip
    first = tl.zeros([ROWS, COLUMNS], tl.float32)
    second = tl.zeros([ROWS, COLUMNS], tl.float32)
    for at in range(0, inputs, STEP):
        input = at + tl.arange(0, STEP)
        there = (input < inputs)[None, :]
        x = tl.load(x_ptr + row[:, None] * inputs + input[None, :], mask=known[:, None] & there, other=0.0)
        w_at = column[:, None].to(tl.int64) * inputs + input[None, :]
        w = tl.load(w_ptr + w_at, mask=inside[:, None] & there, other=0.0)
        w_2 = tl.load(w_2_ptr + w_at, mask=inside[:, None] & there, other=0.0)
        first = tl.dot(x, tl.trans(w), first, input_precision=PRECISION)
        second = tl.dot(x, tl.trans(w_2), second, input_precision=PRECISION)
    first = _updated(first, u, b, PRECISION)
    second = _updated(second, u_2, b_2, PRECISION)
    for at in range(lowest + CHUNK // RANK_PADDED, highest + 1, CHUNK // RANK_PADDED):
        u, u_2, b, b_2 = _twin_lanes(
            u_ptr, b_ptr, member_ptr, group, row, at, highest, column, inside, apart, lane_at, lane_at_2, lanes,
            b_stride, RANK, RANK_PADDED, CHUNK, ALIKE,
        )  # fmt: skip
        first = _updated(first, u, b, PRECISION)
        second = _updated(second, u_2, b_2, PRECISION)
    return first, second, row, known


@triton.jit
def _linear_rope(
    x_ptr, w_ptr, bias_ptr, u_ptr, b_ptr, group_ptr, member_ptr, q_norm_ptr, k_norm_ptr, position_ptr, start_ptr,
    capacity_ptr, cos_ptr, sin_ptr, q_ptr, k_ptr, v_ptr, rows, inputs, b_stride, eps, heads, kv_heads,
    BIAS: tl.constexpr, NORM: tl.constexpr, RANK: tl.constexpr, RANK_PADDED: tl.constexpr, CHUNK: tl.constexpr,
    HALF: tl.constexpr, HALF_PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per head and tile of rows, which may have several members: queries are rotated, keys rotated into the
    cache, values put there."""
    head = tl.program_id(0)
    column = tl.arange(0, HALF_PADDED)
    inside = column < HALF
    output = head * 2 * HALF + column
    is_query = head < heads
    is_value = head >= heads + kv_heads
    lane_at = tl.where(is_query, 0, tl.where(is_value, 2, 1)) * RANK
    first, second, row, known = _twins(
        x_ptr, w_ptr, w_ptr + HALF * inputs, u_ptr, b_ptr, group_ptr, member_ptr, tl.program_id(1) * ROWS, rows, inputs,
        output, inside, HALF, lane_at, lane_at, 3 * RANK, b_stride, RANK, RANK_PADDED, CHUNK, True, HALF_PADDED, ROWS,
        STEP, PRECISION,
    )  # fmt: skip
    if BIAS:
        first += tl.load(bias_ptr + output, mask=inside, other=0.0).to(tl.float32)[None, :]
        second += tl.load(bias_ptr + output + HALF, mask=inside, other=0.0).to(tl.float32)[None, :]
    kind = q_ptr.dtype.element_ty
    # Rounded as it would be stored.
    first = first.to(kind).to(tl.float32)
    second = second.to(kind).to(tl.float32)
    position = tl.load(position_ptr + row).to(tl.int64)
    turned, turned_2 = first, second
    if is_value == 0:
        if NORM:
            first, second = head_norms(
                first, second, q_norm_ptr, k_norm_ptr, column[None, :], (inside & is_query)[None, :],
                (inside & (is_query == 0))[None, :], eps, HALF,
            )  # fmt: skip
        angle = position[:, None] * 2 * HALF + column[None, :]
        cos = tl.load(cos_ptr + angle, mask=inside[None, :], other=0.0)
        sin = tl.load(sin_ptr + angle, mask=inside[None, :], other=0.0)
        turned = first * cos - second * sin
        turned_2 = second * cos + first * sin
    mask = known[:, None] & inside[None, :]
    if is_query:
        q_at = q_ptr + row[:, None] * heads * 2 * HALF + output[None, :]
        tl.store(q_at, turned.to(kind), mask=mask)
        tl.store(q_at + HALF, turned_2.to(kind), mask=mask)
    else:
        start = tl.load(start_ptr + row).to(tl.int64)
        capacity = tl.load(capacity_ptr + row).to(tl.int64)
        kv_head = tl.where(is_value, head - heads - kv_heads, head - heads)
        place = ((start * kv_heads + kv_head * capacity + position) * 2 * HALF)[:, None] + column[None, :]
        tl.store(k_ptr + place, turned.to(kind), mask=mask & (is_value == 0))
        tl.store(k_ptr + place + HALF, turned_2.to(kind), mask=mask & (is_value == 0))
        tl.store(v_ptr + place, turned.to(kind), mask=mask & is_value)
        tl.store(v_ptr + place + HALF, turned_2.to(kind), mask=mask & is_value)


@triton.jit
def _linear_gated(
    x_ptr, w_ptr, u_ptr, b_ptr, group_ptr, member_ptr, out_ptr, rows, inputs, width, b_stride,
    RANK: tl.constexpr, RANK_PADDED: tl.constexpr, CHUNK: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per tile of columns and of rows, which may have several members: silu(gate) * up."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    gate, up, row, known = _twins(
        x_ptr, w_ptr, w_ptr + width.to(tl.int64) * inputs, u_ptr, b_ptr, group_ptr, member_ptr, tl.program_id(1) * ROWS,
        rows, inputs, column, inside, width, 0, RANK, 2 * RANK, b_stride, RANK, RANK_PADDED, CHUNK, False, COLUMNS,
        ROWS, STEP, PRECISION,
    )  # fmt: skip
    kind = out_ptr.dtype.element_ty
    # Rounded as each would be stored.
    gate = gate.to(kind).to(tl.float32)
    up = up.to(kind).to(tl.float32)
    out = (gate * tl.sigmoid(gate) * up).to(kind)
    tl.store(out_ptr + row[:, None] * width + column[None, :], out, mask=known[:, None] & inside[None, :])


@triton.jit
def _linear_parts(
    x_ptr, w_ptr, a_ptr, member_ptr, start_ptr, count_ptr, y_ptr, u_ptr, rows, inputs, outputs, blocks, a_stride, scale,
    chunk, RANK: tl.constexpr, RANK_PADDED: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per part of the inputs and tile of outputs, for all rows; the programs that are left over multiply
    the tiles of rows by their members' A."""
    part = tl.program_id(0)
    block = tl.program_id(1)
    begin = part * chunk
    stop = tl.minimum(begin + chunk, inputs)
    if block < blocks:
        row = tl.arange(0, ROWS)
        known = row < rows
        column = block * COLUMNS + tl.arange(0, COLUMNS)
        inside = column < outputs
        total = tl.zeros([ROWS, COLUMNS], tl.float32)
        for at in range(begin, stop, STEP):
            input = at + tl.arange(0, STEP)
            there = (input < stop)[None, :]
            x = tl.load(x_ptr + row[:, None] * inputs + input[None, :], mask=known[:, None] & there, other=0.0)
            w_at = w_ptr + column[:, None].to(tl.int64) * inputs + input[None, :]
            w = tl.load(w_at, mask=inside[:, None] & there, other=0.0)
            total = tl.dot(x, tl.trans(w), total, input_precision=PRECISION)
        at_y = (part * rows + row)[:, None] * outputs + column[None, :]
        tl.store(y_ptr + at_y, total, mask=known[:, None] & inside[None, :])
    else:
        tile = block - blocks
        count = tl.load(count_ptr + tile)
        if count > 0:
            member = tl.load(member_ptr + tile).to(tl.int64)
            lane = tl.arange(0, TILE)
            own = (lane < count)[:, None]
            row_t = tl.load(start_ptr + tile).to(tl.int32) + lane
            rank = tl.arange(0, RANK_PADDED)
            u = tl.zeros([TILE, RANK_PADDED], tl.float32)
            for at in range(begin, stop, STEP):
                input = at + tl.arange(0, STEP)
                there = input < stop
                x_t = tl.load(x_ptr + row_t[:, None] * inputs + input[None, :], mask=own & there[None, :], other=0.0)
                a = tl.load(
                    a_ptr + member * a_stride + rank[None, :] * inputs + input[:, None],
                    mask=(rank < RANK)[None, :] & there[:, None], other=0.0,
                )  # fmt: skip
                u = tl.dot(x_t, a, u, input_precision=PRECISION)
            at_u = (part * rows + row_t)[:, None] * RANK + rank[None, :]
            tl.store(u_ptr + at_u, u * scale, mask=own & (rank < RANK)[None, :])


def _lanes(rank: int) -> dict[str, int]:
    """How many members' updates are one product."""
    padded = power(rank, 1)
    return {"RANK": rank, "RANK_PADDED": padded, "CHUNK": max(64, padded)}


def _rows(count: int, most: int) -> int:
    """Of a tile: all of them, or as many as one program takes."""
    return min(power(count), most)


def linear_rope(
    x_R_I: Tensor,
    u_R_L: Tensor,
    weight_O_I: Tensor,
    bias_O: Tensor | None,
    b_A_O_R: Tensor,
    groups: Groups,
    norms: tuple[Tensor, Tensor, float] | None,
    where: tuple[Tensor, Tensor, Tensor],
    tables: tuple[Tensor, Tensor],
    cache: tuple[Tensor, Tensor],
    heads: int,
    kv_heads: int,
) -> Tensor:
    """The rotated queries; keys and values go to the cache. `u_R_L` is what the rows' products with A are. `where` is
    position, start and capacity of each row, `tables` cosines and sines, `cache` a layer's keys and values."""
    rows, inputs = x_R_I.shape
    dim = tables[0].shape[1]
    q_norm_D, k_norm_D, eps = norms or (x_R_I, x_R_I, 0.0)
    q_R_O = x_R_I.new_empty(rows, heads * dim)
    tile = _rows(rows, 64)
    step, stages = _pipeline(tile + power(dim // 2) * 2, x_R_I, 128)
    _linear_rope[(heads + 2 * kv_heads, triton.cdiv(rows, tile))](
        x_R_I, weight_O_I, x_R_I if bias_O is None else bias_O, u_R_L, b_A_O_R, *groups, q_norm_D, k_norm_D, *where,
        *tables, q_R_O, *cache, rows, inputs, b_A_O_R.stride(0), eps, heads, kv_heads,
        BIAS=bias_O is not None, NORM=norms is not None, HALF=dim // 2, HALF_PADDED=power(dim // 2),
        ROWS=tile, STEP=step, PRECISION=precision(x_R_I), num_warps=4, num_stages=stages, **_lanes(b_A_O_R.shape[2]),
    )  # fmt: skip
    return q_R_O


def linear_gated(x_R_I: Tensor, u_R_L: Tensor, weight_O_I: Tensor, b_A_O_R: Tensor, groups: Groups) -> Tensor:
    """silu(gate) * up."""
    rows, inputs = x_R_I.shape
    width = len(weight_O_I) // 2
    out_R_F = x_R_I.new_empty(rows, width)
    # Measured on an H200: what makes as many programs as can run at once.
    tile = _rows(rows, 128) if rows <= 128 else 64
    columns, most = (32, 128) if tile <= 32 else (64, 64)
    step, stages = _pipeline(tile + 2 * columns, x_R_I, most)
    _linear_gated[(triton.cdiv(width, columns), triton.cdiv(rows, tile))](
        x_R_I, weight_O_I, u_R_L, b_A_O_R, *groups, out_R_F, rows, inputs, width, b_A_O_R.stride(0),
        COLUMNS=columns, ROWS=tile, STEP=step, PRECISION=precision(x_R_I), num_warps=8 if tile > 64 else 4,
        num_stages=stages, **_lanes(b_A_O_R.shape[2]),
    )  # fmt: skip
    return out_R_F


MOST_ROWS = 128
"""That `linear_parts` takes: one program has all of them."""


def linear_parts(
    x_R_I: Tensor, weight_O_I: Tensor, a_A_L_I: Tensor, tiles: tuple[Tensor, Tensor, Tensor], scale: float, size: int
) -> tuple[Tensor, Tensor]:
    """The rows' products with the base's weights and with their members' A, each in parts that are to be summed."""
    rows, inputs = x_R_I.shape
    outputs, rank = len(weight_O_I), a_A_L_I.shape[1]
    tile = _rows(rows, MOST_ROWS)
    columns = 64
    step, stages = _pipeline(max(tile + columns, size + power(rank)), x_R_I, 128 if tile <= 64 else 64)
    blocks = triton.cdiv(outputs, columns)
    # Few outputs leave most of the chip idle: their inputs are summed in parts.
    parts = max(1, min(8, 256 // blocks, inputs // 128))
    chunk = triton.cdiv(triton.cdiv(inputs, parts), step) * step
    parts = triton.cdiv(inputs, chunk)
    y_P_R_O = torch.empty(parts, rows, outputs, dtype=torch.float32, device=x_R_I.device)
    u_P_R_L = torch.empty(parts, rows, rank, dtype=torch.float32, device=x_R_I.device)
    _linear_parts[(parts, blocks + len(tiles[0]))](
        x_R_I, weight_O_I, a_A_L_I, *tiles, y_P_R_O, u_P_R_L, rows, inputs, outputs, blocks, a_A_L_I.stride(0), scale,
        chunk, RANK=rank, RANK_PADDED=power(rank), TILE=size, COLUMNS=columns, ROWS=tile, STEP=step,
        PRECISION=precision(x_R_I), num_warps=8 if tile > 64 else 4,
        num_stages=stages,
    )  # fmt: skip
    return y_P_R_O, u_P_R_L


def _pipeline(lines: int, x_R_I: Tensor, most: int) -> tuple[int, int]:
    """How many inputs a product takes at once, at most `most`, and how many such steps are on their way: as many as fit
    into half of a multiprocessor's own memory, so that two programs share one."""
    room = _own_memory(x_R_I.device) // 2
    step = min(most, power(x_R_I.shape[1]))
    while step > 16 and 2 * lines * step * x_R_I.element_size() > room:
        step //= 2
    return step, max(2, min(5, room // (lines * step * x_R_I.element_size())))


@cache
def _own_memory(device: torch.device) -> int:
    """Of a multiprocessor, in bytes; without a GPU that of an H200."""
    if device.type != "cuda":
        return 232_448
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin
