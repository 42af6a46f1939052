"""Bases in 4 and 8 bits: what `transformers` and PEFT make of them with the same library, and what their plain twins
do, whose weights are the same numbers written out."""

import gc
import weakref
from copy import deepcopy
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from random import Random
from typing import Any

import peft
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from engine import tiny
from redqueen.commands.agreement import agreed_engine
from redqueen.engine import quantised
from redqueen.engine.base import Base, load
from redqueen.engine.known import EMBEDDED
from redqueen.engine.llama import LlamaBody
from redqueen.engine.local import LocalEngine
from redqueen.engine.memory import Shape
from redqueen.engine.peft import save
from redqueen.engine.protocol import Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.engine.quantised import QuantisedLinear, quantise
from redqueen.engine.shapes import outline, random_base
from redqueen.errors import ConfigError, InputError
from redqueen.settings import Config
from redqueen.settings.models import EngineConfig

CPU = torch.device("cpu")
ARCHITECTURES = ("llama", "qwen2", "gemma3")
HOW = ("nf4", "int8")
CONFIGS = {
    "nf4": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32),
    "int8": BitsAndBytesConfig(load_in_8bit=True),
}


RECIPE = Recipe(lr=1e-2, normaliser=10.0, eps=1e-2)
"""Steps that are about proportional to gradients: the sign of one that is nearly nothing must not show."""


def made(architecture: str, how: Any, dtype: torch.dtype = torch.float32) -> Base:
    model = tiny.model(architecture, dtype, **tiny.BLOCKS)
    quantise(model, how, CPU)
    return Base(f"tiny-{architecture}", model, None, frozenset(), quantise=how)


