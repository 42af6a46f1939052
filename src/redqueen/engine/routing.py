"""Which member each row of a batch belongs to.

Rows come in blocks of one member each: a sequence in training, the newest tokens of several sequences in sampling. The
kernels take short blocks; plain torch needs blocks of one size, or a product for each member's run of rows.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch import Tensor

TILE = 16
"""Rows of one member that the kernels compute together: the minimum of the matrix units."""
LONG_TILE = 32
"""The same where members have many rows each: the tokens of prompts."""
PROMPT_TILE = 16
"""Neighbouring tokens of a prompt that attend together."""
BUNDLE = 8
"""Completions of one prompt that attend to it together."""


@dataclass(slots=True)
class Gradients:
    """One row for each member in training, in the layout of the bank."""

    sum_T_D: Tensor
    trained_T: Tensor
    """The bank's rows of the members in training."""
    isolate: bool = False
    """Keep NaN and infinity to their own member. The sum over blocks multiplies other members' blocks by zero, which
    NaN survives; checking every layer costs time that few updates need."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Rows in the order of their members, cut into tiles of one member each; a member's last tile may be short."""

    start_K: Tensor
    count_K: Tensor
    _: KW_ONLY
    size: int = TILE
    """Rows of a full tile."""
    gather_K_S: Tensor | None = None
    """For plain torch, which needs tiles of one size: the rows of each tile, any row where it is short. None where all
    are full."""
    back_N: Tensor | None = None
    """The index of each row in the tiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    member_K: Tensor
    """The bank's row of each block."""
    tiles: Tiles | None = None
    """The blocks; None where they are all rows in equal parts, as whole sequences are."""
    groups: tuple[Tensor, Tensor] | None = None
    """Where the kernels of decoding want them beside the tiles: the number of each row's member among those of the
    batch, and the bank's row of each number."""
    spans: tuple[tuple[int, int], ...] | None = None
    """For plain torch on a CPU, instead of blocks: the bank's row and the length of each run of rows. For long runs a
    product for each is faster than padded tiles."""
    key: tuple[int, ...] | None = None
    """`member_K` as plain numbers, by which looked-up factors are cached."""
    gradients: Gradients | None = None
    """Where a backward pass adds the members' gradients."""
    belongs_T_K: Tensor | None = None
    """1 where a block is a trained member's: the product with it sums blocks by member, in a fixed order."""

    @classmethod
    def training(cls, member_K: Tensor, gradients: Gradients) -> "Routing":
        belongs_T_K = (gradients.trained_T.unsqueeze(1) == member_K.unsqueeze(0)).to(gradients.sum_T_D.dtype)
        return cls(member_K=member_K, gradients=gradients, belongs_T_K=belongs_T_K)

    @classmethod
    def by_span(cls, counts: Sequence[tuple[int, int]]) -> "Routing":
        """From member and rows of each run; neighbouring runs of one member become one span."""
        spans: list[tuple[int, int]] = []
        for member, rows in counts:
            if spans and spans[-1][0] == member:
                rows += spans.pop()[1]
            spans.append((member, rows))
        return cls(member_K=torch.empty(0, dtype=torch.int64), spans=tuple(spans))

    @classmethod
    def by_tile(cls, counts: Sequence[tuple[int, int]], device: torch.device) -> "Routing":
        """From member and rows of each run, in tiles of one size for plain torch."""
        rows = [rows for _, rows in counts]
        size = tile_size(rows, range(min(rows), max(rows) + 1))
        tiles_K_3 = cut_tiles(counts, size)
        member_K, start_K, count_K = torch.from_numpy(tiles_K_3).to(device).unbind(1)
        gather_K_S = back_N = None
        if (tiles_K_3[:, 2] != size).any():
            lane_S = np.arange(size)
            inside_K_S = lane_S < tiles_K_3[:, 2:]
            gather_K_S = torch.from_numpy(np.where(inside_K_S, tiles_K_3[:, 1:2] + lane_S, 0)).to(device)
            back_N = torch.from_numpy(np.flatnonzero(inside_K_S)).to(device)
        tiles = Tiles(start_K, count_K, size=size, gather_K_S=gather_K_S, back_N=back_N)
        return cls(member_K=member_K, tiles=tiles, key=tuple(tiles_K_3[:, 0].tolist()))


def cut_tiles(counts: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    """Member, first row and number of rows of each tile, from member and rows of each run."""
    tiles, at = [], 0
    for member, rows in counts:
        tiles += [(member, at + start, min(size, rows - start)) for start in range(0, rows, size)]
        at += rows
    return np.array(tiles)


def tile_size(counts: Sequence[int], sizes: Sequence[int]) -> int:
    """Of these sizes, that of tiles for so many rows of each member in plain torch, which pads short tiles. Few tiles
    and little padding are both wanted; that a tile costs as much as six further rows is a rough guess."""
    return min(sizes, key=lambda size: (sum(-(-count // size) for count in counts) * (size + 6), size))
