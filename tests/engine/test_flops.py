"""Floating-point operations: what the formula says is what torch counts when the products are computed."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from engine import tiny
from redqueen.engine.flops import ModelSize, Passage
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Recipe, ScoreRequest, Trajectory

PROMPT, COMPLETION = 64, 32
"""Rows of this length are not padded."""
PASSAGE = Passage.of([(tuple(range(PROMPT)), COMPLETION)])


def whole(passage: Passage) -> Passage:
    """With the pairs that plain torch computes: it masks those of later tokens after the products."""
    return Passage(passage.prompt_tokens, passage.completion_tokens, passage.tokens**2)


def counting() -> FlopCounterMode:
    """Torch's own count, with what it does not know: a product in place, and attention on a CPU."""

    def product(_, left_shape, right_shape, **__) -> int:
        return 2 * math.prod(left_shape) * right_shape[-1]

    def attention(q, k, v, *_, **__) -> int:
        # As many key heads as heads: not every version of torch counts fewer.
        return sdpa_flop_count(q, *((*q[:2], *shape[2:]) for shape in (k, v)))

    def attention_backward(grad, q, k, v, *_, **__) -> int:
        # The gradients of both factors of both products.
        return 2 * attention(q, k, v)

    aten = torch.ops.aten
    return FlopCounterMode(
        display=False,
        custom_mapping={
            aten.baddbmm_: product,
            aten._scaled_dot_product_flash_attention_for_cpu: attention,
            aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
        },
    )


def trajectory(member: str = "m0") -> Trajectory:
    return Trajectory(
        member=member,
        prompt=tuple(range(PROMPT)),
        completion=tuple(range(COMPLETION)),
        logprobs=(-1.0,) * COMPLETION,
        advantages=1.0,
    )


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def engine(request):
    with tiny.engine(request.param, torch.float32, members=1) as opened:
        yield opened


def test_a_prompt_passes_once_for_all_completions_and_each_token_sees_what_is_before_it():
    one, other = (1, 2, 3), (1, 2)
    passage = Passage.of([(one, 2), (other, 1), (one, 1)])
    seen = [1, 2, 3, 4, 5, 4, 1, 2, 3]
    assert passage == Passage(3 + 2, 2 + 1 + 1, sum(seen))
    assert Passage.of([(one, 2), (one, 1)]) + Passage.of([(other, 1)]) == passage
    assert Passage.of([]) == Passage()


def test_the_size_is_that_of_the_linear_layers_the_head_and_one_adapter(engine: LocalEngine):
    text = engine.base.model.config
    width, heads = text.hidden_size, text.num_attention_heads * text.head_dim
    keys = text.num_key_value_heads * text.head_dim
    linears = [(width, heads), (width, keys), (width, keys), (heads, width)]
    linears += [(width, text.intermediate_size)] * 2 + [(text.intermediate_size, width)]
    assert engine.size == ModelSize(
        blocks=text.num_hidden_layers * sum(inputs * outputs for inputs, outputs in linears),
        head=text.vocab_size * width,
        attention=text.num_hidden_layers * heads,
        adapter=text.num_hidden_layers * engine.bank.rank * sum(map(sum, linears)),
    )


def test_an_update_takes_the_operations_of_training(engine: LocalEngine):
    with counting() as counted:
        engine.trainer.update([trajectory()], Recipe(lr=1e-3))
    assert counted.get_total_flops() == engine.size.training(whole(PASSAGE))


def test_scoring_takes_the_operations_of_a_forward_pass(engine: LocalEngine):
    one = trajectory()
    with counting() as counted:
        engine.trainer.score([ScoreRequest(prompt=one.prompt, completion=one.completion, member="m0")])
    # Layers that are computed at once have zeros between their B factors.
    needed = engine.size.forward(whole(PASSAGE))
    assert needed <= counted.get_total_flops() <= needed + 3 * 2 * engine.size.adapter * PASSAGE.tokens


def test_the_bare_base_has_no_adapter_to_pass(engine: LocalEngine):
    less = engine.size.forward(PASSAGE) - engine.size.forward(PASSAGE, adapted=False)
    assert less == 2 * engine.size.adapter * (PROMPT + COMPLETION)
