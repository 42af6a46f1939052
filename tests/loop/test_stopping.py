"""A race that is stopped, refused, extended or forked: nothing is lost, and what goes on is the same race."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from kill import SETTINGS, Left

from loop.processes import Child, held_after_the_first_step, signalled_twice, with_small_files
from redqueen.commands.main import main
from redqueen.phases.view import Quiet
from redqueen.runs import CHECKPOINTS, CONFIG, REPORT, checkpoints
from redqueen.runs.metrics import FLOPS, RACE
from redqueen.runs.records_file import RECORDS
from redqueen.runs.run import Run
from redqueen.runs.store import Store
from redqueen.settings import load_run
from redqueen.training.train import heeding_signals


@pytest.fixture(scope="module")
def file(place: Path) -> Path:
    path = place / "race.toml"
    # What has been played decides who meets whom and who dies.
    path.write_text(SETTINGS.replace("[evolution]", '[match]\nmaker = "round_robin"\n[evolution]\nfitness = "rate"'))
    return path


@pytest.fixture(scope="module")
def alone(place: Path, file: Path) -> Path:
    """The folder of a race that nobody disturbed."""
    folder = place / "alone"
    assert main(["train", str(file), "--run", str(folder), "--quiet", "--run.keep-last", "3"]) == 0
    return folder


def go_on(file: Path, folder: Path, *more: str) -> Left:
    assert main(["train", str(file), "--run", str(folder), "--quiet", *more]) == 0
    return Left.of(folder)


def words(file: Path, folder: Path, *more: str) -> list[str]:
    return ["train", str(file), "--run", str(folder), *more]


def saved(folder: Path) -> list[int]:
    return checkpoints.steps(folder / CHECKPOINTS)


# Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_last_whole_step_and_the_race_goes_on_from_there(
    number: signal.Signals, file: Path, alone: Path, place: Path
):
    folder = place / number.name
    with held_after_the_first_step(folder, words(file, folder)) as child:
        assert child.process.pid is not None
        os.kill(child.process.pid, number)
    ended = child.wait()
    assert (ended.status, ended.err) == (128 + number, "")
    assert "stopping: first this phase is finished, then the run is saved" in ended.out
    assert "stopped after step 1 of 3; the same command goes on from there" in ended.out
    assert saved(folder) == [1], "which has no checkpoint in a race that nobody stops"
    with Store.read(folder) as records:
        assert records.last_step() == 1
    assert go_on(file, folder).differences(Left.of(alone)) == []


def test_a_second_signal_does_not_wait(place: Path):
    ended = Child(place / "twice", signalled_twice).wait()
    assert ended.status == 128 + signal.SIGINT, ended.err
    assert ended.out.startswith("stopping: ")
    assert "still there" not in ended.out


def test_signals_are_handled_as_before_when_the_race_is_over():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with heeding_signals(Quiet()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


# No room

LARGE = ["--engine.rank", "16", "--run.steps", "2"]
"""The optimiser of members this large is larger than all that is recorded by then."""


@pytest.fixture(scope="module")
def roomy(place: Path, file: Path) -> Left:
    """What the large members leave where there is room."""
    return go_on(file, place / "roomy", *LARGE)


@pytest.mark.parametrize(
    ("bytes", "says"),
    [(1_000_000, r"the checkpoint of step 2 cannot be written: .*"), (150_000, r".*records\.sqlite cannot be .*")],
    ids=["checkpoint", "records"],
)
def test_without_room_a_race_ends_in_one_line_and_goes_on_when_there_is_room(
    bytes: int, says: str, file: Path, place: Path, roomy: Left
):
    folder = place / f"no-room-{bytes}"
    ended = Child(folder, with_small_files, bytes, words(file, folder, *LARGE)).wait()
    assert ended.status == 2
    [line] = ended.err.splitlines()
    assert re.fullmatch(f"redqueen: {says}", line), line
    assert not [*folder.rglob("*.partial")]
    assert go_on(file, folder, *LARGE).differences(roomy) == []


# Refusals


def refused(capsys, *command: str) -> str:
    capsys.readouterr()
    assert main(["train", *command]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_a_second_process_on_the_same_run_is_refused(file: Path, alone: Path, capsys):
    text = (alone / "config.toml").read_text()
    before = Left.of(alone)
    with Run.open(alone, text):
        line = refused(capsys, str(file), "--run", str(alone))
    assert f"{alone} is in use by process {os.getpid()}" in line
    assert Left.of(alone) == before


def test_other_settings_are_refused_with_what_differs(file: Path, alone: Path, capsys):
    before = Left.of(alone)
    line = refused(capsys, str(file), "--run", str(alone), "--rl.lr", "0.5", "--tasks.attempts", "9")
    assert "was begun with other settings: rl.lr: 0.001 here, 0.5 asked; tasks.attempts: 3 here, 9 asked" in line
    assert Left.of(alone) == before


def test_other_settings_are_refused_before_anything_heavy_is_loaded(file: Path, alone: Path):
    words = ["train", str(file), "--run", str(alone), "--rl.lr", "0.5"]
    script = f"""if True:
        import sys
        from redqueen.commands.main import main
        assert main({words!r}) == 2 and "torch" not in sys.modules
    """
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0 and "other settings: rl.lr: 0.001 here, 0.5 asked; " in ended.stderr, ended.stderr


@pytest.mark.parametrize("fewer", [[], ["--run.steps", "1"]])
def test_a_finished_run_says_so_and_stays_as_it_is(fewer: list[str], file: Path, alone: Path, capsys):
    before = Left.of(alone)
    assert main(["train", str(file), "--run", str(alone), *fewer]) == 0
    assert "nothing is left to do after step 3; raise run.steps to go on" in capsys.readouterr().out
    assert Left.of(alone) == before and load_run(alone / CONFIG).run.steps == 3


# Going on


def test_a_finished_run_that_is_extended_is_the_run_that_had_all_steps_from_the_start(
    file: Path, alone: Path, place: Path
):
    folder = place / "extended"
    go_on(file, folder, "--run.steps", "1")
    assert saved(folder) == [1]
    assert go_on(file, folder).differences(Left.of(alone)) == []


def test_a_race_ends_with_the_step_in_which_its_operations_are_spent(file: Path, alone: Path, place: Path, capsys):
    with Store.read(alone) as records:
        first, second, third = (int(row.value) for row in records.metrics(FLOPS, RACE))
    folder = place / "spent"
    assert main(["train", str(file), "--run", str(folder), "--run.flops", str(first + 1)]) == 0
    shown = re.findall(r"^step (\S+)", capsys.readouterr().out, re.M)
    assert [step for step in shown if "/" in step] == ["1/~2", "2/2"], "and not 1/3"
    assert saved(folder)[-1] == 2
    assert (folder / REPORT).exists()
    line = f"--run.flops {first + second}".split()
    assert main(["train", str(file), "--run", str(folder), *line]) == 0
    assert "nothing is left to do after step 2; raise run.flops to go on" in capsys.readouterr().out
    assert main(["compare", str(folder)]) == 0
    assert "is at step" not in capsys.readouterr().out, "it is at its end"
    go_on(file, folder, "--run.flops", str(first + second + 1))
    assert go_on(file, folder, "--run.flops", str(10 * third)).differences(Left.of(alone)) == [], "steps end it too"


def test_a_race_that_is_killed_ends_with_the_same_step(file: Path, alone: Path, place: Path, capsys):
    with Store.read(alone) as records:
        first, *_ = (int(row.value) for row in records.metrics(FLOPS, RACE))
    folder, limit = place / "spent-and-stopped", ["--run.flops", str(first + 1)]
    with held_after_the_first_step(folder, words(file, folder, *limit)) as child:
        assert child.process.pid is not None
        os.kill(child.process.pid, signal.SIGTERM)
    assert "stopped after step 1 of ~2; the same command goes on from there" in child.wait().out
    assert saved(folder) == [1]
    capsys.readouterr()
    assert main(words(file, folder, *limit)) == 0
    assert "going on after step 1 of ~2\n" in capsys.readouterr().out
    assert saved(folder)[-1] == 2


def test_steps_whose_operations_nobody_counted_cannot_end_by_them(file: Path, place: Path, capsys):
    folder = place / "uncounted"
    go_on(file, folder, "--run.steps", "1")
    with closing(sqlite3.connect(folder / RECORDS)) as db:
        db.execute("DELETE FROM metrics WHERE name IN ('flops', 'prompt_tokens', 'update_tokens')")
        db.commit()
    line = refused(capsys, str(file), "--run", str(folder), "--run.flops", "1e9")
    assert "has steps of an older version, whose floating-point operations nobody counted; leave out run.flops" in line
    assert main(["compare", str(folder)]) == 0
    assert re.search(r"^floating-point operations +-$", capsys.readouterr().out, re.M)
    go_on(file, folder, "--run.steps", "2")


def test_a_run_from_before_a_setting_stays_the_race_that_it_was(file: Path, place: Path, capsys):
    allowed = go_on(file, place / "allowed", "--guard.shortcuts", "allow")
    folder = place / "from-before"
    go_on(file, folder, "--run.steps", "1", "--guard.shortcuts", "allow")
    config = folder / CONFIG
    config.write_text(config.read_text().replace('shortcuts = "allow"\n', ""))
    assert "shortcuts" not in config.read_text() and load_run(config).guard.shortcuts == "allow"
    assert main(words(file, folder, "--run.steps", "2")) == 0
    assert 'guard.shortcuts stays "allow", as in the version that began this run' in capsys.readouterr().out
    assert go_on(file, folder).differences(allowed) == [], "the same command, once more"
    assert load_run(config).guard.shortcuts == "allow"
    # It was not begun with another value, and goes on with none.
    config.write_text(config.read_text().replace("drift_ceiling", "# drift_ceiling"))
    capsys.readouterr()
    assert main(words(file, folder, "--guard.drift-ceiling", "0.3")) == 2
    assert "guard.drift_ceiling: " in (said := capsys.readouterr().err) and "0.3 asked" in said


def test_what_a_run_says_of_its_settings_is_not_changed(file: Path, place: Path, capsys):
    folder = place / "says-so"
    go_on(file, folder, "--run.steps", "1", "--guard.shortcuts", "allow")
    assert 'guard.shortcuts: "allow" here, "refuse" asked' in refused(capsys, str(file), "--run", str(folder))


PAIR = ["--population.teachers", "1", "--population.students", "1", "--evolution.trial", "0", "--evolution.pull", "0"]


def test_what_would_do_nothing_is_refused_for_a_new_run(file: Path, place: Path, capsys):
    for more in ([], ["--plan"]):
        line = refused(capsys, str(file), "--run", str(place / "idle"), *PAIR, *more)
        assert 'rl.share = "students" would do nothing' in line and line.endswith('; set rl.share to "nobody"')
    assert not (place / "idle").exists()


def test_a_run_with_what_does_nothing_goes_on(file: Path, place: Path):
    folder = place / "was-idle"
    of_run = [*PAIR, "--rl.share", "nobody", "--run.steps"]
    go_on(file, folder, *of_run, "1")
    config = folder / CONFIG
    config.write_text(config.read_text().replace('share = "nobody"', 'share = "students"'))
    assert main(["retention", str(folder), "--member", "s0", "--children", "1", "--updates", "3"]) == 0
    go_on(file, folder, *PAIR, "--run.steps", "2")
    go_on(file, folder, *of_run, "3")
    assert saved(folder)[-1] == 3
    assert 'share = "nobody"' in config.read_text()


def test_a_fork_goes_on_from_a_step_of_another_run(file: Path, alone: Path, place: Path):
    before = Left.of(alone)
    fork = go_on(file, place / "fork", "--fork", f"{alone}:2")
    assert fork.differences(Left.of(alone)) == ["facts"], "where it comes from"
    with Store.read(place / "fork") as records:
        assert records.facts()["forked_from"] == f"{alone}, step 2"
    assert Left.of(alone) == before


def test_a_fork_may_have_other_settings(file: Path, alone: Path, place: Path):
    fork = go_on(file, place / "other-fork", "--fork", f"{alone}:2", "--rl.lr", "0.01")
    differs = fork.differences(Left.of(alone))
    assert {"facts", "step-000003/members/s0/adapter_model.safetensors"} <= {*differs}
    assert not {"tasks", "rejections", "attempts", "events"} & {*differs}, "its next step begins as the other's does"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (["--population.teachers", "4"], "has population.teachers = 2, and 4 is asked for its fork"),
        (["--engine.rank", "3"], "has engine.rank = "),
        (["--arm", "single"], "population.teachers = 2, and 1 is asked"),
    ],
)
def test_a_fork_keeps_its_sources_members(how: list[str], says: str, file: Path, alone: Path, place: Path, capsys):
    line = refused(capsys, str(file), "--run", str(place / "no-fork"), "--fork", f"{alone}:2", *how)
    assert says in line
    assert not (place / "no-fork").exists()


def test_a_run_that_is_no_such_fork_is_not_taken_for_one(file: Path, alone: Path, capsys):
    assert "is there already, and no fork" in refused(capsys, str(file), "--run", str(alone), "--fork", f"{alone}:2")


@pytest.mark.parametrize(
    ("fork", "says"),
    [
        ("{alone}:7", "has no checkpoint of step 7; fork from one of the steps 2, 3"),
        ("{alone}", "--fork cannot be "),
        ("nowhere:1", "nowhere is not a run folder"),
    ],
)
def test_a_fork_from_nothing_is_refused(fork: str, says: str, file: Path, alone: Path, place: Path, capsys):
    line = refused(capsys, str(file), "--run", str(place / "no-fork"), "--fork", fork.format(alone=alone))
    assert says in line
    assert not (place / "no-fork").exists()
