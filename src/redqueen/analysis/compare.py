"""`redqueen compare`: arms side by side.

Runs that differ in their seed alone, or in what does not change a race, are one arm. No mean stands without its
interval or a word on why there is none, and none without what it cost.
"""

import math
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redqueen.analysis import quarters
from redqueen.analysis.claims import Claim, claims
from redqueen.analysis.claims import table as claims_table
from redqueen.analysis.intervals import Estimate, estimate
from redqueen.analysis.kinds import by_kind
from redqueen.analysis.quarters import Figure, Series, series
from redqueen.console import printable
from redqueen.errors import InputError
from redqueen.population.members import Role
from redqueen.runs import FORKED_FROM, benchmarks, metrics
from redqueen.runs.store import Store
from redqueen.settings import Affects, Config, affecting, load_run
from redqueen.settings.idle import in_force
from redqueen.settings.toml import value_text

if TYPE_CHECKING:
    from rich.console import Console

UNEQUAL = 0.05
"""Arms whose compute differs by more are not compared at equal cost."""
OWN_TASKS = (
    "solve rates are at the tasks of each run's own teachers and say little of how good students are: "
    "`redqueen exam RUN RUN` asks all the same"
)
TOLD = (
    "not told: the 95 % interval over seeds (Student's t) holds 0; as many seeds as named would clear it of 0 with a "
    "chance of four in five, if arms differ as much as these do"
)
SECONDS = "seconds"
COSTS = {**{metric.name: metric.title for metric in metrics.COMPUTE}, SECONDS: SECONDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run in figures."""

    folder: str
    seed: int
    steps: int
    wanted: int
    """Steps that its settings ask for."""
    ended: bool
    adapters: int
    settings: Mapping[str, Any]
    """By dotted key, as they are in force."""
    figures: Mapping[str, Figure]
    compute: Mapping[str, float]
    forked_from: str | None
    """The run and the step that it began from, where it is a fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Runs of one configuration."""

    name: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    adapters: int
    measures: Mapping[str, Estimate]
    compute: Mapping[str, float]
    """Of a run, in total: the mean over the seeds."""

    @property
    def compute_per_adapter(self) -> dict[str, float]:
        return {name: value / self.adapters for name, value in self.compute.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """An arm less the first arm, seed by seed."""

    arm: str
    against: str
    seeds: tuple[int, ...]
    measures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What `redqueen compare` found."""

    arms: tuple[Arm, ...]
    differences: tuple[Difference, ...]
    claims: tuple[Claim, ...]
    """What each arm's solvers have over those of the first, where they were examined or evaluated."""
    settings: Mapping[str, tuple[Any, ...]]
    """Those that the arms differ in, by dotted key, one value for each arm."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        arms = [asdict(arm) | {"compute_per_adapter": arm.compute_per_adapter} for arm in self.arms]
        differences = [asdict(difference) for difference in self.differences]
        claims = [claim.as_json() for claim in self.claims]
        about = {"settings": dict(self.settings), "notes": list(self.notes)}
        return {"arms": arms, "differences": differences, "claims": claims, **about}

    def render(self, console: "Console") -> None:
        from rich.text import Text

        columns = [(arm.name, arm.measures) for arm in self.arms]
        head = [
            ("races", [_races_text(arm.seeds) for arm in self.arms]),
            ("steps", [steps_text(arm.steps) for arm in self.arms]),
            ("adapters", [str(arm.adapters) for arm in self.arms]),
        ]
        costs = []
        for about, by_arm in (
            ("", [arm.compute for arm in self.arms]),
            (" an adapter", [arm.compute_per_adapter for arm in self.arms]),
        ):
            for name, title in COSTS.items():
                cells = [quarters.count_text(cost.get(name)) for cost in by_arm]
                costs.append((title + about, cells))
        _table(console, "", columns, head, costs)
        if self.differences:
            console.print()
            title = f"Less {self.differences[0].against}, seed by seed"
            seeds = [("races", [_races_text(difference.seeds) for difference in self.differences])]
            columns = [(difference.arm, difference.measures) for difference in self.differences]
            _table(console, title, columns, seeds, [])
        if self.claims:
            console.print()
            _claims(console, self.claims)
        console.print()
        for key, values in self.settings.items():
            shown = " | ".join("left out" if value is None else value_text(value) for value in values)
            console.print(Text(printable(f"{key}: {shown}")), soft_wrap=True)
        for note in self.notes:
            console.print(Text(printable(note)), soft_wrap=True)


def compare(folders: Sequence[Path]) -> Comparison:
    """These runs, as arms in the order in which they are named first."""
    groups: dict[str, list[MeasuredRun]] = defaultdict(list)
    for folder in folders:
        run = measure(folder)
        groups[_race_key(run.settings)].append(run)
    arms_runs = list(groups.values())
    for runs in arms_runs:
        no_race_twice((run.seed, run.folder) for run in runs)
    names = arm_names([[run.folder for run in runs] for runs in arms_runs])
    arms = [_arm(name, runs) for name, runs in zip(names, arms_runs, strict=True)]
    differences = [
        _difference(arm, names[0], runs, arms_runs[0])
        for arm, runs in zip(names[1:], arms_runs[1:], strict=True)
        if {run.seed for run in runs} & {run.seed for run in arms_runs[0]}
    ]
    keys = dict.fromkeys(key for runs in arms_runs for key in _race(runs[0].settings))
    values = {key: tuple(runs[0].settings.get(key) for runs in arms_runs) for key in keys}
    differing = {key: by_arm for key, by_arm in values.items() if any(value != by_arm[0] for value in by_arm)}
    notes = [
        *_unfinished(run for runs in arms_runs for run in runs),
        *_forks([run for runs in arms_runs for run in runs]),
        *_about_intervals(arms),
        OWN_TASKS,
        *_unequal(arms),
    ]
    by_seed = {name: {run.seed: Path(run.folder) for run in runs} for name, runs in zip(names, arms_runs, strict=True)}
    return Comparison(
        arms=tuple(arms),
        differences=tuple(differences),
        claims=tuple(claims(by_seed)),
        settings=differing,
        notes=tuple(notes),
    )


def no_race_twice(runs: Iterable[tuple[int, str]]) -> None:
    """Seeds and folders of one arm, each seed once."""
    by_seed: dict[int, str] = {}
    for seed, folder in runs:
        if seed in by_seed:
            raise InputError(
                f"{by_seed[seed]} and {folder} have the same settings and the same seed, {seed}",
                "leave one of them out: a second look at one race is no second race",
            )
        by_seed[seed] = folder


def measure(folder: Path) -> MeasuredRun:
    """The figures of one run. Values that are not finite, as of a step that broke down, are left out."""
    with Store.read(folder) as store:
        settings = load_run(folder / "config.toml")
        steps = store.last_step()
        if steps == 0:
            raise InputError(f"{folder} has no step yet", "wait for its first one, or leave it out")
        compute = {metric.name: total for metric, total in quarters.compute(store).items()}
        seconds, flops = quarters.seconds(store), quarters.flops(store)
        if seconds:
            compute[SECONDS] = math.fsum(seconds.values())
        figures = _figures(store, settings, steps) | _benchmarks(folder)
        forked_from = store.facts().get(FORKED_FROM)
    adapters = 1 if settings.population.single else settings.population.teachers + settings.population.students
    return MeasuredRun(
        folder=str(folder),
        seed=settings.run.seed,
        steps=steps,
        wanted=settings.run.steps,
        ended=settings.run.ends(steps, flops),
        adapters=adapters,
        settings=in_force(settings),
        forked_from=forked_from,
        figures=figures,
        compute=compute,
    )


def _figures(store: Store, settings: Config, steps: int) -> dict[str, Figure]:
    first, last = quarters.quarters(steps)
    figures: dict[str, Figure | None] = {}
    solved = quarters.solve_rates(store)
    for kind in settings.tasks.kinds:
        figures[f"{metrics.SOLVE_RATE.title} {kind}"] = solved.get(kind, Series({})).over(last)
    figures[metrics.VALID.title_of(Role.TEACHER)] = series(store, metrics.VALID, Role.TEACHER).over(last)
    if len(settings.tasks.kinds) > 1:
        for of_kind in by_kind(store, settings.tasks.kinds, last[0]):
            for title, value in (
                (metrics.VALID.title_of(Role.TEACHER), of_kind.valid),
                (metrics.GUESS_RATE.title, of_kind.guess_rate),
                (metrics.COVERAGE.title, of_kind.cells),
                ("checks a second", of_kind.checks_a_second),
            ):
                figures[f"{title} {of_kind.kind}"] = None if value is None else Figure(value)
    for metric in (*metrics.COMPLEXITY, metrics.RULER):
        measured = series(store, metric)
        early = measured.mean(first)
        figures[f"{metric.title}, first quarter"] = None if early is None else Figure(early)
        figures[f"{metric.title}, last quarter"] = measured.over(last)
    for metric in (metrics.COVERAGE, metrics.BEHAVIOURS):
        reached = series(store, metric).at(steps)
        figures[metric.title] = None if reached is None else Figure(reached)
    for role in Role:
        figures[metrics.ENTROPY.title_of(role)] = series(store, metrics.ENTROPY, role).over(last)
    roles = store.players() | {event.child: Role(event.role) for event in store.events()}
    ratings: dict[Role, list[float]] = {role: [] for role in Role}
    for row in store.metrics(metrics.MU, kind=""):
        if row.step == steps and row.subject in roles and math.isfinite(row.value):
            ratings[roles[row.subject]].append(row.value)
    for role, values in ratings.items():
        figures[f"rating spread of {role}s"] = Figure(statistics.pstdev(values)) if len(values) > 1 else None
    for row in store.metrics(metrics.BENCHMARK, Role.STUDENT):
        figures[f"slice of {row.kind}, students, at the last look"] = Figure(row.value)
    return {name: figure for name, figure in figures.items() if figure is not None}


def _benchmarks(folder: Path) -> dict[str, Figure]:
    """What `redqueen eval` found of a run."""
    return {result.name: Figure(result.value) for result in benchmarks.of_roles(folder)}


def _arm(name: str, runs: Sequence[MeasuredRun]) -> Arm:
    runs = sorted(runs, key=lambda run: run.seed)
    measures = {}
    for title in dict.fromkeys(chain.from_iterable(run.figures for run in runs)):
        figures = [run.figures[title] for run in runs if title in run.figures]
        # An arm of several seeds of which one alone has a figure: then one is all that there is.
        measures[title] = estimate([figure.value for figure in figures], figures[0].blocks)
    costs = dict.fromkeys(chain.from_iterable(run.compute for run in runs))
    compute = {cost: statistics.fmean(run.compute[cost] for run in runs if cost in run.compute) for cost in costs}
    return Arm(
        name=name,
        runs=tuple(run.folder for run in runs),
        seeds=tuple(run.seed for run in runs),
        steps=tuple(run.steps for run in runs),
        adapters=runs[0].adapters,
        measures=measures,
        compute=compute,
    )


def _difference(arm: str, against: str, runs: Sequence[MeasuredRun], first: Sequence[MeasuredRun]) -> Difference:
    theirs = {run.seed: run for run in first}
    pairs = sorted(((run, theirs[run.seed]) for run in runs if run.seed in theirs), key=lambda pair: pair[0].seed)
    measures = {}
    for title in dict.fromkeys(chain.from_iterable(run.figures for run, _ in pairs)):
        values = [
            mine.figures[title].value - other.figures[title].value
            for mine, other in pairs
            if title in mine.figures and title in other.figures
        ]
        if (difference := estimate(values)) is not None:
            measures[title] = difference
    return Difference(arm, against, tuple(run.seed for run, _ in pairs), measures)


def arm_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """What the names of an arm's folders have in common, or the first of them where that tells nothing."""
    firsts = [Path(os.path.abspath(group[0])).name for group in groups]
    names = []
    for group, first in zip(groups, firsts, strict=True):
        folder_names = [Path(os.path.abspath(folder)).name for folder in group]
        common = os.path.commonprefix(folder_names)  # noqa: RUF071 (letter by letter is what is wanted)
        names.append(re.sub(r"(?:[-_. ]+s?|[-_. ]*seed)[-_. ]*\d*$", "", common) if len(group) > 1 else first)
    for way in (firsts, [group[0] for group in groups]):
        names = [name if name and names.count(name) == 1 else other for name, other in zip(names, way, strict=True)]
    return names


def race_of(settings: Config) -> str:
    """The same for all runs of one arm."""
    return _race_key(in_force(settings))


def race_settings(settings: Config) -> dict[str, Any]:
    """By dotted key, those in which runs of one arm are alike."""
    return _race(in_force(settings))


def _race_key(settings: Mapping[str, Any]) -> str:
    return repr(sorted(_race(settings).items()))


def _race(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without those that runs of one arm may differ in."""
    same_race = affecting(Affects.NOTHING, Affects.SEED)
    race = {key: value for key, value in settings.items() if key not in same_race}
    # Each seed's may be what another arm's race of that seed has spent.
    return race | {"run.flops": race["run.flops"] is not None}


# What is said under the tables


def _unfinished(runs: Iterable[MeasuredRun]) -> list[str]:
    return [f"{run.folder} is at step {run.steps} of {run.wanted}" for run in runs if not run.ended]


def _forks(runs: Sequence[MeasuredRun]) -> list[str]:
    forks = [run for run in runs if run.forked_from is not None]
    notes = [f"{run.folder} is a fork of {run.forked_from}: the steps up to there are that run's" for run in forks]
    origins = [os.path.normpath(str(run.forked_from).rpartition(", step ")[0]) for run in forks]
    related = len(set(origins)) < len(origins) or {*origins} & {os.path.abspath(run.folder) for run in runs}
    if related:
        notes.append("runs that share steps are not independent: intervals and verdicts take them as if they were")
    return notes


def _about_intervals(arms: Sequence[Arm]) -> list[str]:
    notes = []
    alone = [arm.name for arm in arms if len(arm.seeds) == 1]
    if any(len(arm.seeds) > 1 for arm in arms):
        notes.append("± is half of the 95 % interval over seeds (Student's t)")
    if alone:
        kind = "~ is over blocks of its last steps and says nothing of other seeds"
        given = any(interval.over == "blocks" for arm in arms for interval in arm.measures.values())
        notes.append(f"one seed only: {', '.join(alone)}; {kind if given else 'too few steps for an interval'}")
    return notes


def _unequal(arms: Sequence[Arm]) -> list[str]:
    """Not by the seconds, which depend on the machine."""
    notes = []
    for metric in metrics.COMPUTE:
        costs = {arm.name: arm.compute[metric.name] for arm in arms if metric.name in arm.compute}
        if len(costs) < 2:
            continue
        least, most = min(costs, key=lambda arm: costs[arm]), max(costs, key=lambda arm: costs[arm])
        if costs[most] > (1 + UNEQUAL) * costs[least]:
            times = f"{costs[most] / costs[least]:.2f} times" if costs[least] else "all"
            notes.append(
                f"not at equal compute: {most} has {times} the {metric.title} of {least} "
                f"({quarters.count_text(costs[most])} and {quarters.count_text(costs[least])})"
            )
    return notes


def _table(
    console: "Console",
    title: str,
    columns: Sequence[tuple[str, Mapping[str, Estimate]]],
    above: Sequence[tuple[str, Sequence[str]]],
    below: Sequence[tuple[str, Sequence[str]]],
) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    table.add_column(Text(title), no_wrap=False)
    for name, _ in columns:
        table.add_column(Text(printable(name)), justify="right")
    for name, cells in above:
        table.add_row(name, *(Text(cell) for cell in cells))
    for name in dict.fromkeys(name for _, measures in columns for name in measures):
        table.add_row(Text(printable(name)), *(Text(quarters.shown(measures.get(name))) for _, measures in columns))
    for name, cells in below:
        table.add_row(name, *(Text(cell) for cell in cells))
    console.print(table)


def _claims(console: "Console", found: Sequence[Claim]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for title in ("Those who solve tasks", "arm", f"less {printable(found[0].against)}, points", "verdict"):
        table.add_column(Text(title), no_wrap=False)
    for row in claims_table(found):
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)
    console.print(Text(TOLD), soft_wrap=True)


def _races_text(seeds: Sequence[int]) -> str:
    """How many there are, and of which seeds."""
    return f"{len(seeds)} ({'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))})"


def steps_text(steps: Sequence[int]) -> str:
    return str(steps[0]) if len(set(steps)) == 1 else f"{min(steps)}-{max(steps)}"
