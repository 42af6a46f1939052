"""Attention of whole sequences, of sequences that share a prompt, and of prompts that enter the KV cache.

`decode_attention.py` has that of the newest tokens. Both bodies pass their queries, keys and values to one of these.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.kv_cache import KVCache, rounded


class Attention(Protocol):
    @property
    def batch(self) -> int:
        """Rows, all of one length."""
        ...

    @property
    def position_N(self) -> Tensor:
        """Of every token in its sequence."""
        ...

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float, window: int, /) -> Tensor:
        """[B, T, heads, dim] in and out; fewer heads for keys and values where queries share them. `window` > 0 is the
        number of positions that a token sees, its own included."""
        ...


@dataclass(slots=True)
class CausalAttention:
    """Whole sequences, padded at their ends: training and scoring."""

    batch: int
    position_N: Tensor

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        return ops.causal(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, scale=scale, window=window)


@dataclass(frozen=True, slots=True)
class Branches:
    """Completions of similar lengths. Padding repeats a sequence's own last token, so that members never mix."""

    position_S_C: Tensor
    """Of each token of the completion in its sequence."""
    query_X: Tensor
    """Where these tokens are in the batch, S * C of them."""
    key_X: Tensor
    """Where prompt and completion of each sequence are in the batch, S * T tokens."""


