"""A learning rate for each arm, found in the same way for all: a few short races at each rate, the best mean wins."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from study.races import Entry, hold
from study.sitting import MAIN_NAME, Sitting, exam_figures

from redqueen.runs.atomic import write_text
from redqueen.settings import Config

FIRST_SEED = 1000
"""Of the sweep: no seed of a study."""


@dataclass(frozen=True, slots=True)
class Swept:
    """One short race."""

    arm: str
    lr: float
    seed: int
    sampled: float
    """Accuracy of its students at the even places of the main bands, the mean."""


def sweep(
    make: Callable[[str, int, float], Config],
    arms: Sequence[str],
    rates: Sequence[float],
    seeds: int,
    folder: Path,
    sitting: Sitting,
    jobs: int = 1,
) -> dict[str, float] | None:
    """The best rate of each arm; all figures are written to `folder`. None if somebody stopped the races. `make` gives
    the settings of an arm with a seed and a rate."""
    asked = [(arm, lr, FIRST_SEED + number) for arm in arms for lr in rates for number in range(seeds)]
    runs = folder / "sweep"
    entries = [Entry(arm, seed, make(arm, seed, lr), runs / f"{arm}-lr{lr:g}-{seed}") for arm, lr, seed in asked]
    runs.mkdir(parents=True, exist_ok=True)
    sitting = replace(sitting, half="even", kept=runs / "exam")
    found = hold(entries, sitting, jobs)
    if found is None:
        return None
    parts = sitting.parts()
    swept = []
    for entry, (arm, lr, seed) in zip(entries, asked, strict=True):
        steps = entry.settings.run.steps
        own = [each.answers for each in found if (each.who.race, each.who.step) == (entry.name, steps)]
        sampled = exam_figures(own, parts, sitting.attempts)[f"exam {MAIN_NAME}, sampled"]
        swept.append(Swept(arm, lr, seed, sampled))
    chosen = best(swept)
    record = {
        "by": f"sampled accuracy of the students at the even places of the exam, bands {MAIN_NAME}, mean over seeds",
        "tasks": len(sitting.places),
        "attempts": sitting.attempts,
        "steps": {entry.arm: entry.settings.run.steps for entry in entries},
        "best": chosen,
        "means": [{"arm": arm, "lr": lr, "sampled": mean} for (arm, lr), mean in means(swept).items()],
        "races": [asdict(each) for each in swept],
    }
    write_text(folder / "sweep.json", json.dumps(record, indent=1) + "\n")
    return chosen


def means(swept: Sequence[Swept]) -> dict[tuple[str, float], float]:
    """By arm and rate, over seeds."""
    pairs = dict.fromkeys((each.arm, each.lr) for each in swept)
    return {pair: statistics.fmean(each.sampled for each in swept if (each.arm, each.lr) == pair) for pair in pairs}


def best(swept: Sequence[Swept]) -> dict[str, float]:
    """The rate of each arm with the best mean; of equal ones the lowest, which does the least harm."""
    by_arm: dict[str, dict[float, float]] = {}
    for (arm, lr), mean in means(swept).items():
        by_arm.setdefault(arm, {})[lr] = mean
    return {arm: _best(rates) for arm, rates in by_arm.items()}


def _best(rates: Mapping[float, float]) -> float:
    return max(sorted(rates), key=lambda lr: rates[lr])
