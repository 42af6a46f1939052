"""A run's directory: begun, held, resumed, refused and forked, and never lost."""

import errno
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redqueen
from redqueen.errors import Fault, InputError, RunError
from redqueen.runs import CHECKPOINTS, CONFIG, FORKED_FROM, checkpoints
from redqueen.runs.records_file import RECORDS
from redqueen.runs.run import LOCK, Run, fork
from redqueen.runs.settled import differences
from redqueen.runs.store import Store
from runs.making import BASE, Crash, all_same, content, dying, lost, members, record, workers

SETTINGS = "[run]\nsteps = 10\nseed = 0\n\n[rl]\nlr = 0.0001\n"
FREE = {"run.steps"}


def opened(folder: Path, config: str = SETTINGS, **keep) -> Run:
    return Run.open(folder, config, free=FREE, **keep)


def take(run: Run, step: int, *, save: bool = True) -> None:
    """A step of the race."""
    run.store.journal_put(step, {f"job {step}": step})
    run.store.write(record(step))
    if save:
        run.save(step, {"step": step}, members(step), **BASE)


def begun(folder: Path) -> None:
    """A run of one step."""
    with opened(folder) as run:
        take(run, 1)


def refusal(folder: Path, config: str = SETTINGS) -> str:
    with pytest.raises(RunError) as caught:
        opened(folder, config)
    assert str(caught.value).isprintable(), "a refusal is one printable line"
    return str(caught.value)


def saved_steps(folder: Path) -> list[int]:
    return checkpoints.steps(folder / CHECKPOINTS)


# Beginning and going on


def test_a_run_begins_in_a_folder_that_is_not_there_or_is_empty(tmp_path):
    for folder in (tmp_path, tmp_path / "a" / "b"):
        with opened(folder) as run:
            assert (run.loaded, run.notes, run.store.last_step()) == (None, [], 0)
        assert (folder / CONFIG).read_text() == SETTINGS
        assert sorted(each.name for each in folder.iterdir() if each.name != "a") == [
            CHECKPOINTS,
            CONFIG,
            LOCK,
            RECORDS,
        ]


def test_a_run_goes_on_from_its_last_checkpoint_and_runs_later_steps_again(tmp_path):
    with opened(tmp_path) as run:
        take(run, 1)
        take(run, 2)
        at_two = list(run.store.tasks())
        take(run, 3, save=False)
        take(run, 4, save=False)
    with opened(tmp_path) as run:
        assert run.loaded is not None
        assert (run.loaded.step, run.loaded.state) == (2, {"step": 2})
        assert all_same(run.loaded.members, members(2))
        assert run.store.last_step() == 2
        assert list(run.store.tasks()) == at_two
        assert run.notes == ["steps 3 to 4 were not saved and are run again"]
        assert run.store.journal_get(["job 2", "job 3", "job 4"]) == {"job 3": 3, "job 4": 4}
        take(run, 3)
        assert run.store.journal_get(["job 3", "job 4"]) == {"job 4": 4}


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(tmp_path):
    with opened(tmp_path) as run:
        take(run, 1, save=False)
    with opened(tmp_path) as run:
        assert run.loaded is None
        assert run.store.last_step() == 0
        assert set(run.store.counts().values()) == {0}
        assert run.store.journal_get(["job 1"]) == {"job 1": 1}
        assert run.notes == ["steps 1 to 1 were not saved and are run again"]


def test_a_damaged_checkpoint_is_passed_over_said_and_kept_and_the_run_can_save_there_again(tmp_path):
    with opened(tmp_path) as run:
        for step in (1, 2):
            take(run, step)
    bad = tmp_path / CHECKPOINTS / checkpoints.name(2) / "optimiser.safetensors"
    bad.write_bytes(bad.read_bytes()[:-1])
    with opened(tmp_path) as run:
        assert run.loaded is not None
        assert run.loaded.step == 1
        assert run.store.last_step() == 1
        assert run.notes[0].endswith("step-000002 is passed over: optimiser.safetensors has changed")
        take(run, 2)
    with opened(tmp_path) as run:
        assert run.loaded is not None
        assert run.loaded.step == 2
    assert len([each for each in (tmp_path / CHECKPOINTS).iterdir() if each.suffix == ".unused"]) == 1


