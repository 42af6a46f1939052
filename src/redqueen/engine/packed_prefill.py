"""Prompts into the KV cache by captured graphs: tokens of all members and prompts side by side, none of them padding.

A graph takes a fixed number of tokens. What differs between runs is one tensor on the device, the layout: each token
with its position and region, the member of each tile of tokens, and the tiles of neighbours that attend together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.captured import Captured, Pool
from redqueen.engine.decode_attention import KernelAttention
from redqueen.engine.kv_cache import SCRATCH, KVCache
from redqueen.engine.routing import LONG_TILE, PROMPT_TILE, Routing, Tiles, cut_tiles

SIZES = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
"""Tokens of a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens that are neighbours in one sequence."""

    member: int
    start: int
    """Of the sequence's region of the KV cache."""
    capacity: int
    first: int
    """The position of the first token."""
    tokens: tuple[int, ...]

    def cut(self, count: int) -> tuple["Piece", "Piece"]:
        return tuple(
            Piece(member=self.member, start=self.start, capacity=self.capacity, first=first, tokens=tokens)
            for first, tokens in ((self.first, self.tokens[:count]), (self.first + count, self.tokens[count:]))
        )  # pyright: ignore[reportReturnType]


class PackedPrefill:
    def __init__(self, body: Body, bank: Bank, pool: Pool) -> None:
        self._body, self._bank, self._pool = body, bank, pool
        self._graphs: dict[int, tuple[Captured, Tensor]] = {}
        """With their layouts, by the number of tokens."""

    def run(self, cache: KVCache, pieces: Sequence[Piece], max_tokens: int) -> None:
        """Run these tokens into the KV cache, `max_tokens` at once, where what they see before them is there."""
        most = max((size for size in SIZES if size <= max_tokens), default=SIZES[0])
        by_member = sorted((piece for piece in pieces if piece.tokens), key=lambda piece: piece.member)
        for chunk in chunks(by_member, most):
            size = size_of(chunk)
            self._run(cache, size, torch.from_numpy(pack(chunk, size, self._long_tiles(size))))

    def clear(self) -> None:
        """Bank or KV cache are others now."""
        self._graphs.clear()

    def _run(self, cache: KVCache, size: int, layout: Tensor) -> None:
        if size not in self._graphs:
            own = torch.from_numpy(pack([], size, self._long_tiles(size))).to(self._bank.device)
            self._graphs[size] = Captured.of(lambda: self.step(cache, size, own), self._pool), own
        captured, own = self._graphs[size]
        own.copy_(layout.pin_memory(), non_blocking=True)
        captured.graph.replay()

    def step(self, cache: KVCache, size: int, layout: Tensor) -> tuple[Tensor, ...]:
        """What a graph does."""
        token_N, position_N, start_N, capacity_N = layout[: 4 * size].view(4, size).unbind(0)
        long = self._long_tiles(size)
        member_K, start_K, count_K = layout[4 * size : 4 * size + 3 * long].view(3, long).unbind(0)
        first_Q, count_Q = layout[4 * size + 3 * long :].view(2, -1).unbind(0)
        attention = KernelAttention(
            cache=cache, position_N=position_N, start_N=start_N, capacity_N=capacity_N, tiles=(first_Q, count_Q)
        )
        routing = Routing(member_K=member_K, tiles=Tiles(start_K, count_K, size=LONG_TILE))
        self._body.hidden(token_N, routing, attention)
        return ()

    def _long_tiles(self, size: int) -> int:
        """At most, for this many tokens: each member's last tile may be short."""
        return size // LONG_TILE + min(size, self._bank.masters_A_D.shape[0])


def size_of(chunk: Sequence[Piece]) -> int:
    """Of the smallest graph that takes these."""
    count = sum(len(piece.tokens) for piece in chunk)
    return next(size for size in SIZES if size >= count and prompt_tiles(size) >= _tiles(chunk))


def prompt_tiles(size: int) -> int:
    """Tiles of neighbours that a graph of this size has room for, short ones too."""
    return size // 4 + 8


def chunks(pieces: Sequence[Piece], most: int) -> Iterator[list[Piece]]:
    """Pieces in their order, `most` tokens at once and as many tiles of neighbours as fit; long ones are cut."""
    chunk: list[Piece] = []
    room, tiles = most, prompt_tiles(most)
    for piece in pieces:
        while piece.tokens:
            fits = min(room, tiles * PROMPT_TILE, len(piece.tokens))
            if fits:
                taken, piece = piece.cut(fits)
                chunk.append(taken)
                room, tiles = room - fits, tiles - _tiles([taken])
            if piece.tokens:
                yield chunk
                chunk, room, tiles = [], most, prompt_tiles(most)
    if chunk:
        yield chunk


def pack(pieces: Sequence[Piece], size: int, long_tiles: int) -> np.ndarray:
    """The layout of these pieces in a graph of `size` tokens. Tokens that are left over go to the scratch region."""
    token_4_N = np.zeros((4, size), np.int64)
    token_4_N[3] = SCRATCH
    tile_2_Q = np.zeros((2, prompt_tiles(size)), np.int64)
    tile_3_K = np.zeros((3, long_tiles), np.int64)
    counts: list[tuple[int, int]] = []
    row = tile = 0
    for piece in pieces:
        count = len(piece.tokens)
        token_4_N[0, row : row + count] = piece.tokens
        token_4_N[1, row : row + count] = np.arange(piece.first, piece.first + count)
        token_4_N[2:, row : row + count] = [[piece.start], [piece.capacity]]
        first = np.arange(0, count, PROMPT_TILE)
        tile_2_Q[:, tile : tile + len(first)] = row + first, np.minimum(PROMPT_TILE, count - first)
        if counts and counts[-1][0] == piece.member:
            counts[-1] = piece.member, counts[-1][1] + count
        else:
            counts.append((piece.member, count))
        row, tile = row + count, tile + len(first)
    if counts:
        tiles_K_3 = cut_tiles(counts, LONG_TILE)
        tile_3_K[:, : len(tiles_K_3)] = tiles_K_3.T
    return np.concatenate([token_4_N.reshape(-1), tile_3_K.reshape(-1), tile_2_Q.reshape(-1)])


def _tiles(pieces: Sequence[Piece]) -> int:
    return sum(-(-len(piece.tokens) // PROMPT_TILE) for piece in pieces)
