"""What the races of a study came to: figures of each run, means of each arm, and differences seed by seed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from study.races import Entry
from study.sitting import MAIN_NAME, exam_figures

from redqueen.analysis import quarters
from redqueen.analysis.intervals import Estimate, estimate
from redqueen.analysis.quarters import COMPLEXITY, Series, series, shown
from redqueen.evals.figures import Tally
from redqueen.runs.store import Store
from redqueen.settings import Config

POPULATION = "population"
CLAIM = ("single", "single-wide")
"""What the paper says that a population is better than: at equal tokens of an adapter, and of all together."""
PER = 10
"""Steps that slopes are given for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    arm: str
    seed: int
    lr: float
    steps: int
    adapters: int
    figures: Mapping[str, float]
    """By the names that the tables have; what a run has nothing of is left out."""


def outcome(entry: Entry, answers: Sequence[Tally], parts: Mapping[str, Sequence[int]], attempts: int) -> Outcome:
    """Of a finished run, whose students gave these answers."""
    with Store.read(entry.folder) as store:
        measured = race_figures(store, entry.settings)
    settings = entry.settings
    adapters = 1 if settings.population.single else settings.population.teachers + settings.population.students
    figures = exam_figures(answers, parts, attempts) | measured
    return Outcome(entry.arm, entry.seed, settings.rl.lr, settings.run.steps, adapters, figures)


def race_figures(store: Store, settings: Config) -> dict[str, float]:
    """What the records of a race say."""
    steps = store.last_step()
    first, last = quarters.quarters(steps)
    found: dict[str, float | None] = {}
    solved = quarters.solve_rates(store)
    rates = {"solve rate": solved.get("", Series({})), "valid proposals": series(store, "valid", "teacher")}
    rates |= {f"solve rate {kind}": solved.get(kind, Series({})) for kind in settings.tasks.kinds}
    rates |= {name: series(store, name, "race") for name in COMPLEXITY}
    rates |= {f"entropy of {role}s": series(store, "entropy", role) for role in ("student", "teacher")}
    for name, each in rates.items():
        found |= {f"{name}, first quarter": each.mean(first), f"{name}, last quarter": each.mean(last)}
        if name in COMPLEXITY:
            found[f"{name}, a slope"] = slope(each)
    for name in ("coverage", "behaviours"):
        each = series(store, name, "race")
        found[f"{name} at the end"] = each.at(steps)
        found[f"{name}, growth in the last quarter"] = growth(each, last)
    found |= {name.replace("_", " "): total for name, total in quarters.compute(store).items()}
    return {name: value for name, value in found.items() if value is not None}


def slope(measured: Series) -> float | None:
    """Of the line of least squares through its steps, for every `PER` steps; None for fewer than two."""
    points = [(step, total / whole) for step, (total, whole) in measured.steps.items() if whole]
    if len(points) < 2:
        return None
    return PER * statistics.linear_regression(*zip(*points, strict=True)).slope


def growth(measured: Series, steps: range) -> float | None:
    """By how much a measure that only grows did so in these steps."""
    after = measured.at(steps[-1])
    return None if after is None else after - (measured.at(steps[0] - 1) or 0.0)


def of_arms(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Estimate]]:
    """By arm and figure, the mean over seeds with its interval."""
    found: dict[str, dict[str, Estimate]] = {}
    for arm in dict.fromkeys(each.arm for each in outcomes):
        own = [each.figures for each in outcomes if each.arm == arm]
        found[arm] = _estimates([[one[name] for one in own if name in one] for name in _names(own)], _names(own))
    return found


def less(outcomes: Sequence[Outcome], arm: str, other: str) -> dict[str, Estimate]:
    """By figure, the mean over seeds of an arm's less the other's of the same seed."""
    ours = {each.seed: each.figures for each in outcomes if each.arm == arm}
    theirs = {each.seed: each.figures for each in outcomes if each.arm == other}
    seeds = sorted(ours.keys() & theirs.keys())
    names = _names([ours[seed] for seed in seeds])
    pairs = [(ours[seed], theirs[seed]) for seed in seeds]
    values = [[mine[name] - its[name] for mine, its in pairs if name in mine and name in its] for name in names]
    return _estimates(values, names)


def _names(figures: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for each in figures for name in each))


