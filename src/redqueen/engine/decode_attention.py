"""Attention of new tokens to their sequence's part of the KV cache: by the kernels, or in plain torch.

The kernels walk each row's own region. Plain torch needs tensors of one shape, so prompts and completions are in slots
of one capacity each: a slot is a row of the arena seen as one tensor, and the queries are reordered to match the slots,
which moves one token of each sequence instead of its whole past.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.kv_cache import SCRATCH, KVCache


@dataclass(slots=True, kw_only=True)
class KernelAttention:
    """Every sequence's region holds its prompt and its completion. A row is one token, which sees what its sequence has
    up to it."""

    cache: KVCache
    position_N: Tensor
    start_N: Tensor
    capacity_N: Tensor
    tiles: tuple[Tensor, Tensor] | None = None
    """Where rows are neighbours in their sequences (prompts): the first row and the number of rows of each tile."""
    bundles: tuple[Tensor, Tensor, Tensor] | None = None
    """Where neighbours are completions of one prompt: how many of its tokens each row has, and the first row and the
    number of rows of each bundle."""
    _place_N_1_G: Tensor | None = None

    @property
    def batch(self) -> int:
        return self.position_N.shape[0]

    def attend(
        self, layer: int, q_N_1_H_D: Tensor, k_N_1_G_D: Tensor, v_N_1_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        rows, _, heads, dim = q_N_1_H_D.shape
        if self._place_N_1_G is None:
            self._place_N_1_G = self.cache.places(self.start_N, self.capacity_N, self.position_N.unsqueeze(1))
        self.cache.k[layer][self._place_N_1_G] = k_N_1_G_D
        self.cache.v[layer][self._place_N_1_G] = v_N_1_G_D
        return self.seen(layer, q_N_1_H_D.reshape(rows, heads * dim), heads, scale, window).view(rows, 1, heads, dim)

    def seen(self, layer: int, q_N_O: Tensor, heads: int, scale: float, window: int) -> Tensor:
        """What the rows see, once their keys and values are in the cache. `q_N_O` may be wider than its queries."""
        from redqueen.engine import kernels

        k_cache, v_cache = self.cache.k[layer], self.cache.v[layer]
        where = (self.position_N, self.start_N, self.capacity_N)
        options = {
            "heads": heads, "kv_heads": self.cache.kv_heads, "dim": self.cache.dim, "scale": scale, "window": window
        }  # fmt: skip
        if self.tiles is None:
            return kernels.attend(q_N_O, k_cache, v_cache, *where, self.bundles, **options)
        return kernels.attend_prompts(q_N_O, k_cache, v_cache, self.tiles, *where, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSlots:
    """Where the rows' keys and values are. Prompts are apart from completions, so that all completions of a prompt
    attend to one copy of it, at once."""

    completions: KVCache
    prompts: KVCache
    capacity: int
    """Of a completion's slot."""
    prompt_capacity: int
    slot_R: Tensor
    """Of each row's completion."""
    prompt_R: Tensor
    """The slot of each row's prompt."""
    lane_R: Tensor
    """Each row's number among those with its prompt."""
    count: int
    """Slots of completions up to the last that is in use."""
    prompt_count: int
    lanes: int
    prompt_length: int
    """Of the longest."""


