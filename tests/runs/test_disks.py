"""Disks that are full and folders that nobody may write to: one line, and nothing is lost."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import redqueen
from redqueen.errors import RunError
from redqueen.runs import CHECKPOINTS
from redqueen.runs.records_file import RECORDS
from redqueen.runs.run import Run, fork
from redqueen.runs.store import Store
from runs.making import BASE, content, members, quick_folder, record

NOBODY = 65534


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """For as long as this lasts we are somebody who may read the folder, and no more."""
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        # No rights bind the superuser.
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)


@pytest.fixture
def run_folder(tmp_path):
    tmp_path.chmod(0o755)
    folder = tmp_path / "run"
    with Run.open(folder, "") as run:
        for step in (1, 2):
            run.store.write(record(step))
            run.save(step, {"step": step}, members(step), **BASE)
    return folder


def test_a_run_can_be_read_where_nothing_can_be_written(run_folder):
    with read_only(run_folder):
        with Store.read(run_folder) as store:
            assert store.last_step() == 2
            assert len(list(store.tasks())) == 12
        assert sorted(each.name for each in run_folder.iterdir()) == [CHECKPOINTS, "config.toml", "lock", RECORDS]


def test_steps_that_are_in_the_log_alone_can_be_read_where_nothing_can_be_written(run_folder, tmp_path):
    copied = tmp_path / "copy"
    copied.mkdir()
    with Run.open(run_folder, "") as run:
        run.store.write(record(3))
        # As a crash leaves it, once it is on another disk.
        for name in (RECORDS, f"{RECORDS}-wal"):
            shutil.copyfile(run_folder / name, copied / name)
    with read_only(copied), Store.read(copied) as store:
        assert store.last_step() == 3
        assert len(list(store.tasks())) == 18


def test_a_reader_without_rights_follows_a_writer(run_folder):
    with Run.open(run_folder, "") as run:
        with read_only(run_folder):
            reader = Store.read(run_folder)
            assert reader.last_step() == 2
        run.store.write(record(3))
        assert reader.last_step() == 3
        reader.close()


def test_a_run_that_cannot_be_written_to_is_refused_in_one_line(run_folder):
    before = content(run_folder)
    with read_only(run_folder):
        with pytest.raises(RunError, match="cannot be used: Permission denied"):
            Run.open(run_folder, "")
        with pytest.raises(RunError, match="cannot be used: Permission denied"):
            Run.open(run_folder / "inside", "")
        with pytest.raises(RunError, match=r"cannot be (written to|opened)"), Store.open(run_folder) as store:
            store.write(record(3))
    assert content(run_folder) == before


def test_a_read_only_run_can_be_forked(run_folder):
    with quick_folder() as elsewhere:
        elsewhere.chmod(0o777)
        target = elsewhere / "fork"
        with read_only(run_folder):
            fork(run_folder, 2, target, "")
            with Run.open(target, "", last=1) as run:
                run.store.write(record(3))
                run.save(3, {"step": 3}, members(3), **BASE)
        assert [each.name for each in (target / CHECKPOINTS).iterdir()] == ["step-000003"]


def test_a_full_disk_is_one_line_and_the_run_begins_or_goes_on_when_there_is_room(tmp_path):
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}"
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, mount], capture_output=True).returncode:
        pytest.skip("no disk can be made here")
    script = Path(__file__).with_name("full_disk.py")
    paths = f"{Path(redqueen.__file__).parents[1]}:{Path(__file__).parents[1]}"
    found = subprocess.run(
        [*unshare, f'{mount} && exec "$0" "$@"', sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    said = dict(line.split(": ", 1) for line in found.stdout.splitlines()[:-1])
    assert said["records"].startswith(f"the disk of {tmp_path}/run/{RECORDS} is full; ")
    assert said["checkpoint"].startswith("the checkpoint of step 2 cannot be written: ")
    assert "No space left on device" in said["checkpoint"]
    assert found.stdout.endswith("done\n"), "and a run that a full disk kept from starting starts when there is room"
    assert said["begin"].startswith(f"{tmp_path}/other cannot be used: No space left on device; ")
