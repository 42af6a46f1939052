"""`redqueen doctor`: what it says is what the machine has."""

import io
import json
import os
import platform
import subprocess
import sys

import pytest
import torch
from rich.console import Console
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig, Qwen2MoeConfig

from redqueen.commands.main import main
from redqueen.engine import memory, shapes
from redqueen.engine.adaptable import adaptable
from redqueen.engine.local import LocalEngine
from redqueen.settings.models import EngineConfig, VerifierConfig
from redqueen.training import doctor
from redqueen.training.doctor import (
    FIT_MEMBERS,
    FIT_RANKS,
    ROW_TOKENS,
    Checkup,
    Device,
    Machine,
    Missing,
    check,
    check_base,
)
from redqueen.verifier import AvailableTier, LocalVerifier, Refusal, Tier


@pytest.fixture(scope="module")
def checkup() -> Checkup:
    return check(VerifierConfig())


def shown(checkup: Checkup) -> str:
    text = io.StringIO()
    checkup.render(Console(file=text))
    return text.getvalue()


def test_it_names_this_machine(checkup):
    assert checkup.machine.arch == platform.machine()
    assert checkup.machine.python == platform.python_version()
    assert checkup.machine.cores == len(os.sched_getaffinity(0))
    assert 0 < checkup.machine.memory_gib < 100_000


def test_it_names_the_torch_that_is_installed(checkup):
    assert checkup.device.torch == torch.__version__
    assert checkup.device.kind in ("cpu", "cuda", "mps")


def test_its_tier_is_the_one_that_programs_run_under(checkup):
    with LocalVerifier() as verifier:
        assert checkup.isolation.tier == verifier.tier


