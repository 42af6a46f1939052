"""Each tracker in its offline mode and with its real package: what is logged arrives, and a failure ends no run."""

import importlib
import sqlite3
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.errors import ConfigError
from redqueen.ui.trackers import TRACKERS, close_trackers, log_to, open_trackers

CONFIG = {"engine": {"base": "tiny", "rank": 4}}


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    for name in ("WANDB_MODE", "TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def run(tmp_path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def play(name: str, run: Path, steps: range, run_name: str = "r") -> None:
    """One process's part of a run."""
    trackers = open_trackers([name], run, "tests", run_name, CONFIG)
    said: list[str] = []
    for step in steps:
        trackers = log_to(trackers, step, {"race/reward": step / 2, "t0/entropy": 1.0}, said.append)
    # The loop closes one that it drops, and whoever opened it closes it again.
    close_trackers([*trackers, *trackers], said.append)
    assert said == []


def in_tensorboard(run: Path) -> dict[int, float]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    scalars = events.Scalars("race/reward")
    assert len({each.step for each in scalars}) == len(scalars), "a step is there twice"
    return {each.step: each.value for each in scalars}


def test_tensorboard_gets_event_files_in_the_runs_folder(run):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (the track extra)")
    play("tensorboard", run, range(1, 5))
    assert in_tensorboard(run) == {1: 0.5, 2: 1.0, 3: 1.5, 4: 2.0}


def test_tensorboard_forgets_the_steps_that_a_resumed_run_plays_again(run):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (the track extra)")
    play("tensorboard", run, range(1, 6))
    play("tensorboard", run, range(3, 8))
    assert in_tensorboard(run) == {step: step / 2 for step in range(1, 8)}


def wandb_messages(data: bytes) -> Iterator[bytes]:
    """An offline file: seven bytes of its own, then LevelDB's log format, in blocks of 32 KiB."""
    at, message = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, part = struct.unpack("<HB", data[at + 4 : at + 7])
        message += data[at + 7 : at + 7 + length]
        at += 7 + length
        if part in (1, 4):
            yield message
            message = b""


def wandb_records(file: Path) -> tuple[dict[str, object], dict[int, float]]:
    """The run and the history in an offline file."""
    from wandb.proto.wandb_internal_pb2 import Record

    about, history = {}, {}
    for message in wandb_messages(file.read_bytes()):
        record = Record.FromString(message)
        if record.HasField("run"):
            keys = [item.key for item in record.run.config.update]
            about = {"id": record.run.run_id, "project": record.run.project, "config": keys}
        if record.HasField("history"):
            items = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            history[int(items["_step"])] = float(items["race/reward"])
    return about, history


def test_wandb_stays_in_the_runs_folder_and_a_resumed_run_keeps_its_id(run, capfd):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed (the track extra)")
    for steps in (range(1, 4), range(3, 6)):
        play("wandb", run, steps)
        # Its service may still be writing when a run is finished; the end of a process waits for it, as this does.
        wandb.teardown()
    files = sorted((run / "wandb").glob("offline-run-*/*.wandb"))
    records = [wandb_records(file) for file in files]
    assert [about["project"] for about, _ in records] == ["tests", "tests"]
    assert "engine" in str(records[0][0]["config"])
    assert len({about["id"] for about, _ in records}) == 1
    assert sorted(step for _, history in records for step in history) == [1, 2, 3, 3, 4, 5]
    assert all(value == step / 2 for _, history in records for step, value in history.items())
    assert capfd.readouterr() == ("", ""), "it prints beside the live view"


@pytest.fixture
def trackio_folder(tmp_path, monkeypatch) -> Path:
    """trackio reads where its folder is when it is imported."""
    pytest.importorskip("trackio", reason="trackio is not installed (the track extra)")
    for name in [name for name in sys.modules if name.split(".")[0] == "trackio"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    return tmp_path / "trackio"


def in_trackio(folder: Path) -> dict[str, set[tuple[int, float]]]:
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    [file] = folder.glob("*.db")
    with sqlite3.connect(file) as opened:
        names = {name for (name,) in opened.execute("select distinct run_name from metrics")}
    return {name: {(row["step"], row["race/reward"]) for row in storage.get_logs("tests", name)} for name in names}


def test_trackio_gets_the_figures_of_a_resumed_run_in_one_place(run, trackio_folder, capfd):
    play("trackio", run, range(1, 4))
    play("trackio", run, range(3, 6))
    [values] = in_trackio(trackio_folder).values()
    assert values == {(step, step / 2) for step in range(1, 6)}
    assert capfd.readouterr() == ("", ""), "it prints beside the live view"


def test_runs_of_one_name_in_two_folders_are_two_runs_even_at_the_same_time(tmp_path, trackio_folder):
    folders = [tmp_path / "a", tmp_path / "b"]
    opened = []
    for folder in folders:
        folder.mkdir()
        opened.append(open_trackers(["trackio"], folder, "tests", "r", CONFIG))
    for number, trackers in enumerate(opened):
        assert log_to(trackers, 1, {"race/reward": float(number)}, pytest.fail) == trackers
    for trackers in opened:
        close_trackers(trackers, pytest.fail)
    assert sorted(map(tuple, in_trackio(trackio_folder).values())) == [((1, 0.0),), ((1, 1.0),)]


# What goes wrong


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_one_line_with_its_remedy(name, run, monkeypatch):
    module = {"tensorboard": "torch.utils.tensorboard"}.get(name, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"{name} is not installed; pip install 'redqueen\[track\]'"):
        open_trackers([name], run, "tests", "r", CONFIG)
    assert list(run.iterdir()) == []


def test_an_unknown_tracker_is_refused(run):
    with pytest.raises(ConfigError, match="no tracker mlflow; use trackio, wandb, tensorboard"):
        open_trackers(["tensorboard", "mlflow"], run, "tests", "r", CONFIG)


class Fragile:
    """Fails at one step."""

    name = "fragile"

    def __init__(self, *_: object) -> None:
        self.logged: list[int] = []
        self.closed = 0

    def log(self, step: int, values: object) -> None:
        if step == 2:
            raise OSError("the server is gone\nand more")
        self.logged.append(step)

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("nor can it be closed")


class Sound(Fragile):
    name = "sound"

    def log(self, step: int, values: object) -> None:
        self.logged.append(step)


def test_a_tracker_that_fails_is_dropped_once_and_the_others_go_on():
    fragile, sound, said = Fragile(), Sound(), []
    trackers = [fragile, sound]
    for step in range(1, 5):
        trackers = log_to(trackers, step, {}, said.append)
    assert said == ["fragile failed at step 2 and gets nothing more: the server is gone"]
    assert (fragile.logged, sound.logged) == ([1], [1, 2, 3, 4])
    assert (trackers, fragile.closed) == ([sound], 1)
    close_trackers(trackers, said.append)
    assert said[1:] == ["sound could not be closed: nor can it be closed"]


def test_a_tracker_that_cannot_be_opened_is_one_line_and_closes_the_others(run, monkeypatch):
    sound = Sound()

    def fail(*_: object):
        raise ValueError("no such project\nTraceback")

    monkeypatch.setitem(TRACKERS, "trackio", lambda *_: sound)
    monkeypatch.setitem(TRACKERS, "wandb", fail)
    monkeypatch.setattr("redqueen.ui.trackers._import", lambda name: None)
    with pytest.raises(ConfigError, match="wandb cannot be opened: no such project; mend it"):
        open_trackers(["trackio", "wandb"], run, "tests", "r", CONFIG)
    assert sound.closed == 1


def test_wandb_goes_online_by_one_setting(run, monkeypatch, tmp_path):
    """Without a key it cannot, and says so before any race begins; offline it needs none."""
    pytest.importorskip("wandb", reason="wandb is not installed (the track extra)")
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="wandb cannot be opened: No API key configured"):
        open_trackers(["wandb"], run, "tests", "r", CONFIG, online=True)


def test_a_moved_run_keeps_its_place(run, tmp_path, trackio_folder):
    play("trackio", run, range(1, 3))
    moved = run.rename(tmp_path / "moved")
    play("trackio", moved, range(3, 5))
    assert len(in_trackio(trackio_folder)) == 1
