"""Plots of a study: the exam of each arm's students, and the curves of solve rate, program length and coverage."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redqueen.analysis.intervals import band as spread
from redqueen.analysis.quarters import Series
from redqueen.runs import metrics
from redqueen.runs.metrics import Metric
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import MAIN_NAME
from redqueen.training.study.outcomes import RaceOutcome, curves

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which is safe for colour blindness; with the lines below also in print."""
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
CURVES = (metrics.SOLVE_RATE, metrics.LINES, metrics.COVERAGE)
"""The metrics that are drawn over steps. None can be below 0."""


def draw(
    races: Sequence[StudyRace], outcomes: Sequence[RaceOutcome], base: Mapping[str, float], folder: Path
) -> list[Path]:
    """Write all plots; their paths."""
    with drawing(folder) as (pyplot, write):
        figures = {"exam": _exam(pyplot, outcomes, base)}
        figures |= {metric.title.replace(" ", "-"): _over_steps(pyplot, races, metric) for metric in CURVES}
        return [write(name, figure) for name, figure in figures.items()]


@contextmanager
def drawing(folder: Path) -> Iterator[tuple[Any, Callable[[str, Any], Path]]]:
    """pyplot in the style of all pictures, and what writes one of its figures into the folder."""
    import matplotlib
    from matplotlib import pyplot

    def write(name: str, figure: Any) -> Path:
        path = folder / f"{name}.svg"
        figure.savefig(path, facecolor="white", bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
        return path

    folder.mkdir(parents=True, exist_ok=True)
    # Text as text is small and can be searched; a fixed salt and no date make equal plots equal files.
    plain = {"svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    style: dict[Any, Any] = {**plain, "svg.hashsalt": "redqueen"}
    with matplotlib.rc_context(style):
        yield pyplot, write


def _exam(pyplot: Any, outcomes: Sequence[RaceOutcome], base: Mapping[str, float]) -> Any:
    name = f"exam {MAIN_NAME}, sampled"
    arms = list(dict.fromkeys(outcome.arm for outcome in outcomes))
    figure, axes = pyplot.subplots(figsize=(6.4, 0.42 * len(arms) + 1.1))
    for at, arm in enumerate(arms):
        values = [outcome.figures[name] for outcome in outcomes if outcome.arm == arm]
        colour = COLOURS[at % len(COLOURS)]
        # Beside the interval, not below it.
        axes.plot(values, [at + 0.22] * len(values), "o", color=colour, markersize=4, alpha=0.6, markeredgewidth=0)
        half = spread(values) if len(values) > 1 else 0.0
        axes.errorbar(statistics.fmean(values), at, xerr=half, fmt="D", color=colour, markersize=6, capsize=4)
    axes.axvline(base[name], color="#666666", linestyle=":", label="bare base")
    axes.set_yticks(range(len(arms)), arms)
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel(f"exam, bands {MAIN_NAME}: share of sampled attempts that are right, mean of a run's students")
    axes.legend(frameon=False, loc="best")
    return figure


def _over_steps(pyplot: Any, races: Sequence[StudyRace], metric: Metric) -> Any:
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    for at, arm in enumerate(dict.fromkeys(race.arm for race in races)):
        runs = curves([race.folder for race in races if race.arm == arm], metric)
        steps, middle, low, high = band(runs, metric.most)
        colour = COLOURS[at % len(COLOURS)]
        axes.plot(steps, middle, color=colour, linestyle=LINES[at % len(LINES)], linewidth=1.4, label=arm)
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xlabel("step")
    axes.set_ylabel(metric.about)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def band(runs: Sequence[Series], most: float) -> tuple[list[int], list[float], list[float], list[float]]:
    """The steps of all runs, the mean over runs of a figure from 0 to `most`, and the ends of its 95 % interval (of two
    runs: their values; of one: the mean)."""
    steps = sorted({step for run in runs for step in run.steps})
    middle, low, high = [], [], []
    for step in steps:
        values = [value for run in runs if (value := run.mean([step])) is not None]
        mean = statistics.fmean(values) if values else math.nan
        half = spread(values) if len(values) > 1 else 0.0
        middle.append(mean)
        low.append(max(mean - half, 0.0))
        high.append(min(mean + half, most))
    return steps, middle, low, high
