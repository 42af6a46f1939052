"""The base with its members' adapters, from token ids to the last hidden state, and from there to logits.

There are two bodies, which compute the same: `general.py` runs any architecture through `transformers`' own modules,
`llama.py` decodes the Llama family several times faster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from redqueen.engine import ops
from redqueen.engine.attention import Attention
from redqueen.engine.routing import Routing
from redqueen.engine.split.part import Part

MAX_POSITIONS = 32_768
"""Of the rotary tables, where the base itself allows more."""


@dataclass(frozen=True, slots=True)
class Heads:
    heads: int
    kv_heads: int
    dim: int
    scale: float


@dataclass(frozen=True, slots=True)
class Head:
    """From hidden states to logits."""

    weight_V_H: Tensor
    softcap: float | None = None

    @classmethod
    def of(cls, model: PreTrainedModel, softcap: float | None = None) -> "Head":
        output: Any = model.get_output_embeddings()
        return cls(output.weight, softcap)

    @property
    def vocabulary(self) -> int:
        return self.weight_V_H.shape[0]

    def knows(self, tokens: Sequence[int]) -> bool:
        return 0 <= min(tokens) <= max(tokens) < self.vocabulary

    def __call__(self, hidden_M_H: Tensor) -> Tensor:
        logits_M_V = ops.logits(hidden_M_H, self.weight_V_H)
        return logits_M_V if self.softcap is None else torch.tanh(logits_M_V / self.softcap) * self.softcap

    def backward(
        self, logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor, total_M: Tensor, weight_M: Tensor
    ) -> Tensor:
        """The gradient of the hidden states, where that of each target's log-probability is `weight_M`."""
        dtype = self.weight_V_H.dtype
        grad_M_V = ops.head_backward(logits_M_V, target_M, temperature_M, total_M, weight_M, dtype)
        if self.softcap is not None:
            grad_M_V = grad_M_V * (1 - (logits_M_V / self.softcap) ** 2).to(dtype)
        return grad_M_V @ self.weight_V_H


class Body(Protocol):
    path: str
    """`llama` or `general`."""
    heads: Heads
    head: Head
    part: Part | None
    """Where its weights are split over several processes: all of them make the same calls."""
    layers: int
    positions: int
    """Tokens of the longest sequence."""
    nbytes: int
    """Of the weights that every token passes through."""

    def hidden(self, token_N: Tensor, routing: Routing, attention: Attention, *, checkpointing: bool = False) -> Tensor:
        """The normed last hidden state of every token. Differentiable where `routing` has gradients; `checkpointing`
        then keeps only the inputs of the blocks and recomputes the rest in the backward pass."""
        ...
