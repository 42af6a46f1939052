"""`engine.memory`: an engine keeps to what it may take, says what it gave up, and refuses what is too little."""

import pytest
import torch

from engine import tiny
from redqueen.bench import engine as bench
from redqueen.bench import members, workload
from redqueen.engine import base, cap, memory
from redqueen.engine.cap import capped
from redqueen.engine.local import LocalEngine
from redqueen.errors import ConfigError, InputError
from redqueen.resources import most_memory, open_engine
from redqueen.settings import load
from redqueen.settings.fields import bytes_in
from redqueen.settings.models import EngineConfig

CPU = torch.device("cpu")
MEMBERS = ["a", "b"]


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        ("24GiB", 24 << 30),
        ("1.5 GiB", 3 << 29),
        ("800MiB", 800 << 20),
        ("2GB", 2 * 10**9),
        ("50%", 500),
        ("100%", 1000),
    ],
)
def test_a_size_is_a_number_with_a_unit_or_a_share(size: str, bytes_: int):
    assert EngineConfig(memory=size).memory == size
    assert bytes_in(size, 1000) == bytes_


@pytest.mark.parametrize("size", ["24", "GiB", "0GiB", "101%", "-1GiB", "24 gib", "1e3MiB", ""])
def test_anything_else_is_refused_in_one_line(size: str, tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(f'[engine]\nmemory = "{size}"\n')
    with pytest.raises(ConfigError, match="write a size such as 24GiB or 800MiB, or a share such as 80%"):
        load(file)


def test_a_share_is_of_all_memory_that_the_device_has():
    whole = memory.whole(CPU)
    assert most_memory(EngineConfig(), CPU) is None
    assert most_memory(EngineConfig(memory="25%"), CPU) == whole // 4


def planned(most_bytes: int | None) -> memory.MemoryPlan:
    options = {"members": MEMBERS, "rank": 4, "memory_bytes": 1 << 30}
    with LocalEngine(tiny.base("llama"), most_bytes=most_bytes, **options) as engine:
        return engine.plan


def test_the_plan_keeps_to_the_cap_with_the_base_in_it(capsys):
    free = planned(None)
    least = free.resident() + free.passing
    cap = int((least + 2000 * free.activation_token) / (1 - memory.SPARE))
    kept = planned(cap)
    assert 0 < kept.micro_tokens < free.micro_tokens
    assert kept.peak(kept.micro_tokens, kept.cache_tokens) <= cap
    said = capsys.readouterr().err
    assert f"activations of {kept.micro_tokens:,} tokens" in said and "within engine.memory" in said


def test_a_cap_above_what_is_there_changes_nothing_and_says_nothing(capsys):
    assert planned(1 << 60) == planned(None) and capsys.readouterr().err == ""


def test_what_does_not_fit_under_the_cap_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"no room to train within engine\.memory; raise engine\.memory"):
        planned(1 << 20)


PICO = EngineConfig(base="pico", rank=4, device="cpu", memory="6MiB")


def test_the_settings_reach_the_engine():
    with pytest.raises(InputError, match=r"no room to train within engine\.memory; raise engine\.memory"):
        open_engine(PICO, MEMBERS)


def test_a_base_that_is_too_large_is_refused_before_it_is_loaded(monkeypatch):
    loaded = []
    monkeypatch.setattr("redqueen.engine.base.load", lambda *asked, **_: loaded.append(asked))
    with pytest.raises(InputError) as refused:
        open_engine(PICO.model_copy(update={"memory": "2MiB"}), MEMBERS)
    told = str(refused.value)
    assert told.startswith("the weights of pico take 3.6 MiB and do not fit within engine.memory (2.0 MiB); raise")
    assert "\n" not in told and not loaded


def test_the_benchmarks_refuse_it_too(monkeypatch):
    monkeypatch.setattr(workload, "open_base", lambda *_, **__: pytest.fail("it was loaded"))
    little = EngineConfig(device="cpu", memory="2MiB")
    with pytest.raises(InputError, match="the weights of random:tiny take"):
        bench.update(workload.Options(), little)
    with pytest.raises(InputError, match="the weights of random:tiny take"):
        members.measure("random:tiny", 2, 4, little)


def test_memory_that_runs_out_under_the_cap_is_one_line():
    with pytest.raises(InputError, match=r"not fit within engine\.memory \(1\.00 GiB\); raise"), capped(CPU, 1 << 30):
        raise torch.OutOfMemoryError("out of memory: for the test")
    with pytest.raises(torch.OutOfMemoryError), capped(CPU, None):
        raise torch.OutOfMemoryError("out of memory: for the test")


def test_the_cap_holds_from_the_loading_until_the_engine_is_closed(monkeypatch):
    """What a GPU would be told; `test_cuda.py` asks one."""
    told: list[float] = []
    monkeypatch.setattr(cap, "_give", lambda device, share: told.append(share))
    monkeypatch.setattr(memory, "whole", lambda device: 4 << 30)
    right = base.load

    def load_base(*asked, **options):
        told.append(0.0)
        return right(*asked, **options)

    monkeypatch.setattr(base, "load", load_base)
    with open_engine(PICO.model_copy(update={"memory": "1GiB"}), MEMBERS):
        assert told[:2] == [0.25, 0.0] and set(told[2:]) == {0.25}
    assert told[-1] == 1.0
    told.clear()
    with pytest.raises(InputError):
        open_engine(PICO, MEMBERS)
    assert told[-1] == 1.0
    told.clear()
    with open_engine(PICO.model_copy(update={"memory": None}), MEMBERS):
        pass
    assert told == [0.0], "nobody's cap is touched"
