"""Configuration, model and tokenizer of a folder, by transformers.

Models that cannot carry adapters (not causal, quantised, without weights) are refused here with one line, before they
take minutes or fail half-way. Code that comes with a model is never run.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from redqueen.engine import weights
from redqueen.engine.known import ways
from redqueen.engine.messages import one_line
from redqueen.errors import InputError

LOADING_ERRORS = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, ImportError,
    MemoryError, AssertionError, SafetensorError, StrictDataclassError,
)  # fmt: skip
"""What transformers raises for files that it cannot load."""


def read_config(name: str, folder: Path) -> PreTrainedConfig:
    """The configuration of a model that can be a base."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{name} is not a transformers model: it has no config.json", ways())
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except LOADING_ERRORS as error:
        # Its validators say what is wrong after a line that names the validator.
        why = one_line(error.__cause__ or error)
        raise InputError(f"{name} is not a model that transformers knows: {why}", ways()) from None
    weights.refuse_sizes(name, config)
    mend = "give a causal language model"
    if config.is_encoder_decoder:
        raise InputError(f"{name} is an encoder-decoder model ({config.model_type})", mend)
    causal = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type, ())
    heads = {causal} if isinstance(causal, str) else set(causal)
    classes = config.architectures or heads
    if not isinstance(classes, list | set) or not all(isinstance(architecture, str) for architecture in classes):
        raise InputError(f"{name} has no list of names as architectures in its config.json", mend)
    if not heads.intersection(classes):
        kind = ", ".join(classes) or config.model_type
        raise InputError(f"{name} is not a causal language model with a head ({kind})", mend)
    quantised = getattr(config, "quantization_config", None)
    if quantised is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else type(quantised).__name__
        raise InputError(
            f"{name} is quantised ({method or 'in some way'})",
            "give its unquantised weights, or a .gguf file, which is converted",
        )
    return config


def read_model(name: str, folder: Path, **options: Any) -> PreTrainedModel:
    """The model with all of its weights: transformers would draw missing ones at random."""
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True, **options
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise InputError(f"{name} does not fit into memory", "free some, or use a smaller base") from None
    except LOADING_ERRORS as error:
        raise InputError(f"{name} cannot be loaded: {one_line(error)}", "download or convert it again") from None
    model, report = loaded
    missing = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{name} lacks weights ({missing[0]}{more})", "give a complete model")
    return model


def read_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase | None:
    if not has_tokenizer(folder):
        return None
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except LOADING_ERRORS as error:
        raise InputError(f"the tokenizer of {name} cannot be loaded: {one_line(error)}", "replace it") from None


def has_tokenizer(folder: Path) -> bool:
    names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
    return any((folder / name).is_file() for name in names)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' progress bars and messages."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
