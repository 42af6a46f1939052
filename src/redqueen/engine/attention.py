"""The ways in which rows see each other: whole sequences, sequences that share a prompt, sequences that enter the
cache, newest tokens.

Both bodies (the general one and that of the Llama family) hand their queries, keys and values to one of these.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
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


@dataclass(frozen=True, slots=True)
class Branches:
    """Completions of similar lengths. Padding stands for a sequence's own last token, so that nothing of another
    member's comes near it."""

    position_S_C: Tensor
    """Where each token of the completion stands in its sequence."""
    query_X: Tensor
    """These tokens among all of the batch, S * C of them."""
    key_X: Tensor
    """Prompt and completion of each sequence among all tokens of the batch, S * T of them."""


@dataclass(slots=True)
class Shared(Whole):
    """Rows of one prompt and several completions that go on from it: each sees the prompt and itself.

    A prompt is seen by itself as a row of its own. Keys and values are laid out once more for the completions, each
    after its prompt: attention then costs what it would cost without sharing, less the prompts' part of it, however
    long the completions are and however many a row holds."""

    prompt: int
    """As many tokens of a row as the longest prompt has."""
    branches: list[Branches]
    back_N: Tensor
    """The place of each token among what the prompts have seen and then the branches."""
    _masks: dict[int, list[Tensor]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        position_B_T: np.ndarray,
        prompt_B: np.ndarray,
        row_S: np.ndarray,
        count_S: np.ndarray,
        device: torch.device,
    ) -> "Shared":
        """`row_S` and `count_S`: the row and length of each completion, in the order in which the rows hold them."""
        batch, width = position_B_T.shape
        # Lengths are multiples of 16: from others CPU kernels would add up in another order, so that the lengths of the
        # neighbours showed, and CUDA kernels would copy the mask in every layer.
        longest = _padded(prompt_B.max())
        prompt_S, start_S = prompt_B[row_S], row_S * width
        before_S = np.cumsum(count_S) - count_S
        # How much later a completion stands in its row than in its sequence.
        later_S = before_S - before_S[np.searchsorted(row_S, row_S)]
        # Whatever no completion overwrites is a prompt's, or padding, which nobody looks at.
        back_B_T = np.arange(batch)[:, None] * longest + np.minimum(np.arange(width), longest - 1)
        back_N, at = back_B_T.reshape(-1), batch * longest
        # One long completion must not make long ones of all others.
        size_S = np.ceil(np.log2(np.maximum(count_S, 16)))
        branches = []
        for size in np.unique(size_S):
            some = np.flatnonzero(size_S == size)
            prompt, count, start, later = (x_S[some, None] for x_S in (prompt_S, count_S, start_S, later_S))
            position_S_C = prompt + np.minimum(np.arange(_padded(count.max())), count - 1)
            at_S_T = np.minimum(np.arange(_padded((prompt + count).max())), prompt + count - 1)
            query_X = (start + later + position_S_C).reshape(-1)
            key_X = (start + np.where(at_S_T < prompt, 0, later) + at_S_T).reshape(-1)
            # Backwards: of a token and the padding that stands for it, the token.
            back_N[query_X[::-1]] = np.arange(at, at + len(query_X))[::-1]
            at += len(query_X)
            branches.append(Branches(*(torch.from_numpy(x).to(device) for x in (position_S_C, query_X, key_X))))
        position_N = torch.from_numpy(position_B_T.reshape(-1)).to(device)
        return cls(batch, position_N, longest, branches, torch.from_numpy(back_N).to(device))

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        prompts = (x[:, : self.prompt] for x in (q_B_T_H_D, k_B_T_G_D, v_B_T_G_D))
        seen = [ops.causal(*prompts, scale=scale, window=window).flatten(0, 1)]
        q_N_H_D, k_N_G_D, v_N_G_D = (x.flatten(0, 1) for x in (q_B_T_H_D, k_B_T_G_D, v_B_T_G_D))
        for some, mask in zip(self.branches, self._mask(window, q_N_H_D, k_N_G_D), strict=True):
            q_S_C_H_D = q_N_H_D.index_select(0, some.query_X).unflatten(0, some.position_S_C.shape)
            k_S_T_G_D, v_S_T_G_D = (
                x.index_select(0, some.key_X).unflatten(0, (len(some.position_S_C), -1)) for x in (k_N_G_D, v_N_G_D)
            )
            seen.append(ops.masked(q_S_C_H_D, k_S_T_G_D, v_S_T_G_D, mask, scale).flatten(0, 1))
        return torch.cat(seen).index_select(0, self.back_N).view(q_B_T_H_D.shape)

    def _mask(self, window: int, q_N_H_D: Tensor, k_N_G_D: Tensor) -> list[Tensor]:
        """Made once for all layers of a window, in the form that `ops.masked` wants."""
        if window not in self._masks:
            self._masks[window] = []
            for some in self.branches:
                at_T = torch.arange(some.key_X.numel() // len(some.position_S_C), device=q_N_H_D.device)
                seen_S_C_T = at_T <= some.position_S_C.unsqueeze(2)
                if window > 0:
                    seen_S_C_T &= at_T > some.position_S_C.unsqueeze(2) - window
                mask_S_C_T = torch.zeros(seen_S_C_T.shape, dtype=q_N_H_D.dtype, device=q_N_H_D.device)
                mask_S_C_T.masked_fill_(~seen_S_C_T, float("-inf"))
                self._masks[window].append(mask_S_C_T.repeat(1, q_N_H_D.shape[1] // k_N_G_D.shape[1], 1).unsqueeze(1))
        return self._masks[window]


def _padded(length: int) -> int:
    return -(-int(length) // 16) * 16


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


@dataclass(frozen=True, slots=True)
class Slots:
    """Where plain attention finds the rows' pasts: prompts and what was sampled since are stored apart, each in slots
    of one capacity, so that the rows that go on from one prompt look at one copy of it, all at once."""

    prompts: Cache
    prompt_capacity: int
    prompt_R: Tensor
    """Each row's prompt, by slot."""
    lane_R: Tensor
    """Each row's place among those with its prompt."""
    lanes: int
    prompt_count: int
    """Slots, up to the last that is in use."""
    count: int
    """As many for what was sampled."""
    capacity: int
    prompt_length: int
    """The longest."""
    length: int
    """The most tokens since, the newest included."""


class Newest:
    """The newest token of each sequence, over its part of the cache.

    Without the kernels a slot is a row of the arena seen as one tensor, and the queries are brought into the slots'
    order, which moves a token of each sequence instead of its whole past.
    """

    batch: int

    def __init__(
        self,
        cache: Cache,
        position_R: Tensor,
        start_R: Tensor,
        capacity_R: Tensor,
        *,
        index_R: Tensor | None = None,
        slots: Slots | None = None,
    ) -> None:
        """`index_R`, with `slots`: tokens since the prompt, of which the newest is not one."""
        self.batch = position_R.shape[0]
        self.position_N, self.cache, self.start_R, self.capacity_R = position_R, cache, start_R, capacity_R
        self.place_R_1_G: Tensor | None = None
        self.slots = slots
        if slots is None:
            return
        assert index_R is not None
        self.index_R = index_R
        self.place_R_1_G = cache.places(start_R, capacity_R, index_R.unsqueeze(1))
        self.slot_R = (start_R - SCRATCH) // slots.capacity
        self._masks: dict[int, tuple[Tensor, Tensor]] = {}

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
        assert self.slots is not None
        return self._by_slot(self.slots, layer, q_R_1_H_D, scale, window)

    def _by_slot(self, slots: Slots, layer: int, q_R_1_H_D: Tensor, scale: float, window: int) -> Tensor:
        kv_heads, dim = self.cache.kv_heads, self.cache.dim
        rows, _, heads, _ = q_R_1_H_D.shape
        # The queries that share a key head are like several queries of one head: nothing is repeated.
        q_R_G_Q_D = q_R_1_H_D.reshape(rows, kv_heads, heads // kv_heads, dim)
        prompt_mask, mask = self._mask(slots, window, heads // kv_heads, q_R_1_H_D.dtype)
        q_C_G_Q_D = q_R_G_Q_D.new_zeros(slots.count, *q_R_G_Q_D.shape[1:])
        q_C_G_Q_D[self.slot_R] = q_R_G_Q_D
        k, v = (_slots(store[layer], slots.count, kv_heads, slots.capacity) for store in (self.cache.k, self.cache.v))
        out_C_G_Q_D, total_C_G_Q = ops.attend_part(
            q_C_G_Q_D, k[:, :, : slots.length], v[:, :, : slots.length], mask, scale
        )
        out_R_G_Q_D, total_R_G_Q = out_C_G_Q_D[self.slot_R], total_C_G_Q[self.slot_R]
        if slots.prompt_length > 0:
            shape = (slots.prompt_count, kv_heads, slots.lanes, heads // kv_heads)
            q_P_G_W_Q_D = q_R_G_Q_D.new_zeros(*shape, dim)
            q_P_G_W_Q_D[slots.prompt_R, :, slots.lane_R] = q_R_G_Q_D
            k, v = (
                _slots(store[layer], slots.prompt_count, kv_heads, slots.prompt_capacity)
                for store in (slots.prompts.k, slots.prompts.v)
            )
            out, total = ops.attend_part(
                q_P_G_W_Q_D.flatten(2, 3),
                k[:, :, : slots.prompt_length],
                v[:, :, : slots.prompt_length],
                prompt_mask,
                scale,
            )
            prompt_R_G_Q_D = out.view(*shape, dim)[slots.prompt_R, :, slots.lane_R]
            prompt_total_R_G_Q = total.view(shape)[slots.prompt_R, :, slots.lane_R]
            share_R_G_Q = torch.sigmoid(prompt_total_R_G_Q - total_R_G_Q).to(out_R_G_Q_D.dtype)
            out_R_G_Q_D = torch.lerp(out_R_G_Q_D, prompt_R_G_Q_D, share_R_G_Q.unsqueeze(3))
        return out_R_G_Q_D.reshape(rows, 1, heads, dim)

    def _mask(self, slots: Slots, window: int, queries: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """What is added to the scores of prompts and of what came since."""
        if window not in self._masks:
            device = self.position_N.device
            # Slots without a row look at their first token, which is a number.
            index_C_1 = torch.zeros(slots.count, 1, dtype=torch.int64, device=device)
            index_C_1[self.slot_R, 0] = self.index_R
            at_L = torch.arange(slots.length, device=device)
            seen_C_L = at_L <= index_C_1
            known_P_W_1 = torch.zeros(slots.prompt_count, slots.lanes, 1, dtype=torch.int64, device=device)
            known_P_W_1[slots.prompt_R, slots.lane_R, 0] = self.position_N - self.index_R
            at_T = torch.arange(slots.prompt_length, device=device)
            if window > 0:
                seen_C_L &= at_L > index_C_1 - window
                position_P_W_1 = torch.zeros_like(known_P_W_1)
                position_P_W_1[slots.prompt_R, slots.lane_R, 0] = self.position_N
                seen_P_W_T = (at_T < known_P_W_1) & (at_T > position_P_W_1 - window)
            else:
                seen_P_W_T = at_T < known_P_W_1
            # Each lane's queries, of which as many share a key head, see the same.
            mask_P_1_W_T = _added(seen_P_W_T.repeat_interleave(queries, 1), dtype).unsqueeze(1)
            self._masks[window] = mask_P_1_W_T, _added(seen_C_L, dtype)[:, None, None, :]
        return self._masks[window]


def _slots(store: Tensor, count: int, kv_heads: int, capacity: int) -> Tensor:
    low = SCRATCH * kv_heads
    return store[low : low + count * kv_heads * capacity].view(count, kv_heads, capacity, store.shape[1])


def _added(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """Finite, so that a row that sees nothing of a part has a sum for it that weighs nothing, and not NaN."""
    mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return mask.masked_fill_(~seen, torch.finfo(dtype).min / 4)


Attention = Whole | Newest
