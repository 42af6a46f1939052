"""How long a step of a race takes, phase by phase, for the population beside its baselines; and where its seconds go.

The arms share one engine and take turns, step by step, so that other load on the machine affects them alike.
"""

import asyncio
import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.console import print_table
from redqueen.errors import InputError
from redqueen.loop import one_step
from redqueen.phases.clock import Clock, Span
from redqueen.phases.state import State
from redqueen.phases.timeline import Timeline
from redqueen.phases.view import Quiet
from redqueen.resources import device_name, machine_name
from redqueen.runs.metrics import SAMPLED_TOKENS, TRAINED_TOKENS
from redqueen.settings import Config
from redqueen.training import arms
from redqueen.training.gpu_busy import Meter, counter
from redqueen.training.setup import Opened, Start, open_races
from redqueen.training.step_picture import picture, text_plot

if TYPE_CHECKING:
    from rich.console import Console

RESAMPLES = 2000
WORK = ("propose", "solve", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTimes:
    arm: str
    steps: int
    seconds: float
    """The median of a step."""
    ratio: float
    """Of all seconds to those of the first arm."""
    ratio_interval: tuple[float, float]
    """95 %, by resampling pairs of steps."""
    sampled_tokens: float
    """The mean of a step."""
    trained_tokens: float
    seconds_per_token_ratio: float
    """The same ratio per sampled token."""
    phases: Mapping[str, float]
    """Seconds by phase, summed over the steps."""
    other_share: float
    """The share of the seconds that is neither sampling nor training."""
    timeline: Timeline
    """Of the median step; of an even number, the shorter of the two in the middle."""
    gpu_busy: float | None
    """The share of the steps in which the GPU worked; None where there is none, or none whose driver says so."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """The report of `redqueen bench step`."""

    machine: str
    device: str
    base: str
    arms: tuple[ArmTimes, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        console.print(f"{self.machine}; {self.device}; {self.base}", soft_wrap=True, markup=False)
        columns = {
            "a step": [f"{arm.seconds:.2f} s" for arm in self.arms],
            "ratio": [f"{arm.ratio:.2f}" for arm in self.arms],
            "95 %": ["{:.2f}-{:.2f}".format(*arm.ratio_interval) for arm in self.arms],
            "by token": [f"{arm.seconds_per_token_ratio:.2f}" for arm in self.arms],
            "sampled": [f"{arm.sampled_tokens:,.0f}" for arm in self.arms],
            "trained": [f"{arm.trained_tokens:,.0f}" for arm in self.arms],
            "other": [f"{arm.other_share:.1%}" for arm in self.arms],
        }
        busy = [arm.gpu_busy for arm in self.arms if arm.gpu_busy is not None]
        if busy:
            columns["GPU"] = ["-" if arm.gpu_busy is None else f"{arm.gpu_busy:.1%}" for arm in self.arms]
        print_table(console, {"arm": [arm.arm for arm in self.arms]}, columns)
        for arm in self.arms:
            total = math.fsum(arm.phases.values())
            shares = ", ".join(f"{phase} {seconds / total:.1%}" for phase, seconds in arm.phases.items())
            console.print(f"{arm.arm}: {shares}", soft_wrap=True, markup=False)
        most, wide = max(max(arm.timeline.rows) for arm in self.arms), max(len(arm.arm) for arm in self.arms)
        console.print(f"rows in flight over a step next to the median (a full block: {most:.0f})", highlight=False)
        for arm in self.arms:
            line = f"{arm.arm:{wide}} |{text_plot(arm.timeline, most)}| {arm.timeline.seconds:.2f} s"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        steps = "1 step" if self.arms[0].steps == 1 else f"{self.arms[0].steps} steps"
        console.print(
            f"{steps} of each, in turn; `other` is neither sampling nor training; no step is saved", soft_wrap=True
        )
        if busy:
            console.print(
                "`GPU` is the share of the steps in which it worked, by its driver, for whatever process",
                soft_wrap=True,
            )

    def picture(self) -> str:
        """The timelines as SVG."""
        return picture({arm.arm: arm.timeline for arm in self.arms})


def measure(settings: Config, names: Sequence[str], steps: int, warmup: int) -> StepReport:
    """Measure these arms; the others are compared with the first. `population` is the settings as they are."""
    if len(set(names)) < len(names):
        raise InputError("an arm is named twice", "name each once")
    for name in names:
        arms.refuse_own(name, ["engine", "verifier"], "give {} for all of them")
    with open_races([Start.new(arms.apply(settings, name), f"{name}/") for name in names]) as stage:
        engine = stage.local
        read = counter(engine.device)
        races = {name: stage.races[f"{name}/"] for name in names}
        with nullcontext() if read is None else Meter(read) as meter:
            of_arms = asyncio.run(_in_turn(races, steps, warmup))
        return StepReport(
            machine_name(),
            device_name(engine.device),
            f"{engine.base.name}, {engine.shape.parameters / 1e6:,.1f} million parameters",
            tuple(_times(name, of_arms[name], of_arms[names[0]], meter) for name in names),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    phases: Mapping[str, float]
    sampled: float
    trained: float
    timeline: Timeline
    span: Span

    @property
    def seconds(self) -> float:
        return math.fsum(self.phases.values())


async def _in_turn(races: Mapping[str, Opened], steps: int, warmup: int) -> dict[str, list[_Step]]:
    """The steps of each arm."""
    states = {name: opened.state for name, opened in races.items()}
    of_arms: dict[str, list[_Step]] = {name: [] for name in races}
    for number in range(warmup + steps):
        # The first has the colder caches, so they take turns.
        order = list(races)[number % len(races) :] + list(races)[: number % len(races)]
        for name in order:
            states[name], step = await _step(races[name], states[name])
            if number >= warmup:
                of_arms[name].append(step)
    return of_arms


async def _step(opened: Opened, state: State) -> tuple[State, _Step]:
    clock, began = Clock(state.step + 1, Quiet(), lambda: False), time.perf_counter()
    state, rows = await one_step(opened.race, state, clock)
    span = began, time.perf_counter()
    assert rows.timeline is not None
    figures, timeline = rows.figures(), Timeline.of_record(rows.timeline)
    return state, _Step(
        phases=clock.seconds,
        sampled=figures[SAMPLED_TOKENS],
        trained=figures[TRAINED_TOKENS],
        timeline=timeline,
        span=span,
    )


def _times(name: str, steps: Sequence[_Step], first: Sequence[_Step], meter: Meter | None) -> ArmTimes:
    seconds, base = [step.seconds for step in steps], [step.seconds for step in first]
    sampled = math.fsum(step.sampled for step in steps)
    phases: dict[str, float] = {}
    for step in steps:
        for phase, spent in step.phases.items():
            phases[phase] = phases.get(phase, 0.0) + spent
    total = math.fsum(seconds)
    median = sorted(steps, key=lambda step: step.seconds)[(len(steps) - 1) // 2]
    ratio = total / math.fsum(base)
    return ArmTimes(
        arm=name,
        steps=len(steps),
        seconds=statistics.median(seconds),
        ratio=ratio,
        ratio_interval=_ratio_interval(seconds, base),
        sampled_tokens=sampled / len(steps),
        trained_tokens=math.fsum(step.trained for step in steps) / len(steps),
        seconds_per_token_ratio=ratio * math.fsum(step.sampled for step in first) / sampled,
        phases=phases,
        other_share=1 - math.fsum(phases.get(phase, 0.0) for phase in WORK) / total,
        timeline=median.timeline,
        gpu_busy=None if meter is None else meter.share([step.span for step in steps]),
    )


def _ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """95 % of the ratio of two sums over pairs, by resampling the pairs."""
    pairs = list(zip(ours, theirs, strict=True))
    rng = random.Random(0)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        ratios.append(math.fsum(our for our, _ in drawn) / math.fsum(their for _, their in drawn))
    ratios.sort()
    return ratios[round(0.025 * RESAMPLES)], ratios[round(0.975 * RESAMPLES) - 1]
