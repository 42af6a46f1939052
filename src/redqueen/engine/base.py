"""The base: one frozen language model with its tokenizer, wherever it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from redqueen.engine import quantised, weights
from redqueen.engine.control_tokens import escape
from redqueen.engine.locate import find
from redqueen.engine.messages import one_line
from redqueen.engine.pretrained import quiet, read_config, read_model, read_tokenizer
from redqueen.engine.quantised import Quantisation, check_library
from redqueen.errors import InputError


@dataclass(frozen=True, slots=True)
class Base:
    name: str
    model: PreTrainedModel
    """In evaluation mode, without gradients, on its device and in its dtype."""
    tokenizer: PreTrainedTokenizerBase | None
    """None where there is none, as with random weights."""
    eos_ids: frozenset[int]
    _: KW_ONLY
    quantise: Quantisation = "none"
    """How its linear layers are stored."""

    def encode(self, messages: Sequence[Mapping[str, str]] | str, *, prefill: str = "") -> tuple[int, ...]:
        """The tokens of a chat prompt, with the beginning of its reply in `prefill`, or of a plain text. Control tokens
        come from the template alone: what spells one in the messages is text."""
        tokenizer = self._tokenizer()
        if isinstance(messages, str):
            [text], escaped = escape(tokenizer, [messages])
            return escaped.encode(text, add_special_tokens=True)
        [*contents, prefill], escaped = escape(tokenizer, [*(message["content"] for message in messages), prefill])
        if not tokenizer.chat_template:
            # A tokenizer would split trailing white space from the word that it begins, unlike in any training text.
            return escaped.encode("\n\n".join(contents).rstrip(), add_special_tokens=True)
        chat = [{**message, "content": text} for message, text in zip(messages, contents, strict=True)]
        try:
            rendered: Any = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        except TemplateError as error:
            what = f"the chat template of {self.name} refuses these messages: {one_line(error)}"
            raise InputError(what, "write them as one user message, or use another base") from None
        return escaped.encode(rendered + prefill, add_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        text = self._tokenizer().decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def _tokenizer(self) -> PreTrainedTokenizerBase:
        if self.tokenizer is None:
            raise InputError(f"the base {self.name} has no tokenizer", "give token ids, or a base that has one")
        return self.tokenizer


def load(name: str, *, device: torch.device, dtype: torch.dtype, quantise: Quantisation = "none") -> Base:
    """The base called `name`: a known one, a folder, a .gguf file, or one from the model hub. One that is to be
    quantised passes through the memory of the host."""
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("torch sees no CUDA device", "use the CPU (`redqueen doctor` says what is missing)")
    on = device
    if quantise != "none":
        check_library(device)
        on = torch.device("cpu")
    folder = find(name)
    with quiet():
        config = read_config(name, folder)
        weights.refuse_files(name, folder)
        model = read_model(name, folder, config=config, dtype=dtype, device_map={"": on}, use_safetensors=True)
        tokenizer = read_tokenizer(name, folder)
    model.eval().requires_grad_(False)
    if quantise != "none":
        quantised.quantise(model, quantise, device)
    ends = getattr(model.generation_config, "eos_token_id", None)
    ids = [*(ends if isinstance(ends, list) else [ends]), getattr(tokenizer, "eos_token_id", None)]
    return Base(name, model, tokenizer, frozenset(end for end in ids if end is not None), quantise=quantise)


def config(name: str) -> PreTrainedConfig:
    """The configuration of a base. A hub's weights are not fetched, but a .gguf file is converted."""
    with quiet():
        return read_config(name, find(name, with_weights=False))
