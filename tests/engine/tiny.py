"""Bases of a few thousand weights, one for each architecture, and what PEFT and torch make of a member of one.

The weights are drawn so that every part of a base shows in its logits: biases and norms are not what they start as, and
windows are shorter than the sequences.
"""

import asyncio
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import peft
import torch
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from redqueen.engine.adaptable import adaptable
from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.general import GeneralBody
from redqueen.engine.local import LocalEngine
from redqueen.engine.peft import save
from redqueen.engine.protocol import MemberState, Recipe, Sample, SampleRequest, Score, ScoreRequest, Trajectory
from redqueen.engine.quantised import QuantisedLinear

VOCABULARY = 101
WINDOW = 7
COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
WIDE = {**COMMON, "head_dim": 12}
"""Heads that are together wider than the hidden state."""
BLOCKS = {"hidden_size": 64, "intermediate_size": 192, "head_dim": 16}
"""Of layers whose inputs come in whole blocks of NF4."""
MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": WINDOW}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}

ARCHITECTURES = {
    "llama": lambda **more: LlamaForCausalLM(
        LlamaConfig(**{**COMMON, "attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3, **more})
    ),
    "mistral": lambda **more: MistralForCausalLM(MistralConfig(**{**COMMON, "sliding_window": WINDOW, **more})),
    "qwen2": lambda **more: Qwen2ForCausalLM(Qwen2Config(**{**COMMON, "use_sliding_window": True, **MIXED, **more})),
    "qwen3": lambda **more: Qwen3ForCausalLM(
        Qwen3Config(**{**WIDE, "rope_parameters": YARN, "tie_word_embeddings": True, **more})
    ),
    "gemma2": lambda **more: Gemma2ForCausalLM(
        # Attention that is capped is refused, logits that are capped are not.
        Gemma2Config(**{**WIDE, "attn_logit_softcapping": None, "final_logit_softcapping": 4.0, **MIXED, **more})
    ),
    "gemma3": lambda **more: Gemma3ForCausalLM(
        Gemma3TextConfig(**{**WIDE, "query_pre_attn_scalar": 12, **MIXED, **more})
    ),
}
FAST = ("llama", "mistral", "qwen2", "qwen3")
"""Those that the fast path serves; the others get the general one."""


def model(architecture: str, dtype: torch.dtype = torch.float32, **more: Any) -> PreTrainedModel:
    """The same weights for the same arguments."""
    made = ARCHITECTURES[architecture](**more)
    numbers = torch.Generator().manual_seed(sum(architecture.encode()))
    with torch.no_grad():
        for name, weight in made.named_parameters():
            drawn = torch.randn(weight.shape, generator=numbers)
            if "norm" in name:
                weight.add_(0.2 * drawn)
            else:
                weight.copy_(drawn * (0.2 if weight.ndim == 1 or "embed" in name else weight.shape[1] ** -0.5))
    made.tie_weights()
    made.to(dtype)
    if dtype == torch.float64:
        for module in made.modules():
            if type(module).__name__.endswith("RMSNorm"):
                module.forward = partial(_exact_norm, module)
        if made.config._attn_implementation == "eager":
            AttentionInterface.register("exact", _exact_attention)
            made.set_attn_implementation("exact")
    return made.eval().requires_grad_(False)


def _exact_norm(module: Any, x: Tensor) -> Tensor:
    """transformers norms in float32 whatever the base's dtype: in float64 that would be the largest error of all."""
    gemma = "Gemma" in type(module).__name__
    eps = module.eps if gemma else module.variance_epsilon
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (module.weight + 1 if gemma else module.weight)


def _exact_attention(module, query, key, value, attention_mask, scaling, sliding_window=None, **_):
    """For Gemma 2, whose own attention takes the softmax in float32: whole sequences, without a cache."""
    assert attention_mask is None
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    at_T = torch.arange(query.shape[2])
    back_T_T = at_T[:, None] - at_T
    seen_T_T = (back_T_T >= 0) & (back_T_T < (sliding_window or len(at_T)))
    weight = (query @ key.transpose(2, 3) * scaling).masked_fill(~seen_T_T, -torch.inf).softmax(-1)
    return (weight @ value).transpose(1, 2).contiguous(), weight


def base(architecture: str, dtype: torch.dtype = torch.float32, **more: Any) -> Base:
    return Base(f"tiny-{architecture}", model(architecture, dtype, **more), None, frozenset())


def written_out(base: Base) -> Base:
    """A base of plain layers with the numbers that a quantised one stands for."""
    model: PreTrainedModel = deepcopy(base.model)
    for name, module in list(model.named_modules()):
        if isinstance(module, QuantisedLinear):
            plain = nn.Linear(module.in_features, module.out_features, bias=module.bias is not None)
            plain.weight = nn.Parameter(module.weight.dense(torch.float32), requires_grad=False)
            plain.bias = module.bias
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, plain)
    return Base(f"{base.name}, written out", model, None, frozenset())


def engine(
    of: str | Base, dtype: torch.dtype = torch.float32, *, members: int = 3, rows: int = 16, **options: Any
) -> LocalEngine:
    """On a base or the tiny one of an architecture, with members `m0`, `m1`, ... that differ from each other."""
    options = {"rank": 4, "alpha": 6.0, "memory_bytes": 1 << 30, **options}
    on = base(of, dtype) if isinstance(of, str) else of
    opened = LocalEngine(on, rows=rows, members=[f"m{i}" for i in range(members)], **options)
    for index in range(members):
        opened.write(f"m{index}", shaken(opened.read(f"m{index}"), index))
    return opened


def shaken(state: MemberState, seed: int, size: float = 0.3) -> MemberState:
    """A member with random factors."""
    numbers = torch.Generator().manual_seed(1000 + seed)
    factors = {
        name: tuple(size * torch.randn(f.shape, generator=numbers, dtype=torch.float64).to(f.dtype) for f in pair)
        for name, pair in sorted(state.factors.items())
    }
    return MemberState(state.rank, state.alpha, factors)  # pyright: ignore[reportArgumentType]


def with_adapter(
    architecture: str, state: MemberState, folder: Path, dtype: torch.dtype = torch.float32, *, train: bool = False
) -> Any:
    """A fresh copy of the base in PEFT, with this member's folder as its only adapter."""
    fresh = model(architecture, dtype)
    save(state, folder, base_name="tiny", modules=[name for name, _ in fresh.named_modules()])
    return peft.PeftModel.from_pretrained(fresh, folder, is_trainable=train)


def general(opened: LocalEngine, architecture: str) -> tuple[GeneralBody, Bank]:
    """The general path on a copy of an engine's base, with the same members."""
    copy = model(architecture, opened.dtype)
    linears = adaptable(copy, None)
    bank = Bank(
        [[linear] for linear in linears], rank=opened.bank.rank, alpha=opened.bank.alpha, members=(),
        device=opened.device, dtype=opened.dtype,
    )  # fmt: skip
    for member in opened.members:
        bank.write(member, opened.read(member))
    return GeneralBody(copy, bank), bank


def spelt(base: Base, tokens: tuple[int, ...]) -> str:
    """The text of tokens, control tokens included."""
    assert base.tokenizer is not None
    return base.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False)


def tokens(random: Random, count: int, vocabulary: int = VOCABULARY) -> tuple[int, ...]:
    return tuple(random.randrange(vocabulary) for _ in range(count))


def sample(opened: LocalEngine, requests: Sequence[SampleRequest]) -> list[Sample]:
    return asyncio.run(opened.sample(requests))


def score(opened: LocalEngine, requests: Sequence[ScoreRequest]) -> list[Score]:
    return asyncio.run(opened.score(requests))


def update(opened: LocalEngine, batch: Sequence[Trajectory], recipe: Recipe):
    return asyncio.run(opened.update(batch, recipe))


def difference(mine: MemberState, other: MemberState) -> float:
    """The largest, over all factors."""
    assert mine.factors.keys() == other.factors.keys()
    return max(
        float((a - b).abs().max())
        for name in mine.factors
        for a, b in zip(mine.factors[name], other.factors[name], strict=True)
    )
