"""Run by test_disks.py in a mount namespace of its own, with a disk of its own that is far too small: argv[1]."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from redqueen.errors import RunError
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.runs.run import Run
from redqueen.runs.store import Store
from runs.making import BASE, all_same, members, record


def fill(disk: Path, leave: int = 0) -> None:
    """All but so many bytes."""
    file = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT)
    size = 65536
    while size:
        try:
            os.write(file, bytes(size))
        except OSError:
            size //= 2
    os.ftruncate(file, os.fstat(file).st_size - leave)
    os.close(file)


def line(work) -> str:
    try:
        work()
    except RunError as error:
        return str(error)
    raise AssertionError("there was room")


disk = Path(sys.argv[1])
folder = disk / "run"
step_2 = record(2)
step_2 = replace(step_2, tasks=[replace(task, text="x" * 20_000) for task in step_2.tasks])

with Run.open(folder, "") as run:
    run.store.write(record(1))
    run.save(1, {"step": 1}, members(1), **BASE)
    fill(disk)
    print("records:", line(lambda: run.store.write(step_2)))
    assert run.store.last_step() == 1
    (disk / "ballast").unlink()
    run.store.write(step_2)
    fill(disk)
    print("checkpoint:", line(lambda: run.save(2, {"step": 2}, members(2), **BASE)))
    assert [each.name for each in (folder / CHECKPOINTS).iterdir()] == [checkpoints.name(1)]
print("begin:", line(lambda: Run.open(disk / "other", "key = 'value'\n" * 5000)))
with Store.read(folder) as store:
    assert store.last_step() == 2, "what is full can be read"
(disk / "ballast").unlink()
with Run.open(folder, "") as run:
    assert run.loaded is not None
    assert run.loaded.step == 1
    assert all_same(run.loaded.members, members(1))
    run.store.write(step_2)
    run.save(2, {"step": 2}, members(2), **BASE)
with Run.open(folder, "") as run:
    assert run.loaded is not None
    assert run.loaded.step == 2
for each in (folder, disk / "other"):
    shutil.rmtree(each)
for pages in range(100):
    folder = disk / str(pages)
    fill(disk, leave=pages * 4096)
    try:
        Run.open(folder, "key = 'value'\n").close()
    except RunError:
        began = False
    else:
        began = True
    (disk / "ballast").unlink()
    with Run.open(folder, "key = 'value'\n") as run:
        run.store.write(record(1))
    assert sorted(each.name for each in folder.iterdir()) == [CHECKPOINTS, "config.toml", "lock", "records.sqlite"]
    shutil.rmtree(folder)
    if began:
        break
assert 20 < pages < 99, "the disk was full at every moment of a start, and in the end it was not"
print("done")
