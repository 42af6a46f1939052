"""Pictures of a study that was run in parts: what its races were like, and its benchmarks, step by step.

    python tools/evals/parts_curves.py DATA --to FOLDER

DATA is what `parts.py keep` writes. Each arm is the mean of its seeds, with the 95 % interval over them where there are
several; benchmarks are those that were asked at several steps, in points less the base asked so.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from parts import USUAL, by_arm, gains_of, kept_races

from redqueen.analysis.intervals import band
from redqueen.errors import InputError, UserError
from redqueen.training.study.plots import COLOURS, LINES, drawing

Curve = Mapping[int, Sequence[float]]
"""By step, the races' values."""
ACROSS = 3
NAMES = {
    "solve_rate race": "solve rate of the tasks",
    "valid teacher": "share of proposals that are valid",
    "entropy teacher": "teachers' entropy, nats a token",
    "entropy student": "students' entropy, nats a token",
    "length student": "tokens of an attempt",
    "elsewhere": "distance from the base elsewhere, nats",
}


def of_races(arms: Mapping[str, Mapping[int, Any]]) -> dict[str, dict[str, Curve]]:
    """By panel and arm."""
    panels: dict[str, dict[str, Curve]] = {}
    for arm, runs in arms.items():
        for name in dict.fromkeys(name for race in runs.values() for name in race["curves"]):
            values: dict[int, list[float]] = {}
            for race in runs.values():
                for step, value in race["curves"].get(name, {}).items():
                    if value is not None:
                        values.setdefault(int(step), []).append(value)
            if values:
                panels.setdefault(NAMES.get(name, name), {})[arm] = values
    return panels


def of_benchmarks(arms: Mapping[str, Mapping[int, Any]]) -> dict[str, dict[str, Curve]]:
    panels: dict[str, dict[str, Curve]] = {}
    for arm, runs in arms.items():
        for name in dict.fromkeys(name for race in runs.values() for name in race["benchmarks"]):
            found = [race["benchmarks"].get(name, {"steps": {}}) for race in runs.values()]
            steps = sorted({int(step) for one in found for step in one["steps"]})
            gains = {step: [float(gain.mean()) for gain in gains_of(runs, name, step).values()] for step in steps}
            gains = {step: values for step, values in gains.items() if values}
            if len(gains) > 1:
                panels.setdefault(f"{name}, points less the base", {})[arm] = gains
    return panels


def figure(pyplot: Any, panels: Mapping[str, Mapping[str, Curve]], arms: Sequence[str], *, zero: bool) -> Any:
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    whole, axes = pyplot.subplots(down, across, figsize=(3.4 * across, 2.7 * down), squeeze=False, layout="constrained")
    for place, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        for arm, curve in curves.items():
            at, steps = arms.index(arm), sorted(curve)
            means = [fmean(curve[step]) for step in steps]
            halves = [band(curve[step]) if len(curve[step]) > 1 else 0.0 for step in steps]
            look = {"color": COLOURS[at % len(COLOURS)], "linestyle": LINES[at % len(LINES)]}
            place.plot(steps, means, **look, linewidth=1.4, marker="o", markersize=3, label=arm)
            low, high = zip(
                *((mean - half, mean + half) for mean, half in zip(means, halves, strict=True)), strict=True
            )
            place.fill_between(steps, low, high, color=look["color"], alpha=0.12, linewidth=0)
        if zero:
            place.axhline(0, color="#666666", linestyle=":")
        place.set_title(title, fontsize=9)
        place.set_xlabel("step")
    for place in list(axes.flat)[len(panels) :]:
        place.set_visible(False)
    shown = {
        label: handle for place in axes.flat for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    whole.legend(shown.values(), shown.keys(), frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    return whole


def draw(data: Path, to: Path) -> list[Path]:
    races, _ = kept_races(data)
    arms = by_arm(races, USUAL)
    if not (curves := of_races(arms)):
        raise InputError(f"{data} has no race that is long enough for a curve", "keep some of 10 steps or more")
    if not (benchmarks := of_benchmarks(arms)):
        raise InputError(f"{data} has no benchmark that was asked at several steps", "evaluate with --every")
    with drawing(to) as (pyplot, write):
        return [
            write(f"{data.name}-races", figure(pyplot, curves, list(arms), zero=False)),
            write(f"{data.name}-benchmarks", figure(pyplot, benchmarks, list(arms), zero=True)),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    asked = parser.parse_args()
    try:
        for path in draw(asked.data, asked.to):
            print(path)
    except UserError as error:
        print(f"parts_curves.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
