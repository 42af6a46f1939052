"""`engine.memory`: an engine keeps to what it may take, says what it gave up, and refuses what is too little."""

import pytest
import torch

from engine import tiny
from redqueen.engine import memory
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


def test_the_settings_reach_the_engine(monkeypatch):
    monkeypatch.setattr("redqueen.engine.base.load", lambda *_, **__: tiny.base("llama"))
    settings = EngineConfig(base="tiny", rank=4, device="cpu", memory="1MiB")
    with pytest.raises(InputError, match=r"raise engine\.memory"):
        open_engine(settings, MEMBERS)
