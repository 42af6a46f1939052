"""The KV cache of all sequences that are being sampled: one arena per layer, allocated once.

A sequence has a region of the arena, large enough for its prompt and its limit: [kv heads, capacity, dim] numbers from
`start`. The arena never moves, so captured graphs stay valid whatever the sequences are.
"""

import torch
from torch import Tensor

SCRATCH = 16
"""Tokens at the arena's beginning that belong to rows without a sequence."""


def rounded(tokens: int) -> int:
    """Up to a multiple of 16, as all lengths and capacities are."""
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
        self.clear()

    def clear(self) -> None:
        self._free = [(SCRATCH, SCRATCH + self.tokens)]

    def allocate(self, capacity: int) -> int | None:
        """The start of the lowest free region, or None."""
        for index, (low, high) in enumerate(self._free):
            if high - low >= capacity:
                if high - low == capacity:
                    del self._free[index]
                else:
                    self._free[index] = (low + capacity, high)
                return low
        return None

    def release(self, start: int, capacity: int) -> None:
        low, high, kept = start, start + capacity, []
        for region in self._free:
            if region[1] == low:
                low = region[0]
            elif region[0] == high:
                high = region[1]
            else:
                kept.append(region)
        self._free = sorted([*kept, (low, high)])

    def places(self, start_R: Tensor, capacity_R: Tensor, position_R_T: Tensor) -> Tensor:
        """Rows of `k[layer]` for each sequence's positions: [R, T, kv heads]."""
        head_G = torch.arange(self.kv_heads, device=start_R.device)
        base_R_G = start_R.unsqueeze(1) * self.kv_heads + head_G * capacity_R.unsqueeze(1)
        return base_R_G.unsqueeze(1) + position_R_T.unsqueeze(2)

    def region(self, store: Tensor, start: int, capacity: int) -> Tensor:
        """The keys or values of a region: [layers, kv heads, capacity, dim]."""
        return store[:, start * self.kv_heads : (start + capacity) * self.kv_heads].unflatten(
            1, (self.kv_heads, capacity)
        )

    def zero(self, start: int, capacity: int, used: int) -> None:
        """Clear the first `used` tokens of a region: plain attention multiplies what it masks by zero, and NaN stays
        NaN."""
        for store in (self.k, self.v):
            self.region(store, start, capacity)[:, :, :used] = 0
