"""Programs with the verdicts that are right for them, in four classes: honest ones, loops, memory hogs, hostile ones.

What an honest program gives is known without running it here: functions of `honest` are called with the arguments that
are drawn for them, and the package's seeds carry their outputs.
"""

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random

import honest
from endless import HOGS, LOOPS

from redqueen.tasks.code.seeds import SEEDS
from redqueen.verifier import Job

_TESTS = Path(__file__).parents[2] / "tests" / "verifier"
sys.path.append(str(_TESTS))

from corpus import ATTACK_PRELOAD, OWN, load  # noqa: E402

__all__ = ["ATTACK_PRELOAD", "CLASSES", "Case", "draw"]

CLASSES = {"honest": 2000, "loop": 60, "hog": 40, "hostile": 200}
"""How many of each, usually."""
_SEEDS_SHARE, _LONG_SHARE, _LARGE_SHARE = 0.2, 0.05, 0.03
"""Of the honest ones: seeds of the package, functions that take time, and functions that take memory."""


@dataclass(frozen=True, slots=True)
class Case:
    """One program and what may come of it."""

    kind: str
    name: str
    job: Job
    expected: str
    """For people; `right` decides."""
    right: Callable[[str], bool]


def draw(counts: dict[str, int], rng: Random) -> list[Case]:
    """So many of each class, mixed."""
    makers = {"honest": _honest, "loop": _loops, "hog": _hogs, "hostile": _hostile}
    cases = [case for kind, count in counts.items() for case in makers[kind](count, rng)]
    rng.shuffle(cases)
    return cases


def _exactly(kind: str, name: str, job: Job, verdict: str) -> Case:
    return Case(kind, name, job, verdict, verdict.__eq__)


def _honest(count: int, rng: Random) -> list[Case]:
    seeds, long, large = (round(share * count) for share in (_SEEDS_SHARE, _LONG_SHARE, _LARGE_SHARE))
    short = count - seeds - long - large
    cases = [_seed(place) for place in islice(cycle(range(len(SEEDS))), seeds)]
    for number, functions in ((long, honest.LONG), (large, honest.LARGE), (short, honest.SHORT)):
        cases += [_call(function, rng) for function in islice(cycle(functions), number)]
    return cases


def _seed(place: int) -> Case:
    task = SEEDS[place]
    return _exactly("honest", f"seed {place}", Job.calls(task.program, task.inputs), f"ok:{task.outputs[0]}")


def _call(function: honest.Function, rng: Random) -> Case:
    values = function.draw(rng)
    name = function.call.__name__
    job = Job.calls(inspect.getsource(function.call), [", ".join(map(repr, values))], entry=name)
    return _exactly("honest", f"{name}({job.texts[0]})", job, honest.verdict(function, values))


def _loops(count: int, rng: Random) -> list[Case]:
    return [_exactly("loop", name, Job.calls(text, [""]), "timeout") for name, text in islice(cycle(LOOPS), count)]


def _hogs(count: int, rng: Random) -> list[Case]:
    return [_exactly("hog", name, Job.calls(text, [""]), "memory") for name, text in islice(cycle(HOGS), count)]


def _hostile(count: int, rng: Random) -> list[Case]:
    further = os.environ.get("REDQUEEN_HOSTILE")
    programs = [*load(OWN), *(load(Path(further)) if further else ())]
    rng.shuffle(programs)
    return [
        Case("hostile", each.name, each.job(), "|".join(each.expect), each.allows)
        for each in islice(cycle(programs), count)
    ]
