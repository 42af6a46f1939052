"""Run a race on a Ray cluster, kill its workers and take away its machines, and compare it with one of this process.

    python tools/kill/cluster.py                          1, 2 and 4 workers; 20 kills and 3 lost machines
    python tools/kill/cluster.py --kills 2 --machines 1 --workers 2

The cluster's machines are processes on this one, as `ray.cluster_utils` starts them; losing one kills all of them. Who
is killed, and when, is drawn by lot: whatever a worker does at that time, or while it is opened in another's place.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kill import SETTINGS, Left

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

SHARDS, WORKERS = 4, 3
"""Of the races with kills; there is a machine for two workers more than they have."""
PAUSE_S = 3.0, 12.0
"""From one loss to the next."""
DEADLINE_S = 1800
PICO = {
    'base = "chains"': 'base = "pico"',
    'seeds = "chains"': 'seeds = "pico"',
    "proposal_tokens = 48": "proposal_tokens = 128",
    "attempt_tokens = 48": "attempt_tokens = 96",
    "steps = 3": "steps = 5",
}
CHILD = "import sys; from kill import tell_phases; from pathlib import Path; tell_phases(Path(sys.argv[1])); \
from redqueen.commands.main import main; sys.exit(main(sys.argv[2:]))"


@dataclass(slots=True)
class Trial:
    """One race on a cluster."""

    name: str
    seconds: float = 0.0
    losses: list[str] = field(default_factory=list)
    """What was killed, and at which step and phase."""
    differs: list[str] = field(default_factory=list)


class Races:
    def __init__(self, place: Path) -> None:
        self.place = place
        settings = SETTINGS
        for old, new in PICO.items():
            assert old in settings
            settings = settings.replace(old, new)
        (place / "race.toml").write_text(settings)

    def begin(self, name: str, *options: str) -> "subprocess.Popen[bytes]":
        words = ["train", str(self.place / "race.toml"), "--run", str(self.place / name), "--quiet", *options]
        with open(self.place / f"{name}.out", "wb") as out:
            return subprocess.Popen(
                [sys.executable, "-c", CHILD, str(self.place / f"{name}.phases"), *words],
                stdout=out,
                stderr=out,
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
            )

    def end(self, name: str, race: "subprocess.Popen[bytes]") -> Left:
        if (status := race.wait(DEADLINE_S)) != 0:
            said = (self.place / f"{name}.out").read_text()
            raise RuntimeError(f"{name} ended with {status}: {said[-2000:]}")
        return Left.of(self.place / name)

    def run(self, name: str, *options: str) -> Left:
        return self.end(name, self.begin(name, *options))

    def phase(self, name: str) -> str | None:
        """The step and the phase that the race is in; None before its first."""
        log = self.place / f"{name}.phases"
        lines = log.read_text().splitlines() if log.exists() else []
        return lines[-1] if lines else None

    def shards(self) -> list[str]:
        return ["--cluster.shards", str(SHARDS)]


class Machines:
    """A head on which nobody works, and machines that come and go."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self._machines = [self._cluster.add_node(num_cpus=2) for _ in range((WORKERS + 3) // 2)]
        self.address = self._cluster.address

    def close(self) -> None:
        self._cluster.shutdown()

    def kill_worker(self) -> bool:
        """One of them, if there is any."""
        if not (processes := _workers(os.getpid())):
            return False
        os.kill(self._rng.choice(processes), signal.SIGKILL)
        return True

    def lose_machine(self) -> bool:
        lost = self._machines.pop(self._rng.randrange(len(self._machines)))
        self._cluster.remove_node(lost, allow_graceful=False)
        self._machines.append(self._cluster.add_node(num_cpus=2))
        return True


def _workers(process: int) -> list[int]:
    """The processes of `RayWorker` below this one."""
    found: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            try:
                title = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            found += [child] if title.startswith(b"ray::RayWorker") else _workers(child)
    return found


def with_losses(races: Races, alone: Left, kills: int, machines: int, rng: Random) -> list[Trial]:
    """Races that lose workers and machines at random moments, until there were so many losses."""
    there = Machines(rng)
    try:
        left = ["worker"] * kills + ["machine"] * machines
        rng.shuffle(left)
        trials: list[Trial] = []
        while left:
            trial = Trial(f"losses-{len(trials)}")
            begun = time.monotonic()
            options = ["--cluster.address", there.address, "--cluster.workers", str(WORKERS), *races.shards()]
            race = races.begin(trial.name, *options)
            while left and race.poll() is None:
                if (phase := races.phase(trial.name)) is None:
                    time.sleep(0.1)
                    continue
                time.sleep(rng.uniform(*PAUSE_S) if trial.losses else rng.uniform(0, 5))
                phase = races.phase(trial.name)
                if race.poll() is None and (there.kill_worker() if left[-1] == "worker" else there.lose_machine()):
                    trial.losses.append(f"{left.pop()} at {phase}")
            trial.differs = races.end(trial.name, race).differences(alone)
            trial.seconds = round(time.monotonic() - begun, 1)
            trials.append(trial)
    finally:
        there.close()
    return trials


def compare(place: Path, workers: Sequence[int], kills: int, machines: int, seed: int) -> dict[str, Any]:
    races = Races(place)
    begun = time.monotonic()
    alone = races.run("alone", *races.shards())
    seconds = round(time.monotonic() - begun, 1)
    trials: list[Trial] = []
    for count in workers:
        trial = Trial(f"workers-{count}")
        begun = time.monotonic()
        options = ["--cluster.address", "local", "--cluster.workers", str(count), *races.shards()]
        trial.differs = races.run(trial.name, *options).differences(alone)
        trial.seconds = round(time.monotonic() - begun, 1)
        trials.append(trial)
    trials += with_losses(races, alone, kills, machines, Random(seed))
    return {
        "seconds": seconds,
        "files": len(alone.weights),
        "tables": len(alone.tables),
        "trials": [asdict(trial) for trial in trials],
        "equal": not any(trial.differs for trial in trials),
    }


def show(found: dict[str, Any]) -> None:
    print(f"a race with {SHARDS} shards in one process: {found['seconds']} s")
    for trial in found["trials"]:
        print(f"{trial['name']:12} {trial['seconds']:6} s, {len(trial['losses'])} losses")
        for each in trial["differs"]:
            print(f"    DIFFERS: {each}")
    where = Counter(
        loss.split()[0] + " in " + loss.split()[-1] for trial in found["trials"] for loss in trial["losses"]
    )
    for phase, count in sorted(where.items()):
        print(f"    {phase:24} {count:3}")
    same = "the same" if found["equal"] else "NOT the same"
    print(f"{found['files']} files of the last checkpoint and {found['tables']} tables of the records: {same}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers of races without losses")
    parser.add_argument("--kills", type=int, default=20, help="workers that are killed")
    parser.add_argument("--machines", type=int, default=3, help="machines that are lost")
    parser.add_argument("--seed", type=int, default=0, help="where the random moments come from")
    parser.add_argument("--json", action="store_true", help="print one line of JSON as well")
    asked = parser.parse_args()
    # Sums must not depend on how many cores are free.
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="redqueen-cluster-") as place:
        workers = [int(count) for count in asked.workers.split(",") if count]
        found = compare(Path(place), workers, asked.kills, asked.machines, asked.seed)
    show(found)
    if asked.json:
        print(json.dumps(found))
    return 0 if found["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
