"""Attention in parts, and prompts that are kept once for all that go on from them."""

from dataclasses import replace
from random import Random

import pytest
import torch
import torch.nn.functional as F

from engine import tiny
from redqueen.engine import ops
from redqueen.engine.protocol import SampleRequest
from redqueen.engine.routing import Routing


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_parts_weighted_by_their_sums_are_the_whole(dtype):
    torch.manual_seed(0)
    q, k, v = (torch.randn(3, 2, length, 8, dtype=dtype) for length in (4, 20, 20))
    parts = [
        ops.attend_part(q, k[:, :, here], v[:, :, here], torch.zeros(3, 1, 4, size, dtype=dtype), 0.3)
        for here, size in ((slice(0, 13), 13), (slice(13, 20), 7))
    ]
    (one, one_total), (other, other_total) = parts
    mine = torch.lerp(other, one, torch.sigmoid(one_total - other_total).unsqueeze(3).to(dtype))
    torch.testing.assert_close(mine, F.scaled_dot_product_attention(q, k, v, scale=0.3))


@pytest.mark.parametrize("architecture", ["llama", "mistral"])
def test_rows_of_one_prompt_look_at_one_copy_of_it(architecture):
    prompt = tiny.tokens(Random(0), 40)
    requests = [SampleRequest(prompt=prompt, member="m0", key=key, max_tokens=9) for key in range(12)]
    with tiny.engine(architecture, rows=16) as opened:
        together = tiny.sample(opened, requests)
        assert opened.sampler.backend.prompts.tokens == 48
        for request, one in list(zip(requests, together, strict=True))[::4]:
            assert tiny.sample(opened, [request])[0].tokens == one.tokens


def test_a_copy_stays_until_the_last_of_its_rows_has_ended():
    """Rows of other prompts come into places that became free meanwhile."""
    random = Random(1)
    requests = [
        SampleRequest(prompt=prompt, member=f"m{at % 3}", key=random.getrandbits(64), max_tokens=limit)
        for at, prompt in enumerate(tiny.tokens(random, random.randint(2, 40)) for _ in range(12))
        for limit in (2, 5, 20)
    ]
    with tiny.engine("llama", rows=7) as opened:
        together = tiny.sample(opened, requests)
        again = tiny.sample(opened, list(reversed(requests)))[::-1]
        assert [one.tokens for one in again] == [one.tokens for one in together]
        for request, one in list(zip(requests, together, strict=True))[::5]:
            assert tiny.sample(opened, [request])[0].tokens == one.tokens
        assert not any(store.any() for cache in _caches(opened) for store in cache), "all places are zero again"


def _caches(opened):
    backend = opened.sampler.backend
    return [
        [store[:, 16 * cache.kv_heads :] for store in (cache.k, cache.v)] for cache in (backend.cache, backend.prompts)
    ]


def test_a_product_for_each_run_of_rows_is_that_for_blocks():
    torch.manual_seed(0)
    with tiny.engine("llama") as opened, torch.no_grad():
        layer = opened.body.blocks[0].qkv
        who = [opened.bank.row("m1"), opened.bank.row("m0"), 0, opened.bank.row("m2")]
        x_N_I = torch.randn(4 * 5, layer.weight.inputs)
        blocks = Routing(member_K=torch.tensor(who))
        spans = replace(blocks, spans=tuple((member, 5) for member in who))
        torch.testing.assert_close(layer(x_N_I, spans), layer(x_N_I, blocks))
        before = layer(x_N_I, spans)
        opened.write("m1", tiny.shaken(opened.read("m1"), 77))
        after = layer(x_N_I, spans)
        torch.testing.assert_close(after, layer(x_N_I, blocks))
        assert not torch.equal(after[:5], before[:5]) and torch.equal(after[5:], before[5:])


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_a_window_by_folded_heads_is_the_same_window(key_heads):
    """What CUDA computes, here on a CPU."""
    generator = torch.Generator().manual_seed(0)
    q_B_T_H_D, k_B_T_G_D, v_B_T_G_D = (
        torch.randn(3, 40, heads, 8, generator=generator) for heads in (4, key_heads, key_heads)
    )
    at = torch.arange(40)
    seen_T_T = (at[None, :] <= at[:, None]) & (at[None, :] > at[:, None] - 7)
    by_folding = ops.folded(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, seen_T_T, 0.3)
    assert torch.allclose(by_folding, ops.causal(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, scale=0.3, window=7), atol=1e-6)
