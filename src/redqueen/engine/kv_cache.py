"""The KV cache of all sequences that are being sampled: one arena per layer, allocated once.

A sequence has a region of the arena to itself, as long as its prompt and its limit ask for: [kv heads, capacity, dim]
numbers from `start`. The arena never moves, so captured graphs stay valid whatever the sequences are.
"""

import torch
from torch import Tensor

SCRATCH = 16
"""Tokens at the arena's beginning that belong to rows without a sequence."""


def rounded(tokens: int) -> int:
    """Up to a multiple of 16, which lengths and capacities are."""
    return -(-int(tokens) // 16) * 16


class KVCache:
    def __init__(
        self, *, tokens: int, layers: int, kv_heads: int, dim: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.tokens, self.kv_heads, self.dim = tokens, kv_heads, dim
        shape = (layers, (SCRATCH + tokens) * kv_heads, dim)
        # Zeros, not whatever memory held: a masked-out NaN would still be one after the product with zero.
        self.k = torch.zeros(shape, device=device, dtype=dtype)
        self.v = torch.zeros(shape, device=device, dtype=dtype)
        self._holes = [(SCRATCH, SCRATCH + tokens)]

    def clear(self) -> None:
        """Nobody has a region any more."""
        self._holes = [(SCRATCH, SCRATCH + self.tokens)]

    def take(self, capacity: int) -> int | None:
        """The start of a free region, the lowest there is, or None."""
        for index, (low, high) in enumerate(self._holes):
            if high - low >= capacity:
                if high - low == capacity:
                    del self._holes[index]
                else:
                    self._holes[index] = (low + capacity, high)
                return low
        return None

    def give(self, start: int, capacity: int) -> None:
        low, high, kept = start, start + capacity, []
        for hole in self._holes:
            if hole[1] == low:
                low = hole[0]
            elif hole[0] == high:
                high = hole[1]
            else:
                kept.append(hole)
        self._holes = sorted([*kept, (low, high)])

    def places(self, start_R: Tensor, capacity_R: Tensor, position_R_T: Tensor) -> Tensor:
        """Rows of `k[layer]` for each sequence's positions: [R, T, kv heads]."""
        head_G = torch.arange(self.kv_heads, device=start_R.device)
        base_R_G = start_R.unsqueeze(1) * self.kv_heads + head_G * capacity_R.unsqueeze(1)
        return base_R_G.unsqueeze(1) + position_R_T.unsqueeze(2)

    def wipe(self, start: int, capacity: int, used: int) -> None:
        """Leave zeros in a region's first places: plain attention multiplies what it masks by zero, which would not
        mend another's NaN."""
        region = slice(start * self.kv_heads, (start + capacity) * self.kv_heads)
        for store in (self.k, self.v):
            store[:, region].unflatten(1, (self.kv_heads, capacity))[:, :, :used] = 0