def test_without_a_whole_checkpoint_nothing_is_dropped(tmp_path):
    with opened(tmp_path) as run:
        take(run, 1)
        take(run, 2, save=False)
    (tmp_path / CHECKPOINTS / checkpoints.name(1) / "state.json").unlink()
    before = content(tmp_path)
    text = refusal(tmp_path)
    assert "no checkpoint to go on from" in text
    assert "step-000001 is passed over: state.json is missing" in text
    assert content(tmp_path) == before


def test_a_checkpoint_ahead_of_the_records_is_passed_over_and_does_not_push_others_out(tmp_path):
    with opened(tmp_path) as run:
        for step in (1, 2, 3):
            take(run, step)
        run.store.drop_after(2)
    with opened(tmp_path, last=1) as run:
        assert run.loaded is not None
        assert run.loaded.step == 2
        assert any("step-000003 is passed over: the records end at step 2" in note for note in run.notes)
        assert saved_steps(tmp_path) == [2]
        take(run, 3)
        assert saved_steps(tmp_path) == [3]


def test_a_run_that_lost_its_records_is_not_begun_again(tmp_path):
    with opened(tmp_path) as run:
        take(run, 1)
    (tmp_path / RECORDS).unlink()
    assert "has lost its records.sqlite" in refusal(tmp_path)
    assert saved_steps(tmp_path) == [1]


def lose_folder(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINTS)


def unmount(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINTS)
    (folder / CHECKPOINTS).mkdir()


def unmount_elsewhere(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINTS)
    (folder / CHECKPOINTS).symlink_to(folder.parent / "not mounted")


@pytest.mark.parametrize("lose", [lose_folder, unmount, unmount_elsewhere])
def test_a_run_that_lost_its_checkpoints_is_not_begun_again(tmp_path, lose):
    folder = tmp_path / "run"
    begun(folder)
    with opened(folder) as run:
        take(run, 2, save=False)
    kept = shutil.copytree(folder / CHECKPOINTS, tmp_path / "kept")
    before = {name: text for name, text in content(folder).items() if not name.startswith(CHECKPOINTS)}
    lose(folder)
    text = refusal(folder, SETTINGS.replace("10", "20"))
    assert f"{folder} has lost its checkpoints, with records of 2 steps; mount or restore" in text
    assert content(folder) == before
    with Store.read(folder) as store:
        assert len(list(store.tasks())) == 12
    if (folder / CHECKPOINTS).is_symlink():
        (folder / CHECKPOINTS).unlink()
    shutil.copytree(kept, folder / CHECKPOINTS, dirs_exist_ok=True)
    with opened(folder) as run:
        assert run.loaded is not None and run.loaded.step == 1


def test_a_fork_that_lost_its_checkpoints_is_not_begun_again(tmp_path):
    begun(tmp_path / "source")
    fork(tmp_path / "source", 1, tmp_path / "fork", SETTINGS)
    unmount(tmp_path / "fork")
    assert "has lost its checkpoints" in refusal(tmp_path / "fork")


def test_a_run_whose_first_save_was_cut_off_after_the_checkpoint_knows_that_it_has_one(tmp_path):
    with opened(tmp_path) as run:
        run.store.write(record(1))
        checkpoints.save(tmp_path / CHECKPOINTS, 1, {"step": 1}, members(1), **BASE)
    opened(tmp_path).close()
    unmount(tmp_path)
    assert "has lost its checkpoints" in refusal(tmp_path)


def test_a_run_that_lost_its_settings_is_said_to_have(tmp_path):
    begun(tmp_path)
    (tmp_path / CONFIG).unlink()
    before = content(tmp_path)
    assert f"{tmp_path} has lost its config.toml; restore it from a copy" in refusal(tmp_path)
    assert content(tmp_path) == before


def test_saving_prunes_checkpoints_and_the_journal(tmp_path):
    with opened(tmp_path, last=2, every=4) as run:
        for step in range(1, 10):
            take(run, step)
            assert run.store.journal_get([f"job {step}"]) == {}
    assert saved_steps(tmp_path) == [4, 8, 9]


