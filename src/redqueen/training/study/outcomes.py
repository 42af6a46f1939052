"""The outcomes of a study: figures of each run, means of each arm, differences by seed, and gains over the base."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.analysis import quarters
from redqueen.analysis.intervals import Estimate, estimate
from redqueen.analysis.quarters import Series, series
from redqueen.evals.figures import Figures, Gain, Tally, figures, gain, scores
from redqueen.population.members import Role
from redqueen.runs.metrics import BEHAVIOURS, COMPLEXITY, COVERAGE, ENTROPY, FLOPS, RULER, SOLVE_RATE, VALID, Metric
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import MAIN_NAME, Examinee, exam_figures

PER = 10
"""Steps in the unit of slopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceOutcome:
    arm: str
    seed: int
    lr: float | None
    """The highest that its students had; None where they did not learn."""
    steps: int
    flops: float | None
    """What it was to spend; None where it ends by its steps."""
    adapters: int
    figures: Mapping[str, float]
    """By the names of the tables; figures that a run does not have are left out."""

    @property
    def short(self) -> bool:
        """Whether it came to its last step before it had spent that."""
        return self.flops is not None and self.figures[FLOPS.title] < self.flops


@dataclass(frozen=True, slots=True)
class ArmGain:
    """The means over an arm's students beside the base, on some tasks."""

    tasks: int
    base: Figures
    arm: Figures
    gain: Gain


def outcome(
    race: StudyRace, answers: Mapping[Examinee, Tally], parts: Mapping[str, Sequence[int]], k: int
) -> RaceOutcome:
    settings = race.settings
    with Store.read(race.folder) as store:
        by_name = exam_figures(race.own(answers), parts, k) | race_figures(store, settings)
        lr = quarters.learning_rate(store, race.students(answers))
    if (soup := race.soup(answers)) is not None:
        of_soup = figures(scores(soup, k=k)[list(parts[MAIN_NAME])])
        by_name |= {
            f"exam {MAIN_NAME}, soup": of_soup.sampled,
            f"exam {MAIN_NAME}, soup greedy": of_soup.greedy,
            f"exam {MAIN_NAME}, soup pass@{k}": of_soup.pass_at_k,
        }
    adapters = 1 if settings.population.single else settings.population.teachers + settings.population.students
    return RaceOutcome(
        arm=race.arm,
        seed=race.seed,
        lr=lr,
        steps=race.end,
        flops=settings.run.flops,
        adapters=adapters,
        figures=by_name,
    )


def race_figures(store: Store, settings: Config) -> dict[str, float]:
    steps = store.last_step()
    first, last = quarters.quarters(steps)
    by_name: dict[str, float | None] = {}
    solved = quarters.solve_rates(store)
    complexity = {metric.title: series(store, metric) for metric in COMPLEXITY}
    measures = {SOLVE_RATE.title: solved.get("", Series({}))}
    measures[VALID.title_of(Role.TEACHER)] = series(store, VALID, Role.TEACHER)
    measures |= {f"{SOLVE_RATE.title} {kind}": solved.get(kind, Series({})) for kind in settings.tasks.kinds}
    measures |= complexity | {ENTROPY.title_of(role): series(store, ENTROPY, role) for role in Role}
    measures[RULER.title] = series(store, RULER)
    for name, measure in measures.items():
        by_name |= {f"{name}, first quarter": measure.mean(first), f"{name}, last quarter": measure.mean(last)}
    for name, measure in complexity.items():
        by_name[f"{name}, a slope"] = slope(measure)
        before, after = measure.mean(first), measure.mean(last)
        if before is not None and after is not None:
            by_name[f"{name}, last quarter less first"] = after - before
    for metric in (COVERAGE, BEHAVIOURS):
        measure = series(store, metric)
        by_name[f"{metric.title} at the end"] = measure.at(steps)
        by_name[f"{metric.title}, growth in the last quarter"] = growth(measure, last)
    by_name |= {metric.title: total for metric, total in quarters.compute(store).items()}
    return {name: value for name, value in by_name.items() if value is not None}


def slope(measure: Series) -> float | None:
    """The least-squares slope over all steps, per `PER` steps; None for fewer than two."""
    points = [(step, total / count) for step, (total, count) in measure.steps.items() if count]
    if len(points) < 2:
        return None
    return PER * statistics.linear_regression(*zip(*points, strict=True)).slope


def growth(measure: Series, steps: range) -> float | None:
    """How much a cumulative measure grew in these steps."""
    after = measure.at(steps[-1])
    return None if after is None else after - (measure.at(steps[0] - 1) or 0.0)


def curves(folders: Sequence[Path], metric: Metric) -> list[Series]:
    """A metric of the race by step, for each run."""
    of_runs = []
    for folder in folders:
        with Store.read(folder) as store:
            solved = metric is SOLVE_RATE
            of_runs.append(quarters.solve_rates(store).get("", Series({})) if solved else series(store, metric))
    return of_runs


def arm_means(outcomes: Sequence[RaceOutcome]) -> dict[str, dict[str, Estimate]]:
    """By arm and figure, the mean over seeds with its interval."""
    by_arm: dict[str, dict[str, Estimate]] = {}
    for arm in dict.fromkeys(outcome.arm for outcome in outcomes):
        runs = [outcome.figures for outcome in outcomes if outcome.arm == arm]
        by_arm[arm] = _estimates({name: [run[name] for run in runs if name in run] for name in _names(runs)})
    return by_arm


def differences(outcomes: Sequence[RaceOutcome], arm: str, baseline: str) -> dict[str, Estimate]:
    """By figure, the mean over seeds of an arm's less the other's of the same seed."""
    ours, theirs = (
        {outcome.seed: outcome.figures for outcome in outcomes if outcome.arm == name} for name in (arm, baseline)
    )
    pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    return _estimates(
        {
            name: [our[name] - their[name] for our, their in pairs if name in our and name in their]
            for name in _names([our for our, _ in pairs])
        }
    )


def gains(
    answers: Mapping[str, Sequence[Tally]], base: Tally, parts: Mapping[str, Sequence[int]], k: int
) -> dict[str, dict[str, ArmGain]]:
    """By arm and part of the exam, over all students of all races of the arm."""
    base_N_F = scores(base, k=k)
    by_arm: dict[str, dict[str, ArmGain]] = {}
    for arm, students in answers.items():
        arm_N_F = scores(*students, k=k)
        by_arm[arm] = {}
        for part, places in parts.items():
            ours_P_F, theirs_P_F = arm_N_F[list(places)], base_N_F[list(places)]
            arm_gain = ArmGain(len(places), figures(theirs_P_F), figures(ours_P_F), gain(ours_P_F, theirs_P_F))
            by_arm[arm][part] = arm_gain
    return by_arm


def _names(runs: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run))


def _estimates(values: Mapping[str, Sequence[float]]) -> dict[str, Estimate]:
    return {name: mean for name, own in values.items() if (mean := estimate(own)) is not None}
