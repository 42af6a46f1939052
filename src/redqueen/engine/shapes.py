"""Bases with random weights in the shapes of real ones, for benchmarks and tests.

Speed and memory depend on a base's shape and not on what it has learnt, so neither needs a download. The weights are
drawn on the device and in the dtype that they stay in, or are quantised from: the largest shape would not fit twice.
"""

from copy import deepcopy
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, PreTrainedModel, Qwen2Config
from transformers.initialization import no_init_weights

from redqueen.engine import base, quantised
from redqueen.engine.base import Base
from redqueen.engine.locate import find
from redqueen.engine.pretrained import quiet, read_tokenizer
from redqueen.engine.quantised import Quantisation
from redqueen.errors import InputError

STD = 0.02
RANDOM = "random:"
"""Before a shape's name where the name of a base is expected."""
_FIELDS = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings",
)  # fmt: skip
_TIED = {"tie_word_embeddings": True}
_SMOLLM2 = {"head_dim": 64, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0}}
_QWEN2 = {"rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0}}
SHAPES: dict[str, tuple[type[PreTrainedConfig], tuple[int, ...], dict[str, Any]]] = {
    "tiny": (LlamaConfig, (128, 4, 4, 2, 384, 512, 2048), {}),
    "1m": (LlamaConfig, (128, 4, 4, 1, 448, 640, 2048), _TIED),
    "135m": (LlamaConfig, (576, 30, 9, 3, 1536, 49152, 8192), _SMOLLM2 | _TIED),
    "0.5b": (Qwen2Config, (896, 24, 14, 2, 4864, 151936, 32768), _QWEN2 | _TIED),
    "1.5b": (Qwen2Config, (1536, 28, 12, 2, 8960, 151936, 32768), _QWEN2 | _TIED),
    "7b": (Qwen2Config, (3584, 28, 28, 4, 18944, 152064, 32768), _QWEN2),
}
"""Kind of configuration, the values of `_FIELDS`, and further fields."""


def shape_config(shape: str) -> PreTrainedConfig:
    if shape not in SHAPES:
        raise InputError(f"there is no shape {shape}", f"use {', '.join(SHAPES)}")
    kind, sizes, further = SHAPES[shape]
    fields: dict[str, Any] = dict(zip(_FIELDS, sizes, strict=True)) | deepcopy(further)
    config = kind(**fields)
    # Any token may be sampled: none of them ends a text.
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    return config


def outline(name: str, quantise: Quantisation = "none") -> PreTrainedModel:
    """A base without its weights, to plan with before anything is loaded; its name may be `random:SHAPE`."""
    base_config = shape_config(name.removeprefix(RANDOM)) if name.startswith(RANDOM) else base.config(name)
    with no_init_weights(), torch.device("meta"):
        model = AutoModelForCausalLM.from_config(base_config)
    model.tie_weights()
    quantised.outline(model, quantise)
    return model


def described(name: str, quantise: Quantisation = "none") -> Base:
    """The base for who does not compute with it: its tokenizer, its configuration, and its modules without weights."""
    with quiet():
        tokenizer = read_tokenizer(name, find(name))
    return Base(name, outline(name, quantise), tokenizer, frozenset(), quantise=quantise)


def random_base(
    shape: str, *, device: torch.device, dtype: torch.dtype, quantise: Quantisation = "none", seed: int = 0
) -> Base:
    """A base without a tokenizer; on one kind of device the same seed gives the same weights."""
    if quantise != "none":
        quantised.check_library(device)
    # transformers would draw every weight twice, from the caller's random numbers. What the host has of the weights
    # takes no memory, since nobody writes to it.
    with no_init_weights(), torch.device("cpu"):
        model = AutoModelForCausalLM.from_config(shape_config(shape), dtype=dtype)
    model.tie_weights()
    numbers = torch.Generator(device).manual_seed(seed)
    model.eval().requires_grad_(False)
    linears = {name for name, _ in quantised.quantisable(model)} if quantise != "none" else set[str]()
    for name in [name for name, _ in model.named_parameters()]:
        weight = model.get_parameter(name)
        if not name.endswith("norm.weight"):  # those are ones
            weight.data = torch.empty_like(weight, device=device).normal_(0.0, STD, generator=numbers)
        layer, _, last = name.rpartition(".")
        if last == "weight" and layer in linears:
            quantised.quantise_layer(model, layer, quantise, device)
    model.to(device)
    return Base(f"random-{shape}", model, None, frozenset(), quantise=quantise)
