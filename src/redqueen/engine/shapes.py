"""Bases with random weights in the shapes of real ones, for benchmarks and tests.

Speed and memory depend on a base's shape and not on what it has learnt, so neither needs a download. The weights are
made on the device and in the dtype that they stay in: the largest shape would not fit twice.
"""

from collections.abc import Callable

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, PreTrainedModel, Qwen2Config
from transformers.initialization import no_init_weights

from redqueen.engine import base
from redqueen.engine.base import Base
from redqueen.errors import InputError

STD = 0.02
RANDOM = "random:"
"""Before a shape's name where the name of a base is expected."""


def _tiny() -> PreTrainedConfig:
    return LlamaConfig(
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=384,
        vocab_size=512,
        max_position_embeddings=2048,
    )


def _1m() -> PreTrainedConfig:
    return LlamaConfig(
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=1,
        intermediate_size=448,
        vocab_size=640,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )


def _smollm2_135m() -> PreTrainedConfig:
    return LlamaConfig(
        hidden_size=576,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        head_dim=64,
        intermediate_size=1536,
        vocab_size=49152,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        tie_word_embeddings=True,
    )


def _qwen2_5_0_5b() -> PreTrainedConfig:
    return Qwen2Config(
        hidden_size=896,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        vocab_size=151936,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
    )


def _qwen2_5_7b() -> PreTrainedConfig:
    return Qwen2Config(
        hidden_size=3584,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        intermediate_size=18944,
        vocab_size=152064,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=False,
    )


SHAPES: dict[str, Callable[[], PreTrainedConfig]] = {
    "tiny": _tiny,
    "1m": _1m,
    "135m": _smollm2_135m,
    "0.5b": _qwen2_5_0_5b,
    "7b": _qwen2_5_7b,
}


def config(shape: str) -> PreTrainedConfig:
    """The configuration of a base of this shape."""
    if shape not in SHAPES:
        raise InputError(f"there is no shape {shape}", f"use {', '.join(SHAPES)}")
    made = SHAPES[shape]()
    # Any token may come: none of them ends a text.
    made.bos_token_id = made.eos_token_id = made.pad_token_id = None
    return made


def outline(name: str) -> PreTrainedModel:
    """A base without its weights, for what can be said before anything is loaded; `random:SHAPE` is one of these."""
    known = config(name.removeprefix(RANDOM)) if name.startswith(RANDOM) else base.config(name)
    with no_init_weights(), torch.device("meta"):
        model = AutoModelForCausalLM.from_config(known)
    model.tie_weights()
    return model


def random_base(shape: str, *, device: torch.device, dtype: torch.dtype, seed: int = 0) -> Base:
    """A base of this shape without a tokenizer; on one kind of device the same seed gives the same weights."""
    # transformers would draw every weight twice, from the random numbers of whoever calls.
    with no_init_weights(), device:
        model = AutoModelForCausalLM.from_config(config(shape), dtype=dtype)
    model.tie_weights()
    numbers = torch.Generator(device).manual_seed(seed)
    model.eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        if not name.endswith("norm.weight"):  # those are ones
            weight.normal_(0.0, STD, generator=numbers)
    return Base(f"random-{shape}", model, None, frozenset())
