"""`redqueen train` on a cluster: the same members and records, also when its driver is killed and it is resumed with
other workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import pytest
from kill import SETTINGS, Left
from stopping import descendants

from redqueen.commands.main import main
from redqueen.runs.store import Store

pytest.importorskip("ray")
GONE_S = 60
"""What is left of a cluster whose driver was killed may take so long to end."""
DEADLINE_S = 900


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("races")
    (folder / "race.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module")
def alone(place: Path) -> Left:
    """The race with its shards in one process."""
    assert main(command(place, "alone", "--cluster.shards", "2")) == 0
    return Left.of(place / "alone")


def command(place: Path, name: str, *options: str) -> list[str]:
    return ["train", str(place / "race.toml"), "--run", str(place / name), "--quiet", *options]


def on_cluster(workers: int) -> list[str]:
    """And half of the programs judged by a verifier of the cluster."""
    return ["--cluster.address", "local", "--cluster.workers", str(workers), "--cluster.verifiers", "1"]


def begun(words: list[str], stderr: BinaryIO | None = None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "redqueen", *words], stderr=stderr)


def alive(processes: set[int]) -> set[int]:
    return {each for each in processes if is_alive(each)}


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended_within(processes: set[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while left := alive(processes):
        if time.monotonic() > end:
            print(f"still there: {left}")
            return False
        time.sleep(0.2)
    return True


def told(driver: int, what: str, file: str = "cmdline") -> int:
    """Processes below this one whose command line or environment has it."""
    found = [Path(f"/proc/{each}/{file}").read_bytes() for each in alive(set(descendants(driver)))]
    return sum(what.encode() in text for text in found)


def test_a_race_whose_driver_is_killed_goes_on_with_other_workers_to_the_same_end(place: Path, alone: Left):
    driver = begun(command(place, "killed", *on_cluster(2)))
    end = time.monotonic() + DEADLINE_S
    while not (place / "killed" / "checkpoints" / "step-000002").is_dir():
        assert driver.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    assert told(driver.pid, "ray::RayWorker") >= 2 and told(driver.pid, "ray::VerifierWorker") == 1
    # Ray listens to the whole network.
    assert told(driver.pid, "RAY_AUTH_MODE=token", "environ") >= 4
    ours = set(descendants(driver.pid))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert ended_within(ours, GONE_S)
    assert begun(command(place, "killed", *on_cluster(1))).wait(DEADLINE_S) == 0
    assert Left.of(place / "killed").differences(alone) == []


def test_what_ends_a_race_while_its_workers_are_opened_leaves_nothing_and_no_fault(place: Path):
    with (place / "ended").open("wb") as said:
        driver = begun(command(place, "never", *on_cluster(2)), stderr=said)
        end = time.monotonic() + DEADLINE_S
        while not told(driver.pid, "ray::"):
            assert driver.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        ours = set(descendants(driver.pid))
        os.kill(driver.pid, signal.SIGTERM)
        assert driver.wait(GONE_S) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert "fault" not in (line := (place / "ended").read_text()) and "Traceback" not in line
    # Ray's agents wait a minute for those who started them.
    assert ended_within(ours, 3 * GONE_S)


def test_a_race_of_one_process_goes_on_with_a_cluster_and_leaves_nothing_of_it(place: Path):
    assert main(command(place, "moved", "--run.steps", "1")) == 0
    with (place / "said").open("wb") as said:
        driver = begun(command(place, "moved", *on_cluster(2)), stderr=said)
        ours: set[int] = set()
        while driver.poll() is None:
            ours |= set(descendants(driver.pid))
            time.sleep(0.5)
    assert driver.returncode == 0 and len(ours) > 4
    assert "in 1 shard keep 1 of 2 workers busy; the others only take" in (place / "said").read_text()
    with Store.read(place / "moved") as records:
        opened = {event.worker for event in records.worker_events(9) if event.what == "opened"}
    assert opened == {"worker 0", "worker 1", "verifier 0"}
    assert ended_within(ours, GONE_S)
    assert main(command(place, "still")) == 0
    assert Left.of(place / "moved").differences(Left.of(place / "still")) == []
