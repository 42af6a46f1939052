"""`redqueen operators` and `redqueen breed`, and an operator from a file outside the package."""

import json
import re
from pathlib import Path

import pytest
import torch
from engine import tiny

from redqueen.commands.main import main
from redqueen.engine import peft
from redqueen.evolution.variation import child, find
from redqueen.plugins import OPERATORS

EXTENDING = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def parents(tmp_path) -> list[Path]:
    folders = [tmp_path / name for name in ("ada", "bob")]
    with tiny.engine("llama", members=2) as opened:
        modules = [name for name, _ in opened.base.model.named_modules()]
        for id, folder in zip(opened.members, folders, strict=True):
            peft.save(opened.read(id), folder, base_name="tiny", modules=modules)
    return folders


@pytest.fixture
def own(tmp_path) -> Path:
    """The operator that docs/extending.md shows."""
    [block] = re.findall(r"```python\n(\"\"\"Sharpen.*?)```", EXTENDING.read_text(), re.DOTALL)
    path = tmp_path / "sharpen.py"
    path.write_text(block)
    return path


def answer(capsys, *words: object) -> dict:
    assert main([str(word) for word in words]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *words: object) -> str:
    assert main([str(word) for word in words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_every_operator_is_listed_with_its_kind_reference_and_defaults(capsys):
    rows = {row["name"]: row for row in answer(capsys, "operators", "--json")["operators"]}
    assert rows.keys() == set(OPERATORS.names())
    assert all(row["about"] and row["reference"] for row in rows.values())
    assert rows["spectral"]["defaults"] == {"sigma": 0.1}
    assert {name for name, row in rows.items() if row["used"]} == {
        "spectral", "slot_noise", "component_mask", "full_noise", "dare", "layer_wise", "svd_subspace", "extrapolation",
    }  # fmt: skip
    assert main(["operators"]) == 0
    assert "spectral" in capsys.readouterr().out


def test_the_method_page_documents_every_operator_with_its_ranges():
    page = (EXTENDING.parent / "method.md").read_text()
    for operator in OPERATORS.all().values():
        defaults = ", ".join(f"{name} {value:g}" for name, value in operator.defaults.items())
        norm, cosine = (
            f"{low:g} to {high:g}" if low != high else f"{low:g}" for low, high in (operator.norm, operator.cosine)
        )
        cells = [
            f"`{operator.name}`",
            operator.reference,
            operator.kind,
            operator.use,
            operator.about.rstrip("."),
            defaults,
            norm,
            cosine,
        ]
        assert f"| {' | '.join(cells)} |" in page


def test_a_child_of_two_folders_is_a_folder_that_loads_in_peft(capsys, parents, tmp_path):
    made = answer(capsys, "breed", "svd_subspace", *parents, "--to", tmp_path / "child", "--seed", 5, "--json")
    states = [peft.load(folder) for folder in parents]
    expected = child(OPERATORS.get("svd_subspace"), states, seed=5)
    assert tiny.difference(peft.load(tmp_path / "child"), expected) == 0
    assert made["operator"] == "svd_subspace"
    assert len(made["cosines"]) == 2
    import peft as library

    loaded = library.PeftModel.from_pretrained(tiny.model("llama"), tmp_path / "child")
    loaded_a = loaded.base_model.model.model.layers[0].self_attn.q_proj.lora_A["default"].weight
    assert torch.equal(loaded_a, expected.factors["model.layers.0.self_attn.q_proj"][0])
    parent_config, config = (json.loads((f / peft.CONFIG).read_text()) for f in (parents[0], tmp_path / "child"))
    assert {key: config[key] for key in parent_config} == parent_config


def test_an_operator_of_at_most_forty_lines_is_loaded_from_a_file_outside_the_package(capsys, parents, own, tmp_path):
    assert len(own.read_text().splitlines()) <= 40
    rows = answer(capsys, "operators", "--evolution.operators", f"{own}:sharpen,dare", "--json")["operators"]
    assert {row["name"] for row in rows if row["used"]} == {"sharpen", "dare"}
    made = answer(capsys, "breed", f"{own}:sharpen power=2", parents[0], "--to", tmp_path / "child", "--json")
    assert made["norm"] == pytest.approx(1, abs=1e-4)
    assert 0.5 < made["cosines"][0] < 0.999
    expected = child(find(f"{own}:sharpen").given({"power": 2.0}), [peft.load(parents[0])], seed=0)
    assert tiny.difference(peft.load(tmp_path / "child"), expected) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("spektral", "ada"), "did you mean spectral?"),
        (("spectral", "ada", "bob"), "makes a child of 1"),
        (("dare", "ada"), "name 2 parents"),
        (("spectral sgima=1", "ada"), "it takes sigma"),
        (("spectral sigma=often", "ada"), "use a number"),
        (("dare drop=1", "ada", "bob"), "from 0 to 0.99"),
        (("spectral sigma=-1", "ada"), "from 0 to 2"),
        (("input_noise alpha=-1", "ada"), "of 0 or more"),
        (("extrapolation least=2", "ada", "bob"), "larger one"),
        (("della drop=0.9 spread=0.4", "ada", "bob"), "stay within"),
        (("nowhere.py:op", "ada"), "there is no file"),
        (("fisher", "ada", "bob"), "optimiser states"),
        (("spectral", "eve"), "is no PEFT folder and no member of a run"),
    ],
)
def test_mistakes_are_one_line_and_make_nothing(capsys, parents, tmp_path, words, says):
    operator, *folders = words
    line = refusal(capsys, "breed", operator, *(tmp_path / name for name in folders), "--to", tmp_path / "child")
    assert says in line
    assert not (tmp_path / "child").exists()


