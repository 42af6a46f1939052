"""What is tried on an engine and leaves nothing behind: plans, the step's benchmark, the retention test."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from kill import SETTINGS, Left

from loop.making import listening, race_to_the_end, settings
from redqueen.commands.main import main
from redqueen.engine.known import EMBEDDED
from redqueen.evolution.retention import CONTROLS
from redqueen.phases.timeline import BINS
from redqueen.population.members import restore
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.runs.store import Store
from redqueen.training import step_benchmark
from redqueen.training.retention import measure_retention
from redqueen.training.step_picture import BLOCKS


@pytest.fixture(scope="module")
def file(place: Path) -> Path:
    path = place / "plan.toml"
    path.write_text(SETTINGS)
    return path


def answer(capsys, *words: object) -> dict:
    assert main([str(word) for word in words]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_tries_one_step_and_leaves_no_run(file: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = answer(capsys, "train", file, "--plan", "--json", "--run.steps", 7)
    assert (plan["members"], plan["prompts"], plan["proposals"], plan["attempts"]) == (4, 2, 16, 48)
    assert plan["tried_attempts"] == 3 * plan["tried_tasks"] > 0
    assert 0 < plan["sampled_tokens"] <= plan["most_sampled_tokens"] == 64 * 48
    assert plan["run_seconds"] == pytest.approx(7 * sum(plan["seconds"].values()))
    assert {"propose", "solve", "update"} <= plan["seconds"].keys()
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_what_the_first_step_has_not(file: Path, capsys):
    more = ("--tasks.replay", 2, "--evolution.every", 5, "--evolution.trial", 64)
    replays, trial = answer(capsys, "train", file, "--plan", "--json", *more)["besides"]
    assert replays == "up to 2 recent tasks that each student attempts 3 times more"
    assert trial.startswith("every 5 steps a trial: 2 students at up to 64 tasks, 2 teachers with 64 proposals")
    assert trial.endswith("about 3 attempts at each")
    frozen = ("--evolution.every", 5, "--evolution.trial", 10, "--rl.frozen", "students", "--rl.share", "nobody")
    [trial] = answer(capsys, "train", file, "--plan", "--json", "--tasks.replay", 0, *frozen)["besides"]
    assert trial == "every 5 steps a trial: 2 teachers with 16 proposals, about 3 attempts at each", "of whole prompts"
    more = ("--tasks.replay", 0, "--evolution.trial", 0)
    assert answer(capsys, "train", file, "--plan", "--json", *more)["besides"] == []


def test_without_the_weights_a_plan_is_of_the_configuration_and_comes_to_the_same(file: Path, tmp_path: Path, capsys):
    """As much as can be told before anything is loaded."""
    shutil.copy(EMBEDDED["chains"].folder / "config.json", tmp_path)
    tried = answer(capsys, "train", file, "--plan", "--json")
    told = answer(capsys, "train", file, "--plan", "--json", "--engine.base", tmp_path)
    assert told["why"] == f"the weights of {tmp_path} are not here (there is no model.safetensors)"
    for name in ("prompts", "proposals", "attempts", "most_sampled_tokens", "steps"):
        assert told[name] == tried[name]
    words = ("train", file, "--plan", "--json", "--tasks.replay", 2)
    assert answer(capsys, *words, "--engine.base", tmp_path)["besides"] == answer(capsys, *words)["besides"] != []
    assert (told["base"]["members"], told["base"]["rank"]) == (4, 4)
    assert told["base"]["base_bytes"] / 2**30 == pytest.approx(tried["memory_gib"]["base"])
    assert told["base"]["members_bytes"] / 2**30 == pytest.approx(tried["memory_gib"]["members"])
    assert main(["train", str(file), "--plan", "--engine.base", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "nothing was tried" in shown and "a step: 4 members, 2 prompts, 16 proposals, 48 attempts" in shown


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_here_is_planned_for_by_its_memory(file: Path, capsys):
    words = ("train", file, "--plan", "--engine.base", "random:7b", "--engine.device", "cuda", "--engine.dtype", "best")
    told = answer(capsys, *words, "--engine.memory", "24GiB", "--json")["base"]
    assert (told["device"], told["dtype"], told["memory"]) == ("cuda", "bfloat16", 24 * 2**30)
    assert 14 < told["base_bytes"] / 2**30 < 15 and told["micro_tokens"] > 0
    small = answer(capsys, *words, "--engine.memory", "12GiB", "--json")["base"]
    assert small["micro_tokens"] == 0, "it does not fit"
    assert main([str(word) for word in words]) == 2
    assert "--engine.memory 24GiB" in capsys.readouterr().err


def test_what_must_be_there_for_a_plan_is_said(file: Path, tmp_path: Path, capsys):
    assert main(["train", str(file), "--plan", "--engine.base", str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert "--engine.base FOLDER with its config.json is enough" in error and error.count("\n") == 1


def test_arms_take_turns_on_one_engine(file: Path, tmp_path: Path, capsys):
    drawn = tmp_path / "step.svg"
    words = ("--arms", "single-wide,population", "--steps", 2, "--warmup", 0, "--picture", drawn, "--json")
    wide, population = answer(capsys, "bench", "step", file, *words)["arms"]
    assert [arm["arm"] for arm in (wide, population)] == ["single-wide", "population"]
    assert wide["ratio"] == 1.0
    assert population["ratio_interval"][0] <= population["ratio"] <= population["ratio_interval"][1]
    for arm in (wide, population):
        work = sum(arm["phases"][phase] for phase in ("propose", "solve", "update"))
        assert arm["other_share"] == pytest.approx(1 - work / sum(arm["phases"].values()))
        timeline = arm["timeline"]
        assert len(timeline["proposals"]) == len(timeline["attempts"]) == BINS
        assert max(timeline["proposals"]) > 1
        assert 0 < timeline["seconds"] <= arm["seconds"] + 0.25, "of two steps the shorter one"
        assert "update" in {phase for phase, _, _ in timeline["others"]}
        assert arm["gpu_busy"] is None
        assert f">{arm['arm']}: a step of {timeline['seconds']:.2f} s<" in drawn.read_text(encoding="utf-8")


def test_a_step_is_shown_in_a_line_and_nothing_is_said_of_a_gpu_that_is_not_there(file: Path, capsys):
    assert main(["bench", "step", str(file), "--arms", "population", "--steps", "1", "--warmup", "0"]) == 0
    shown = capsys.readouterr().out
    assert re.search(rf"^population +\|[{BLOCKS}]{{{BINS}}}\| \d+\.\d\d s$", shown, re.M)
    assert "█" in shown
    assert "GPU" not in shown


def test_where_there_is_a_gpu_its_share_of_the_steps_is_a_column(file: Path, capsys, monkeypatch):
    monkeypatch.setattr(step_benchmark, "counter", lambda device: lambda: 0.5)
    assert main(["bench", "step", str(file), "--arms", "population", "--steps", "1", "--warmup", "0"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"other +GPU\n", shown) and re.search(r" 50\.0%\n", shown)
    assert "by its driver" in shown


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ("step.png", "--picture cannot be step.png; name a file that ends in .svg"),
        ("no/such/step.svg", "there is no folder "),
        ("folder.svg", "folder.svg cannot be written: it is a folder"),
        ("/proc/step.svg", "/proc/step.svg cannot be written: "),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_measured(
    file: Path, tmp_path: Path, capsys, monkeypatch, picture, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.setattr(step_benchmark, "measure", lambda *_: pytest.fail("it was measured"))
    assert main(["bench", "step", str(file), "--picture", picture]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_steps_before_those_that_count_cannot_be_fewer_than_none(file: Path, capsys):
    assert main(["bench", "step", str(file), "--warmup", "-1"]) == 2
    assert capsys.readouterr().err == "redqueen: --warmup cannot be -1; use 0 or more\n"


def test_arms_that_take_turns_share_engine_and_verifier(file: Path, capsys):
    for setting in ("engine.rank", "verifier.workers"):
        assert main(["bench", "step", str(file), "--arms", f"population,population {setting}=2"]) == 2
        error = capsys.readouterr().err
        assert f'the arm "population {setting}=2" cannot have {setting} of its own' in error and error.count("\n") == 1


def test_a_members_children_practise_and_the_run_is_left_as_it_is(file: Path, place: Path, capsys):
    folder = place / "practised"
    assert main(["train", str(file), "--run", str(folder), "--quiet"]) == 0
    before = Left.of(folder)
    path, _ = checkpoints.newest(folder / CHECKPOINTS)
    assert path is not None
    living = restore(checkpoints.load(path).state["population"])
    for member in (living.students[0].id, living.teachers[0].id):
        found = answer(capsys, "retention", folder, "--member", member, "--children", 1, "--updates", 3, "--json")
        assert found["parent"] == member
        assert {"slot_noise", "layer_wise", "fresh", *CONTROLS} <= {row["operator"] for row in found["rows"]}
        assert all(len(curve["rewards"]) == 3 for curve in found["curves"])
    assert Left.of(folder) == before


def test_children_of_the_retention_test_begin_as_those_of_races_do(place: Path):
    """They warm up from their first update on, and teachers' have the teachers' learning rate."""
    changes = {"rl": {"lr": 1e-3, "teacher_lr": 5e-4, "warmup": 2}, "evolution": {"operators": ["slot_noise"]}}
    folder = race_to_the_end(place / "warmed", settings(changes=changes)).folder
    for member, factors in {"s0": [0.5, 1.0, 1.0], "t0": [0.25, 0.5, 0.5]}.items():
        with listening() as asked:
            measure_retention(folder, None, member, children=1, updates=3)
        assert [{row.lr_factor for row in batch} for batch in asked.updates] == [{factor} for factor in factors]
        assert {row.member.partition("~")[0] for batch in asked.updates for row in batch} == {member}


def test_averaged_members_have_no_crossovers_and_an_earlier_step_may_be_tested(place: Path, capsys):
    changes = {
        "run": {"steps": 2, "checkpoint_every": 1, "keep_every": 1},
        "evolution": {"every": 0, "pull": 1.0, "pull_every": 2, "operators": ["slot_noise", "layer_wise"]},
    }
    folder = race_to_the_end(place / "averaged", settings(changes=changes)).folder
    words = ("--member", "s0", "--children", "1", "--updates", "3", "--json")
    for step, tested in {2: {"slot_noise"}, 1: {"slot_noise", "layer_wise"}}.items():
        assert main(["retention", str(folder), "--step", str(step), *words]) == 0
        out, said = capsys.readouterr()
        rows = {row["operator"] for row in json.loads(out)["rows"]}
        assert rows == tested | ({*CONTROLS} if step == 1 else {"copy_parent"}) | {"fresh"}
        assert ("all students have the weights of s0 after step 2: crossovers are left out" in said) is (step == 2)
    assert main(["retention", str(folder), "--step", "9", *words]) == 2
    assert "has no checkpoint of step 9; its checkpoints are of steps 1, 2" in capsys.readouterr().err
    with Store.open(folder) as store:
        store.drop_after(1)
    assert main(["retention", str(folder), "--step", "2", *words]) == 2
    error = capsys.readouterr().err
    assert "end at step 1, before that checkpoint; name an earlier --step" in error and error.count("\n") == 1


def test_children_of_an_earlier_step_know_nothing_of_what_came_later(place: Path, capsys):
    def tested(name: str, steps: int) -> str:
        run = {"steps": steps, "checkpoint_every": 2, "keep_every": 2}
        changes = {"run": run, "guard": {"duplicates": "near"}, "evolution": {"operators": ["slot_noise"]}}
        folder = race_to_the_end(place / name, settings(changes=changes)).folder
        assert main(["retention", str(folder), "--step", "2", "--member", "t0", "--children", "1", "--updates", "3",
                     "--json"]) == 0  # fmt: skip
        return capsys.readouterr().out

    assert tested("retention-short", 2) == tested("retention-long", 6)