def test_json_is_one_line_with_the_same_facts(checkup, capsys):
    assert main(["doctor", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == json.loads(json.dumps(checkup.as_json()))


def test_the_text_says_all_of_it(checkup):
    text = shown(checkup)
    for part in (checkup.redqueen, checkup.machine.arch, str(checkup.device.torch), str(checkup.isolation.tier)):
        assert part in text
    assert all(item.mend in text for item in checkup.missing)


def test_a_weaker_tier_is_shown_with_its_reason_and_its_mend():
    refusal = Refusal(Tier.FULL, "the kernel says [no]", "sysctl user.max_user_namespaces=100")
    machine, device = (
        Machine(system="Linux 6", arch="x86_64", cores=1, memory_gib=2.0, python="3.11"),
        Device("cpu", "2.13"),
    )
    missing = (Missing("isolation tier full", "programs run under a weaker isolation", refusal.mend),)
    text = shown(
        Checkup(
            redqueen="0",
            machine=machine,
            device=device,
            isolation=AvailableTier(Tier.SECCOMP, (refusal,)),
            missing=missing,
        )
    )
    assert "isolation  seccomp\n" in text
    assert "not full: the kernel says [no]" in text
    assert refusal.mend in text


def test_without_torch_it_says_so_and_how_to_mend_it(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch is gone')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "redqueen", "doctor"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "torch: it cannot be imported (libtorch is gone)" in done.stdout
    assert "pip install torch" in done.stdout


def test_what_only_the_bench_needs_is_named_as_such(monkeypatch):
    monkeypatch.setenv("PATH", "")
    [bubblewrap] = [item for item in check(VerifierConfig()).missing if item.what == "bubblewrap"]
    assert "nothing else needs it" in bubblewrap.why


# A base

ON_CPU = EngineConfig(device="cpu", rank=4)


def folder(place, config: type[PreTrainedConfig], name: str, **more: object) -> str:
    """A folder with the configuration of a small model, and nothing else."""
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config(**small, vocab_size=64, architectures=[name], **more).save_pretrained(place)
    return str(place)


def test_what_it_says_of_a_base_is_what_an_engine_plans():
    members = 5
    found = check_base("random:tiny", members, ON_CPU)
    base = shapes.random_base("tiny", device=torch.device("cpu"), dtype=torch.float32)
    with LocalEngine(base, members=[f"m{i}" for i in range(members)], rank=4) as engine:
        assert found.path == engine.body.path == "llama"
        assert found.parameters == sum(p.numel() for p in base.model.parameters())
        assert found.base_bytes == 4 * found.parameters
        assert found.members_bytes == engine.plan.resident() - engine.plan.weights
        assert found.micro_tokens == engine.plan.micro_tokens
        assert found.update_peak == engine.plan.peak(found.micro_tokens)


@pytest.mark.parametrize("how", ["nf4", "int8"])
def test_it_knows_what_a_quantised_base_takes(how, capsys, monkeypatch):
    words = ["doctor", "--base", "random:7b", "--engine.quantise", how, "--engine.dtype", "bfloat16", "--json"]
    assert main([*words, "--engine.device", "cpu"]) == 0
    base = json.loads(capsys.readouterr().out)["base"]
    # Embeddings and head, 152,064 by 3,584 each, stay as they are; in NF4 64 weights share a scale of four bytes.
    linears, kept = 28 * (3584 * (3584 + 2 * 512 + 3584) + 3 * 3584 * 18944), 2 * 152064 * 3584
    norms_and_biases = 57 * 3584 + 28 * (3584 + 2 * 512)
    assert base["parameters"] == linears + kept + norms_and_biases
    scales = linears // 16 if how == "nf4" else 4 * 28 * (2 * 3584 + 2 * 512 + 2 * 18944 + 3584)
    assert base["base_bytes"] == linears // (2 if how == "nf4" else 1) + scales + 2 * (kept + norms_and_biases)
    assert base["quantise"] == how
    found = check_base("random:tiny", 2, ON_CPU.model_copy(update={"quantise": how}))
    text = shown(check(VerifierConfig(), found))
    assert f"the base, its linear layers in {how}, takes" in text and "bitsandbytes" not in text
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert "pip install 'redqueen[quantise]'" in shown(check(VerifierConfig(), found))


def test_what_fits_is_a_table_of_members_and_ranks(monkeypatch):
    free = [8 << 30]
    monkeypatch.setattr(memory, "available", lambda device: free[0])
    roomy = check_base("random:135m", 8, ON_CPU)
    assert [(fit.members, fit.rank) for fit in roomy.fits] == [(m, r) for m in FIT_MEMBERS for r in FIT_RANKS]
    tokens = {(fit.members, fit.rank): fit.micro_tokens for fit in roomy.fits}
    assert tokens[1, 8] >= tokens[8, 64] > tokens[64, 64] == 0
    assert roomy.cache_rows == roomy.cache_tokens // 2048 > 0
    free[0] = 1 << 20
    tight = check_base("random:135m", 8, ON_CPU)
    assert tight.micro_tokens == 0
    text = shown(check(VerifierConfig(), tight))
    assert "this does not fit" in text
    assert text.count("does not fit") == 1 + len(tight.fits)


def test_how_many_members_fit_is_told_for_training_and_for_evolution_alone(monkeypatch, capsys):
    monkeypatch.setattr(memory, "available", lambda device: 16 << 30)
    assert main(["doctor", "--base", "random:0.5b", "--engine.device", "cpu", "--engine.memory", "8GiB", "--json"]) == 0
    base = json.loads(capsys.readouterr().out)["base"]
    assert base["memory"] == 8 << 30
    model = shapes.outline("random:0.5b")
    shape, linears = memory.Shape.of(model, fast=True), adaptable(model, None)

    def works(members: int, *, trains: bool) -> bool:
        plan = memory.plan(
            shape, linears, rank=base["rank"], members=members, memory=8 << 30, device="cpu", dtype=torch.float32,
            trains=trains,
        )  # fmt: skip
        return plan.micro_tokens > 0 and plan.cache_tokens >= ROW_TOKENS

    for how, trains in (("trained", True), ("evolved", False)):
        most = base["most"][how]
        assert most > 0 and works(most, trains=trains) and not works(most + 1, trains=trains)
    assert base["most"]["evolved"] > 3 * base["most"]["trained"]


def test_it_says_which_members_the_host_would_hold(monkeypatch):
    monkeypatch.setattr(doctor, "place", lambda settings: (torch.device("cuda"), torch.bfloat16))
    free = {"cuda": 23 << 30, "cpu": 96 << 30}
    monkeypatch.setattr(memory, "available", lambda device: free[device.type])
    found = check_base("random:1.5b", 100, EngineConfig())
    assert found.hosted and found.host_bytes == found.members_bytes // 101 * 602
    text = shown(check(VerifierConfig(), found))
    assert "their masters and moments take 20.70 GiB of the host's memory" in text
    assert f"gradients {found.together} at a time" in text
    at_most = next(line for line in text.splitlines() if "at most, of rank 16" in line)
    assert at_most.count("of the host's memory") == 2 and "(masters and moments in " in at_most
    assert found.most.trained > 100 and found.most.trained_host <= free["cpu"]
    free["cpu"] = 8 << 30
    little = check_base("random:1.5b", 100, EngineConfig())
    assert not little.micro_tokens and "this does not fit" in shown(check(VerifierConfig(), little))
    assert little.most.trained < found.most.trained
    few = check_base("random:1.5b", 4, EngineConfig())
    assert not few.hosted and "of the host's memory, gradients" not in shown(check(VerifierConfig(), few))


def test_a_base_outside_the_llama_family_is_told_why_it_gets_the_general_path(tmp_path):
    found = check_base(folder(tmp_path, Gemma3TextConfig, "Gemma3ForCausalLM"), 2, ON_CPU)
    assert found.path == "general"
    assert "path general (gemma3_text is not of the Llama family)" in shown(check(VerifierConfig(), found))


def test_json_has_the_base_that_was_asked_about(capsys):
    words = ["doctor", "--base", "random:tiny", "--members", "3", "--engine.rank", "8", "--json"]
    assert main(words) == 0
    base = json.loads(capsys.readouterr().out)["base"]
    assert (base["name"], base["members"], base["rank"], base["why"]) == ("random:tiny", 3, 8, None)
    assert base["fits"][0] == {"members": 1, "rank": 8, "micro_tokens": base["fits"][0]["micro_tokens"]}


@pytest.mark.parametrize(
    ("config", "name", "more", "told"),
    [
        (Qwen2MoeConfig, "Qwen2MoeForCausalLM", {}, "mixture of experts"),
        (LlamaConfig, "LlamaForCausalLM", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised"),
        (None, "random:8b", {}, "there is no shape 8b; use tiny"),
        (None, "smollm3", {}, "did you mean smollm2-135m?"),
        (None, "nowhere", {}, "there is no base nowhere"),
    ],
)
def test_a_base_that_cannot_be_used_is_one_line(tmp_path, capsys, config, name, more, told):
    base = name if config is None else folder(tmp_path, config, name, **more)
    assert main(["doctor", "--base", base]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err[:-1].isprintable(), "one line"
