"""`redqueen diversity`: adapters beside each other, from PEFT folders and from runs.

Any plain LoRA adapters of one base and the same modules can be compared, of whatever rank and alpha and whoever has
trained them. What they say is measured on prompts of the bundled seeds, which the bare base continues.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from redqueen.analysis.distance import (
    difference,
    effective_size,
    function_distances,
    mean_distance,
    probes,
    weight_cosines,
    weight_distances,
)
from redqueen.console import printable
from redqueen.engine import peft
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.keys import numbers
from redqueen.resources import open_engine, place
from redqueen.settings.models import EngineConfig, TasksConfig
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Message, Prompt

if TYPE_CHECKING:
    from rich.console import Console

PROBE_SEEDS = 6
PROBE_TOKENS = 48
"""Of a completion. Few and short, because every adapter reads every prompt again."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class NamedAdapter:
    what: str
    """As the user named it."""
    state: MemberState
    like: Path
    """The PEFT folder that it is in; that of a student where it is the mean of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What `redqueen diversity` found."""

    folders: tuple[str, ...]
    ranks: tuple[int, ...]
    effective_size: float
    mean_weight_distance: float
    weight_distances: Rows
    base: str | None = None
    """None where only weights were compared; then so is all that follows."""
    mean_function_distance: float | None = None
    function_distances: Rows | None = None
    from_base: tuple[float, ...] | None = None
    """How far each adapter is from the bare base."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich.text import Text

        for number, (folder, rank) in enumerate(zip(self.folders, self.ranks, strict=True), 1):
            console.print(Text(f"{number}  {printable(folder)}, rank {rank}"), soft_wrap=True)
        _table(console, "Distance between weights: 0 one direction, 1 unrelated, 2 opposite", self.weight_distances, 3)
        if self.function_distances is not None and self.from_base is not None:
            title = f"Distance between what they say: about nats a token, on texts of {printable(self.base or '')}"
            _table(console, title, self.function_distances, 5, ("the base", self.from_base))
        size = f"effective size {self.effective_size:.2f} of {len(self.folders)}"
        means = [f"mean distance between weights {self.mean_weight_distance:.3f}"]
        if self.mean_function_distance is not None:
            means.append(f"between what they say {self.mean_function_distance:.5f}")
        console.print(", ".join([size, *means]), soft_wrap=True)


def compare(adapters: Sequence[NamedAdapter], base: str | None, settings: EngineConfig) -> Comparison:
    """These adapters; with a base also what they say on it."""
    states = [adapter.state for adapter in adapters]
    peft.same_base([adapter.like for adapter in adapters])
    for adapter in adapters[1:]:
        if differ := difference(states[0], adapter.state):
            raise InputError(
                f"{adapters[0].what} and {adapter.what} cannot be compared: {differ}",
                "name adapters of one base and the same modules",
            )
    cosine_N_N = weight_cosines(states, place(settings)[0])
    distance_N_N = weight_distances(cosine_N_N)
    function_M_M = None if base is None else asyncio.run(_function(states, base, settings))
    return Comparison(
        folders=tuple(adapter.what for adapter in adapters),
        ranks=tuple(state.rank for state in states),
        effective_size=effective_size(cosine_N_N),
        mean_weight_distance=mean_distance(distance_N_N),
        weight_distances=_rows(distance_N_N),
        base=base,
        mean_function_distance=None if function_M_M is None else mean_distance(function_M_M[:-1, :-1]),
        function_distances=None if function_M_M is None else _rows(function_M_M[:-1, :-1]),
        from_base=None if function_M_M is None else tuple(function_M_M[-1, :-1].tolist()),
    )


async def _function(states: Sequence[MemberState], base: str, settings: EngineConfig) -> torch.Tensor:
    """The distances between what the members say, those to the bare base last."""
    rank = max(state.rank for state in states)
    names = [f"m{index}" for index in range(len(states))]
    fitting = {"base": base, "rank": rank, "alpha": float(rank), "target_modules": tuple(states[0].factors)}
    with open_engine(settings.model_copy(update=fitting), names, trains=False) as engine:
        for name, state in zip(names, states, strict=True):
            engine.write(name, _widened(state, rank))
        texts = [engine.base.encode([_plain(message) for message in prompt.messages]) for prompt in _prompts()]
        return await function_distances(engine, [*names, None], await probes(engine, texts, 0, PROBE_TOKENS))


def _widened(state: MemberState, rank: int) -> MemberState:
    """The same update at this rank, with an alpha that leaves the factors' product as it is: one engine for all."""
    factors = {}
    for module, (a_R_I, b_O_R) in state.factors.items():
        more = rank - state.rank
        a_W_I = torch.cat([a_R_I, a_R_I.new_zeros(more, a_R_I.shape[1])])
        b_O_W = torch.cat([b_O_R * (state.alpha / state.rank), b_O_R.new_zeros(b_O_R.shape[0], more)], 1)
        factors[module] = (a_W_I, b_O_W)
    return MemberState(rank, float(rank), factors)


def _prompts() -> list[Prompt]:
    """What a student and what a teacher is asked."""
    families = Families.of(TasksConfig().families)
    solve_prompts = [families.kinds[seed.kind].solve_prompt(seed) for seed in families.seeds[:PROBE_SEEDS]]
    return solve_prompts + [
        kind.propose_prompt([seed for seed in families.seeds if type(seed) is kind.task_type], numbers("probe", name))
        for name, kind in families.kinds.items()
    ]


def _plain(message: Message) -> dict[str, str]:
    return {"role": message["role"], "content": message["content"]}


def _rows(matrix_N_N: torch.Tensor) -> Rows:
    return tuple(tuple(row) for row in matrix_N_N.tolist())


def _table(
    console: "Console", title: str, rows: Rows, digits: int, last: tuple[str, tuple[float, ...]] | None = None
) -> None:
    from rich.table import Table

    table = Table("", *map(str, range(1, len(rows) + 1)), title=title)
    named = [(str(number), row) for number, row in enumerate(rows, 1)]
    for name, row in [*named, last] if last else named:
        table.add_row(name, *(f"{value:.{digits}f}" for value in row))
    console.print(table)
