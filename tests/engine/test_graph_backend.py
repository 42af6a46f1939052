"""The backend of captured graphs without a GPU: its steps run as they are, on kernels in plain torch."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest
import torch

import redqueen.engine
from engine import tiny
from engine.test_sample import mixed
from engine.test_streams import streamed
from redqueen.engine import scheduler as scheduling
from redqueen.engine.backend import Launch
from redqueen.engine.graph_backend import GraphBackend
from redqueen.engine.local import LocalEngine
from redqueen.engine.lora import Layer


class Uncaptured(GraphBackend):
    def launch(self, length: int) -> Launch:
        return Launch.of(*self._step(self._bucket))


def lora_(y_N_O, x_N_I, a_A_L_I, b_A_O_R, tiles, scale, layer: Layer) -> None:
    rank = b_A_O_R.shape[2]
    for member, start, count in zip(*(column.tolist() for column in tiles), strict=True):
        rows, b_at = slice(start, start + count), 0
        u_S_L = x_N_I[rows] @ a_A_L_I[member].T * scale
        for at, (y_at, size) in enumerate(layer.places):
            b_P_R = b_A_O_R[member, b_at : b_at + size]
            y_N_O[rows, y_at : y_at + size] += u_S_L[:, at * rank : (at + 1) * rank] @ b_P_R.T
            b_at += size


def attend(q_R_O, k_cache, v_cache, position_R, start_R, capacity_R, *, heads, kv_heads, dim, scale, window):
    out_R_H_D = q_R_O.new_zeros(len(q_R_O), heads, dim)
    for row, (last, start, capacity) in enumerate(zip(position_R, start_R, capacity_R, strict=True)):
        first = max(0, last - window + 1) if window else 0
        for head in range(heads):
            at = start * kv_heads + head * kv_heads // heads * capacity
            seen = slice(at + first, at + last + 1)
            q_D = q_R_O[row, head * dim : (head + 1) * dim]
            out_R_H_D[row, head] = (k_cache[seen] @ q_D * scale).softmax(0) @ v_cache[seen]
    return out_R_H_D.flatten(1)


def rope_write_(qkv_R_O, norms, position_R, start_R, capacity_R, cos, sin, k_cache, v_cache, heads, kv_heads) -> None:
    assert norms is None
    dim = cos.shape[1]
    rotated_R_O = redqueen.engine.ops.rope(qkv_R_O, position_R, cos, sin, heads + kv_heads)
    qkv_R_O.copy_(rotated_R_O)
    _, k_R_G_D, v_R_G_D = rotated_R_O.unflatten(1, (-1, dim)).split([heads, kv_heads, kv_heads], 1)
    place_R_G = (start_R * kv_heads + position_R)[:, None] + torch.arange(kv_heads) * capacity_R[:, None]
    k_cache[place_R_G], v_cache[place_R_G] = k_R_G_D, v_R_G_D


@pytest.fixture
def kernels(monkeypatch):
    module = ModuleType("redqueen.engine.kernels")
    for kernel in (lora_, attend, rope_write_):
        setattr(module, kernel.__name__, kernel)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(redqueen.engine, "kernels", module, raising=False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)


def layers(body) -> list[Layer]:
    if body.path == "llama":
        return [layer for block in body.blocks for layer in (block.qkv, block.output, block.gate_up, block.down)]
    return [module._layer for module in body.inner.modules() if hasattr(module, "_layer")]


def use_graphs(opened: LocalEngine, rows: int, monkeypatch) -> None:
    """From now on, with a step on its way when a completion ends."""
    opened.sampler.backend = Uncaptured(opened.body, opened.bank, rows)
    for layer in layers(opened.body):
        layer.table = layer  # which `lora_` is given
    start = scheduling.Scheduler.__init__
    monkeypatch.setattr(
        scheduling.Scheduler, "__init__", lambda self, *a, **options: start(self, *a, **{**options, "lag": 1})
    )


@pytest.mark.parametrize("max_cache_tokens", [1 << 16, 3 * 64])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_its_tokens_are_those_of_plain_torch(architecture, max_cache_tokens, kernels, monkeypatch):
    """With more requests than rows, a step on its way when a completion ends, and a bank that grows between calls."""
    requests, base = mixed(30, seed=7), tiny.base(architecture)
    with tiny.engine(replace(base, eos_ids=frozenset(range(0, tiny.VOCABULARY, 9))), rows=9) as opened:
        opened.sampler.max_cache_tokens = max_cache_tokens
        plain = tiny.sample(opened, requests)
        use_graphs(opened, 9, monkeypatch)
        mine = tiny.sample(opened, requests)
        opened.write("new", opened.read("m1"))
        grown = tiny.sample(opened, [replace(r, member="new") if r.member == "m1" else r for r in requests])
    assert [one.tokens for one in mine] == [one.tokens for one in grown] == [one.tokens for one in plain]
    for one, other in zip(mine, plain, strict=True):
        assert one.stop == other.stop and one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize("max_cache_tokens", [1 << 16, 112])
def test_what_joins_a_batch_under_way_gets_the_tokens_of_plain_torch(max_cache_tokens, kernels, monkeypatch):
    """The second time there is room for as much as the first time needed at once."""
    with tiny.engine("llama", rows=40) as opened:
        plain = [[one.tokens for part in parts for one in part] for parts in streamed(opened, count=5)]
        opened.sampler.max_cache_tokens, opened._calls._exact = max_cache_tokens, False
        use_graphs(opened, 40, monkeypatch)
        caches = []
        for _ in range(2):
            mine = [[one.tokens for part in parts for one in part] for parts in streamed(opened, count=5)]
            assert mine == plain
            assert opened.sampler.backend.cache is not None
            caches.append(opened.sampler.backend.cache.tokens)
    assert caches[0] < caches[1] if max_cache_tokens > 112 else caches[0] == caches[1]
