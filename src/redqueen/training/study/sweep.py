"""A learning rate for each arm, chosen in the same way for all: a few short races at each rate, the best mean wins."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from redqueen.runs.atomic import write_text
from redqueen.training.study.design import Design
from redqueen.training.study.exam import MAIN_NAME, exam_figures
from redqueen.training.study.jobs import run_all


@dataclass(frozen=True, slots=True)
class Swept:
    """One short race."""

    arm: str
    lr: float
    seed: int
    sampled: float
    """Accuracy of its students at the even places of the main bands, the mean."""


def sweep(design: Design) -> dict[str, float] | None:
    """The best rate of each arm; all figures are written to sweep.json. None if somebody stopped the races."""
    races, exam = design.sweep_races(), design.exam("even")
    exam.folder.parent.mkdir(parents=True, exist_ok=True)
    answers = run_all(races, exam, design.jobs)
    if answers is None:
        return None
    parts = exam.parts()
    swept = []
    for race in races:
        own = [each for who, each in answers.items() if (who.race, who.step) == (race.name, race.settings.run.steps)]
        sampled = exam_figures(own, parts, exam.attempts)[f"exam {MAIN_NAME}, sampled"]
        swept.append(Swept(race.arm, race.settings.rl.lr, race.seed, sampled))
    best = best_rates(swept)
    record = {
        "by": f"sampled accuracy of the students at the even places of the exam, bands {MAIN_NAME}, mean over seeds",
        "tasks": len(exam.places),
        "attempts": exam.attempts,
        "steps": {race.arm: race.settings.run.steps for race in races},
        "best": best,
        "means": [{"arm": arm, "lr": lr, "sampled": mean} for (arm, lr), mean in _means(swept).items()],
        "races": [asdict(each) for each in swept],
    }
    write_text(design.folder / "sweep.json", json.dumps(record, indent=1) + "\n")
    return best


def best_rates(swept: Sequence[Swept]) -> dict[str, float]:
    """The rate of each arm with the best mean; of equal ones the lowest, which does the least harm."""
    by_arm: dict[str, dict[float, float]] = {}
    for (arm, lr), mean in _means(swept).items():
        by_arm.setdefault(arm, {})[lr] = mean
    return {arm: _best(means) for arm, means in by_arm.items()}


def _means(swept: Sequence[Swept]) -> dict[tuple[str, float], float]:
    """By arm and rate, over seeds."""
    pairs = dict.fromkeys((each.arm, each.lr) for each in swept)
    return {pair: statistics.fmean(each.sampled for each in swept if (each.arm, each.lr) == pair) for pair in pairs}


def _best(means: Mapping[float, float]) -> float:
    return max(sorted(means), key=lambda lr: means[lr])
