"""`redqueen diversity`: PEFT folders beside each other, with a real small base and without one."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from engine import tiny
from rich.console import Console
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from redqueen.analysis.folders import Comparison, NamedAdapter, compare
from redqueen.commands.main import main
from redqueen.engine.base import load as load_base
from redqueen.engine.known import EMBEDDED
from redqueen.engine.local import LocalEngine
from redqueen.engine.peft import save
from redqueen.engine.protocol import MemberState
from redqueen.evolution.adapters import read_adapters
from redqueen.settings.models import EngineConfig

CPU = EngineConfig(device="cpu", rows=8)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A model that can read the prompts, on disk."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED["pico"].folder)
    config = LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=48,
        vocab_size=len(tokenizer),
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    folder = tmp_path_factory.mktemp("base") / "model"
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def members(base) -> dict[str, MemberState]:
    """Two that differ, one that is the first at another rank and alpha, and one that is still the base."""
    loaded = load_base(str(base), device=torch.device("cpu"), dtype=torch.float32)
    with LocalEngine(loaded, rank=4, alpha=8.0, rows=4) as engine:
        fresh = engine.fresh()
    first, second = tiny.shaken(fresh, 0), tiny.shaken(fresh, 1)
    return {"first": first, "second": second, "wide": widened(first), "fresh": fresh}


def widened(state: MemberState) -> MemberState:
    """The same update, written at rank 6 with alpha 3."""
    factors = {}
    for name, (a, b) in state.factors.items():
        by = state.alpha / state.rank / (3 / 6)
        factors[name] = (torch.cat([a, torch.ones(2, a.shape[1])]), torch.cat([by * b, torch.zeros(b.shape[0], 2)], 1))
    return MemberState(6, 3.0, factors)


@pytest.fixture(scope="module")
def folders(members, tmp_path_factory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("members")
    for name, state in members.items():
        save(state, place / name, base_name="tiny", modules=state.factors)
    return {name: place / name for name in members}


def adapters(*folders: Path) -> list[NamedAdapter]:
    return read_adapters(list(map(str, folders)), whole_runs=False)[0]


@pytest.fixture(scope="module")
def found(folders, base) -> Comparison:
    return compare(adapters(*folders.values()), str(base), CPU)


def test_weights_are_compared_without_a_base_whatever_the_rank(folders):
    found = compare(adapters(*folders.values()), None, CPU)
    assert found.ranks == (4, 4, 6, 4)
    assert found.weight_distances[0][2] == pytest.approx(0, abs=1e-6)
    assert found.weight_distances[0][1] == pytest.approx(1, abs=0.2)
    assert [row[3] for row in found.weight_distances] == [1, 1, 1, 0]
    assert 2 < found.effective_size < 3
    assert found.base is found.function_distances is found.from_base is None


def test_with_a_base_it_also_compares_what_they_say(found):
    assert found.function_distances is not None
    assert found.from_base is not None
    assert found.function_distances[0][2] == pytest.approx(0, abs=1e-6), "one update, two ways to write it"
    assert found.function_distances[0][1] > 0.01
    assert found.from_base[3] == pytest.approx(0, abs=1e-9), "a fresh member says what the base says"
    assert found.from_base[0] == pytest.approx(found.function_distances[0][3], rel=1e-3)


def test_adapters_of_some_modules_only_are_compared_on_the_base(members, base, tmp_path):
    for name in ("first", "second"):
        some = {
            module: pair for module, pair in members[name].factors.items() if module.endswith("layers.1.mlp.up_proj")
        }
        save(replace(members[name], factors=some), tmp_path / name, base_name="tiny", modules=members[name].factors)
    found = compare(adapters(tmp_path / "first", tmp_path / "second"), str(base), CPU)
    assert found.function_distances is not None
    assert found.function_distances[0][1] > 0


def test_json_is_one_line_with_all_figures(found, folders, base, capsys):
    words = ["diversity", *map(str, folders.values()), "--base", str(base), "--json"]
    assert main([*words, "--engine.device", "cpu", "--engine.rows", "8"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    answer, expected = json.loads(out), json.loads(json.dumps(found.as_json()))
    assert answer["folders"] == [str(folder) for folder in folders.values()]
    assert answer == expected


def test_the_text_names_every_folder_and_shows_every_distance(found, folders):
    text = io.StringIO()
    found.render(Console(file=text, width=200))
    shown = text.getvalue()
    assert f"1  {folders['first']}, rank 4" in shown
    assert f"3  {folders['wide']}, rank 6" in shown
    assert all(f"{value:.3f}" in shown for row in found.weight_distances for value in row)
    assert all(f"{value:.5f}" in shown for row in (*found.function_distances, found.from_base) for value in row)
    assert f"effective size {found.effective_size:.2f} of 4" in shown


def test_mistakes_are_one_line(folders, base, members, tmp_path, capsys):
    first = str(folders["first"])
    some = {module: pair for module, pair in members["first"].factors.items() if "q_proj" in module}
    save(replace(members["first"], factors=some), tmp_path / "some", base_name="tiny", modules=members["first"].factors)
    foreign = {f"other.{module}": pair for module, pair in members["first"].factors.items()}
    save(replace(members["first"], factors=foreign), tmp_path / "foreign", base_name="tiny", modules=foreign)
    strangers = [str(tmp_path / "foreign")] * 2
    for words, told in (
        ([], "diversity needs WHAT"),
        ([first], "name two or more"),
        ([first, str(tmp_path / "nowhere")], "give a PEFT folder"),
        ([first, str(tmp_path / "some")], "cannot be compared: only one of them adapts model.layers.0.mlp.down_proj"),
        ([first, first, "--base", "nowhere"], "there is no base nowhere"),
        ([*strangers, "--base", str(base)], "no module of the base is called other.model."),
        ([first, first, "--jsno"], "did you mean --json?"),
    ):
        assert main(["diversity", *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert told in err
