"""The three ways in which rows see each other: whole sequences, sequences that enter the cache, newest tokens.

Both bodies (the general one and that of the Llama family) hand their queries, keys and values to one of these.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.cache import SCRATCH, Cache


@dataclass(frozen=True, slots=True)
class Heads:
    """The shape of a base's attention."""

    heads: int
    kv_heads: int
    dim: int
    scale: float


@dataclass(slots=True)
class Whole:
    """Sequences on their own, padded at their ends: training and scoring."""

    batch: int
    position_N: Tensor

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        return ops.causal(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, scale=scale, window=window)


@dataclass(slots=True)
class Prefill(Whole):
    """Prompts that enter the cache, each once for every sequence that goes on from it."""

    cache: Cache
    row_S: Tensor
    """The prompt (a row of this batch) of each sequence."""
    place_S_T_G: Tensor
    """Where the cache keeps each sequence's tokens; padding goes where nobody looks."""

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        self.cache.k[layer][self.place_S_T_G] = k_B_T_G_D[self.row_S]
        self.cache.v[layer][self.place_S_T_G] = v_B_T_G_D[self.row_S]
        return ops.causal(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, scale=scale, window=window)


class Newest:
    """The newest token of each sequence, over its part of the cache.

    Without the kernels all regions must have one capacity, `slots` of them: the arena is then one tensor by slot, and
    the rows are brought into the slots' order, which moves a token of each sequence instead of its whole past.
    """

    batch: int

    def __init__(
        self,
        cache: Cache,
        position_R: Tensor,
        start_R: Tensor,
        capacity_R: Tensor,
        *,
        slots: tuple[int, int, int] | None = None,
    ) -> None:
        """`slots`: how many there are, their capacity, and the longest sequence among them."""
        self.batch = position_R.shape[0]
        self.position_N, self.cache, self.start_R, self.capacity_R = position_R, cache, start_R, capacity_R
        self.place_R_1_G: Tensor | None = None
        if slots is None:
            return
        count, self.capacity, length = slots
        self.count, self.length = count, min(-(-length // 16) * 16, self.capacity)
        self.place_R_1_G = cache.places(start_R, capacity_R, position_R.unsqueeze(1))
        self.slot_R = (start_R - SCRATCH) // self.capacity
        # Slots without a row look at one token: nobody reads what they see, and nothing is divided by zero.
        length_C = torch.ones(count, dtype=torch.int64, device=position_R.device)
        length_C[self.slot_R] = position_R + 1
        self.length_C_1 = length_C.unsqueeze(1)
        self._masks: dict[int, Tensor] = {}

    def attend(
        self, layer: int, q_R_1_H_D: Tensor, k_R_1_G_D: Tensor, v_R_1_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        if ops.fused(q_R_1_H_D):
            from redqueen.engine import kernels

            rows, _, heads, dim = q_R_1_H_D.shape
            if self.place_R_1_G is None:
                self.place_R_1_G = self.cache.places(self.start_R, self.capacity_R, self.position_N.unsqueeze(1))
            self.cache.k[layer][self.place_R_1_G] = k_R_1_G_D
            self.cache.v[layer][self.place_R_1_G] = v_R_1_G_D
            out_R_O = kernels.attend(
                q_R_1_H_D.reshape(rows, heads * dim), self.cache.k[layer], self.cache.v[layer],
                self.position_N, self.start_R, self.capacity_R,
                heads=heads, kv_heads=self.cache.kv_heads, dim=dim, scale=scale, window=window,
            )  # fmt: skip
            return out_R_O.view(rows, 1, heads, dim)
        self.cache.k[layer][self.place_R_1_G] = k_R_1_G_D
        self.cache.v[layer][self.place_R_1_G] = v_R_1_G_D
        return self._by_slot(layer, q_R_1_H_D, scale, window)

    def _by_slot(self, layer: int, q_R_1_H_D: Tensor, scale: float, window: int) -> Tensor:
        kv_heads, dim = self.cache.kv_heads, self.cache.dim
        rows, _, heads, _ = q_R_1_H_D.shape
        # The queries that share a key head are like several queries of one head: nothing is repeated.
        q_R_G_Q_D = q_R_1_H_D.reshape(rows, kv_heads, heads // kv_heads, dim)
        q_C_G_Q_D = q_R_G_Q_D.new_zeros(self.count, *q_R_G_Q_D.shape[1:])
        q_C_G_Q_D[self.slot_R] = q_R_G_Q_D
        low = SCRATCH * kv_heads
        size = self.count * kv_heads * self.capacity
        k_C_G_L_D, v_C_G_L_D = (
            store[layer][low : low + size].view(self.count, kv_heads, self.capacity, dim)[:, :, : self.length]
            for store in (self.cache.k, self.cache.v)
        )
        out_C_G_Q_D = F.scaled_dot_product_attention(
            q_C_G_Q_D, k_C_G_L_D, v_C_G_L_D, attn_mask=self._mask(window, q_R_1_H_D.dtype), scale=scale
        )
        return out_C_G_Q_D[self.slot_R].reshape(rows, 1, heads, dim)

    def _mask(self, window: int, dtype: torch.dtype) -> Tensor:
        if window not in self._masks:
            at_L = torch.arange(self.length, device=self.position_N.device)
            seen_C_L = at_L < self.length_C_1
            if window > 0:
                seen_C_L &= at_L >= self.length_C_1 - window
            mask_C_L = torch.zeros(seen_C_L.shape, dtype=dtype, device=seen_C_L.device)
            mask_C_L.masked_fill_(~seen_C_L, float("-inf"))
            self._masks[window] = mask_C_L[:, None, None, :]
        return self._masks[window]


Attention = Whole | Newest
