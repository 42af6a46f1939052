"""The scientific check: the population, its baselines and its ablations, over seeds, all races at once on one device.

    python tools/race.py --to FOLDER                                       all arms, 5 seeds, the preset `demo`
    python tools/race.py --to FOLDER --sweep 3e-4,1e-3,3e-3                the same, with a learning rate for each arm
    python tools/race.py --to FOLDER --arms population single --seeds 2 --steps 10 --plots FOLDER/plots
    python tools/race.py --to FOLDER --jobs 8                              in eight processes, an engine in each

The runs in FOLDER/ARM-SEED are ordinary ones (`redqueen compare`, `tasks`, `exam`). The same command again goes on
where it was stopped or killed. Anything after the options is a setting: `--population.teachers 2`.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from study.gains import Beside, gains
from study.gains import markdown as gains_markdown
from study.outcomes import POPULATION, Outcome, markdown, outcome
from study.races import Entry, hold
from study.sitting import BARE, Sitting, exam_figures
from study.sweep import FIRST_SEED, sweep

from redqueen.bench.workload import device_name, machine_name
from redqueen.console import span_text
from redqueen.errors import InputError, UserError
from redqueen.evals.exam_files import usual_exam
from redqueen.evals.figures import Tally
from redqueen.resources import place
from redqueen.runs.atomic import write_text
from redqueen.settings import Config, load
from redqueen.training import arms

ARMS = (POPULATION, "1t1s", "single", "single-wide", "no-evolution", "random-matching", "frozen-teachers")
JOBS = "jobs.jsonl"
"""What each command took: seconds and the machine. One that was killed has left no line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is asked."""

    to: Path
    source: str
    """The settings: a preset or a file."""
    overrides: Sequence[tuple[str, str]] = ()
    arms: Sequence[str] = ARMS
    seeds: int = 5
    first_seed: int = 0
    steps: int | None = None
    rates: Sequence[float] = ()
    """Of the sweep; without them the settings' own is used for all arms."""
    sweep_seeds: int = 2
    sweep_steps: int | None = None
    """As the study's when left out."""
    attempts: int = 8
    exam: Path | None = None
    """The base's own when left out."""
    jobs: int = 1
    """Processes among which the races are shared out, each with an engine: one keeps a core busy, not a GPU."""

    def settings(self, arm: str, seed: int, lr: float | None = None, steps: int | None = None) -> Config:
        given = [*self.overrides, ("run.seed", str(seed))]
        given += [("rl.lr", repr(lr))] if lr is not None else []
        given += [("run.steps", str(steps))] if steps is not None else []
        return arms.apply(load(self.source, given), None if arm == POPULATION else arm)

    def sitting(self) -> Sitting:
        settings = self.settings(self.arms[0], 0)
        exam = self.exam or usual_exam(settings.engine.base)
        return Sitting(exam, "odd", self.to / "exam", settings, self.attempts)


@dataclass(frozen=True, slots=True)
class Found:
    """What a study came to."""

    entries: tuple[Entry, ...]
    outcomes: tuple[Outcome, ...]
    base: Mapping[str, float]
    """The bare base's figures at the exam."""
    less_base: Mapping[str, Mapping[str, Beside]]
    """By arm and part of the exam."""


def study(asked: Study) -> Found | None:
    """From the sweep to outcomes.json; None if somebody stopped it."""
    _check(asked)
    sitting = asked.sitting()
    asked.to.mkdir(parents=True, exist_ok=True)
    rates: Mapping[str, float] = {}
    if asked.rates:
        steps = asked.sweep_steps or asked.steps
        found = sweep(
            lambda arm, seed, lr: asked.settings(arm, seed, lr, steps),
            asked.arms, asked.rates, asked.sweep_seeds, asked.to, sitting, asked.jobs,
        )  # fmt: skip
        if found is None:
            return None
        rates = found
    entries = tuple(
        Entry(arm, seed, asked.settings(arm, seed, rates.get(arm), asked.steps), asked.to / f"{arm}-{seed}")
        for arm in asked.arms
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds)
    )
    answered = hold(entries, sitting, asked.jobs)
    if answered is None:
        return None
    parts = sitting.parts()
    of_race: dict[tuple[str, int], list[Tally]] = {}
    for each in answered:
        of_race.setdefault((each.who.race, each.who.step), []).append(each.answers)
    base = exam_figures(of_race[BARE.race, BARE.step], parts, asked.attempts)
    outcomes = tuple(
        outcome(entry, of_race[entry.name, entry.settings.run.steps], parts, asked.attempts) for entry in entries
    )
    of_arm: dict[str, list[Tally]] = {}
    for entry in entries:
        of_arm.setdefault(entry.arm, []).extend(of_race[entry.name, entry.settings.run.steps])
    less_base = gains(of_arm, of_race[BARE.race, BARE.step][0], {**parts, **sitting.by_band()})
    record = {
        "exam": {"file": str(sitting.exam), "tasks": len(sitting.places), "places": "odd", "attempts": asked.attempts},
        "learning_rates": dict(rates) or "the settings' own",
        "base": base,
        "less_base": {arm: {part: asdict(each) for part, each in own.items()} for arm, own in less_base.items()},
        "runs": [asdict(each) for each in outcomes],
    }
    write_text(asked.to / "outcomes.json", json.dumps(record, indent=1) + "\n")
    return Found(entries, outcomes, base, less_base)