def test_a_child_needs_a_place_that_is_free(capsys, parents, tmp_path):
    assert "--to" in refusal(capsys, "breed", "spectral", parents[0])
    assert "exists already" in refusal(capsys, "breed", "spectral", parents[0], "--to", parents[1])
    assert "--seed" in refusal(capsys, "breed", "spectral", parents[0], "--to", tmp_path / "c", "--seed", -1)


@pytest.mark.parametrize(
    ("text", "says"),
    [("op = 3", "defines no Operator"), ("raise ValueError('odd')", "ValueError: odd"), ("def", "SyntaxError")],
)
def test_a_file_that_defines_no_operator_is_refused_in_one_line(capsys, parents, tmp_path, text, says):
    (tmp_path / "bad.py").write_text(text)
    line = refusal(capsys, "breed", f"{tmp_path / 'bad.py'}:op", parents[0], "--to", tmp_path / "child")
    assert says in line


BROKEN = """
from redqueen.evolution.variation.operator import Kind, Operator


def raises(parents, draws, *, times: int = 2):
    for _ in range(times):
        raise ValueError("boom")


def nothing(parents, draws):
    return None


raising = Operator(name="raises", kind=Kind.MUTATION, make=raises, reference="a test")
empty = Operator(name="nothing", kind=Kind.MUTATION, make=nothing, reference="a test")
taken = Operator(name="dare", kind=Kind.MUTATION, make=nothing, reference="a test")
"""


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        ("raising", "the operator raises failed: ValueError: boom"),
        ("raising times=1", "ValueError: boom"),
        ("raising times=1.5", "use a whole number"),
        ("empty", "gave no Adapter"),
    ],
)
def test_what_an_operator_of_ones_own_does_wrong_is_its_own_fault(capsys, parents, tmp_path, operator, says):
    (tmp_path / "own.py").write_text(BROKEN)
    line = refusal(capsys, "breed", f"{tmp_path / 'own.py'}:{operator}", parents[0], "--to", tmp_path / "child")
    assert says in line
    assert not (tmp_path / "child").exists()


def test_two_operators_of_one_name_are_refused(capsys, tmp_path):
    (tmp_path / "own.py").write_text(BROKEN)
    own = tmp_path / "own.py"
    assert "two operators named dare" in refusal(capsys, "operators", "--evolution.operators", f"{own}:taken")
    assert "two operators named raises" in refusal(
        capsys, "operators", "--evolution.operators", f"{own}:raising,{own}:raising"
    )


def test_parents_that_name_different_bases_are_refused(capsys, parents, tmp_path):
    config = parents[1] / peft.CONFIG
    config.write_text(config.read_text().replace('"tiny"', '"other"'))
    for words in (("breed", "dare", *parents, "--to", tmp_path / "child"), ("diversity", *parents)):
        assert "made for the base tiny" in refusal(capsys, *words)