@dataclass(slots=True, kw_only=True)
class SharedPromptAttention(CausalAttention):
    """Rows of one prompt and several completions of it: each completion sees the prompt and itself.

    A prompt attends to itself as a row of its own. Keys and values are copied for the completions, each after its
    prompt: attention costs what it costs without sharing, less the prompts' part, whatever the lengths and numbers of
    completions."""

    prompt: int
    """Tokens of the longest prompt."""
    branches: list[Branches]
    back_N: Tensor
    """The index of each token in the outputs of the prompts and then of the branches."""
    _masks: dict[int, list[Tensor]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        position_B_T: np.ndarray,
        *,
        prompt_B: np.ndarray,
        row_S: np.ndarray,
        count_S: np.ndarray,
        device: torch.device,
    ) -> "SharedPromptAttention":
        """`row_S` and `count_S`: the row and length of each completion, in the order in which the rows hold them."""
        batch, width = position_B_T.shape
        # Multiples of 16: with other lengths CPU kernels would sum in another order, so that the lengths of neighbours
        # showed, and CUDA kernels would copy the mask in every layer.
        longest = rounded(prompt_B.max())
        prompt_S, start_S = prompt_B[row_S], row_S * width
        before_S = np.cumsum(count_S) - count_S
        # How much later a completion starts in its row than in its sequence.
        later_S = before_S - before_S[np.searchsorted(row_S, row_S)]
        # Whatever no completion overwrites is a prompt's, or padding, which is never read.
        back_B_T = np.arange(batch)[:, None] * longest + np.minimum(np.arange(width), longest - 1)
        back_N, at = back_B_T.reshape(-1), batch * longest
        # One long completion must not pad all others to its length.
        size_S = np.ceil(np.log2(np.maximum(count_S, 16)))
        branches = []
        for size in np.unique(size_S):
            chosen = np.flatnonzero(size_S == size)
            prompt, count, start, later = (x_S[chosen, None] for x_S in (prompt_S, count_S, start_S, later_S))
            position_S_C = prompt + np.minimum(np.arange(rounded(count.max())), count - 1)
            at_S_T = np.minimum(np.arange(rounded((prompt + count).max())), prompt + count - 1)
            query_X = (start + later + position_S_C).reshape(-1)
            key_X = (start + np.where(at_S_T < prompt, 0, later) + at_S_T).reshape(-1)
            # Backwards, so that a token wins over the padding that repeats it.
            back_N[query_X[::-1]] = np.arange(at, at + len(query_X))[::-1]
            at += len(query_X)
            branches.append(Branches(*(torch.from_numpy(x).to(device) for x in (position_S_C, query_X, key_X))))
        position_N = torch.from_numpy(position_B_T.reshape(-1)).to(device)
        back_N = torch.from_numpy(back_N).to(device)
        return cls(batch, position_N, prompt=longest, branches=branches, back_N=back_N)

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        prompts = (x[:, : self.prompt] for x in (q_B_T_H_D, k_B_T_G_D, v_B_T_G_D))
        seen = [ops.causal(*prompts, scale=scale, window=window).flatten(0, 1)]
        q_N_H_D, k_N_G_D, v_N_G_D = (x.flatten(0, 1) for x in (q_B_T_H_D, k_B_T_G_D, v_B_T_G_D))
        for branch, mask in zip(self.branches, self._mask(window, q_N_H_D, k_N_G_D), strict=True):
            q_S_C_H_D = q_N_H_D.index_select(0, branch.query_X).unflatten(0, branch.position_S_C.shape)
            k_S_T_G_D, v_S_T_G_D = (
                x.index_select(0, branch.key_X).unflatten(0, (len(branch.position_S_C), -1)) for x in (k_N_G_D, v_N_G_D)
            )
            seen.append(ops.masked(q_S_C_H_D, k_S_T_G_D, v_S_T_G_D, mask, scale).flatten(0, 1))
        return torch.cat(seen).index_select(0, self.back_N).view(q_B_T_H_D.shape)

    def _mask(self, window: int, q_N_H_D: Tensor, k_N_G_D: Tensor) -> list[Tensor]:
        """In the form that `ops.masked` takes, once for all layers of a window."""
        if window not in self._masks:
            self._masks[window] = []
            for branch in self.branches:
                at_T = torch.arange(branch.key_X.numel() // len(branch.position_S_C), device=q_N_H_D.device)
                seen_S_C_T = at_T <= branch.position_S_C.unsqueeze(2)
                if window > 0:
                    seen_S_C_T &= at_T > branch.position_S_C.unsqueeze(2) - window
                mask_S_C_T = torch.zeros(seen_S_C_T.shape, dtype=q_N_H_D.dtype, device=q_N_H_D.device)
                mask_S_C_T.masked_fill_(~seen_S_C_T, float("-inf"))
                self._masks[window].append(mask_S_C_T.repeat(1, q_N_H_D.shape[1] // k_N_G_D.shape[1], 1).unsqueeze(1))
        return self._masks[window]


@dataclass(slots=True, kw_only=True)
class PathAttention(CausalAttention):
    """Runs of tokens side by side, each of which sees a path of tokens, itself at the end."""

    key_X: Tensor | None
    """Where the tokens of all paths are in the batch, one path after the other; None where each is its run alone."""
    until_query_Z: Tensor
    """Where each run ends in the batch, from 0 on."""
    until_key_Z: Tensor
    """Where each path ends."""
    most_queries: int
    most_keys: int

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        k_X_G_D, v_X_G_D = k_B_T_G_D.flatten(0, 1), v_B_T_G_D.flatten(0, 1)
        if self.key_X is not None:
            k_X_G_D, v_X_G_D = ops.gathered(k_X_G_D, self.key_X), ops.gathered(v_X_G_D, self.key_X)
        return ops.ragged(
            q_B_T_H_D.flatten(0, 1), k_X_G_D, v_X_G_D, self.until_query_Z, self.until_key_Z,
            self.most_queries, self.most_keys, scale=scale, window=window,
        ).view(q_B_T_H_D.shape)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class PrefillAttention(CausalAttention):
    """Prompts that enter the cache, with a copy for every region that holds one."""

    cache: KVCache
    row_S: Tensor
    """The prompt (a row of this batch) of each region."""
    place_S_T_G: Tensor
    """Where the cache keeps each region's tokens; padding goes to the scratch region."""

    def attend(
        self, layer: int, q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, scale: float, window: int
    ) -> Tensor:
        self.cache.k[layer][self.place_S_T_G] = k_B_T_G_D[self.row_S]
        self.cache.v[layer][self.place_S_T_G] = v_B_T_G_D[self.row_S]
        return ops.causal(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, scale=scale, window=window)