def test_saving_a_step_again_changes_nothing(tmp_path):
    with opened(tmp_path) as run:
        take(run, 1)
        before = content(tmp_path / CHECKPOINTS)
        run.save(1, {"step": 1}, members(1), **BASE)
    with opened(tmp_path) as run:
        run.save(1, {"step": 1}, members(1), **BASE)
    assert content(tmp_path / CHECKPOINTS) == before
    assert [each.name for each in (tmp_path / CHECKPOINTS).iterdir()] == [checkpoints.name(1)]


def test_no_checkpoint_comes_before_its_records(tmp_path):
    with opened(tmp_path) as run, pytest.raises(Fault, match="before its records"):
        run.save(1, {}, members(1), **BASE)
    assert saved_steps(tmp_path) == []


# Settings


def test_other_settings_are_refused_and_every_difference_named(tmp_path):
    begun(tmp_path)
    before = content(tmp_path)
    text = refusal(tmp_path, '[run]\nsteps = 10\nseed = 1\n\n[rl]\nlr = 0.001\nkind = "x"\n')
    assert "rl.lr: 0.0001 here, 0.001 asked" in text
    assert "run.seed: 0 here, 1 asked" in text
    assert 'rl.kind: none here, "x" asked' in text
    assert "run.steps" not in text
    assert content(tmp_path) == before


def test_free_settings_are_taken_and_written_down(tmp_path):
    opened(tmp_path).close()
    longer = SETTINGS.replace("10", "20")
    opened(tmp_path, longer).close()
    assert (tmp_path / CONFIG).read_text() == longer


def test_a_refused_run_keeps_its_free_settings_too(tmp_path):
    begun(tmp_path)
    refusal(tmp_path, SETTINGS.replace("10", "20").replace("0.0001", "0.1"))
    assert (tmp_path / CONFIG).read_text() == SETTINGS


tables = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.text(max_size=2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(0, 2), max_size=3),
    max_leaves=6,
)


def leaves(table: dict, prefix: str = "") -> dict:
    found = {}
    for key, value in table.items():
        found |= leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


@given(tables, tables, st.sets(st.sampled_from(["a", "b", "a.b", "c.a"])))
def test_settings_differ_where_their_values_do(here, asked, free):
    ours, theirs = leaves(here), leaves(asked)
    keys = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    bound = {key for key in keys if not {key, key[:1]} & free and not {key[:3]} & free}
    assert {each.partition(":")[0] for each in differences(here, asked, free)} == bound


def test_a_setting_that_an_older_version_did_not_write_down_has_its_default(tmp_path):
    begun(tmp_path)
    other = refusal(tmp_path, f'{SETTINGS}\n[tasks]\nfamilies = ["mine.py:FAMILY"]\n')
    assert 'tasks.families: ["code"] here, ["mine.py:FAMILY"] asked' in other
    usual = f'{SETTINGS}\n[tasks]\nfamilies = ["code"]\n'
    opened(tmp_path, usual).close()
    assert (tmp_path / CONFIG).read_text() == usual


def test_a_run_that_has_no_step_yet_takes_other_settings(tmp_path):
    opened(tmp_path).close()
    other = SETTINGS.replace("0.0001", "0.1")
    opened(tmp_path, other).close()
    assert (tmp_path / CONFIG).read_text() == other


@pytest.mark.parametrize("text", [b"[run", bytes(range(256)), b"a = " + b"[" * 100_000], ids=["cut", "binary", "deep"])
def test_damaged_settings_are_said_to_be(tmp_path, text):
    begun(tmp_path)
    (tmp_path / CONFIG).write_bytes(text)
    assert "config.toml is damaged" in refusal(tmp_path)


# Folders that are no run's, and runs that are somebody's


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path):
    for other, text in (("thesis.tex", "x"), (CONFIG, "[tool]\n")):
        folder = tmp_path / other
        folder.mkdir()
        (folder / other).write_text(text)
        before = content(folder)
        assert "is not empty and no run" in refusal(folder)
        assert content(folder) == before
        assert "is no folder" in refusal(folder / other)


