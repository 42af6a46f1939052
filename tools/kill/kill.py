"""Kill a race at random moments and at every flush and rename, resume it, and compare it with one that was left alone.

    python tools/kill/kill.py                           30 random kills, and one at every flush and rename
    python tools/kill/kill.py --kills 2 --every 16      fewer, as the test suite does

The race that is left alone is a plain `redqueen train`. The others are forks of this process, which has everything
imported, so that kills fall into the race and not into its imports; what they call is the command's own `main`. SQLite
flushes its files by itself: of those moments only random kills know.
"""

import argparse
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

SETTINGS = """\
[run]
steps = 3
checkpoint_every = 2
keep_last = 1
measure_every = 2
[verifier]
workers = 2
[engine]
base = "chains"
rank = 4
device = "cpu"
dtype = "float32"
[population]
teachers = 2
students = 2
[tasks]
seeds = "chains"
kinds = ["code_o"]
form = "short"
prompts = 1
proposals = 8
attempts = 3
proposal_tokens = 48
attempt_tokens = 48
replay = 2
[evolution]
every = 2
operators = ["slot_noise", "layer_wise"]
trial = 4
pull = 0.2
pull_every = 1
[guard]
duplicates = "near"
valid_floor = 0.6
[oversight]
every = 3
[rl]
lr = 1e-3
teacher_lr = 5e-4
full_rows = 40
share = "students"
"""
"""Every table of the records gets rows, a checkpoint is pruned, members learn from each other in every way that there
is, and some are not fit to learn."""
FREE = {("evidence", "runs")}
"""Columns in which equal races may differ: a refused program that is not deterministic returns something else again."""
TIMED = ("timings", "timelines", "workers", "worker_events")
"""Tables of what the clock said, and of which workers there were."""
CALLS = ("fsync", "rename", "replace")
MOST_KILLS = 3
"""Of one race: it must end some day."""
DEADLINE_S = 600
"""For a race that is not killed: longer, and it hangs."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a finished race left, as digests."""

    weights: dict[str, str]
    """Every file of the last checkpoint but its own checksums: the members, the optimiser, the state."""
    tables: dict[str, str]
    """All of the records but what is `TIMED` or `FREE`."""
    journal: int
    """Entries of the journal, which a finished race has none of."""
    trials: int = 0
    """Members that were in a trial."""
    replays: int = 0
    """Attempts at tasks of earlier steps."""
    unfit: int = 0
    """Alarms about members that were not updated because too few of their texts were sound."""

    @classmethod
    def of(cls, folder: Path) -> "Left":
        last = max((folder / "checkpoints").glob("step-??????"))
        files = sorted(each for each in last.rglob("*") if each.is_file() and each.name != "SHA256SUMS")
        with closing(sqlite3.connect(f"file:{folder / 'records.sqlite'}?mode=ro", uri=True)) as db:
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
            tables = {name: _sum(_rows(db, name)) for name in names if name not in (*TIMED, "journal")}
            [journal] = db.execute("SELECT count(*) FROM journal").fetchone()
            [trials] = db.execute("SELECT count(*) FROM metrics WHERE name = 'trial'").fetchone()
            [replays] = db.execute("SELECT count(*) FROM attempts WHERE detail LIKE 'replays task %'").fetchone()
            [unfit] = db.execute("SELECT count(*) FROM alarms WHERE measure = 'valid'").fetchone()
        sums = {f"{last.name}/{each.relative_to(last).as_posix()}": _sum(each.read_bytes()) for each in files}
        return cls(sums, tables, journal, trials, replays, unfit)

    def differences(self, other: "Left") -> list[str]:
        """The names of what is not the same."""
        mine = {**self.weights, **self.tables, "journal": str(self.journal)}
        theirs = {**other.weights, **other.tables, "journal": str(other.journal)}
        return sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))


@dataclass(slots=True)
class Trial:
    """One race, killed and resumed."""

    number: int
    kills: list[str] = field(default_factory=list)
    """At which step and phase each fell, or before which call."""
    differs: list[str] = field(default_factory=list)


