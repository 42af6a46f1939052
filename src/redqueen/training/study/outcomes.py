"""What the races of a study came to: figures of each run, means of each arm, and differences seed by seed."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.analysis import quarters
from redqueen.analysis.intervals import Estimate, estimate
from redqueen.analysis.quarters import Series, series
from redqueen.evals.figures import Tally
from redqueen.population.members import Role
from redqueen.runs.metrics import BEHAVIOURS, COMPLEXITY, COVERAGE, ENTROPY, SOLVE_RATE, VALID, Metric
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import exam_figures

PER = 10
"""Steps that slopes are given for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceOutcome:
    """One run."""

    arm: str
    seed: int
    lr: float
    steps: int
    adapters: int
    figures: Mapping[str, float]
    """By the names that the tables have; what a run has nothing of is left out."""


def outcome(
    race: StudyRace, answers: Sequence[Tally], parts: Mapping[str, Sequence[int]], attempts: int
) -> RaceOutcome:
    """Of a finished run, whose students gave these answers."""
    settings = race.settings
    with Store.read(race.folder) as store:
        figures = exam_figures(answers, parts, attempts) | race_figures(store, settings)
    adapters = 1 if settings.population.single else settings.population.teachers + settings.population.students
    return RaceOutcome(
        arm=race.arm, seed=race.seed, lr=settings.rl.lr, steps=settings.run.steps, adapters=adapters, figures=figures
    )


def race_figures(store: Store, settings: Config) -> dict[str, float]:
    """What the records of a race say."""
    steps = store.last_step()
    first, last = quarters.quarters(steps)
    figures: dict[str, float | None] = {}
    solved = quarters.solve_rates(store)
    complexity = {metric.title: series(store, metric) for metric in COMPLEXITY}
    measures = {SOLVE_RATE.title: solved.get("", Series({}))}
    measures[VALID.title_of(Role.TEACHER)] = series(store, VALID, Role.TEACHER)
    measures |= {f"{SOLVE_RATE.title} {kind}": solved.get(kind, Series({})) for kind in settings.tasks.kinds}
    measures |= complexity | {ENTROPY.title_of(role): series(store, ENTROPY, role) for role in Role}
    for name, measure in measures.items():
        figures |= {f"{name}, first quarter": measure.mean(first), f"{name}, last quarter": measure.mean(last)}
    figures |= {f"{name}, a slope": slope(measure) for name, measure in complexity.items()}
    for metric in (COVERAGE, BEHAVIOURS):
        measure = series(store, metric)
        figures[f"{metric.title} at the end"] = measure.at(steps)
        figures[f"{metric.title}, growth in the last quarter"] = growth(measure, last)
    figures |= {metric.title: total for metric, total in quarters.compute(store).items()}
    return {name: value for name, value in figures.items() if value is not None}


def slope(measure: Series) -> float | None:
    """Of the line of least squares through its steps, for every `PER` steps; None for fewer than two."""
    points = [(step, total / whole) for step, (total, whole) in measure.steps.items() if whole]
    if len(points) < 2:
        return None
    return PER * statistics.linear_regression(*zip(*points, strict=True)).slope


def growth(measure: Series, steps: range) -> float | None:
    """By how much a measure that only grows did so in these steps."""
    after = measure.at(steps[-1])
    return None if after is None else after - (measure.at(steps[0] - 1) or 0.0)


def curves(folders: Sequence[Path], metric: Metric) -> list[Series]:
    """A metric of the race step by step, of each run."""
    of_runs = []
    for folder in folders:
        with Store.read(folder) as store:
            if metric is SOLVE_RATE:
                of_runs.append(quarters.solve_rates(store).get("", Series({})))
            else:
                of_runs.append(series(store, metric))
    return of_runs


def arm_means(outcomes: Sequence[RaceOutcome]) -> dict[str, dict[str, Estimate]]:
    """By arm and figure, the mean over seeds with its interval."""
    by_arm: dict[str, dict[str, Estimate]] = {}
    for arm in dict.fromkeys(each.arm for each in outcomes):
        runs = [each.figures for each in outcomes if each.arm == arm]
        by_arm[arm] = _estimates({name: [run[name] for run in runs if name in run] for name in _names(runs)})
    return by_arm


def differences(outcomes: Sequence[RaceOutcome], arm: str, other: str) -> dict[str, Estimate]:
    """By figure, the mean over seeds of an arm's less the other's of the same seed."""
    ours = {each.seed: each.figures for each in outcomes if each.arm == arm}
    theirs = {each.seed: each.figures for each in outcomes if each.arm == other}
    pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    return _estimates(
        {
            name: [mine[name] - its[name] for mine, its in pairs if name in mine and name in its]
            for name in _names([mine for mine, _ in pairs])
        }
    )


def _names(figures: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for run in figures for name in run))


def _estimates(values: Mapping[str, Sequence[float]]) -> dict[str, Estimate]:
    estimates = {name: estimate(each) for name, each in values.items()}
    return {name: each for name, each in estimates.items() if each is not None}