def test_a_second_process_is_refused_and_told_who_has_the_run(tmp_path):
    program = "import sys; from redqueen.runs.run import Run; Run.open(__import__('pathlib').Path(sys.argv[1]), '')"
    source = str(Path(redqueen.__file__).parents[1])
    with opened(tmp_path):
        found = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": source},
            capture_output=True,
            text=True,
        )
    assert f"RunError: {tmp_path} is in use by process {os.getpid()};" in found.stderr
    opened(tmp_path).close()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("12\n")
    for name, make in (("symbolic", os.symlink), ("hard", os.link)):
        folder = tmp_path / name
        folder.mkdir()
        make(precious, folder / LOCK)
        assert ("is a symbolic link" if name == "symbolic" else "is not the lock of a run") in refusal(folder)
        assert [each.name for each in folder.iterdir()] == [LOCK]
    assert precious.read_text() == "12\n"


def test_a_lock_that_is_something_else_is_refused_and_left_alone(tmp_path):
    for name in ("text", "fifo", "folder"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / CONFIG).write_text("mine = true\n")
        match name:
            case "text":
                (folder / LOCK).write_text("mine\n")
            case "fifo":
                os.mkfifo(folder / LOCK)
            case _:
                (folder / LOCK).mkdir()
        before = content(folder)
        assert "Is a directory" in (text := refusal(folder)) or "is not the lock of a run" in text
        assert content(folder) == before


def test_a_link_in_the_place_of_something_unfinished_is_removed_and_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").touch()
    opened(tmp_path / "run").close()
    (tmp_path / "run" / "config.toml.00112233.partial").symlink_to(tmp_path / "elsewhere")
    begun(tmp_path / "run")
    assert (tmp_path / "elsewhere" / "mine").exists()
    assert not (tmp_path / "run" / "config.toml.00112233.partial").is_symlink()


def test_a_run_that_could_not_be_opened_is_not_held(tmp_path):
    begun(tmp_path)
    refusal(tmp_path, SETTINGS.replace("0.0001", "0.1"))
    with opened(tmp_path) as run:
        run.close()
        opened(tmp_path).close()


# Crashes


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_a_run_begins_is_no_obstacle(tmp_path, after):
    for at in range(20):
        folder = tmp_path / str(at)
        try:
            with dying(at, after=after):
                opened(folder).close()
        except Crash:
            with opened(folder) as run:
                take(run, 1)
            assert (folder / CONFIG).read_text() == SETTINGS
            assert sorted(each.name for each in folder.iterdir()) == [CHECKPOINTS, CONFIG, LOCK, RECORDS]
        else:
            break
    assert at == 7, "flush, rename, flush for the settings and for the records, and a flush between them"


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_moment_of_a_save_loses_nothing_that_was_saved(tmp_path, after):
    for at in range(60):
        folder = tmp_path / str(at)
        run = opened(folder, last=1)
        take(run, 1)
        try:
            with dying(at, after=after):
                take(run, 2)
        except Crash:
            run.close()
            with opened(folder, last=1) as run:
                assert run.loaded is not None
                step = run.loaded.step
                assert run.loaded.state == {"step": step}
                assert all_same(run.loaded.members, members(step))
                assert run.store.last_step() == step
                assert run.store.journal_get(["job 2"]) == ({"job 2": 2} if step == 1 else {})
                for each in range(step + 1, 4):
                    take(run, each)
            assert [each.name for each in (folder / CHECKPOINTS).iterdir()] == [checkpoints.name(3)]
        else:
            run.close()
            break
    assert at > 15


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_free_settings_change_leaves_the_old_or_the_new_ones(tmp_path, after):
    longer = SETTINGS.replace("10", "20")
    for at in range(10):
        folder = tmp_path / str(at)
        opened(folder).close()
        try:
            with dying(at, after=after):
                opened(folder, longer).close()
        except Crash:
            assert (folder / CONFIG).read_text() in (SETTINGS, longer)
            opened(folder, longer).close()
            assert tomllib.loads((folder / CONFIG).read_text())["run"]["steps"] == 20
        else:
            break
    assert at == 4


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_what_the_disk_refuses_is_one_line(tmp_path, code):
    for at in range(6):
        with dying(at, error=lambda: OSError(code, os.strerror(code))):
            assert os.strerror(code) in refusal(tmp_path / str(at))


# Forks


@pytest.fixture
def source(tmp_path):
    with opened(tmp_path / "source", last=3) as run:
        run.store.set_facts({"device": "cpu"})
        for step in (1, 2, 3):
            take(run, step)
        take(run, 4, save=False)
    return tmp_path / "source"