@dataclass(slots=True, kw_only=True)
class SlotDecode:
    slots: CacheSlots
    length: int
    """Of the longest completion, its newest token included."""
    position_N: Tensor
    index_R: Tensor
    """Tokens of each completion before its newest."""
    _masks: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def batch(self) -> int:
        return self.position_N.shape[0]

    def attend(
        self, layer: int, q_R_1_H_D: Tensor, k_R_1_G_D: Tensor, v_R_1_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        slots, cache = self.slots, self.slots.completions
        kv_heads, dim = cache.kv_heads, cache.dim
        rows, _, heads, _ = q_R_1_H_D.shape
        k_C_G_L_D, v_C_G_L_D = (
            _view(store[layer], slots.count, kv_heads, slots.capacity) for store in (cache.k, cache.v)
        )
        k_C_G_L_D[slots.slot_R, :, self.index_R] = k_R_1_G_D.squeeze(1)
        v_C_G_L_D[slots.slot_R, :, self.index_R] = v_R_1_G_D.squeeze(1)
        # Queries that share a key head become several queries of one head: nothing is repeated.
        q_R_G_Q_D = q_R_1_H_D.reshape(rows, kv_heads, heads // kv_heads, dim)
        prompt_mask, mask = self._mask(window, heads // kv_heads, q_R_1_H_D.dtype)
        q_C_G_Q_D = q_R_G_Q_D.new_zeros(slots.count, *q_R_G_Q_D.shape[1:])
        q_C_G_Q_D[slots.slot_R] = q_R_G_Q_D
        out_C_G_Q_D, total_C_G_Q = ops.attend_part(
            q_C_G_Q_D, k_C_G_L_D[:, :, : self.length], v_C_G_L_D[:, :, : self.length], mask, scale
        )
        out_R_G_Q_D, total_R_G_Q = out_C_G_Q_D[slots.slot_R], total_C_G_Q[slots.slot_R]
        if slots.prompt_length > 0:
            shape = (slots.prompt_count, kv_heads, slots.lanes, heads // kv_heads)
            q_P_G_W_Q_D = q_R_G_Q_D.new_zeros(*shape, dim)
            q_P_G_W_Q_D[slots.prompt_R, :, slots.lane_R] = q_R_G_Q_D
            k_P_G_T_D, v_P_G_T_D = (
                _view(store[layer], slots.prompt_count, kv_heads, slots.prompt_capacity)[:, :, : slots.prompt_length]
                for store in (slots.prompts.k, slots.prompts.v)
            )
            out, total = ops.attend_part(q_P_G_W_Q_D.flatten(2, 3), k_P_G_T_D, v_P_G_T_D, prompt_mask, scale)
            prompt_R_G_Q_D = out.view(*shape, dim)[slots.prompt_R, :, slots.lane_R]
            prompt_total_R_G_Q = total.view(shape)[slots.prompt_R, :, slots.lane_R]
            share_R_G_Q = torch.sigmoid(prompt_total_R_G_Q - total_R_G_Q).to(out_R_G_Q_D.dtype)
            out_R_G_Q_D = torch.lerp(out_R_G_Q_D, prompt_R_G_Q_D, share_R_G_Q.unsqueeze(3))
        return out_R_G_Q_D.reshape(rows, 1, heads, dim)

    def _mask(self, window: int, queries: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Added to the scores of prompts and of completions."""
        if window not in self._masks:
            slots, device = self.slots, self.position_N.device
            # Slots without a row see their first token, which is finite.
            index_C_1 = torch.zeros(slots.count, 1, dtype=torch.int64, device=device)
            index_C_1[slots.slot_R, 0] = self.index_R
            at_L = torch.arange(self.length, device=device)
            seen_C_L = at_L <= index_C_1
            known_P_W_1 = torch.zeros(slots.prompt_count, slots.lanes, 1, dtype=torch.int64, device=device)
            known_P_W_1[slots.prompt_R, slots.lane_R, 0] = self.position_N - self.index_R
            at_T = torch.arange(slots.prompt_length, device=device)
            seen_P_W_T = at_T < known_P_W_1
            if window > 0:
                seen_C_L &= at_L > index_C_1 - window
                position_P_W_1 = torch.zeros_like(known_P_W_1)
                position_P_W_1[slots.prompt_R, slots.lane_R, 0] = self.position_N
                seen_P_W_T &= at_T > position_P_W_1 - window
            # All queries of a lane see the same.
            mask_P_1_W_T = _additive(seen_P_W_T.repeat_interleave(queries, 1), dtype).unsqueeze(1)
            self._masks[window] = mask_P_1_W_T, _additive(seen_C_L, dtype)[:, None, None, :]
        return self._masks[window]


def _view(store: Tensor, count: int, kv_heads: int, capacity: int) -> Tensor:
    low = SCRATCH * kv_heads
    return store[low : low + count * kv_heads * capacity].view(count, kv_heads, capacity, store.shape[1])


def _additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """Finite, so that a row that sees nothing of a part gives it no weight, and not NaN."""
    mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return mask.masked_fill_(~seen, torch.finfo(dtype).min / 4)
