"""The backend of captured graphs without a GPU: its steps run as they are, on kernels in plain torch."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest
import torch

import redqueen.engine
from engine import tiny
from engine.test_sample import STOPS, byte_level, mixed, pieces, scripted
from engine.test_streams import streamed
from redqueen.engine import scheduler as scheduling
from redqueen.engine.backend import Launch
from redqueen.engine.decode_state import Completion
from redqueen.engine.graph_backend import STRIDE, Form, GraphBackend, _bundles
from redqueen.engine.local import LocalEngine
from redqueen.engine.lora import Layer
from redqueen.engine.packed_prefill import PackedPrefill
from redqueen.engine.protocol import SampleRequest, Stop
from redqueen.engine.routing import BUNDLE, PROMPT_TILE
from redqueen.engine.sampler import LAG


class UncapturedPrefill(PackedPrefill):
    tokens = 0
    """That went through the base."""

    def _run(self, cache, size, layout) -> None:
        self.tokens += int((layout[2 * size : 3 * size] > 0).sum())
        self.step(cache, size, layout)


class Uncaptured(GraphBackend):
    def __init__(self, *options) -> None:
        super().__init__(*options)
        self.forms: list[Form] = []
        self._packed = UncapturedPrefill(self._body, self._bank, self._pool)

    def launch(self, length: int) -> Launch:
        if self._bank_version != self._bank.version:
            self.arrange(self._arranged)
        self.forms.append(self._form)
        [out_2_T_R] = self._steps(self._form)
        return Launch(out_2_T_R[0], out_2_T_R[1])


def shrink(x_N_I, a_A_L_I, tiles, scale, size) -> torch.Tensor:
    u_1_N_L = x_N_I.new_zeros(1, len(x_N_I), a_A_L_I.shape[1])
    for member, start, count in zip(*(column.tolist() for column in tiles), strict=True):
        assert count <= size
        u_1_N_L[0, start : start + count] = x_N_I[start : start + count] @ a_A_L_I[member].T * scale
    return u_1_N_L


def expand_(y_N_O, u_P_N_L, b_A_O_R, tiles, layer: Layer, size) -> None:
    rank = b_A_O_R.shape[2]
    for member, start, count in zip(*(column.tolist() for column in tiles), strict=True):
        rows, b_at = slice(start, start + count), 0
        for at, (y_at, width) in enumerate(layer.places):
            b_P_R = b_A_O_R[member, b_at : b_at + width]
            y_N_O[rows, y_at : y_at + width] += u_P_N_L.sum(0)[rows, at * rank : (at + 1) * rank] @ b_P_R.T
            b_at += width


def expand_gated(y_N_2F, u_P_N_L, b_A_O_R, tiles, size) -> torch.Tensor:
    width, rank = y_N_2F.shape[1] // 2, b_A_O_R.shape[2]
    for member, start, count in zip(*(column.tolist() for column in tiles), strict=True):
        rows = slice(start, start + count)
        for at in range(2):
            here = slice(at * width, (at + 1) * width)
            u_S_R = u_P_N_L.sum(0)[rows, at * rank : (at + 1) * rank]
            y_N_2F[rows, here] += u_S_R @ b_A_O_R[member, here].T
    return redqueen.engine.ops.swiglu(y_N_2F)


def updates(u_R_L, b_A_O_R, groups, sizes) -> torch.Tensor:
    group_R, member_G = groups
    assert (group_R.diff() >= 0).all(), "rows without a sequence are in the last group"
    rank = b_A_O_R.shape[2]
    u_R_O_K = torch.cat(
        [u_R_L[:, None, at * rank : (at + 1) * rank].expand(-1, size, -1) for at, size in enumerate(sizes)], 1
    )
    return (u_R_O_K * b_A_O_R[member_G[group_R]]).sum(2)


def linear_rope(x_R_I, u_R_L, weight_O_I, bias_O, b_A_O_R, groups, norms, where, tables, cache, heads, kv_heads):
    dim = tables[0].shape[1]
    sizes = [heads * dim, kv_heads * dim, kv_heads * dim]
    qkv_R_O = torch.nn.functional.linear(x_R_I, weight_O_I, bias_O) + updates(u_R_L, b_A_O_R, groups, sizes)
    rope_write_(qkv_R_O, norms, *where, *tables, *cache, heads, kv_heads)
    return qkv_R_O[:, : heads * dim].contiguous()


def linear_gated(x_R_I, u_R_L, weight_O_I, b_A_O_R, groups) -> torch.Tensor:
    redqueen.engine.kernels.decoded = True
    width = len(weight_O_I) // 2
    return redqueen.engine.ops.swiglu(x_R_I @ weight_O_I.T + updates(u_R_L, b_A_O_R, groups, [width, width]))


def linear_parts(x_R_I, weight_O_I, a_A_L_I, tiles, scale, size) -> tuple[torch.Tensor, torch.Tensor]:
    return (x_R_I @ weight_O_I.T)[None], shrink(x_R_I, a_A_L_I, tiles, scale, size)


def add_norm_shrink_(h_R_H, added, groups, norm_H, eps, following) -> tuple[torch.Tensor, torch.Tensor]:
    y_R_H = None
    if added is not None:
        y_P_R_H, u_P_R_L, b_A_H_R = added
        y_R_H = y_P_R_H.sum(0) + updates(u_P_R_L.sum(0), b_A_H_R, groups, [h_R_H.shape[1]])
    x_R_H = redqueen.engine.ops.add_rms_norm_(h_R_H, y_R_H, norm_H, eps)
    if following is None:
        return x_R_H, x_R_H.new_empty(len(x_R_H), 0)
    group_R, member_G = groups
    return x_R_H, torch.einsum("rh,rlh->rl", x_R_H, following[0][member_G[group_R]]) * following[1]


def attend(
    q_R_O, k_cache, v_cache, position_R, start_R, capacity_R, bundles=None, *, heads, kv_heads, dim, scale, window
) -> torch.Tensor:
    out_R_H_D = q_R_O.new_zeros(len(q_R_O), heads, dim)
    if bundles is not None:
        shared_R, first_Q, count_Q = bundles
        for first, count in zip(first_Q.tolist(), count_Q.tolist(), strict=True):
            for row in range(first, first + count):
                assert shared_R[row] == shared_R[first] <= position_R[row]
                for head in range(kv_heads):
                    at, of = (start_R[one] * kv_heads + head * capacity_R[one] for one in (row, first))
                    for cache in (k_cache, v_cache):
                        mine, twin = cache[at : at + shared_R[row]], cache[of : of + shared_R[row]]
                        assert (mine - twin).abs().sum() <= 1e-4 * twin.abs().sum(), "the same prompt of one member"
        ends = (first_Q + count_Q)[count_Q > 0].tolist()
        assert [*first_Q[count_Q > 0].tolist(), int((start_R > 0).sum())] == [0, *ends], "every row is in one"
        assert count_Q.max() <= BUNDLE
    for row, (last, start, capacity) in enumerate(zip(position_R, start_R, capacity_R, strict=True)):
        first = max(0, last - window + 1) if window else 0
        for head in range(heads):
            at = start * kv_heads + head * kv_heads // heads * capacity
            seen = slice(at + first, at + last + 1)
            q_D = q_R_O[row, head * dim : (head + 1) * dim]
            out_R_H_D[row, head] = (k_cache[seen] @ q_D * scale).softmax(0) @ v_cache[seen]
    return out_R_H_D.flatten(1)


def attend_prompts(q_N_O, k_cache, v_cache, tiles, position_N, start_N, capacity_N, **options):
    out_N_O = q_N_O.new_zeros(len(q_N_O), options["heads"] * options["dim"])
    for first, count in zip(*(column.tolist() for column in tiles), strict=True):
        rows = slice(first, first + count)
        assert count <= PROMPT_TILE
        assert (position_N[rows] == position_N[first : first + 1] + torch.arange(count)).all(), "neighbours"
        assert len(start_N[rows].unique()) <= 1, "of one sequence"
        out_N_O[rows] = attend(
            q_N_O[rows], k_cache, v_cache, position_N[rows], start_N[rows], capacity_N[rows], **options
        )
    return out_N_O


def copy_prefixes_(k_L_X_D, v_L_X_D, copy_5_S, *, longest, kv_heads) -> None:
    for start, capacity, to, room, count in copy_5_S.T.tolist():
        assert count <= longest
        for head in range(kv_heads):
            of, at = start * kv_heads + head * capacity, to * kv_heads + head * room
            for store in (k_L_X_D, v_L_X_D):
                store[:, at : at + count] = store[:, of : of + count]


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
    for kernel in (
        shrink,
        expand_,
        expand_gated,
        linear_rope,
        linear_gated,
        linear_parts,
        add_norm_shrink_,
        attend,
        attend_prompts,
        copy_prefixes_,
        rope_write_,
    ):
        setattr(module, kernel.__name__, kernel)
    module.MOST_ROWS = 8
    module.decoded = False
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(redqueen.engine, "kernels", module, raising=False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    return module


def layers(body) -> list[Layer]:
    if body.path == "llama":
        return [layer for block in body.blocks for layer in (block.qkv, block.output, block.gate_up, block.down)]
    return [module._layer for module in body.inner.modules() if hasattr(module, "_layer")]


def use_graphs(opened: LocalEngine, rows: int, monkeypatch) -> None:
    """From now on, with steps on their way when a completion ends."""
    opened.sampler.backend = Uncaptured(opened.body, opened.bank, rows)
    for layer in layers(opened.body):
        layer.table = layer  # which `expand_` is given
    start = scheduling.Scheduler.__init__
    monkeypatch.setattr(
        scheduling.Scheduler, "__init__", lambda self, *a, **options: start(self, *a, **{**options, "lag": LAG})
    )


@pytest.mark.parametrize("max_cache_tokens", [1 << 16, 3 * 64])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3"])
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
        # Of these `qwen2` has no bias that would keep it from the kernels of decoding.
        assert all(block.whole for block in getattr(opened.body, "blocks", ())) == (architecture != "llama")
        assert kernels.decoded == (architecture == "qwen2")
    assert [one.tokens for one in mine] == [one.tokens for one in grown] == [one.tokens for one in plain]
    for one, other in zip(mine, plain, strict=True):
        assert one.stop == other.stop and one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize(
    ("cached_bytes", "tile_rows", "decoded"), [(1 << 20, 4, True), (1 << 10, 4, False), (1 << 10, 8, True)]
)
def test_many_rows_of_a_large_base_are_left_to_the_libraries(cached_bytes, tile_rows, decoded, kernels, monkeypatch):
    monkeypatch.setattr("redqueen.engine.llama.CACHED_BYTES", cached_bytes)
    monkeypatch.setattr("redqueen.engine.llama.TILE_ROWS", tile_rows)
    requests = [replace(request, max_tokens=6) for request in mixed(8, seed=7)]
    with tiny.engine("qwen2", rows=8) as opened:
        plain = tiny.sample(opened, requests)
        use_graphs(opened, 8, monkeypatch)
        assert [one.tokens for one in tiny.sample(opened, requests)] == [one.tokens for one in plain]
    assert kernels.decoded == decoded


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


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_what_prompts_share_is_computed_once(architecture, kernels, monkeypatch):
    """Within a call and from one call to the next, until the weights change; never from one member to another."""
    head = tuple(range(1, 41))
    tails = [(at, at + 1, at + 2) for at in range(6)]
    requests = [
        SampleRequest(prompt=(*head, *tail), member=member, key=at, max_tokens=6, temperature=1.0)
        for at, tail in enumerate(tails)
        for member in ("m0", "m1")
        for _ in range(2)
    ]
    with tiny.engine(architecture, rows=24) as opened:
        plain = tiny.sample(opened, requests)
        use_graphs(opened, 24, monkeypatch)
        packed = opened.sampler.backend._packed

        def tokens_of_a_call() -> int:
            before = packed.tokens
            assert [one.tokens for one in tiny.sample(opened, requests)] == [one.tokens for one in plain]
            return packed.tokens - before

        # Of each member one prompt whole, of the others what follows the head; the last token is the first step's.
        once = 2 * (len(head) + len(tails) * 2)
        assert tokens_of_a_call() == once
        assert tokens_of_a_call() <= once - len(head), "some of it is still there"
        opened.write("m0", opened.read("m0"))
        assert tokens_of_a_call() == once, "the bank was written to"
        opened.sampler.max_cache_tokens = 2 * 64
        opened.sampler.backend.drop()
        assert tokens_of_a_call() >= once, "with no room to keep them all"


@pytest.mark.parametrize("architecture", ["qwen2", "gemma3"])
def test_many_completions_of_one_prompt(architecture, kernels, monkeypatch):
    """More than attend to it together, with limits of their own, beside those of another member."""
    prompt = tuple(range(1, 30))
    requests = [
        SampleRequest(prompt=prompt, member=member, key=at, max_tokens=3 + at % 5, temperature=1.0)
        for member in ("m0", "m1")
        for at in range(2 * BUNDLE + 1)
    ]
    with tiny.engine(architecture, rows=40) as opened:
        plain = tiny.sample(opened, requests)
        use_graphs(opened, 40, monkeypatch)
        assert [one.tokens for one in tiny.sample(opened, requests)] == [one.tokens for one in plain]


@pytest.mark.parametrize(("script", "stop", "text", "length"), STOPS.values(), ids=STOPS)
def test_a_stop_string_among_the_tokens_of_one_launch(script, stop, text, length, kernels, monkeypatch):
    ids = pieces("\n", *script)
    with scripted(ids, byte_level()) as opened:
        use_graphs(opened, 8, monkeypatch)
        request = SampleRequest(prompt=(ids[0],), key=0, max_tokens=len(ids) - 1, temperature=0, stop=stop)
        [sample] = tiny.sample(opened, [request])
        assert opened.sampler.backend._stride(8) == STRIDE > 1
    assert list(sample.tokens) == ids[1 : length + 1]
    assert (sample.text, sample.stop) == (text, Stop.LENGTH if text == "".join(script) else Stop.STRING)


@pytest.mark.parametrize("room", range(4))
def test_what_is_sampled_on_after_the_last_position_is_nobodys(room, kernels, monkeypatch):
    with tiny.engine("qwen2") as opened:
        request = SampleRequest(prompt=(1, 2, 3), member="m0", key=1, max_tokens=opened.body.positions - 3 - room)
        [plain] = tiny.sample(opened, [request])
        use_graphs(opened, 8, monkeypatch)
        [mine] = tiny.sample(opened, [request])
    assert mine.tokens == plain.tokens and mine.logprobs == pytest.approx(plain.logprobs, abs=1e-5)


@pytest.mark.parametrize("architecture", ["qwen2", "gemma3"])
def test_long_steps_are_launched_one_by_one(architecture, monkeypatch):
    """Of a large base, or with many rows."""
    with LocalEngine(tiny.base(architecture), members=["m0"], rank=2, target_modules=["q_proj"]) as opened:
        model = opened.base.model
        weights = sum(weight.nbytes for weight in model.parameters() if weight.ndim == 2)
        if model.get_output_embeddings().weight is not model.get_input_embeddings().weight:
            weights -= model.get_input_embeddings().weight.nbytes
        assert weights <= opened.body.nbytes <= 1.02 * weights
        backend = Uncaptured(opened.body, opened.bank, 512)
        monkeypatch.setattr("redqueen.engine.graph_backend.STRIDE_BYTES", 4.2 * opened.body.nbytes)
        strides = [backend._stride(rows) for rows in (8, 64, 128, 256, 512, 1024)]
    assert strides == [4, 3, 2, 2, 1, 1]


@pytest.mark.parametrize("of_each", [1, 3])
def test_many_rows_of_as_many_prompts_attend_each_for_itself(of_each, kernels, monkeypatch):
    monkeypatch.setattr("redqueen.engine.graph_backend.ALONE_ROWS", 6)
    prompts = [(1, 2, 3 + at) for at in range(12)]
    requests = [
        SampleRequest(prompt=prompts[at // of_each], member="m0", key=at, max_tokens=3 + at, temperature=1.0)
        for at in range(12)
    ]
    with tiny.engine("qwen2", rows=12) as opened:
        plain = tiny.sample(opened, requests)
        use_graphs(opened, 12, monkeypatch)
        assert [one.tokens for one in tiny.sample(opened, requests)] == [one.tokens for one in plain]
        forms = opened.sampler.backend.forms
    assert (forms[0], forms[-1]) == (Form(12, bundled=of_each == 3), Form(8, bundled=True))


def test_a_prompt_that_went_through_other_weights_is_not_shared():
    """Nor that of another member."""
    prompt = (1, 2, 3, 4)

    def completion(member: int, edits: int, prompt: tuple[int, ...] = prompt) -> Completion:
        request = SampleRequest(prompt=prompt, member="m", key=0, max_tokens=5)
        return Completion(request=request, member=member, matcher=None, edits=edits)

    rows = [completion(0, 1), completion(0, 1), completion(0, 2), completion(1, 2), completion(1, 2, (1, 2, 3, 5))]
    assert _bundles(rows) == ([3] * 5, [(0, 2), (2, 1), (3, 1), (4, 1)])
    many = [completion(0, 1) for _ in range(2 * BUNDLE + 1)]
    assert _bundles(many)[1] == [(0, BUNDLE), (BUNDLE, BUNDLE), (2 * BUNDLE, 1)]
