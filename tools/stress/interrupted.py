"""Races that are killed and resumed under a load, beside the same race left alone on the quiet machine."""

import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from keeper import die_with
from loads import under

sys.path.append(str(Path(__file__).parents[1] / "kill"))

from kill import Left, Races, random_kills

SETTINGS = ("--run.checkpoint-every", "2", "--engine.device", "cpu")
"""Beside those of `demo`: a resumed race has both a checkpoint and verdicts after it."""
_CHARS = 600


class DemoRaces(Races):
    """Races of `redqueen train demo` that die with this process."""

    deadline_s = 3600.0

    def __init__(self, settings: tuple[str, ...], place: Path) -> None:
        super().__init__(Path("demo"), place)
        self.further = settings

    def command(self, folder: Path) -> list[str]:
        return [*super().command(folder), *self.further]

    def fork(self, folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
        script = os.getpid()

        def prepared() -> None:
            die_with(script, signal.SIGKILL)
            prepare()

        return super().fork(folder, prepared)


@dataclass(frozen=True, slots=True)
class Race:
    """One race under the load, as it ended."""

    name: str
    kills: tuple[str, ...]
    """At which step and phase each fell."""
    differs: tuple[str, ...]
    """Files of the last checkpoint and tables of the records."""
    first: str | None
    """What differs first."""


@dataclass(slots=True)
class Found:
    """What a measurement came to."""

    load: str
    quiet_s: float
    files: int
    tables: int
    loaded_s: float = 0.0
    races: list[Race] = field(default_factory=list)
    kept: str | None = None
    """Where the races lie, should one differ."""

    @property
    def differing(self) -> list[Race]:
        return [race for race in self.races if race.differs]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "differing": len(self.differing)}


Judged = dict[tuple[int, int, int, str, int], tuple[str, str]]
"""Step, proposal or attempt, its place, student and number -> what was said of it, and its text."""


def judged(folder: Path) -> Judged:
    """Every proposal and every attempt of a race, in the order in which they are judged."""
    with closing(sqlite3.connect(f"file:{folder / 'records.sqlite'}?mode=ro", uri=True)) as db:
        found: Judged = {(step, 0, place, "", 0): ("accepted", text) for step, place, text in db.execute(_TASKS)}
        for step, place, reason, detail, text in db.execute(_REJECTIONS):
            found[step, 0, place, "", 0] = (f"rejected: {reason} {detail}".rstrip(), text)
        for step, place, student, number, text, *said in db.execute(_ATTEMPTS):
            found[step, 1, place, student, number] = (" ".join(word for word in said if word), text)
    return found


_TASKS = "SELECT step, place, text FROM tasks"
_REJECTIONS = "SELECT step, place, reason, detail, text FROM rejections"
_ATTEMPTS = "SELECT step, place, student, number, text, grade, reason, status, detail FROM attempts"


def first_difference(quiet: Judged, loaded: Judged) -> str | None:
    """The first proposal or attempt that was judged in another way, or is another one."""
    missing = ("missing", "")
    places = sorted(quiet.keys() | loaded.keys())
    at = next((place for place in places if quiet.get(place) != loaded.get(place)), None)
    if at is None:
        return None
    (before, text), (after, other) = quiet.get(at, missing), loaded.get(at, missing)
    step, attempt, place, student, number = at
    what = f"attempt {number} of {student} at task {place}" if attempt else f"proposal {place}"
    changed = " (and another text)" if text and other and text != other else ""
    return f"step {step}, {what}: {before} -> {after}{changed}:\n{(text or other)[:_CHARS]}"


def measure(load: str, count: int, seed: int, settings: tuple[str, ...]) -> Found:
    """One race left alone on the quiet machine, one left alone under the load, and so many that are killed."""
    # Sums must not depend on how many cores are free, and no thread may be there when this process forks.
    os.environ["OMP_NUM_THREADS"] = "1"
    import redqueen.training.train  # noqa: F401  (for the forks)

    place = Path(tempfile.mkdtemp(prefix="redqueen-stress-"))
    try:
        found = _measure(DemoRaces((*settings, *SETTINGS), place), load, count, Random(seed))
        found.kept = str(place) if found.differing else None
    except BaseException:
        # A race may still be writing: it ends with this process.
        shutil.rmtree(place, ignore_errors=True)
        raise
    if not found.kept:
        shutil.rmtree(place)
    return found


def _measure(races: DemoRaces, load: str, count: int, rng: Random) -> Found:
    alone, quiet_s = _unbroken(races, "alone")
    found = Found(load, quiet_s, len(alone.weights), len(alone.tables))
    with under(load):
        loaded, found.loaded_s = _unbroken(races, "loaded")
        trials = random_kills(races, alone, found.loaded_s, count, rng)
    found.races.append(_race(races.place, "loaded", [], loaded.differences(alone)))
    for trial in trials:
        found.races.append(_race(races.place, f"random-{trial.number}", trial.kills, trial.differs))
    return found


def _unbroken(races: DemoRaces, name: str) -> tuple[Left, float]:
    start = time.monotonic()
    left = races.finish(races.place / name)
    return left, time.monotonic() - start


def _race(place: Path, name: str, kills: list[str], differs: list[str]) -> Race:
    first = first_difference(judged(place / "alone"), judged(place / name)) if differs else None
    return Race(name, tuple(kills), tuple(differs), first)


def show(found: Found) -> None:
    kills = [len(race.kills) for race in found.races]
    print(f"a race takes {found.quiet_s:.1f} s on the quiet machine and {found.loaded_s:.1f} s under the load")
    print(f"{len(kills)} races under the load, {sum(map(bool, kills))} of them killed, {sum(kills)} kills in all")
    print(f"{len(found.differing)} differ from the race that was left alone on the quiet machine")
    for race in found.differing:
        print(f"  {race.name}, killed at {'; '.join(race.kills) or 'no time'}: {', '.join(race.differs)}")
        print(f"    {race.first or 'every verdict is the same'}")
    if found.kept:
        print(f"kept in {found.kept}")
    same = "NOT the same" if found.differing else "the same"
    print(f"{found.files} files of the last checkpoint and {found.tables} tables of the records: {same}")
