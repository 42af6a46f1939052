"""Every row's own low-rank update, added in place, for tiles of rows that have one member each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power, precision


@triton.jit
def _shrink(
    x_ptr, a_ptr, member_ptr, start_ptr, count_ptr, out_ptr, inputs, rows_total, a_stride, scale, chunk,
    LANES: tl.constexpr, LANES_PADDED: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per tile of rows and part of the inputs: the tile's rows times its member's A."""
    block = tl.program_id(0)
    part = tl.program_id(1)
    count = tl.load(count_ptr + block)
    if count > 0:
        member = tl.load(member_ptr + block).to(tl.int64)
        tile = tl.arange(0, TILE)
        row = tl.load(start_ptr + block).to(tl.int64) + tile
        lane = tl.arange(0, LANES_PADDED)
        total = tl.zeros([TILE, LANES_PADDED], tl.float32)
        stop = tl.minimum((part + 1) * chunk, inputs)
        for at in range(part * chunk, stop, STEP):
            column = at + tl.arange(0, STEP)
            x = tl.load(
                x_ptr + row[:, None] * inputs + column[None, :],
                mask=(tile < count)[:, None] & (column < stop)[None, :], other=0.0,
            )  # fmt: skip
            a = tl.load(
                a_ptr + member * a_stride + lane[None, :] * inputs + column[:, None],
                mask=(lane < LANES)[None, :] & (column < stop)[:, None], other=0.0,
            )  # fmt: skip
            total = tl.dot(x, a, total, input_precision=PRECISION)
        at_out = (part * rows_total + row)[:, None] * LANES + lane[None, :]
        tl.store(out_ptr + at_out, total * scale, mask=(tile < count)[:, None] & (lane < LANES)[None, :])


