"""Whether learning is real: races on chains of additions, through the product's own loop, and two controls.

    python tools/chains/learn.py --to FOLDER --jobs 2                  all arms, 5 seeds, two at a time
    python tools/chains/learn.py --to FOLDER --arms learn --seeds 1

    learn      students rise from under 0.3 to over 0.8 on a fixed test of all levels while teachers write higher ones
    shuffled   the same rewards, dealt out at random: neither happens
    frozen     students stay as they are: teachers settle where the paper's reward is best, at a solve rate of 0.26

A run that is there already is not run again. Anything after the options is a setting: `--population.teachers 4`.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from chains import level
from evaluate import Result, examine, uniform_tasks

from redqueen.analysis.intervals import half_width
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.phases.view import Quiet
from redqueen.population.members import Role, founders
from redqueen.resources import open_engine, open_verifier
from redqueen.runs.checkpoints import load as load_checkpoint
from redqueen.runs.checkpoints import newest
from redqueen.runs.rows import TaskRow
from redqueen.runs.store import Store
from redqueen.settings import Config, load
from redqueen.training import arms
from redqueen.training.train import train
from redqueen.verifier import Verifier

SETTINGS = Path(__file__).with_name("chains.toml")
ARMS = {"learn": None, "shuffled": "shuffled-rewards", "frozen": "frozen-students"}
"""By what the experiment calls them, the product's."""
STEPS = {"frozen": 120}
"""A teacher that meets the same students again and again takes longer to settle than to follow learning ones."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    arm: str
    seed: int
    before: float
    """Accuracy of the students on the test, all levels alike, as they begin."""
    after: float
    by_level: tuple[float, ...]
    """After, by level."""
    level_first: float
    """The mean of the teachers' tasks in the first quarter of the steps."""
    level_last: float
    """In the last."""
    rate_last: float
    """How often the tasks of the last quarter were solved, in the mean."""
    valid_last: float
    """The part of the proposals of the last quarter that were tasks."""


def run(arm: str, seed: int, folder: Path, overrides: Sequence[tuple[str, str]]) -> Outcome:
    """One run from its first step to its measures."""
    steps = [("run.steps", str(STEPS[arm]))] if arm in STEPS else []
    given = load(str(SETTINGS), [*steps, *overrides, ("run.seed", str(seed))])
    settings = arms.apply(given, ARMS[arm])
    place = folder / f"{arm}-{seed}"
    train(settings, place, Quiet())
    with open_engine(settings.engine, []) as engine, open_verifier(settings.verifier) as verifier:
        students = _students(settings, place)
        before = _accuracy(engine, verifier, {"fresh": engine.fresh()})
        after = _accuracy(engine, verifier, students)
    with Store.read(place) as store:
        quarter = max(1, settings.run.steps // 4)
        first = list(store.tasks(until=quarter))
        last = list(store.tasks(since=settings.run.steps - quarter + 1))
        rejected = sum(1 for _ in store.rejections(since=settings.run.steps - quarter + 1))
    return Outcome(
        arm,
        seed,
        statistics.fmean(before),
        statistics.fmean(after),
        tuple(after),
        _level(first),
        _level(last),
        statistics.fmean(task.solve_rate for task in last if task.solve_rate is not None),
        len(last) / (len(last) + rejected),
    )


def _students(settings: Config, place: Path) -> dict[str, MemberState]:
    path, _ = newest(place / "checkpoints")
    if path is None:
        raise InputError(f"{place} has no checkpoint", "delete the folder and run again")
    members = load_checkpoint(path).members
    population = founders(settings.population.teachers, settings.population.students)
    return {member.id: members[member.id] for member in population.members if member.role is Role.STUDENT}


def _accuracy(engine: LocalEngine, verifier: Verifier, members: dict[str, MemberState]) -> list[float]:
    """By level, the mean of the members."""
    for id, state in members.items():
        engine.write(id, state)

    async def measure() -> list[Result]:
        return await examine(engine, verifier, list(members), await uniform_tasks(verifier))

    results = asyncio.run(measure())
    return [statistics.fmean(each) for each in zip(*(result.accuracy for result in results), strict=True)]


def _level(tasks: Sequence[TaskRow]) -> float:
    return statistics.fmean(level(task.record["program"]) for task in tasks)


def interval(values: Sequence[float]) -> str:
    """The mean of the seeds and its 95 % interval."""
    mean = f"{statistics.fmean(values):.3f}"
    return mean if len(values) < 2 else f"{mean} +- {half_width(values):.3f}"


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each arm, means over its seeds."""
    lines = []
    for arm in dict.fromkeys(outcome.arm for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.arm == arm]
        figures = [
            f"{name} {interval([getattr(outcome, field) for outcome in own])}"
            for name, field in (
                ("accuracy before", "before"),
                ("after", "after"),
                ("level first quarter", "level_first"),
                ("last", "level_last"),
                ("solve rate last quarter", "rate_last"),
            )
        ]
        lines.append(f"{arm} ({len(own)} seeds): {', '.join(figures)}")
    return "\n".join(lines)


def _one_thread() -> None:
    torch.set_num_threads(1)


def main() -> None:
    options = argparse.ArgumentParser(description="Whether learning is real.")
    options.add_argument("--to", type=Path, required=True, help="the folder of the runs and of outcomes.json")
    options.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    asked, rest = options.parse_known_args()
    if len(rest) % 2 or not all(name.startswith("--") for name in rest[::2]):
        options.error(f"settings are written --section.key value, not {' '.join(rest)}")
    overrides = [(name.removeprefix("--"), value) for name, value in zip(rest[::2], rest[1::2], strict=True)]
    asked.to.mkdir(parents=True, exist_ok=True)
    jobs = [(arm, seed, asked.to, overrides) for arm in asked.arms for seed in range(asked.seeds)]
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn"), _one_thread) as pool:
        for outcome in pool.map(run, *zip(*jobs, strict=True)):
            outcomes.append(outcome)
            print(json.dumps(asdict(outcome)), flush=True)
            (asked.to / "outcomes.json").write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    print(table(outcomes))


if __name__ == "__main__":
    main()
