"""A study in parts (tools/evals/parts.py): a small file for each race, and tables that say what the answers say."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import answered
import parts
import parts_curves
import pytest
from loop.making import race_to_the_end, settings

from redqueen.evals.data import find
from redqueen.plugins import BENCHMARKS

RIGHT = {"": [0], "population-0": [0, 1, 2], "population-1": [0, 1], "single-wide-0": [0, 1], "single-wide-1": [0, 1]}
"""The places of the tasks that the base, and the solvers of each race, get right here, whatever they wrote."""
Script = Callable[..., tuple[int, str, str]]


@pytest.fixture
def script(monkeypatch, capsys) -> Script:
    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["parts.py", *map(str, words)])
        status = parts.main()
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("parts") / "study"
    for seed in (0, 1):
        of = {"run": {"steps": 1, "seed": seed}, "rl": {"lr": 1e-2}}
        race_to_the_end(folder / f"population-{seed}", settings(changes=of))
        alone = {"single": True, "teachers": 1, "students": 1}
        race_to_the_end(folder / f"single-wide-{seed}", settings(changes={**of, "population": alone}))
    return folder


def evaluate(redqueen: Script, study: Path, seed: int, slices: Path, to: Path) -> Path:
    runs = sorted(study.glob(f"*-{seed}"))
    how = ("--prompts", "raw", "--data", slices, "--max-tokens", 8, "--every", 1)
    here = ("--engine.device", "cpu", "--verifier.workers", "2")
    assert redqueen("eval", *runs, "--suite", "gsm8k,cruxeval_i", "--to", to, *how, *here)[0] == 0
    return know(to, slices, RIGHT)


def know(to: Path, slices: Path, right: dict[str, list[int]]) -> Path:
    """Whatever they wrote, these are the places of the tasks that they get right."""
    for file in (to / "answers").iterdir():
        items = [item.id for item in find(BENCHMARKS.get(file.stem), slices).items]
        answers = [json.loads(line) for line in file.read_text().splitlines()]
        for answer in answers:
            whose = Path(answer["who"].partition(":")[0]).name if answer["who"] else ""
            answer["correct"] = items.index(answer["item"]) in right[whose]
        file.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    return to


def test_races_of_two_parts_are_one_table(redqueen, script, study, slices, tmp_path):
    for seed in (0, 1):
        part = tmp_path / f"part-{seed}"
        for run in study.glob(f"*-{seed}"):
            shutil.copytree(run, part / run.name)
        answered = evaluate(redqueen, part, seed, slices, tmp_path / f"e-{seed}")
        status, out, _ = script("keep", part, answered, "--to", tmp_path / "kept", "--data", slices)
        assert status == 0 and out.count("1 steps, cruxeval_i") == 2
    kept = json.loads((tmp_path / "kept" / "population-0.json").read_text())
    assert (kept["arm"], kept["seed"], kept["steps"], kept["base"]) == ("population", 0, 1, "chains")
    assert kept["settings"]["rl.lr"] == 1e-2 and "engine.base" not in kept["settings"]
    gsm8k = kept["benchmarks"]["gsm8k raw"]
    assert (gsm8k["base"], gsm8k["max_tokens"]) == ("10000", 8)
    assert {member: own["right"] for member, own in gsm8k["steps"]["1"].items()} == {"s0": "11100", "s1": "11100"}
    apart = [one["base"] for name, one in kept["benchmarks"].items() if name.startswith("cruxeval_i raw, ")]
    assert len(apart) == 2 and sum(map(len, apart)) == 5, "what can be copied is told apart"
    status, out, _ = script("show", tmp_path / "kept")
    assert status == 0
    told = out.partition("### gsm8k raw\n")[2].partition("###")[0]
    # Three and two of five tasks, the base one: +40 and +20 points, the single agent +20 twice.
    assert "| population | 0, 1 | 50.0 | 20.0 | +30.0 ± 127.1 [+0.0, +70.0] | +40.0, +20.0 | +30.0 " in told
    assert "| population | 0, 1 | +10.0 ± 127.1 | [+0.0, +30.0] | 18 |" in told
    assert "| single-wide | +20.0 ± 0.0 |" in told
    assert out.startswith("A race's mean\n\n| arm | seeds | steps | sampled tokens |")


def test_curves_are_drawn_of_benchmarks_at_several_steps(
    redqueen, script, study, slices, tmp_path, monkeypatch, capsys
):
    answered = evaluate(redqueen, study, 0, slices, tmp_path / "e")
    kept = tmp_path / "kept"
    assert script("keep", study, answered, "--to", kept, "--data", slices)[0] == 0
    monkeypatch.setattr(sys, "argv", ["parts_curves.py", str(kept), "--to", str(tmp_path / "pictures")])
    assert parts_curves.main() == 2
    told = f"parts_curves.py: {kept} has no race that is long enough for a curve; keep some of 10 steps or more\n"
    assert capsys.readouterr().err == told
    for name in ("population-0", "single-wide-0"):
        race = json.loads((kept / f"{name}.json").read_text())
        race["curves"]["entropy student"] = {"10": 0.5, "20": 0.25}
        (kept / f"{name}.json").write_text(json.dumps(race))
    assert parts_curves.main() == 2
    told = f"parts_curves.py: {kept} has no benchmark that was asked at several steps; evaluate with --every\n"
    assert capsys.readouterr().err == told and not (tmp_path / "pictures").exists()
    for name in ("population-0", "single-wide-0"):
        race = json.loads((kept / f"{name}.json").read_text())
        steps = race["benchmarks"]["gsm8k raw"]["steps"]
        steps["2"] = steps["1"]
        (kept / f"{name}.json").write_text(json.dumps(race))
    assert parts_curves.main() == 0
    races, benchmarks = ((tmp_path / "pictures" / f"kept-{what}.svg").read_text() for what in ("races", "benchmarks"))
    assert "gsm8k raw, points less the base" in benchmarks and "cruxeval_i raw" not in benchmarks
    for picture in (races, benchmarks):
        assert "population" in picture and "single-wide" in picture
    assert "students' entropy, nats a token" in races


def test_an_evaluation_that_was_cut_is_shown_on_what_all_have_answered(
    redqueen, study, slices, tmp_path, monkeypatch, capsys
):
    part = tmp_path / "part"
    shutil.copytree(study / "population-0", part / "population-0")
    folder = evaluate(redqueen, part, 0, slices, tmp_path / "e")
    cut = folder / "answers" / "cruxeval_i.jsonl"
    lost = find(BENCHMARKS.get("cruxeval_i"), slices).items[0].id
    kept = [line for line in cut.read_text().splitlines(True) if json.loads(line)["who"] or lost not in line]
    cut.write_text("".join(kept))
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["answered.py", "--data", str(slices), str(folder)])
    assert answered.main() == 0
    out = capsys.readouterr().out
    assert f"{folder} cruxeval_i: 4 tasks that all have answered\n  base " in out
    # The base had the first task alone right, the population two more.
    assert re.search(r"population-0:1 +50\.0 +\+50\.0 ", out)
    assert f"{folder} cruxeval_i raw, uncopyable: 4 of them\n  base " in out
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(sys, "argv", ["answered.py", "--data", str(tmp_path / "other"), str(folder)])
    assert answered.main() == 2
    assert re.fullmatch(r"answered\.py: .*cruxeval.*; .*\n", capsys.readouterr().err)


def test_the_base_is_also_asked_in_the_prompts_that_suit_it(redqueen, script, study, slices, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(study / "population-0", part / "population-0")
    answered = evaluate(redqueen, part, 0, slices, tmp_path / "e")
    how = ("--prompts", "raw", "--data", slices, "--max-tokens", 8, "--engine.device", "cpu")
    other = tmp_path / "other"
    assert redqueen("eval", "chains", "--suite", "cruxeval_i_cot,gsm8k", "--to", other, *how)[0] == 0
    know(other, slices, {"": [0, 1]})
    assert script("keep", part, answered, other, "--to", tmp_path / "kept", "--data", slices)[0] == 0
    told = script("show", tmp_path / "kept")[1].partition("### cruxeval_i raw\n")[2].partition("###")[0]
    assert "| less the base at `cruxeval_i_cot raw`, 40.0 |" in told
    assert (
        "| population | 0 | 60.0 | 20.0 | +40.0 [+0.0, +80.0] | +40.0 | +20.0 [+0.0, +60.0] | 60.0, 60.0 | 8 |" in told
    )


def test_looks_at_one_race_are_put_together_and_others_are_refused(redqueen, script, study, slices, tmp_path):
    part, kept = tmp_path / "part", tmp_path / "kept" / "population-0.json"
    shutil.copytree(study / "population-0", part / "population-0")
    answered = evaluate(redqueen, part, 0, slices, tmp_path / "e")
    words = ("keep", part, answered, "--to", tmp_path / "kept", "--data", slices)
    assert script(*words)[0] == 0
    first = json.loads(kept.read_text())
    # Of an earlier look: another step, and answers that are there in full.
    gsm8k = first["benchmarks"]["gsm8k raw"]
    gsm8k["steps"] = {"0": gsm8k["steps"]["1"], "1": {"s0": {"right": "11---", "tokens": 1.0}}}
    kept.write_text(json.dumps(first))
    assert script(*words)[0] == 0
    steps = json.loads(kept.read_text())["benchmarks"]["gsm8k raw"]["steps"]
    assert {step: own["s0"]["right"] for step, own in steps.items()} == {"0": "11100", "1": "11100"}
    gsm8k["max_tokens"] = 9
    kept.write_text(json.dumps(first))
    status, _, err = script(*words)
    assert (status, err.count("\n")) == (2, 1) and "gsm8k raw was asked of another file or with another" in err
    gsm8k["max_tokens"] = 8
    kept.write_text(json.dumps({**first, "settings": {**first["settings"], "rl.lr": 1.0}}))
    status, _, err = script(*words)
    assert (status, err.count("\n")) == (2, 1) and "population-0.json is of a race with other settings" in err


def test_what_was_not_answered_is_not_in_the_tables(redqueen, script, study, slices, tmp_path):
    answered = evaluate(redqueen, study, 0, slices, tmp_path / "e")
    file = answered / "answers" / "gsm8k.jsonl"
    lines = file.read_text().splitlines()
    lines.remove(next(line for line in reversed(lines) if "population-0:1/s" in line))
    file.write_text("\n".join(lines) + "\n")
    assert script("keep", study, answered, "--to", tmp_path / "kept", "--data", slices)[0] == 0
    _, out, _ = script("show", tmp_path / "kept")
    told = out.partition("### gsm8k raw\n")[2].partition("###")[0]
    assert "| single-wide | 0 |" in told and "| population | - |" in told and "| population | 0" not in told


def race(seed: int, gsm8k: dict[str, str], **other: object) -> dict:
    """As `keep` writes it: the digits of s0 by step."""
    steps = {step: {"s0": {"right": digits, "tokens": 8}} for step, digits in gsm8k.items()}
    found = {"gsm8k": {"sha256": "1", "max_tokens": 8, "base": "1000", "steps": steps, **other}}
    return {
        "arm": "population",
        "seed": seed,
        "steps": 40,
        "figures": {},
        "curves": {},
        "called_back": [],
        "benchmarks": found,
    }


def shown(script, folder: Path, *races: dict, words: tuple[object, ...] = ()) -> tuple[int, str, str]:
    folder.mkdir()
    for number, one in enumerate(races):
        (folder / f"{number}.json").write_text(json.dumps(one))
    return script("show", folder, *words)


def test_a_step_that_not_all_seeds_have_says_so_and_is_not_chosen(script, tmp_path):
    status, out, _ = shown(script, tmp_path / "d", race(0, {"20": "1100", "40": "1110"}), race(1, {"20": "1000"}))
    assert status == 0
    assert "| population | +12.5 ± 158.8 | +50.0 (1 of 2) |" in out
    assert "At step 20, in %" in out


def test_what_was_asked_otherwise_is_not_compared(script, tmp_path):
    for number, other in enumerate(({"sha256": "2"}, {"max_tokens": 9})):
        status, out, err = shown(
            script, tmp_path / f"{number}", race(0, {"1": "1000"}), race(1, {"1": "1000"}, **other)
        )
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "gsm8k was asked of two files, or with two longest answers" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--against", "singel-wide"), "has no arm singel-wide; name one of population"),
        (("--step", 33), "nothing was evaluated at step 33; name one of 1"),
    ],
)
def test_an_arm_or_a_step_that_nobody_has_is_one_line(script, tmp_path, words, told):
    status, out, err = shown(script, tmp_path / "d", race(0, {"1": "1000"}), words=words)
    assert (status, out, err.count("\n")) == (2, "", 1) and told in err


def test_other_files_are_one_line(script, tmp_path):
    for name, text, told in (("odd.json", "{}", "odd.json is no race"), ("cut.json", "{", "cut.json is not whole")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text(text)
        status, out, err = script("show", folder)
        assert (status, out, err.count("\n")) == (2, "", 1) and told in err
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "records.sqlite").write_bytes(b"")
    status, out, err = script("keep", tmp_path / "runs", "--to", tmp_path / "kept")
    assert (status, out, err.count("\n")) == (2, "", 1) and "mine is not called ARM-SEED" in err
    assert not (tmp_path / "kept").exists()


def test_a_folder_without_an_evaluation_is_one_line(script, study, tmp_path):
    status, out, err = script("keep", study, tmp_path, "--to", tmp_path / "kept")
    assert (status, out, err.count("\n")) == (2, "", 1) and f"{tmp_path} holds no evaluation" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("keep", "nowhere", "--to", "kept"), "nowhere has no runs; name the folder of a study"),
        (("show", "nowhere"), "nowhere has no races; write some with `keep`"),
    ],
)
def test_what_is_not_there_is_one_line(script, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    status, out, err = script(*words)
    assert (status, out, err) == (2, "", f"parts.py: {told}\n")