@triton.jit
def _expand(
    u_ptr, b_ptr, member_ptr, start_ptr, count_ptr, y_ptr, table_ptr, rows_total, b_stride, y_stride,
    PARTS: tl.constexpr, LANES: tl.constexpr, RANK: tl.constexpr, RANK_PADDED: tl.constexpr,
    TILE: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program per tile of rows and of outputs: the outputs get the member's B times what `_shrink` left."""
    block = tl.program_id(0)
    count = tl.load(count_ptr + block)
    if count > 0:
        entry = table_ptr + tl.program_id(1) * 4
        y_at = tl.load(entry)
        b_at = tl.load(entry + 1)
        lane_at = tl.load(entry + 2)
        columns = tl.load(entry + 3)
        member = tl.load(member_ptr + block).to(tl.int64)
        tile = tl.arange(0, TILE)
        row = tl.load(start_ptr + block).to(tl.int64) + tile
        rank = tl.arange(0, RANK_PADDED)
        column = tl.arange(0, STEP)
        row_mask = (tile < count)[:, None]
        u = tl.zeros([TILE, RANK_PADDED], tl.float32)
        for part in tl.static_range(PARTS):
            at = (part * rows_total + row)[:, None] * LANES + (lane_at + rank)[None, :]
            u += tl.load(u_ptr + at, mask=row_mask & (rank < RANK)[None, :], other=0.0)
        b = tl.load(
            b_ptr + member * b_stride + (b_at + column)[None, :] * RANK + rank[:, None],
            mask=(column < columns)[None, :] & (rank < RANK)[:, None], other=0.0,
        )  # fmt: skip
        update = tl.dot(u.to(b.dtype), b, input_precision=PRECISION)
        at_y = row[:, None] * y_stride + (y_at + column)[None, :]
        mask = row_mask & (column < columns)[None, :]
        y = tl.load(y_ptr + at_y, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at_y, (y + update).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _expand_gated(
    u_ptr, b_ptr, member_ptr, start_ptr, count_ptr, y_ptr, out_ptr, width, rows_total, b_stride,
    PARTS: tl.constexpr, RANK: tl.constexpr, RANK_PADDED: tl.constexpr,
    TILE: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """As `_expand` for gate and up, which are `width` outputs each, and then silu(gate) * up."""
    block = tl.program_id(0)
    count = tl.load(count_ptr + block)
    if count > 0:
        member = tl.load(member_ptr + block).to(tl.int64)
        tile = tl.arange(0, TILE)
        row = tl.load(start_ptr + block).to(tl.int64) + tile
        rank = tl.arange(0, RANK_PADDED)
        column = tl.program_id(1) * STEP + tl.arange(0, STEP)
        row_mask = (tile < count)[:, None]
        gate_u = tl.zeros([TILE, RANK_PADDED], tl.float32)
        up_u = tl.zeros([TILE, RANK_PADDED], tl.float32)
        for part in tl.static_range(PARTS):
            at = (part * rows_total + row)[:, None] * 2 * RANK + rank[None, :]
            mask = row_mask & (rank < RANK)[None, :]
            gate_u += tl.load(u_ptr + at, mask=mask, other=0.0)
            up_u += tl.load(u_ptr + at + RANK, mask=mask, other=0.0)
        at_b = b_ptr + member * b_stride + column[None, :] * RANK + rank[:, None]
        mask = (column < width)[None, :] & (rank < RANK)[:, None]
        gate_b = tl.load(at_b, mask=mask, other=0.0)
        up_b = tl.load(at_b + width * RANK, mask=mask, other=0.0)
        at_y = row[:, None] * 2 * width + column[None, :]
        mask = row_mask & (column < width)[None, :]
        kind = y_ptr.dtype.element_ty
        # Rounded as the sum would be stored.
        gate = tl.load(y_ptr + at_y, mask=mask, other=0.0).to(tl.float32)
        gate = (gate + tl.dot(gate_u.to(gate_b.dtype), gate_b, input_precision=PRECISION)).to(kind).to(tl.float32)
        up = tl.load(y_ptr + at_y + width, mask=mask, other=0.0).to(tl.float32)
        up = (up + tl.dot(up_u.to(up_b.dtype), up_b, input_precision=PRECISION)).to(kind).to(tl.float32)
        at_out = row[:, None] * width + column[None, :]
        tl.store(out_ptr + at_out, (gate * tl.sigmoid(gate) * up).to(kind), mask=mask)


EXPAND_STEP = 128
"""Outputs of one tile of `_expand`."""


def expand_table(linears: list[tuple[int, int]], rank: int, device: torch.device) -> Tensor:
    """The tiles of a group of linears (offset among the outputs, size): where each begins in y, in B and in u."""
    tiles, b_at = [], 0
    for index, (y_at, size) in enumerate(linears):
        for at in range(0, size, EXPAND_STEP):
            tiles.append((y_at + at, b_at + at, index * rank, min(EXPAND_STEP, size - at)))
        b_at += size
    return torch.tensor(tiles, dtype=torch.int32, device=device)


Tiles = tuple[Tensor, Tensor, Tensor]
"""Rows of one member each: the member, where its rows start, how many there are (0: none)."""


def shrink(x_N_I: Tensor, a_A_L_I: Tensor, tiles: Tiles, scale: float, size: int) -> Tensor:
    """Every row times its member's A factors, in parts that are to be summed. A tile has up to `size` rows."""
    rows, inputs = x_N_I.shape
    lanes, blocks = a_A_L_I.shape[1], tiles[0].shape[0]
    # As much of A as fits into a multiprocessor's own memory, three times over.
    step = min(128, power(inputs), max(16, 32768 // (power(lanes) * x_N_I.element_size())))
    # Few tiles leave most of the chip idle: their inputs are summed in parts.
    parts = max(1, min(16, 256 // blocks, inputs // 128))
    chunk = triton.cdiv(triton.cdiv(inputs, parts), step) * step
    parts = triton.cdiv(inputs, chunk)
    u_P_N_L = torch.empty(parts, rows, lanes, dtype=torch.float32, device=x_N_I.device)
    _shrink[(blocks, parts)](
        x_N_I, a_A_L_I, *tiles, u_P_N_L, inputs, rows, a_A_L_I.stride(0), scale, chunk,
        LANES=lanes, LANES_PADDED=power(lanes), TILE=size, STEP=step,
        PRECISION=precision(x_N_I), num_warps=4, num_stages=3,
    )  # fmt: skip
    return u_P_N_L


def expand_(y_N_O: Tensor, u_P_N_L: Tensor, b_A_O_R: Tensor, tiles: Tiles, table: Tensor, size: int) -> None:
    """Add every row's update to `y_N_O`, from what `shrink` made of its input."""
    parts, rows, lanes = u_P_N_L.shape
    rank = b_A_O_R.shape[2]
    _expand[(tiles[0].shape[0], table.shape[0])](
        u_P_N_L, b_A_O_R, *tiles, y_N_O, table, rows, b_A_O_R.stride(0), y_N_O.stride(0),
        PARTS=parts, LANES=lanes, RANK=rank, RANK_PADDED=power(rank), TILE=size, STEP=EXPAND_STEP,
        PRECISION=precision(y_N_O), num_warps=4,
    )  # fmt: skip


def expand_gated(y_N_2F: Tensor, u_P_N_L: Tensor, b_A_O_R: Tensor, tiles: Tiles, size: int) -> Tensor:
    """silu(gate) * up, each with every row's update. Rows without a tile get anything."""
    parts, rows, _ = u_P_N_L.shape
    rank, width = b_A_O_R.shape[2], y_N_2F.shape[1] // 2
    out_N_F = y_N_2F.new_empty(rows, width)
    _expand_gated[(tiles[0].shape[0], triton.cdiv(width, EXPAND_STEP))](
        u_P_N_L, b_A_O_R, *tiles, y_N_2F, out_N_F, width, rows, b_A_O_R.stride(0),
        PARTS=parts, RANK=rank, RANK_PADDED=power(rank), TILE=size, STEP=EXPAND_STEP,
        PRECISION=precision(y_N_2F), num_warps=4,
    )  # fmt: skip
    return out_N_F
