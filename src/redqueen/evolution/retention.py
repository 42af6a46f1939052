"""The retention test: does a child come back to its parent's reward, and after how many updates?

Children of one member by every operator, two controls (a copy of the parent, the mean of both parents) and a fresh
adapter join the race together and train on the same tasks, while the parent plays along untrained: it is the level that
they have to reach. An operator whose children are not back within twenty updates has cost more than it can give.
"""

import math
import statistics
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from redqueen.engine.protocol import Engine, MemberId
from redqueen.errors import InputError
from redqueen.evolution.replacement import FRESH
from redqueen.evolution.variation import OPERATORS, Operator, child
from redqueen.keys import key, numbers

if TYPE_CHECKING:
    from rich.console import Console

CONTROLS = ("copy_parent", "linear_0_5")
UPDATES = 20
WINDOW = 3
"""Updates whose mean reward counts as a child's reward: single ones are noise."""
_RESAMPLES = 2000


class Practice(Protocol):
    """One update of a race."""

    def __call__(
        self, members: Sequence[MemberId], frozen: Sequence[MemberId], update: int
    ) -> Awaitable[Mapping[MemberId, float]]:
        """All of them play the same tasks, all but the frozen are then trained once; the mean reward of each."""
        ...


@dataclass(frozen=True, slots=True)
class Curve:
    """One child on its way."""

    operator: str
    seed: int
    rewards: tuple[float, ...]
    """Before the first update, before the second, ..."""
    back_after: int | None
    """Updates until its reward was the parent's; None if it never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An operator's children together."""

    operator: str
    children: int
    back: float
    """The share that came back."""
    updates: float
    """The median of updates until then, a child that never was counting as infinitely many."""
    interval: tuple[float, float]
    """Of the median, 95 %, by resampling children."""
    first_reward: float
    last_reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What the test found."""

    parent: MemberId
    level: float
    """The parent's mean reward over the test."""
    within: float
    """A reward that is this much below the level counts as the level: the parent's own standard error."""
    updates: int
    curves: tuple[Curve, ...]
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        answer = asdict(self)
        for row in answer["rows"]:
            row["updates"] = None if math.isinf(row["updates"]) else row["updates"]
            row["interval"] = [None if math.isinf(end) else end for end in row["interval"]]
        return answer

    def render(self, console: "Console") -> None:
        from rich.table import Table

        back = f"a child is back at {self.level - self.within:.3f} or more, over {WINDOW} updates"
        console.print(f"{self.parent} has a reward of {self.level:.3f}; {back}; {self.updates} updates", soft_wrap=True)
        table = Table("operator", "children", "back", "after", "95 %", "first reward", "last")
        table.columns[0].no_wrap = table.columns[4].no_wrap = True
        for row in self.rows:
            low, high = (_count(end) for end in row.interval) if row.children > 1 else ("", "")
            rewards = f"{row.first_reward:.3f}", f"{row.last_reward:.3f}"
            table.add_row(
                row.operator, str(row.children), f"{row.back:.0%}", _count(row.updates), f"{low}-{high}", *rewards
            )
        console.print(table)


async def measure(
    engine: Engine,
    parent: MemberId,
    mate: MemberId | None,
    operators: Sequence[Operator],
    practice: Practice,
    *,
    seeds: int = 3,
    updates: int = UPDATES,
    run_seed: int = 0,
    device: torch.device | None = None,
) -> Retention:
    """Make the children, let them train, and see who comes back. The engine is left as it was found.

    `mate` is the second parent of crossovers, a member of the same role; without one they are left out.
    """
    if seeds < 1 or updates < WINDOW:
        raise InputError(f"{seeds} children and {updates} updates test nothing", f"use 1 and {WINDOW}, or more")
    tested = {each.name: each for each in (*operators, *(OPERATORS[name] for name in CONTROLS))}
    if mate is None:
        tested = {name: each for name, each in tested.items() if each.parents == 1}
    made: dict[MemberId, tuple[str, int]] = {}
    try:
        for seed in range(seeds):
            for name, operator in tested.items():
                id = f"{parent}~{name}~{seed}"
                pair = [parent] if operator.parents == 1 or mate is None else [parent, mate]
                states = [engine.read(each, optimiser=operator.moments) for each in pair]
                drawn = key(run_seed, "retention", parent, name, seed)
                engine.write(id, child(operator, states, seed=drawn, device=device))
                made[id] = name, seed
            id = f"{parent}~{FRESH}~{seed}"
            engine.write(id, engine.fresh())
            made[id] = FRESH, seed
        played = [await practice([parent, *made], [parent], update) for update in range(updates)]
    finally:
        for id in made:
            engine.remove(id)
    return _report(parent, made, played)


def _report(
    parent: MemberId, made: Mapping[MemberId, tuple[str, int]], played: Sequence[Mapping[MemberId, float]]
) -> Retention:
    own = [rewards[parent] for rewards in played]
    level = statistics.fmean(own)
    # The reward of a child is a mean of WINDOW updates, so that is what the parent's spread is taken of.
    within = statistics.stdev(own) / math.sqrt(WINDOW)
    curves = []
    for id, (name, seed) in made.items():
        rewards = tuple(each[id] for each in played)
        curves.append(Curve(name, seed, rewards, back_after(rewards, level - within)))
    names = dict.fromkeys(curve.operator for curve in curves)
    rows = tuple(_row(name, [curve for curve in curves if curve.operator == name]) for name in names)
    return Retention(parent=parent, level=level, within=within, updates=len(played), curves=tuple(curves), rows=rows)


def back_after(rewards: Sequence[float], level: float) -> int | None:
    """The first update from which on the mean of WINDOW rewards reaches the level."""
    for start in range(len(rewards) - WINDOW + 1):
        if statistics.fmean(rewards[start : start + WINDOW]) >= level:
            return start
    return None


def _row(name: str, curves: Sequence[Curve]) -> Row:
    counts = [math.inf if curve.back_after is None else float(curve.back_after) for curve in curves]
    rng = numbers("retention", name)
    medians = sorted(_median(rng.choices(counts, k=len(counts))) for _ in range(_RESAMPLES))
    return Row(
        operator=name,
        children=len(curves),
        back=sum(map(math.isfinite, counts)) / len(counts),
        updates=_median(counts),
        interval=(medians[round(0.025 * _RESAMPLES)], medians[round(0.975 * _RESAMPLES) - 1]),
        first_reward=statistics.fmean(statistics.fmean(curve.rewards[:WINDOW]) for curve in curves),
        last_reward=statistics.fmean(statistics.fmean(curve.rewards[-WINDOW:]) for curve in curves),
    )


def _median(counts: Sequence[float]) -> float:
    """The lower of the middle ones: half of them came back by then."""
    return statistics.median_low(counts)


def _count(updates: float) -> str:
    return "never" if math.isinf(updates) else f"{updates:g}"