def _estimates(values: Sequence[Sequence[float]], names: Sequence[str]) -> dict[str, Estimate]:
    found = {name: estimate(each) for name, each in zip(names, values, strict=True)}
    return {name: each for name, each in found.items() if each is not None}


# Tables


def main_figures(attempts: int) -> list[str]:
    """Those that arms are compared by."""
    exam = [f"exam {MAIN_NAME}, {name}" for name in ("sampled", "greedy", f"pass@{attempts}", "weakest")]
    race = ["valid proposals, last quarter", "solve rate, last quarter", *(f"{name}, a slope" for name in COMPLEXITY)]
    ends = ["coverage at the end", "coverage, growth in the last quarter", "entropy of students, last quarter"]
    return [*exam, "exam 5, sampled", "exam pairs, sampled", *race, *ends]


def table_figures(attempts: int) -> list[str]:
    """Those of the table of arms, in its order."""
    found = main_figures(attempts)
    found.insert(found.index("solve rate, last quarter"), "solve rate, first quarter")
    return [*found, *(name.replace("_", " ") for name in quarters.COMPUTE)]


def markdown(outcomes: Sequence[Outcome], base: Mapping[str, float], attempts: int) -> str:
    """The arms side by side, and what they are less the population."""
    arms, names = of_arms(outcomes), table_figures(attempts)
    seeds = {arm: sum(each.arm == arm for each in outcomes) for arm in arms}
    head = {arm: {"": f"{arm} ({count} seed{'' if count == 1 else 's'})"} for arm, count in seeds.items()}
    rates = {arm: ", ".join(sorted({f"{each.lr:g}" for each in outcomes if each.arm == arm})) for arm in arms}
    columns = [{name: _cell(estimate([base[name]])) for name in names if name in base} | {"": "bare base"}]
    columns += [
        head[arm] | {"learning rate": rates[arm]} | {name: _cell(each[name]) for name in names if name in each}
        for arm, each in arms.items()
    ]
    blocks = [_table(columns, ["learning rate", *names])]
    others = [arm for arm in arms if arm != POPULATION]
    if POPULATION in arms and others:
        mains = main_figures(attempts)
        against = {arm: less(outcomes, arm, POPULATION) for arm in others}
        blocks += [f"Each arm less {POPULATION}, seed by seed:", _differences(against, mains, "{} less " + POPULATION)]
        claimed = {arm: less(outcomes, POPULATION, arm) for arm in CLAIM if arm in arms}
        if claimed:
            blocks += [
                "The claim of the paper, as measured here:",
                _differences(claimed, mains, POPULATION + " less {}"),
            ]
    blocks.append(
        f"± is half of the 95 % interval over seeds (Student's t), not corrected for the number of comparisons. "
        f"A slope is what {PER} steps add, by least squares over all steps. Exam figures are means over a run's "
        f"students at the odd places of the exam, the base's beside them; the even places chose learning rates, where "
        f"there was a sweep, and count nowhere. Everybody has the same tasks and random numbers there: ± says nothing "
        f"of other ones."
    )
    return "\n\n".join(blocks)


def _differences(found: Mapping[str, Mapping[str, Estimate]], names: Sequence[str], title: str) -> str:
    columns = [
        {"": title.format(arm)} | {name: _cell(each[name]) for name in names if name in each}
        for arm, each in found.items()
    ]
    return _table(columns, names)


def _cell(found: Estimate | None) -> str:
    if found is not None and math.isfinite(found.mean) and abs(found.mean) >= 1000:
        return f"{found.mean:,.0f}" if found.half is None else f"{found.mean:,.0f} ±{found.half:,.0f}"
    return shown(found)


def _table(columns: Sequence[Mapping[str, str]], names: Sequence[str]) -> str:
    """A column for each mapping, whose title is under ""; rows that nobody has are left out."""
    rows = [("", *(column[""] for column in columns)), (":--", *("--:" for _ in columns))]
    rows += [
        (name, *(column.get(name, "-") for column in columns))
        for name in names
        if any(name in column for column in columns)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def curves(folders: Sequence[Path], name: str) -> list[Series]:
    """A measure step by step, of each run: `solve rate`, or one of the race's own metrics."""
    found = []
    for folder in folders:
        with Store.read(folder) as store:
            rates = quarters.solve_rates(store) if name == "solve rate" else {}
            found.append(rates.get("", Series({})) if name == "solve rate" else series(store, name, "race"))
    return found
