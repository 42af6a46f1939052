"""Floating-point operations of sampling, scoring and training, counted from what goes through the base.

They are what the algorithm needs, whatever the machine does: no padding, no recomputation of activations, and a prompt
passes once for all completions of one member. `docs/method.md` has the formula.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.engine.quantised import quantised_layers

FORWARD, BACKWARD = 2, 2
"""Operations for each weight and token: a multiplication and an addition. Backward is of the activations alone, or of
the weights alone."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Tokens that go through the base; passages add up."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """The head is asked for these alone."""
    pairs: int = 0
    """Of tokens, one of which attends to the other or to itself."""

    @classmethod
    def of(cls, texts: Iterable[tuple[tuple[int, ...], int]]) -> "Passage":
        """Of one member's texts in one call: each a prompt, and the number of tokens that follow it."""
        lengths: dict[tuple[int, ...], list[int]] = {}
        for prompt, completion in texts:
            lengths.setdefault(prompt, []).append(completion)
        return cls(
            sum(map(len, lengths)),
            sum(map(sum, lengths.values())),
            sum(
                _causal(len(prompt)) + sum(_causal(len(prompt) + length) - _causal(len(prompt)) for length in own)
                for prompt, own in lengths.items()
            ),
        )

    def __add__(self, other: "Passage") -> "Passage":
        return Passage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.pairs + other.pairs,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def _causal(length: int) -> int:
    """Pairs of a sequence in which each token attends to itself and to all before it."""
    return length * (length + 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The numbers of a base and its adapters that floating-point operations depend on."""

    blocks: int
    """Weights that every token is multiplied with: those of all linear layers but the head. Embeddings are looked up,
    norms and biases are left out."""
    head: int
    attention: int
    """Layers times heads times the width of a head."""
    adapter: int
    """Weights of one member's adapter."""

    @classmethod
    def of(cls, model: PreTrainedModel, *, attention: int, adapter: int) -> "ModelSize":
        head: Any = model.get_output_embeddings()
        others = (module for module in model.modules() if module is not head and not isinstance(module, nn.Embedding))
        weights = [weight for module in others if isinstance(weight := getattr(module, "weight", None), Tensor)]
        quantised = sum(layer.in_features * layer.out_features for layer in quantised_layers(model))
        return cls(
            blocks=sum(weight.numel() for weight in weights if weight.ndim > 1) + quantised,
            head=head.weight.numel(),
            attention=attention,
            adapter=adapter,
        )

    def forward(self, passage: Passage, *, adapted: bool = True) -> int:
        """Of sampling or scoring this much, by a member or (`adapted=False`) by the bare base."""
        weights = (self.blocks + self.adapter * adapted) * passage.tokens + self.head * passage.completion_tokens
        # Scores, and what is seen by them: two products for each pair.
        return FORWARD * (weights + 2 * self.attention * passage.pairs)

    def training(self, passage: Passage) -> int:
        """Forward and backward. The base is frozen: its weights have no gradients, the adapter's have. Both products of
        attention have two factors that do."""
        base = self.blocks * passage.tokens + self.head * passage.completion_tokens
        adapter, attention = self.adapter * passage.tokens, 2 * self.attention * passage.pairs
        return self.forward(passage) + BACKWARD * (base + 2 * adapter + 2 * attention)
