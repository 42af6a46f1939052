"""From a .gguf file to a folder that transformers reads, converted once and kept."""

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors import SafetensorError
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer, GgufConfig, PreTrainedModel, PreTrainedTokenizerBase

from redqueen.engine.disk_cache import converted_folder, locked, writing
from redqueen.engine.known import ways
from redqueen.engine.messages import one_line, say
from redqueen.engine.pretrained import LOADING_ERRORS, quiet, read_model
from redqueen.errors import InputError

_ENDS = "tokenizer.ggml.eos_token_id"
_TOKENIZER_FACTS = ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.add_bos_token", _ENDS)
_DIGIT_SPLITTERS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})
"""GGUF's names for pre-tokenizers that first split off every digit, which transformers does not do."""
_PLAIN_SPLITTERS = frozenset({"gpt-2", "phi-2", "mpt", "olmo", "jais"})
"""Those that split text as GPT-2 does, which is what transformers does with all that it does not know."""


def converted(path: Path) -> Path:
    """The folder of a converted .gguf file; converts it if that has not been done."""
    try:
        file = path.resolve(strict=True)
        stat = file.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", ways()) from None
    # Not a checksum of the whole file: that would take longer than loading the model.
    folder = converted_folder(file.stem, str(file), stat.st_size, stat.st_mtime_ns)
    if not folder.is_dir():
        with writing(folder.parent), locked(folder):
            if not folder.is_dir():
                convert(file, folder)
    return folder


def convert(path: Path, folder: Path) -> None:
    """Make `folder` from a .gguf file, whole or not at all. Call it under `locked`."""
    say(f"converting {path.name}, once (a minute, longer for a large model)")
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.rmtree(aside, ignore_errors=True)  # of a conversion that was killed
    try:
        with quiet():
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
        raise InputError(f"{path.name} is not a complete GGUF file: {one_line(error)}", "download it again") from None
    facts = {name: reader.fields[name].contents() for name in reader.fields if name.startswith(_TOKENIZER_FACTS)}
    with tempfile.TemporaryDirectory() as scratch:
        # Files of other models beside it would be read along with it.
        (Path(scratch) / path.name).symlink_to(path)
        # The bar is one that `quiet` cannot turn off.
        with contextlib.redirect_stderr(io.StringIO()), _read_once(reader):
            model = read_model(
                path.name,
                Path(scratch),
                gguf_file=path.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=_stored_dtype(reader),
            )
        _tie(model)
        if "tokenizer.ggml.model" not in facts:
            return model, None
        try:
            with _read_once(reader):
                tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=path.name, local_files_only=True)
        except LOADING_ERRORS as error:
            what = f"the tokenizer in {path.name} cannot be read: {one_line(error)}"
            raise InputError(what, "give the model as a folder") from None
    _fix_tokenizer(tokenizer, facts, path.name)
    return model, tokenizer


@contextlib.contextmanager
def _read_once(reader: gguf.GGUFReader) -> Iterator[None]:
    """transformers reads the file with this reader. It would open three more, each of which parses the vocabulary: most
    of a conversion's time."""
    opened = gguf.GGUFReader
    gguf.GGUFReader = lambda *_: reader
    try:
        yield
    finally:
        gguf.GGUFReader = opened


def _stored_dtype(reader: gguf.GGUFReader) -> torch.dtype:
    """The file's own type if it is a plain one. float16 for quantised weights, whose scales are float16 themselves."""
    types = {tensor.tensor_type for tensor in reader.tensors}
    kind = gguf.GGMLQuantizationType
    if types <= {kind.F32}:
        return torch.float32
    if types <= {kind.F32, kind.BF16}:  # norms are float32 in every file
        return torch.bfloat16
    return torch.float16


def _tie(model: PreTrainedModel) -> None:
    """Tie equal embeddings: some architectures come out of a GGUF file with the matrix twice."""
    inner, outer = (
        getattr(part, "weight", None) for part in (model.get_input_embeddings(), model.get_output_embeddings())
    )
    if inner is not None and outer is not None and inner is not outer and torch.equal(inner, outer):
        model.config.tie_word_embeddings = True
        model.tie_weights()


def _fix_tokenizer(tokenizer: PreTrainedTokenizerBase, facts: Mapping[str, Any], name: str) -> None:
    """Add what transformers leaves out of a GGUF file's tokenizer, or reads otherwise than it is written."""
    splitter = facts.get("tokenizer.ggml.pre")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        if splitter in _DIGIT_SPLITTERS:
            words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
            backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
        elif splitter not in _PLAIN_SPLITTERS:
            say(f"{name} has an unknown pre-tokenizer ({splitter}): its tokens may differ from those it was trained on")
    add_bos = facts.get("tokenizer.ggml.add_bos_token")
    if add_bos is not None and tokenizer.bos_token is not None:
        tokenizer.add_bos_token = add_bos
    # transformers 5.17 takes the first token of a text for the last one.
    if (end := facts.get(_ENDS)) is not None and tokenizer.eos_token_id != end:
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