def _check(asked: Study) -> None:
    for name in asked.arms:
        if name != POPULATION and name not in arms.ARMS:
            raise InputError(f"there is no arm {name}", f"the arms are {', '.join([POPULATION, *arms.ARMS])}")
    if len(set(asked.arms)) < len(asked.arms) or len(set(asked.rates)) < len(asked.rates):
        raise InputError("an arm or a learning rate is named twice", "name each once")
    if min(asked.seeds, asked.sweep_seeds, asked.attempts, asked.jobs) < 1:
        raise InputError("a study needs seeds, attempts and jobs", "use 1 or more")
    if asked.first_seed < 0 or asked.first_seed + asked.seeds > FIRST_SEED:
        raise InputError(f"seeds from {FIRST_SEED} on are the sweep's", f"use seeds from 0 to {FIRST_SEED - 1}")


def _jobs(asked: Study, seconds: float) -> str:
    """Write down what this command took, and say it with those before."""
    device = device_name(place(asked.settings(asked.arms[0], 0).engine)[0])
    with (asked.to / JOBS).open("a") as file:
        file.write(json.dumps({"seconds": seconds, "machine": machine_name(), "device": device}) + "\n")
    jobs = [json.loads(line) for line in (asked.to / JOBS).read_text().splitlines()]
    total, machines = sum(job["seconds"] for job in jobs), {f"{job['machine']}; {job['device']}" for job in jobs}
    goes = f" in {len(jobs)} goes" if len(jobs) > 1 else ""
    return (
        f"{total:,.0f} s ({span_text(total)}){goes} for sweep, races and exam together, on "
        f"{' and '.join(sorted(machines))}; races share an engine, so there are no seconds of an arm."
    )


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers with commas between them") from None


def main(argv: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description="The population beside its baselines, over seeds. The same command again goes on where it was "
        "stopped. Settings are given as --section.key value.",
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("--to", type=Path, required=True, help="the folder of the runs and of outcomes.json")
    options.add_argument("--settings", default="demo", metavar="FILE|PRESET", help="what all races share")
    options.add_argument(
        "--arms",
        nargs="+",
        choices=[POPULATION, *arms.ARMS],
        default=list(ARMS),
        metavar="ARM",
        help="which of population, " + ", ".join(arms.ARMS),
    )
    options.add_argument("--seeds", type=int, default=5, help="races of each arm")
    options.add_argument("--first-seed", type=int, default=0, help="for seeds that had no part in choosing settings")
    options.add_argument("--steps", type=int, help="of every race; run.steps of the settings when left out")
    options.add_argument("--sweep", type=_rates, default=(), metavar="LR,LR", help="choose each arm's rate from these")
    options.add_argument("--sweep-seeds", type=int, default=2, help="races of each arm and rate")
    options.add_argument("--sweep-steps", type=int, help="as the study's when left out")
    options.add_argument("--attempts", type=int, default=8, help="at each task of the exam, beside a greedy one")
    options.add_argument("--jobs", type=int, default=1, help="processes, an engine in each")
    options.add_argument("--plots", type=Path, metavar="FOLDER", help="also draw pictures into this folder")
    given, rest = options.parse_known_args(argv)
    if len(rest) % 2 or not all(name.startswith("--") and "." in name for name in rest[::2]):
        options.error(f"settings are written --section.key value, not {' '.join(rest)}")
    asked = Study(
        to=given.to,
        source=given.settings,
        overrides=[(name.removeprefix("--"), value) for name, value in zip(rest[::2], rest[1::2], strict=True)],
        arms=given.arms,
        seeds=given.seeds,
        first_seed=given.first_seed,
        steps=given.steps,
        rates=given.sweep,
        sweep_seeds=given.sweep_seeds,
        sweep_steps=given.sweep_steps,
        attempts=given.attempts,
        jobs=given.jobs,
    )
    start = time.monotonic()
    try:
        found = study(asked)
        took = _jobs(asked, time.monotonic() - start)
        if found is None:
            print("race: stopped; the same command goes on from there", file=sys.stderr)
            raise SystemExit(1)
        tables = markdown(found.outcomes, found.base, asked.attempts), gains_markdown(found.less_base, asked.attempts)
        print(*tables, took, sep="\n\n")
        if given.plots is not None:
            from study.plots import draw

            for path in draw(found.entries, found.outcomes, found.base, given.plots):
                print(f"race: {path}", file=sys.stderr)
    except UserError as error:
        print(f"race: {error}", file=sys.stderr)
        raise SystemExit(error.exit_status) from None


if __name__ == "__main__":
    main()
