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

from redqueen.cli import main
from redqueen.config import VerifierConfig
from redqueen.doctor import Checkup, Device, Machine, Missing, check
from redqueen.verifier import Examination, LocalVerifier, Refusal, Tier


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
    machine, device = Machine("Linux 6", "x86_64", 1, 2.0, "3.11"), Device("cpu", "2.13")
    missing = (Missing("isolation tier full", "programs run under a weaker isolation", refusal.mend),)
    text = shown(Checkup("0", machine, device, Examination(Tier.SECCOMP, (refusal,)), missing))
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
