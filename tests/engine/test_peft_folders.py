"""A member goes out as a PEFT folder and comes back as it was; what is not such a member does not come in."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import tiny
from redqueen.engine.peft import CONFIG, WEIGHTS, load, save
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError

IDS = torch.tensor([[5, 17, 80, 3, 3, 44, 9, 61, 2, 30]])


@pytest.fixture
def state() -> MemberState:
    with tiny.engine("llama", members=1) as opened:
        return opened.read("m0")


def names(architecture: str = "llama") -> list[str]:
    return [name for name, _ in tiny.model(architecture).named_modules()]


def written(state: MemberState, folder: Path) -> Path:
    save(state, folder, base_name="tiny", modules=names())
    return folder


def settings(folder: Path) -> dict:
    return json.loads((folder / CONFIG).read_text())


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_member_comes_back_as_it_went_out(architecture, dtype, tmp_path):
    with tiny.engine(architecture, dtype) as opened:
        before = opened.read("m1")
        save(before, tmp_path / "m1", base_name="tiny", modules=names(architecture))
        back = load(tmp_path / "m1")
        assert (back.rank, back.alpha, back.optimiser) == (before.rank, before.alpha, None)
        assert tiny.difference(back, before) == 0
        assert {half.dtype for pair in back.factors.values() for half in pair} == {dtype}
        opened.write("new", back)
        assert tiny.difference(opened.read("new"), before) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["m1"], "something is left beside the folder"


def test_peft_takes_the_folder_without_a_word(state, tmp_path, recwarn):
    loaded = tiny.with_adapter("llama", state, tmp_path / "m0")
    assert not recwarn.list
    config = loaded.peft_config["default"]
    assert (config.r, config.lora_alpha, config.task_type, config.bias) == (4, 6, "CAUSAL_LM", "none")
    assert (config.base_model_name_or_path, config.inference_mode) == ("tiny", True)
    seven = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]
    assert settings(tmp_path / "m0")["target_modules"] == seven
    # vLLM reads these without PEFT.
    assert {"r", "lora_alpha", "target_modules"} <= settings(tmp_path / "m0").keys()
    assert "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight" in load_file(tmp_path / "m0" / WEIGHTS)


def test_what_peft_saves_comes_in(state, tmp_path):
    """By way of PEFT's own files: config with all of its fields, weights in its own order."""
    theirs = tiny.with_adapter("llama", state, tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs", save_embedding_layers=False)
    assert tiny.difference(load(tmp_path / "theirs"), state) == 0


def test_bfloat16_halves_the_folder(state, tmp_path):
    save(state, tmp_path / "half", base_name="tiny", modules=names(), dtype=torch.bfloat16)
    whole = written(state, tmp_path / "whole")
    assert (tmp_path / "half" / WEIGHTS).stat().st_size < 0.7 * (whole / WEIGHTS).stat().st_size
    back = load(tmp_path / "half")
    for name, pair in state.factors.items():
        for mine, theirs in zip(back.factors[name], pair, strict=True):
            assert mine.dtype == torch.float32 and torch.equal(mine, theirs.bfloat16().float())


def test_alpha_may_be_a_fraction(state, tmp_path):
    odd = replace(state, alpha=2.5)
    ours = tiny.with_adapter("llama", odd, tmp_path / "m0")
    theirs = tiny.with_adapter("llama", replace(state, alpha=5.0), tmp_path / "m1")
    assert load(tmp_path / "m0").alpha == 2.5
    name = "base_model.model.model.layers.1.mlp.up_proj"
    assert 2 * ours.get_submodule(name).scaling["default"] == theirs.get_submodule(name).scaling["default"] == 1.25


def test_factors_in_any_layout_are_written(state, tmp_path):
    turned = {name: (a.t().contiguous().t(), b.t().contiguous().t()) for name, (a, b) in state.factors.items()}
    folder = written(replace(state, factors=turned), tmp_path / "m0")
    assert tiny.difference(load(folder), state) == 0


# Which modules

AMBIGUOUS = {
    "last parts": (["a.0.q", "a.1.q", "a.0.k", "a.1.k"], ["a", "a.0", "a.1", "head"], ["k", "q"]),
    "one name, two places": (["text.0.attn.proj", "text.1.attn.proj"], ["vision.0.patch.proj"], ["attn.proj"]),
    "some layers": (["l.0.q", "l.1.q"], ["l.2.q", "l.10.q"], ["0.q", "1.q"]),
    "a whole name": (["l.0.q"], ["x.l.1.q", "m.0.q"], ["l.0.q"]),
    "a name that ends like another": (["l.0.q_proj"], ["l.0.xq_proj", "l.0.q_proj_norm"], ["q_proj"]),
}


@pytest.mark.parametrize(("adapted", "others", "targets"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_the_targets_are_short_and_name_the_adapted_modules_alone(adapted, others, targets, tmp_path):
    member = MemberState(1, 2.0, {name: (torch.ones(1, 2), torch.ones(3, 1)) for name in adapted})
    save(member, tmp_path / "m", base_name="tiny", modules=[*adapted, *others])
    assert settings(tmp_path / "m")["target_modules"] == targets
    config = peft.LoraConfig(target_modules=targets)
    matched = [
        name for name in [*adapted, *others] if peft.tuners.tuners_utils.check_target_module_exists(config, name)
    ]
    assert matched == adapted


# Whole or not at all


def test_a_folder_that_is_there_is_not_touched(state, tmp_path):
    folder = written(state, tmp_path / "m0")
    before = (folder / WEIGHTS).stat()
    with pytest.raises(InputError, match="there already"):
        save(tiny.shaken(state, 5), folder, base_name="tiny", modules=names())
    assert (folder / WEIGHTS).stat() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m0"]
    (tmp_path / "empty").mkdir()
    assert tiny.difference(load(written(state, tmp_path / "empty")), state) == 0


def test_folders_above_are_made(state, tmp_path):
    assert tiny.difference(load(written(state, tmp_path / "a" / "b" / "m0")), state) == 0


def test_a_folder_is_whole_or_it_is_not_there(state, tmp_path, monkeypatch):
    """Stopped when the weights are written and the rest is not."""
    modules, seen = names(), []

    def stop(*_, **__):
        seen.extend(tmp_path.rglob("*"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", stop)
        with pytest.raises(KeyboardInterrupt):
            save(state, tmp_path / "m0", base_name="tiny", modules=modules)
    assert WEIGHTS in [path.name for path in seen], "nothing was written yet"
    assert tmp_path / "m0" not in seen, "a process that is killed here leaves half a folder"
    assert not list(tmp_path.iterdir()), "what is half done is not cleared away"


def test_a_place_that_cannot_be_written_is_said_in_one_line(state, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "m0"):
        with pytest.raises(InputError) as refusal:
            written(state, folder)
        assert "\n" not in str(refusal.value) and str(folder) in str(refusal.value)


# Refusals


def tell(folder: Path, **fields: object) -> None:
    (folder / CONFIG).write_text(json.dumps(settings(folder) | fields))


def change(edit: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        edit(tensors)
        save_file(tensors, folder / WEIGHTS)

    return apply


UP = "base_model.model.model.layers.0.mlp.up_proj"
SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda folder: folder.rename(folder.with_name("elsewhere")), "cannot be read: No such file"),
    "no config": (lambda folder: (folder / CONFIG).unlink(), "cannot be read: No such file"),
    "no JSON": (lambda folder: (folder / CONFIG).write_text("{"), "not a JSON object"),
    "no object": (lambda folder: (folder / CONFIG).write_text("[]"), "not a JSON object"),
    "no text": (lambda folder: (folder / CONFIG).write_bytes(b"\xff\xfe"), "not a JSON object"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "there is no"),
    "deep settings": (lambda folder: (folder / CONFIG).write_text('{"a":' * 100_000), "not a JSON object"),
    "too large an alpha": (lambda folder: tell(folder, lora_alpha=10**400), "no usable r and lora_alpha"),
    "old weights": (lambda folder: (folder / WEIGHTS).rename(folder / "adapter_model.bin"), "save it as safetensors"),
    "another method": (lambda folder: tell(folder, peft_type="IA3"), "is IA3, not LORA"),
    "DoRA": (lambda folder: tell(folder, use_dora=True), "is a DoRA"),
    "modules to save": (lambda folder: tell(folder, modules_to_save=["lm_head"]), "modules of its own"),
    "biases": (lambda folder: tell(folder, bias="all"), "trains biases of the base (all)"),
    "biases of its own": (lambda folder: tell(folder, lora_bias=True), "has biases"),
    "changed base": (lambda folder: tell(folder, init_lora_weights="pissa_niter_4"), "own weights (pissa_niter_4)"),
    "ranks": (lambda folder: tell(folder, rank_pattern={"q_proj": 2}), "another r for some modules"),
    "alphas": (lambda folder: tell(folder, alpha_pattern={"q_proj": 2}), "another lora_alpha for some modules"),
    "no rank": (lambda folder: tell(folder, r=None), "no usable r and lora_alpha"),
    "no alpha": (lambda folder: tell(folder, lora_alpha="6"), "no usable r and lora_alpha"),
    "rank of a lie": (lambda folder: tell(folder, r=8), "says rank 8, but its factors"),
    "cut off": (
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9]),
        "may be truncated",
    ),
    "empty file": (lambda folder: (folder / WEIGHTS).write_bytes(b""), "may be truncated"),
    "no factors": (change(dict.clear), "holds nothing"),
    "one half": (change(lambda t: t.pop(f"{UP}.lora_B.weight")), "one factor only for model.layers.0.mlp.up_proj"),
    "other ranks": (
        change(lambda t: t.update({f"{UP}.lora_B.weight": t[f"{UP}.lora_B.weight"][:, :3].clone()})),
        "(4, 32) and (48, 3)",
    ),
    "one dimension": (change(lambda t: t.update({f"{UP}.lora_A.weight": torch.ones(4)})), "(4,) and (48, 4)"),
    "embedding": (change(lambda t: t.update({"base_model.model.embed.lora_embedding_A": torch.ones(4, 2)})), "linear"),
    "magnitudes": (change(lambda t: t.update({f"{UP}.lora_magnitude_vector": torch.ones(48)})), "linear layers alone"),
    "not a number": (change(lambda t: t[f"{UP}.lora_B.weight"].fill_(math.nan)), "not a finite number"),
    "integers": (change(lambda t: t.update({f"{UP}.lora_B.weight": torch.ones(48, 4).int()})), "not a finite number"),
}


@pytest.mark.parametrize(("spoil", "why"), SPOILT.values(), ids=SPOILT)
def test_what_is_not_a_plain_lora_is_refused_in_one_line(spoil, why, state, tmp_path):
    folder = written(state, tmp_path / "m0")
    spoil(folder)
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert why in str(refusal.value) and "\n" not in str(refusal.value)


HARMLESS = {
    "uniform patterns": {"rank_pattern": {"q_proj": 4}, "alpha_pattern": {"q_proj": 6}},
    "fields of another version": {"unheard_of": 1, "peft_version": "0.99"},
    "another start": {"init_lora_weights": "gaussian"},
    "dropout": {"lora_dropout": 0.1},
}


@pytest.mark.parametrize("fields", HARMLESS.values(), ids=HARMLESS)
def test_what_does_not_change_the_arithmetic_is_taken(fields, state, tmp_path):
    folder = written(state, tmp_path / "m0")
    tell(folder, **fields)
    assert tiny.difference(load(folder), state) == 0


def test_a_rank_stabilised_lora_comes_in_with_the_alpha_that_does_the_same(state, tmp_path):
    folder = written(state, tmp_path / "m0")
    tell(folder, use_rslora=True)
    back = load(folder)
    assert back.alpha == 6 * math.sqrt(4) == 12
    right = peft.PeftModel.from_pretrained(tiny.model("llama"), folder)
    mine = tiny.with_adapter("llama", back, tmp_path / "back")
    with torch.no_grad():
        assert torch.allclose(right(IDS).logits, mine(IDS).logits, atol=1e-5)


def test_a_member_of_another_base_or_shape_is_refused_by_the_engine(tmp_path):
    with tiny.engine("llama") as opened, tiny.engine("gemma3") as other:
        save(other.read("m0"), tmp_path / "m0", base_name="tiny", modules=names("gemma3"))
        before = opened.read("m0")
        for member in ("m0", "new"):
            with pytest.raises(InputError) as refusal:
                opened.write(member, load(tmp_path / "m0"))
            assert "\n" not in str(refusal.value)
        assert tiny.difference(opened.read("m0"), before) == 0
        assert opened.members == ["m0", "m1", "m2"]