def _rows(db: sqlite3.Connection, table: str) -> bytes:
    names = [each[0] for each in db.execute(f"SELECT * FROM {table} LIMIT 0").description]
    columns = ", ".join(f'"{name}"' for name in names if (table, name) not in FREE)
    return "\n".join(map(repr, db.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}"))).encode()


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Races:
    """Runs of the same settings, each in a folder of its own under `place`."""

    deadline_s: float = DEADLINE_S

    def __init__(self, settings: Path, place: Path) -> None:
        self.settings, self.place = settings, place

    def command(self, folder: Path) -> list[str]:
        return ["train", str(self.settings), "--run", str(folder), "--quiet"]

    def left_alone(self) -> Left:
        """A race by the command itself."""
        folder = self.place / "alone"
        subprocess.run([sys.executable, "-m", "redqueen", *self.command(folder)], check=True, timeout=self.deadline_s)
        return Left.of(folder)

    def fork(self, folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
        """Begin the race or go on with it, in a process whose id this is."""
        log = self._log(folder)
        log.unlink(missing_ok=True)
        child = os.fork()
        if child:
            return child
        status = 70
        try:
            out = os.open(self.place / f"{folder.name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            tell_phases(log)
            prepare()
            from redqueen.commands.main import main

            status = main(self.command(folder)) or 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            # Nothing of the parent's may run here.
            os._exit(status)

    def finish(self, folder: Path, prepare: Callable[[], None] = lambda: None) -> Left:
        """Go on with the race until it is done."""
        if (ended := self.wait(self.fork(folder, prepare), self.deadline_s)) != 0:
            said = (self.place / f"{folder.name}.out").read_text()
            raise RuntimeError(f"{folder} ended with {ended}: {said[-2000:]}")
        return Left.of(folder)

    def wait(self, child: int, seconds: float) -> int | None:
        """How the process ended, negative for a signal; None if it has not, within this time."""
        end = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if (left := end - time.monotonic()) <= 0:
                return None
            time.sleep(min(0.01, left))

    def kill(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def reached(self, folder: Path) -> str:
        """The step and the phase that its last process was in."""
        log = self._log(folder)
        lines = log.read_text().splitlines() if log.exists() else []
        return lines[-1] if lines else "start"

    def _log(self, folder: Path) -> Path:
        return self.place / f"{folder.name}.phases"


def tell_phases(log: Path) -> None:
    """Have the view write down every phase as it begins."""
    from redqueen.phases.view import Quiet

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Quiet.phase = lambda self, step, phase: os.write(file, f"{step} {phase}\n".encode()) and None  # type: ignore


def _patched(before: Callable[[str, Sequence[Any]], None]) -> None:
    """Have `before` called before every flush and rename of this process."""

    def heard(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            before(name, args)
            return real(*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, heard(name, getattr(os, name)))


def _writing_calls(log: Path) -> Callable[[], None]:
    def prepare() -> None:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def before(name: str, args: Sequence[Any]) -> None:
            what = Path(os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else args[0])
            os.write(file, f"{name} {what.name}\n".encode())

        _patched(before)

    return prepare


def _dying_at(place: int) -> Callable[[], None]:
    def prepare() -> None:
        count = 0

        def before(name: str, args: Sequence[Any]) -> None:
            nonlocal count
            if count == place:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

        _patched(before)

    return prepare


def random_kills(races: Races, alone: Left, seconds: float, count: int, rng: Random) -> list[Trial]:
    """Races that are killed after a random time, once or more; `seconds` is how long one takes."""
    trials: list[Trial] = []
    while len(trials) < count:
        number = len(trials)
        folder = races.place / f"random-{number}"
        trial = Trial(number)
        while len(trial.kills) < MOST_KILLS:
            child = races.fork(folder)
            ended = races.wait(child, rng.uniform(0, seconds))
            if ended is None:
                races.kill(child)
                trial.kills.append(races.reached(folder))
            elif ended == 0:
                break
            else:
                raise RuntimeError(f"{folder} ended with {ended} by itself")
        trial.differs = races.finish(folder).differences(alone)
        if trial.kills:
            trials.append(trial)
        else:
            # It was done before its time came. Another takes its place.
            races.place.joinpath(folder.name).rename(races.place / f"early-{time.monotonic_ns()}")
    return trials


def kills_at_calls(races: Races, alone: Left, calls: Sequence[str], every: int, rng: Random) -> list[Trial]:
    """One race for each of the calls, or for every so many of them and one of each kind, killed just before it."""
    trials: list[Trial] = []
    by_kind: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        by_kind.setdefault(call.split()[0], []).append(place)
    chosen = {rng.choice(places) for places in by_kind.values()} | {*range(rng.randrange(every), len(calls), every)}
    for place in sorted(chosen):
        folder = races.place / f"call-{place}"
        if (ended := races.wait(races.fork(folder, _dying_at(place)), DEADLINE_S)) != -signal.SIGKILL:
            raise RuntimeError(f"{folder} was to be killed and ended with {ended}")
        trial = Trial(place, [f"{races.reached(folder)}, {calls[place]}"])
        trial.differs = races.finish(folder).differences(alone)
        trials.append(trial)
    return trials


def compare(kills: int, every: int, seed: int, place: Path) -> dict[str, Any]:
    """Everything that was done and found, as plain values."""
    settings = place / "race.toml"
    settings.write_text(SETTINGS)
    races = Races(settings, place)
    alone = races.left_alone()
    import redqueen.training.train  # noqa: F401  (for the forks)

    counted, log = place / "counted", place / "calls"
    start = time.monotonic()
    left = races.finish(counted, _writing_calls(log))
    seconds = time.monotonic() - start
    if differs := left.differences(alone):
        raise RuntimeError(f"left alone twice, it comes out in two ways: {', '.join(differs)}")
    calls = log.read_text().splitlines()
    rng = Random(seed)
    at_random = random_kills(races, alone, seconds, kills, rng)
    at_calls = kills_at_calls(races, alone, calls, every, rng)
    return {
        "seconds": round(seconds, 2),
        "journal": alone.journal,
        "files": len(alone.weights),
        "tables": len(alone.tables),
        "calls": len(calls),
        "trials": alone.trials,
        "replays": alone.replays,
        "unfit": alone.unfit,
        "random": [asdict(trial) for trial in at_random],
        "at_calls": [asdict(trial) for trial in at_calls],
        "equal": not any(trial.differs for trial in (*at_random, *at_calls)) and alone.journal == 0,
    }


def show(found: dict[str, Any]) -> None:
    where = Counter(kill.partition(" ")[2] or kill for trial in found["random"] for kill in trial["kills"])
    print(f"a race takes {found['seconds']} s and makes {found['calls']} flushes and renames")
    print(f"killed at random: {len(found['random'])} races, {sum(where.values())} kills")
    for phase, count in where.most_common():
        print(f"    {phase:12} {count:3}")
    print(f"killed before a flush or a rename: {len(found['at_calls'])} races")
    for trial in (*found["random"], *found["at_calls"]):
        for each in trial["differs"]:
            print(f"    DIFFERS: {each}, killed at {'; '.join(trial['kills'])}")
    same = "the same" if found["equal"] else "NOT the same"
    print(f"{found['files']} files of the last checkpoint and {found['tables']} tables of the records: {same}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="races that are killed at random")
    parser.add_argument("--every", type=int, default=1, help="kill at every so many of the flushes and renames")
    parser.add_argument("--seed", type=int, default=0, help="where the random moments come from")
    parser.add_argument("--json", action="store_true", help="print one line of JSON as well")
    asked = parser.parse_args()
    # Sums must not depend on how many cores are free, and no thread may be there when this process forks.
    os.environ["OMP_NUM_THREADS"] = "1"
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="redqueen-kill-", dir=memory) as place:
        found = compare(asked.kills, asked.every, asked.seed, Path(place))
    show(found)
    if asked.json:
        print(json.dumps(found))
    return 0 if found["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
