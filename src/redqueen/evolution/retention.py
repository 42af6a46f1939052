"""The retention test: does a child recover its parent's reward, and after how many updates?

Children of one member by every operator, two controls (a copy of the parent, the mean of both parents) and fresh
adapters train on the same tasks. The parent plays along untrained and sets the level that they must reach. An operator
whose children have not recovered after twenty updates costs more than it gives.
"""

import math
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.console import print_table
from redqueen.engine.protocol import Engine, MemberId
from redqueen.evolution.replacement import FRESH
from redqueen.evolution.variation import Operator, child
from redqueen.keys import key, numbers
from redqueen.plugins import OPERATORS

if TYPE_CHECKING:
    from rich.console import Console

COPY = "copy_parent"
CONTROLS = (COPY, "linear_0_5")
HALF = 0.5
"""The share of a control's children that decides what is said of it."""
WINDOW = 3
"""Updates whose mean counts as a child's reward: single ones are noise."""
_RESAMPLES = 2000
Practice = Callable[[Sequence[MemberId], Sequence[MemberId], int], Awaitable[Mapping[MemberId, float]]]
"""One update: these members play the same tasks, all but the frozen (second) are trained once; the mean reward of
each."""


@dataclass(frozen=True, slots=True)
class Curve:
    operator: str
    seed: int
    rewards: tuple[float, ...]
    """Before the first update, before the second, ..."""
    back_after: int | None
    """Updates until its reward was the parent's; None if it never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRow:
    operator: str
    children: int
    back: float
    """The share that recovered."""
    updates: float
    """The median number of updates until then, infinite for a child that never did."""
    interval: tuple[float, float]
    """Of the median, 95 %, by resampling children."""
    first_reward: float
    last_reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport:
    """The report of `redqueen retention`."""

    parent: MemberId
    level: float
    """The parent's mean reward over the test."""
    within: float
    """A reward this much below the level counts as recovered: the parent's own standard error."""
    updates: int
    curves: tuple[Curve, ...]
    rows: tuple[RetentionRow, ...]

    @property
    def warnings(self) -> list[str]:
        """What the controls say against the test, nothing where they did as they should."""
        back = {row.operator: row.back for row in self.rows}
        warnings = []
        if back.get(FRESH, 0) >= HALF:
            warnings.append(
                f"{back[FRESH]:.0%} of the fresh members are back too: this level needs no parent, so the test does "
                "not tell operators apart; test a member that learnt more, or with more --updates"
            )
        if back.get(COPY, 1) < HALF:
            warnings.append(
                f"of the copies of the parent {back[COPY]:.0%} are back: training takes more from children than any "
                "operator could, so the test does not tell operators apart"
            )
        return warnings

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = asdict(self)
        answer["warnings"] = self.warnings
        for row in answer["rows"]:
            row["updates"] = None if math.isinf(row["updates"]) else row["updates"]
            row["interval"] = [None if math.isinf(end) else end for end in row["interval"]]
        return answer

    def render(self, console: "Console") -> None:
        back = f"a child is back at {self.level - self.within:.3f} or more, over {WINDOW} updates"
        console.print(f"{self.parent} has a reward of {self.level:.3f}; {back}; {self.updates} updates", soft_wrap=True)
        columns = {
            "children": [str(row.children) for row in self.rows],
            "back": [f"{row.back:.0%}" for row in self.rows],
            "after": [_count(row.updates) for row in self.rows],
            "95 %": ["-".join(map(_count, row.interval)) if row.children > 1 else "" for row in self.rows],
            "first reward": [f"{row.first_reward:.3f}" for row in self.rows],
            "last": [f"{row.last_reward:.3f}" for row in self.rows],
        }
        print_table(console, {"operator": [row.operator for row in self.rows]}, columns)
        for warning in self.warnings:
            console.print(warning, soft_wrap=True, highlight=False)


async def measure(
    engine: Engine,
    parent: MemberId,
    mate: MemberId | None,
    operators: Sequence[Operator],
    practice: Practice,
    *,
    seeds: int,
    updates: int,
    run_seed: int = 0,
) -> RetentionReport:
    """Make the children, train them, and see who recovers. The engine is left as it was.

    `mate` is the second parent of crossovers, a member of the same role; without one they are left out.
    """
    tested = {operator.name: operator for operator in (*operators, *(OPERATORS.get(name) for name in CONTROLS))}
    children: dict[MemberId, tuple[str, int]] = {}
    try:
        for seed in range(seeds):
            for name, operator in tested.items():
                if operator.parents != 1 and mate is None:
                    continue
                parents = [parent] if operator.parents == 1 or mate is None else [parent, mate]
                states = [engine.read(member, optimiser=operator.moments) for member in parents]
                id = f"{parent}~{name}~{seed}"
                engine.write(id, child(operator, states, seed=key(run_seed, "retention", parent, name, seed)))
                children[id] = name, seed
            id = f"{parent}~{FRESH}~{seed}"
            engine.write(id, engine.fresh())
            children[id] = FRESH, seed
        rewards = [await practice([parent, *children], [parent], update) for update in range(updates)]
    finally:
        for id in children:
            engine.remove(id)
    return _report(parent, children, rewards)


def _report(
    parent: MemberId, children: Mapping[MemberId, tuple[str, int]], rewards: Sequence[Mapping[MemberId, float]]
) -> RetentionReport:
    """`children` has the operator and the seed of each, `rewards` everybody's reward in each update."""
    own = [of_update[parent] for of_update in rewards]
    level = statistics.fmean(own)
    # The reward of a child is a mean of WINDOW updates, so the parent's spread is that of such a mean.
    within = statistics.stdev(own) / math.sqrt(WINDOW)
    curves = []
    for id, (name, seed) in children.items():
        of_child = tuple(of_update[id] for of_update in rewards)
        curves.append(Curve(name, seed, of_child, back_after(of_child, level - within)))
    names = dict.fromkeys(curve.operator for curve in curves)
    rows = tuple(_row(name, [curve for curve in curves if curve.operator == name]) for name in names)
    return RetentionReport(
        parent=parent, level=level, within=within, updates=len(rewards), curves=tuple(curves), rows=rows
    )


def back_after(rewards: Sequence[float], level: float) -> int | None:
    """The first update from which on the mean of WINDOW rewards reaches the level."""
    for start in range(len(rewards) - WINDOW + 1):
        if statistics.fmean(rewards[start : start + WINDOW]) >= level:
            return start
    return None


def _row(name: str, curves: Sequence[Curve]) -> RetentionRow:
    counts = [math.inf if curve.back_after is None else float(curve.back_after) for curve in curves]
    rng = numbers("retention", name)
    # The lower of two middle ones: half of the children recovered by then.
    medians = sorted(statistics.median_low(rng.choices(counts, k=len(counts))) for _ in range(_RESAMPLES))
    return RetentionRow(
        operator=name,
        children=len(curves),
        back=sum(map(math.isfinite, counts)) / len(counts),
        updates=statistics.median_low(counts),
        interval=(medians[round(0.025 * _RESAMPLES)], medians[round(0.975 * _RESAMPLES) - 1]),
        first_reward=statistics.fmean(statistics.fmean(curve.rewards[:WINDOW]) for curve in curves),
        last_reward=statistics.fmean(statistics.fmean(curve.rewards[-WINDOW:]) for curve in curves),
    )


def _count(updates: float) -> str:
    return "never" if math.isinf(updates) else f"{updates:g}"
