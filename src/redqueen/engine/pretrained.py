"""What transformers makes of a folder: configuration, model and tokenizer.

What cannot carry adapters is refused here with one line, before it takes minutes or fails half-way: a model that is not
a causal one, one that is quantised, one that lacks weights. Code that comes with a model is never run.
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
"""What transformers raises for files that it cannot make a model of."""


def read_config(name: str, folder: Path) -> PreTrainedConfig:
    """The configuration of a model that can be a base."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{name} is no transformers model: it has no config.json", ways())
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except LOADING_ERRORS as error:
        # Its validators put what is wrong after a line that says which of them found it.
        why = one_line(error.__cause__ or error)
        raise InputError(f"{name} is no model that transformers knows: {why}", ways()) from None
    weights.refuse_sizes(name, config)
    other = "give a causal language model"
    if config.is_encoder_decoder:
        raise InputError(f"{name} is an encoder-decoder model ({config.model_type})", other)
    causal = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type, ())
    heads = {causal} if isinstance(causal, str) else set(causal)
    made_as = config.architectures or heads
    if not isinstance(made_as, list | set) or not all(isinstance(each, str) for each in made_as):
        raise InputError(f"{name} has no list of names as architectures in its config.json", other)
    if not heads.intersection(made_as):
        kind = ", ".join(made_as) or config.model_type
        raise InputError(f"{name} is no causal language model with its head ({kind})", other)
    quantised = getattr(config, "quantization_config", None)
    if quantised is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else type(quantised).__name__
        mend = "give its unquantised weights, or a .gguf file, which is converted"
        raise InputError(f"{name} is quantised ({method or 'in some way'})", mend)
    return config


def read_model(name: str, folder: Path, **how: Any) -> PreTrainedModel:
    """The model with all of its weights; what it lacks, transformers would draw at random."""
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True, **how
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise InputError(f"{name} does not fit into the memory", "free some, or use a smaller base") from None
    except LOADING_ERRORS as error:
        raise InputError(f"{name} cannot be loaded: {one_line(error)}", "get or make its files anew") from None
    model, report = loaded
    lacking = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(f"{name} lacks weights ({lacking[0]}{more})", "give a whole model")
    return model


def read_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase | None:
    if not has_tokenizer(folder):
        return None
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except LOADING_ERRORS as error:
        raise InputError(f"the tokenizer of {name} cannot be loaded: {one_line(error)}", "mend its files") from None


def has_tokenizer(folder: Path) -> bool:
    names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
    return any((folder / name).is_file() for name in names)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' bars and remarks: whatever matters is said by this file."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
