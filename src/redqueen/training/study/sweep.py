"""Choosing a learning rate for each arm: a few short races at each rate, the best mean wins."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from redqueen.runs.atomic import write_text
from redqueen.training.study.design import Design
from redqueen.training.study.exam import MAIN_NAME, exam_figures
from redqueen.training.study.jobs import run_all


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    arm: str
    lr: float
    seed: int
    sampled: float
    """The mean sampled accuracy of its students at the even places of the main bands."""


def sweep(design: Design) -> dict[str, float]:
    """The best rate of each arm; all figures are written to sweep.json."""
    races, exam = design.sweep_races(), design.exam("even")
    exam.folder.parent.mkdir(parents=True, exist_ok=True)
    answers = run_all(races, exam, design.jobs)
    parts, outcomes = exam.parts(), []
    for race in races:
        sampled = exam_figures(race.own(answers), parts, exam.k)[f"exam {MAIN_NAME}, sampled"]
        outcomes.append(SweepOutcome(race.arm, race.settings.rl.lr, race.seed, sampled))
    best = best_rates(outcomes)
    record = {
        "by": f"sampled accuracy of the students at the even places of the exam, bands {MAIN_NAME}, mean over seeds",
        "tasks": len(exam.places),
        "attempts": exam.attempts,
        "steps": {race.arm: race.settings.run.steps for race in races},
        "best": best,
        "means": [{"arm": arm, "lr": lr, "sampled": mean} for (arm, lr), mean in _means(outcomes).items()],
        "races": [asdict(outcome) for outcome in outcomes],
    }
    write_text(design.folder / "sweep.json", json.dumps(record, indent=1) + "\n")
    return best


def best_rates(outcomes: Sequence[SweepOutcome]) -> dict[str, float]:
    """The rate of each arm with the best mean; of equal ones the lowest, which does the least harm."""
    means = _means(outcomes)
    by_arm: dict[str, list[float]] = {}
    for arm, lr in means:
        by_arm.setdefault(arm, []).append(lr)
    return {arm: max(sorted(rates), key=lambda lr: means[arm, lr]) for arm, rates in by_arm.items()}


def _means(outcomes: Sequence[SweepOutcome]) -> dict[tuple[str, float], float]:
    sampled: dict[tuple[str, float], list[float]] = {}
    for outcome in outcomes:
        sampled.setdefault((outcome.arm, outcome.lr), []).append(outcome.sampled)
    return {pair: statistics.fmean(values) for pair, values in sampled.items()}
