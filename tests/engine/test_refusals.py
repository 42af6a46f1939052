"""A base that the engine would compute wrongly is refused with one line; a part of a base's layers is enough."""

import json

import peft
import pytest
import torch
from transformers import (
    Cohere2Config,
    Cohere2ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
)

from engine import tiny
from redqueen.engine.base import Base
from redqueen.engine.local import LocalEngine
from redqueen.engine.logits_check import rounding
from redqueen.engine.peft import CONFIG, save
from redqueen.engine.protocol import ScoreRequest
from redqueen.errors import InputError

COMMON = tiny.COMMON
SMALL = {key: COMMON[key] for key in COMMON if key != "head_dim"}
ROUND = {"vocab_size": 101, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}


def quantised():
    made = tiny.model("llama")
    made.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    return made


ODD = {
    "Mixtral": (lambda: MixtralForCausalLM(MixtralConfig(**COMMON, num_local_experts=4)), "mixture of experts"),
    "Qwen2-MoE": (
        lambda: Qwen2MoeForCausalLM(Qwen2MoeConfig(**SMALL, num_experts=4, moe_intermediate_size=16)),
        "mixture of experts",
    ),
    "GPT-2": (lambda: GPT2LMHeadModel(GPT2Config(**ROUND)), "Conv1D layers where adapters need torch.nn.Linear"),
    "quantised": (quantised, "quantised"),
    "capped attention": (lambda: Gemma2ForCausalLM(Gemma2Config(**COMMON)), "attention of gemma2 uses softcap"),
    "scaled logits": (
        lambda: GraniteForCausalLM(GraniteConfig(**SMALL, logits_scaling=3.0)), "does not support: its logits differ by"
    ),
    "other scaled logits": (
        lambda: Cohere2ForCausalLM(Cohere2Config(**COMMON, logit_scale=0.3)), "does not support: its logits differ by"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "why"), ODD.values(), ids=ODD)
def test_a_base_that_cannot_be_served_is_refused_in_one_line(make, why):
    torch.manual_seed(0)
    base = Base("odd", make().eval().requires_grad_(False), None, frozenset())
    with pytest.raises(InputError) as refusal:
        LocalEngine(base, members=["m0"], rank=2)
    assert why in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        (("q_proj", "w_proj"), "no module of the base is called w_proj; its linear layers are down_proj, gate_proj"),
        (("proj",), "no module of the base is called proj"),
        (("lm_head",), "no module of the base is called lm_head"),
        (("embed_tokens",), "no module of the base is called embed_tokens"),
        ((), "no layers"),
    ],
)
def test_layers_that_are_not_there_are_refused_in_one_line(targets, why):
    with pytest.raises(InputError) as refusal:
        LocalEngine(tiny.base("llama"), members=["m0"], rank=2, target_modules=targets)
    assert why in str(refusal.value) and "\n" not in str(refusal.value)


TARGETS = [("q_proj", "v_proj"), ("up_proj",), ("o_proj", "k_proj", "gate_proj"), ("model.layers.1.mlp.down_proj",)]


@pytest.mark.parametrize("targets", TARGETS, ids=",".join)
@pytest.mark.parametrize("architecture", ["qwen2", "gemma3"])
def test_some_layers_alone_are_adapted_as_in_peft(architecture, targets, tmp_path):
    with tiny.engine(architecture, members=2, target_modules=targets) as opened:
        requests = [
            ScoreRequest(prompt=(1, 2, 3), completion=(9, 8, 7, 6, 5), member=member, hidden=True)
            for member in ("m0", "m1", None)
        ]
        scores = tiny.score(opened, requests)
        states = {member: opened.read(member) for member in opened.members}
    assert {name.rpartition(".")[2] for name in states["m0"].factors} == {t.rpartition(".")[2] for t in targets}
    for request, score in zip(requests, scores, strict=True):
        alone = tiny.model(architecture)
        if request.member is not None:
            folder = tmp_path / request.member
            save(
                states[request.member], folder, base_name="tiny", modules=[name for name, _ in alone.named_modules()]
            )  # fmt: skip
            wanted = sorted(targets) if len(targets[0]) < 12 else ["1.mlp.down_proj"]
            assert json.loads((folder / CONFIG).read_text())["target_modules"] == wanted
            alone = peft.PeftModel.from_pretrained(alone, folder)
        with torch.no_grad():
            right = alone(torch.tensor([[*request.prompt, *request.completion]]), output_hidden_states=True)
        assert score.hidden is not None
        assert torch.allclose(score.hidden, right.hidden_states[-1][0, -1], rtol=0, atol=1e-4)
    assert scores[0].logprobs != scores[1].logprobs != scores[2].logprobs


def test_members_that_leave_no_room_to_train_are_refused_before_anything_else():
    with pytest.raises(InputError, match="leave no room to train"):
        LocalEngine(tiny.base("llama"), members=["m0"], rank=4, memory_bytes=1000)


def test_many_layers_in_16_bits_may_round_further_apart_and_what_is_wrong_is_refused_all_the_same():
    assert rounding(torch.bfloat16, 2) == 0.05 < 0.056 < rounding(torch.bfloat16, 28) < 0.1
    assert rounding(torch.float32, 28) == 1e-3
    torch.manual_seed(0)
    config = GraniteConfig(**SMALL | {"num_hidden_layers": 28}, logits_scaling=1.2)
    base = Base("odd", GraniteForCausalLM(config).eval().requires_grad_(False).bfloat16(), None, frozenset())
    with pytest.raises(InputError, match="logits differ by"):
        LocalEngine(base, members=["m0"], rank=2)