def by_transformers(architecture: str, how: str, folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The same base as transformers quantises it."""
    tiny.model(architecture, dtype, **tiny.BLOCKS).save_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=CONFIGS[how], dtype=dtype, device_map={"": "cpu"}
    )


def logits(model: Any, token_B_T: Tensor) -> Tensor:
    # In training mode, which has no dropout here: else the library computes in bfloat16 on CPUs that can.
    with torch.no_grad():
        return model.train()(token_B_T).logits


def error(mine: Tensor, right: Tensor) -> float:
    return float((mine.double() - right.double()).norm() / right.double().norm())


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_members_on_a_quantised_base_say_what_peft_says_on_the_base_that_transformers_quantised(
    architecture, how, tmp_path
):
    token_B_T = torch.tensor([tiny.tokens(Random(row), 24) for row in range(3)])
    who = ["m1", None, "m0"]
    with tiny.engine(made(architecture, how)) as opened:
        assert opened.body.path == ("llama" if architecture in tiny.FAST else "general")
        requests = [
            ScoreRequest(prompt=tuple(row[:4].tolist()), completion=tuple(row[4:].tolist()), member=member)
            for row, member in zip(token_B_T, who, strict=True)
        ]
        scores = tiny.score(opened, requests)
        states = {member: opened.read(member) for member in ("m0", "m1")}
    theirs = by_transformers(architecture, how, tmp_path / "base")
    if how == "int8":
        # It rounds activations to 8 bits, too, which we do not: the same weights, written out.
        theirs = theirs.dequantize()
    modules = [name for name, _ in theirs.named_modules()]
    for row, (member, score) in enumerate(zip(who, scores, strict=True)):
        with_member = theirs
        if member is not None:
            save(states[member], tmp_path / member, base_name="tiny", modules=modules)
            with_member = peft.PeftModel.from_pretrained(deepcopy(theirs), tmp_path / member)
        logprob_T_V = logits(with_member, token_B_T[row : row + 1])[0].log_softmax(-1)
        right = logprob_T_V[3:-1].gather(1, token_B_T[row, 4:, None])[:, 0]
        assert torch.allclose(torch.tensor(score.logprobs), right, rtol=0, atol=1e-3)


@pytest.mark.parametrize(("how", "allowed"), [("nf4", 1e-5), ("int8", 0.05)])
def test_pico_is_quantised_as_transformers_quantises_it(how, allowed):
    base = load("pico", device=CPU, dtype=torch.float32, quantise=how)
    plain = load("pico", device=CPU, dtype=torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(
        EMBEDDED["pico"].folder, quantization_config=CONFIGS[how], dtype=torch.float32, device_map={"": "cpu"}
    )
    token_B_T = torch.tensor([tiny.tokens(Random(0), 40, 600)])
    mine, right, unquantised = (logits(model, token_B_T) for model in (base.model, theirs, plain.model))
    assert error(mine, right) <= allowed
    assert error(mine, unquantised) > 1e-3, "nothing is rounded"
    assert base.quantise == how and plain.quantise == "none"
    layers = dict(base.model.named_modules())
    assert {name for name, module in theirs.named_modules() if type(module).__name__.startswith("Linear")} == {
        name for name, module in layers.items() if isinstance(module, QuantisedLinear | nn.Linear)
    }
    assert type(base.model.get_output_embeddings()) is nn.Linear


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_members_are_sampled_scored_and_trained_as_on_the_same_numbers_written_out(architecture, how):
    base = made(architecture, how)
    plain = tiny.written_out(base)
    random = Random(0)
    prompts = [tiny.tokens(random, 5 + at) for at in range(6)]
    requests = [
        SampleRequest(prompt=prompt, member=f"m{at % 2}", key=at, max_tokens=12) for at, prompt in enumerate(prompts)
    ]
    found, began = {}, None
    for name, of in (("quantised", base), ("plain", plain)):
        with tiny.engine(of, members=2) as opened:
            began = opened.read("m0")
            samples = tiny.sample(opened, requests)
            batch = [
                Trajectory(
                    member=request.member or "", prompt=request.prompt, completion=sample.tokens,
                    logprobs=sample.logprobs, advantages=1.0 if at % 2 else -1.0,
                )
                for at, (request, sample) in enumerate(zip(requests, samples, strict=True))
            ]  # fmt: skip
            scores = tiny.score(
                opened,
                [
                    ScoreRequest(prompt=request.prompt, completion=sample.tokens, member=request.member)
                    for request, sample in zip(requests, samples, strict=True)
                ],
            )
            for sample, score in zip(samples, scores, strict=True):
                assert torch.allclose(torch.tensor(sample.logprobs), torch.tensor(score.logprobs), rtol=0, atol=1e-4)
            stats = tiny.update(opened, batch, RECIPE)
            assert all(abs(each.ratio_mean - 1) < 1e-4 and each.grad_norm > 0 for each in stats.values())
            found[name] = [sample.tokens for sample in samples], stats, opened.read("m0")
    (tokens, stats, state), (right_tokens, right_stats, right) = found["quantised"], found["plain"]
    assert tokens == right_tokens and began is not None
    for member in stats:
        assert stats[member].grad_norm == pytest.approx(right_stats[member].grad_norm, rel=1e-3)
    assert tiny.difference(state, right) <= 1e-4
    assert tiny.difference(state, began) > 1e-3


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # and is done in another way
@pytest.mark.parametrize("how", HOW)
def test_sampler_and_trainer_agree_in_bfloat16(how):
    requests = [
        SampleRequest(prompt=tiny.tokens(Random(at), 8), member=f"m{at % 2}", key=at, max_tokens=16) for at in range(8)
    ]
    with tiny.engine(made("qwen2", how, torch.bfloat16), torch.bfloat16, members=2) as opened:
        assert opened.bank.compute_A_D.dtype == torch.bfloat16
        samples = tiny.sample(opened, requests)
        scores = tiny.score(
            opened,
            [
                ScoreRequest(prompt=request.prompt, completion=sample.tokens, member=request.member)
                for request, sample in zip(requests, samples, strict=True)
            ],
        )
    furthest = max(
        abs(a - b)
        for sample, score in zip(samples, scores, strict=True)
        for a, b in zip(sample.logprobs, score.logprobs, strict=True)
    )
    assert furthest <= 0.1


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_members_of_some_layers_alone_are_trained(architecture):
    """Gradients pass through quantised layers that nobody adapts."""
    base = made(architecture, "nf4")
    states = []
    for of in (base, tiny.written_out(base)):
        with tiny.engine(of, members=1, target_modules=["q_proj", "up_proj"]) as opened:
            prompt, completion = tiny.tokens(Random(1), 6), tiny.tokens(Random(2), 10)
            [score] = tiny.score(opened, [ScoreRequest(prompt=prompt, completion=completion, member="m0")])
            batch = [
                Trajectory(member="m0", prompt=prompt, completion=completion, logprobs=score.logprobs, advantages=1.0)
            ]
            tiny.update(opened, batch, RECIPE)
            states.append(opened.read("m0"))
    assert tiny.difference(*states) <= 1e-4


def measured(base: Base) -> int:
    """Bytes of all tensors that the model has."""
    found: dict[int, int] = {}
    for module in base.model.modules():
        tensors = list(module.parameters(recurse=False))
        if isinstance(module, QuantisedLinear):
            tensors += [value for value in vars(module.weight).values() if isinstance(value, Tensor)]
        found |= {tensor.data_ptr(): tensor.nbytes for tensor in tensors}
    return sum(found.values())


@pytest.mark.parametrize("how", ["none", *HOW])
@pytest.mark.parametrize(("shape", "dtype"), [("tiny", torch.float32), ("1m", torch.bfloat16)])
def test_the_memory_of_a_base_is_known_before_it_is_loaded(how, shape, dtype):
    planned = Shape.of(outline(f"random:{shape}", how), fast=True)
    base = random_base(shape, device=CPU, dtype=dtype, quantise=how)
    assert planned == Shape.of(base.model, fast=True)
    assert planned.nbytes(dtype) == measured(base)
    assert planned.parameters == Shape.of(outline(f"random:{shape}"), fast=True).parameters
    with LocalEngine(base, members=["m0"], rank=4, memory_bytes=1 << 30) as opened:
        assert opened.plan.weights == planned.nbytes(dtype)
        # Nor is anything stored twice where layers are stacked.
        body: Any = opened.body
        assert isinstance(body, LlamaBody)
        assert (
            sum(block.nbytes for block in body.blocks)
            == sum(layer.weight.nbytes for layer in quantised.quantised_layers(base.model))
            or how == "none"
        )
        stacked = body.blocks[0].qkv.weight
        if how != "none":
            weights = [layer.weight for block in body.blocks for layer in block._layers]
            largest = max(weight.outputs * weight.inputs for weight in weights)
            assert planned.written_out == largest
            first: Any = base.model.get_submodule("model.layers.0.self_attn.q_proj")
            own, whole = (next(v for v in vars(w).values() if isinstance(v, Tensor)) for w in (first.weight, stacked))
            assert own.data_ptr() == whole.data_ptr()


def test_the_same_weights_are_drawn_whether_they_are_quantised_or_not():
    plain, rounded = (random_base("tiny", device=CPU, dtype=torch.float32, quantise=how) for how in ("none", "int8"))
    name = "model.layers.3.mlp.down_proj"
    one: Any = plain.model.get_submodule(name)
    other: Any = rounded.model.get_submodule(name)
    furthest_O = (one.weight - other.weight.dense(torch.float32)).abs().amax(1)
    assert bool((furthest_O <= 0.6 * other.weight.scale_O).all())
    assert torch.equal(plain.model.get_input_embeddings().weight, rounded.model.get_input_embeddings().weight)


def test_no_layer_stays_as_it_was():
    model = tiny.model("llama", **tiny.BLOCKS)
    before = [weakref.ref(module.weight) for _, module in quantised.quantisable(model)]
    quantise(model, "nf4", CPU)
    gc.collect()
    assert before and not any(weight() is not None for weight in before)


def refusal(call: Any) -> str:
    with pytest.raises((InputError, ConfigError)) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line and "; " in line
    return line


def test_a_missing_library_is_refused_with_how_to_mend_it(monkeypatch):
    def nowhere(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(quantised, "version", nowhere)
    line = refusal(lambda: load("pico", device=CPU, dtype=torch.float32, quantise="nf4"))
    assert "bitsandbytes" in line and "pip install 'redqueen[quantise]'" in line
    load("pico", device=CPU, dtype=torch.float32)


def test_an_old_library_is_refused(monkeypatch):
    monkeypatch.setattr(quantised, "version", lambda _: "0.49.2")
    assert "0.49.2 is too old" in refusal(lambda: random_base("tiny", device=CPU, dtype=torch.float32, quantise="int8"))


def test_a_library_that_cannot_compute_here_is_refused(monkeypatch):
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no binary for this CUDA\nmore")

    monkeypatch.setattr(quantised, "_operations", Broken)
    line = refusal(lambda: quantised.check_library(CPU))
    assert "cannot compute on cpu here: no binary for this CUDA" in line


def test_rows_that_are_no_whole_blocks_are_refused():
    line = refusal(lambda: load("chains", device=CPU, dtype=torch.float32, quantise="nf4"))
    assert "96 inputs" in line and "int8" in line
    assert refusal(lambda: outline("chains", "nf4")) == line
    assert load("chains", device=CPU, dtype=torch.float32, quantise="int8").quantise == "int8"


def test_a_split_base_is_not_quantised():
    line = refusal(lambda: EngineConfig(quantise="nf4", tensor_parallel=2))
    assert "tensor_parallel" in line
    # Neither where the one comes from a run and the other from an option.
    options = Config.model_validate({"engine": {"tensor_parallel": 2}})
    assert (
        refusal(lambda: agreed_engine(options, {"run": Config.model_validate({"engine": {"quantise": "nf4"}})})) == line
    )


@pytest.mark.parametrize("how", ["nf4", "int8"])
def test_the_norms_that_members_begin_by_are_those_of_the_numbers_that_are_computed_with(how):
    norms = {}
    for stored in ("none", how):
        base = load("pico", device=torch.device("cpu"), dtype=torch.float32, quantise=stored)
        with LocalEngine(base, rank=2) as engine:
            norms[stored] = engine.norms
    assert norms[how].keys() == norms["none"].keys() and norms[how] != norms["none"]
    for name, norm in norms["none"].items():
        assert norms[how][name] == pytest.approx(norm, rel=0.02), name


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_an_open_engine_says_how_its_base_is_stored(architecture):
    for how in ("none", "nf4", "int8"):
        with LocalEngine(made(architecture, how), rank=2) as engine:
            assert engine.base.quantise == how
