"""What the step's tasks are like: how complex, how new, and what they mean, by what they do and how the base reads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.analysis.account import Counted
from redqueen.analysis.coverage import Coverage
from redqueen.analysis.semantics import embeddings, semantic_distance
from redqueen.phases.items import Item
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.rl.rollout import Rollout
from redqueen.tasks.guards import guess_rates
from redqueen.tasks.protocol import Complexity, Task

Posed = Rollout | Item
"""What may have become a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of all tasks of a step."""

    complexity: Mapping[int, Complexity]
    """By place."""
    behaviours: Mapping[int, str | None]
    """By place; None where the family cannot tell."""
    cells: Coverage
    """All that were ever filled, by now."""
    new_cells: int
    guess_rates: Mapping[str, float]
    """By kind, of those that it can be told of."""
    seen: Coverage
    """All behaviours that were ever seen, by now."""
    semantic_distance: float | None
    """Between the tasks, measured every so many steps."""
    verifier_runs: int


async def measure(
    race: Race, state: State, step: int, posed: Sequence[Posed], behaving: asyncio.Task["Behaved"]
) -> Measured:
    """`behaving` is what `behave` was begun with."""
    complexity, shown, runs = await behaving
    race.journal.flush(step)
    tasks = _tasks(posed)
    cells, new_cells = state.cells.add(
        race.families.cell(task.kind, task.descriptor, task.complexity) for task in tasks.values()
    )
    seen, _ = state.behaviours.add(behaviour for behaviour in shown if behaviour is not None)
    distance = None
    if step % race.settings.run.measure_every == 0 and len(tasks) > 1:
        distance = semantic_distance(await embeddings(race.engine, _texts(race, list(tasks.values()))))
    return Measured(
        complexity=complexity,
        behaviours=dict(zip(tasks, shown, strict=True)),
        cells=cells,
        new_cells=len(new_cells),
        guess_rates=guess_rates(list(tasks.values()), state.archive),
        seen=seen,
        semantic_distance=distance,
        verifier_runs=runs,
    )


ENGINE_FIRST_S = 0.005
"""Until the engine has been given what it is to do in the meantime."""
Behaved = tuple[dict[int, Complexity], list[str | None], int]
"""How complex each task is, by place; what it does; and the verifier's runs for that."""


async def behave(race: Race, posed: Sequence[Posed]) -> Behaved:
    """What is known of tasks without the engine, found out while it is at work."""
    by_place = _tasks(posed)
    tasks = list(by_place.values())
    await asyncio.sleep(ENGINE_FIRST_S)

    async def find(_: Sequence[str]) -> tuple[list[str | None], int]:
        counted = Counted(race.verifier)
        return await race.families.behaviours(tasks, counted), counted.runs

    shown, runs = await race.journal.behaviours([task.id for task in tasks], find)
    return {place: task.complexity for place, task in by_place.items()}, shown, runs


def _tasks(posed: Sequence[Posed]) -> dict[int, Task]:
    """By place."""
    return {one.place: one.became for one in posed if isinstance(one.became, Task)}


def _texts(race: Race, tasks: Sequence[Task]) -> list[tuple[int, ...]]:
    """What tasks are about, for the base to read: their bodies, or their questions where they have none."""
    tokens = [
        race.tokens(race.kinds[task.kind].solve_prompt(task)) if task.body is None else race.encode(task.body)
        for task in tasks
    ]
    return [text for text in tokens if len(text) > 1]