def test_a_fork_is_the_run_as_it_was_at_that_step(source, tmp_path):
    before = content(source)
    target = tmp_path / "deeper" / "fork"
    other = SETTINGS.replace("0.0001", "0.01")
    fork(source, 2, target, other)
    assert content(source) == before
    with opened(target, other) as run:
        assert run.loaded is not None
        assert run.loaded.step == 2
        assert all_same(run.loaded.members, members(2))
        with Store.read(source) as theirs:
            assert list(run.store.tasks()) == list(theirs.tasks(until=2))
            assert run.store.counts() == {name: count // 2 for name, count in theirs.counts().items()}
        assert run.store.facts() == {"device": "cpu", FORKED_FROM: f"{source}, step 2"}
        assert run.store.journal_get(["job 4"]) == {}
        take(run, 3)
    assert saved_steps(target) == [2, 3]
    assert saved_steps(source) == [1, 2, 3]


def test_a_fork_has_workers_of_its_own_and_a_resumed_run_remembers_them(source, tmp_path):
    with opened(source) as run:
        run.store.write(replace(record(4), workers=workers(4)))
        run.store.add_worker_events([lost(4)])
    with opened(source) as run:
        # The last checkpoint is of step 3.
        assert run.store.workers(4) == [] and run.store.worker_events(newest=1) == [lost(4)]
    fork(source, 2, tmp_path / "fork", SETTINGS)
    with opened(tmp_path / "fork") as forked:
        assert forked.store.worker_events(newest=1) == []


def test_a_run_at_work_can_be_forked(source, tmp_path):
    with opened(source) as run:
        take(run, 4)
        fork(source, 4, tmp_path / "fork", SETTINGS)
        take(run, 5)
    with opened(tmp_path / "fork") as forked:
        assert forked.store.last_step() == 4


def test_a_fork_needs_a_whole_checkpoint_of_its_step(source, tmp_path):
    target = tmp_path / "fork"
    with pytest.raises(RunError, match=r"no checkpoint of step 4; fork from one of the steps 1, 2, 3"):
        fork(source, 4, target, SETTINGS)
    (source / CHECKPOINTS / checkpoints.name(3) / "state.json").write_text("")
    with pytest.raises(RunError, match=r"state.json has changed"):
        fork(source, 3, target, SETTINGS)
    with pytest.raises(InputError, match="is not a run folder"):
        fork(tmp_path / "nowhere", 3, target, SETTINGS)
    assert not target.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["source"]


def test_a_fork_is_not_put_over_anything(source, tmp_path):
    target = tmp_path / "fork"
    target.mkdir()
    (target / "mine").touch()
    with pytest.raises(RunError, match="is there already"):
        fork(source, 2, target, SETTINGS)
    (target / "mine").unlink()
    fork(source, 2, target, SETTINGS)
    opened(target).close()


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_forking_leaves_a_whole_fork_or_none(source, tmp_path, after):
    before = content(source)
    for at in range(60):
        target = tmp_path / f"fork{at}"
        try:
            with dying(at, after=after):
                fork(source, 2, target, SETTINGS)
        except Crash:
            assert content(source) == before
            if not target.exists():
                fork(source, 2, target, SETTINGS)
            with opened(target) as run:
                assert run.loaded is not None
                assert run.loaded.step == run.store.last_step() == 2
        else:
            break
    assert at > 15


def test_records_beyond_what_is_resumed_are_the_same_when_run_again(tmp_path):
    with opened(tmp_path / "unbroken") as run:
        for step in (1, 2, 3):
            take(run, step)
    with opened(tmp_path / "broken") as run:
        take(run, 1)
        run.store.write(replace(record(2), tasks=(), timings={}))
    with opened(tmp_path / "broken") as run:
        for step in (2, 3):
            take(run, step)
    with Store.read(tmp_path / "unbroken") as ours, Store.read(tmp_path / "broken") as theirs:
        for rows in ("tasks", "rejections", "meetings", "events", "alarms", "metrics"):
            assert list(getattr(ours, rows)()) == list(getattr(theirs, rows)())
    assert content(tmp_path / "unbroken" / CHECKPOINTS) == content(tmp_path / "broken" / CHECKPOINTS)
