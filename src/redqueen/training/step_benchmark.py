"""What a step of a race takes, and of that what is not sampling and training; the population beside its baselines.

The arms share one engine and take turns, step by step, so that whatever else the machine does falls on all of them.
"""

import asyncio
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.engine.local import LocalEngine
from redqueen.errors import InputError
from redqueen.loop import one_step
from redqueen.phases.clock import Clock
from redqueen.phases.view import Quiet
from redqueen.resources import device_name, machine_name
from redqueen.runs.metrics import SAMPLED_TOKENS, TRAINED_TOKENS
from redqueen.settings import Config
from redqueen.training import arms
from redqueen.training.setup import Opened, Start, open_races

if TYPE_CHECKING:
    from rich.console import Console

RESAMPLES = 2000
WORK = ("propose", "solve", "update")
"""The phases in which the engine works; the others wait for the verifier, keep books or evolve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReport:
    """One arm's steps."""

    arm: str
    steps: int
    seconds: float
    """Median of a step."""
    ratio: float
    """Of the sum of its steps' seconds to that of the first arm's."""
    ratio_interval: tuple[float, float]
    """95 %, from the steps' pairs."""
    sampled_tokens: float
    trained_tokens: float
    """Means of a step."""
    seconds_per_token_ratio: float
    """The same ratio, by sampled token."""
    phases: Mapping[str, float]
    """Seconds by phase, summed over the steps."""
    other_share: float
    """Of the step: everything but sampling and training."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What `redqueen bench step` found."""

    machine: str
    device: str
    base: str
    arms: tuple[ArmReport, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich.table import Table

        console.print(f"{self.machine}; {self.device}; {self.base}", soft_wrap=True, markup=False)
        table = Table("arm", "a step", "ratio", "95 %", "by token", "sampled", "trained", "other")
        for each in self.arms:
            low, high = each.ratio_interval
            table.add_row(
                each.arm, f"{each.seconds:.2f} s", f"{each.ratio:.2f}", f"{low:.2f}-{high:.2f}",
                f"{each.seconds_per_token_ratio:.2f}", f"{each.sampled_tokens:,.0f}", f"{each.trained_tokens:,.0f}",
                f"{each.other_share:.1%}",
            )  # fmt: skip
        console.print(table)
        for each in self.arms:
            total = math.fsum(each.phases.values())
            shares = ", ".join(f"{phase} {seconds / total:.1%}" for phase, seconds in each.phases.items())
            console.print(f"{each.arm}: {shares}", soft_wrap=True, markup=False)
        console.print(
            f"{self.arms[0].steps} steps of each, in turn; `other` is neither sampling nor training; nothing is saved",
            soft_wrap=True,
        )


def measure(settings: Config, names: Sequence[str], steps: int, warmup: int) -> StepReport:
    """These arms, the first being what the others are compared with; `population` is the settings as they are."""
    if len(set(names)) < len(names):
        raise InputError("an arm is named twice", "name each once")
    of_arm = {name: arms.apply(settings, name) for name in names}
    with open_races([Start.new(arm, f"{name}/") for name, arm in of_arm.items()]) as stage:
        races = {name: stage.races[f"{name}/"] for name in names}
        taken = asyncio.run(_in_turn(races, steps, warmup))
        return StepReport(
            machine_name(),
            device_name(stage.engine.device),
            _shape(stage.engine),
            tuple(_report(name, taken[name], taken[names[0]]) for name in names),
        )


@dataclass(frozen=True, slots=True)
class _Step:
    phases: Mapping[str, float]
    sampled: float
    trained: float

    @property
    def seconds(self) -> float:
        return math.fsum(self.phases.values())


async def _in_turn(races: Mapping[str, Opened], steps: int, warmup: int) -> dict[str, list[_Step]]:
    states = {name: opened.state for name, opened in races.items()}
    taken: dict[str, list[_Step]] = {name: [] for name in races}
    for number in range(warmup + steps):
        # Whoever begins has the colder caches: that goes round.
        order = list(races)[number % len(races) :] + list(races)[: number % len(races)]
        for name in order:
            clock = Clock(states[name].step + 1, Quiet(), lambda: False)
            states[name], rows = await one_step(races[name].race, states[name], clock)
            if number >= warmup:
                figures = rows.figures()
                taken[name].append(_Step(clock.seconds, figures[SAMPLED_TOKENS], figures[TRAINED_TOKENS]))
    return taken


def _report(name: str, steps: Sequence[_Step], first: Sequence[_Step]) -> ArmReport:
    seconds, base = [each.seconds for each in steps], [each.seconds for each in first]
    sampled = math.fsum(each.sampled for each in steps)
    phases: dict[str, float] = {}
    for each in steps:
        for phase, spent in each.phases.items():
            phases[phase] = phases.get(phase, 0.0) + spent
    ratio = math.fsum(seconds) / math.fsum(base)
    total = math.fsum(seconds)
    return ArmReport(
        arm=name,
        steps=len(steps),
        seconds=statistics.median(seconds),
        ratio=ratio,
        ratio_interval=_ratio_interval(seconds, base),
        sampled_tokens=sampled / len(steps),
        trained_tokens=math.fsum(each.trained for each in steps) / len(steps),
        seconds_per_token_ratio=ratio * math.fsum(each.sampled for each in first) / sampled,
        phases=phases,
        other_share=1 - math.fsum(phases.get(phase, 0.0) for phase in WORK) / total,
    )


def _ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """95 % of the ratio of two sums over pairs, by resampling the pairs."""
    pairs = list(zip(ours, theirs, strict=True))
    rng = random.Random(0)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        ratios.append(math.fsum(one for one, _ in drawn) / math.fsum(other for _, other in drawn))
    ratios.sort()
    return ratios[round(0.025 * RESAMPLES)], ratios[round(0.975 * RESAMPLES) - 1]


def _shape(engine: LocalEngine) -> str:
    return f"{engine.base.name}, {engine.shape.parameters / 1e6:,.1f} million parameters"
