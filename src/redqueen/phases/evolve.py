"""Evolve: every so many steps the weakest of each role are replaced by children of the best.

Also how far apart the members are, which the choice of parents may need and the watch against collapse does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torch import Tensor

from redqueen.analysis.distance import weight_cosines, weight_distances
from redqueen.analysis.diversity import Diversity, entropy, take
from redqueen.analysis.watch import DESCRIPTORS_FLOOR, Alarm, Watch, collapsed
from redqueen.engine.protocol import MemberId
from redqueen.evolution.breeding import breed
from redqueen.evolution.replacement import Event, apply, due, plan
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.board import Board
from redqueen.population.members import Population
from redqueen.runs.metrics import DESCRIPTORS_BITS
from redqueen.tasks.protocol import Task

RECENT = 64
"""Tasks of a teacher by which its variety is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolved:
    """The population after a step's events, if there were any."""

    population: Population
    watch: Watch
    events: tuple[Event, ...]
    alarms: tuple[Alarm, ...]
    diversity: Diversity | None
    """Measured every so many steps."""


def evolve(race: Race, state: State, step: int, population: Population, board: Board) -> Evolved:
    """`population` and `board` are those after the step's matches; the archive is the one before it."""
    settings = race.settings
    happens = due(step, settings.evolution)
    if settings.population.single or not (happens or step % settings.run.measure_every == 0):
        return Evolved(population=population, watch=state.watch, events=(), alarms=(), diversity=None)
    cosine_N_N = weight_cosines([race.engine.read(member.id) for member in population.members], race.device)
    recent = {teacher.id: _recent(state, teacher.id) for teacher in population.teachers}
    diversity = take(step, population, cosine_N_N, recent)
    watch, alarms = state.watch.see(diversity)
    if entropy(seed.descriptor for seed in state.archive.seeds) < DESCRIPTORS_FLOOR:
        # Seeds of one type ask for tasks of one type.
        alarms = [alarm for alarm in alarms if alarm.measure != DESCRIPTORS_BITS.name]
    if not happens:
        return Evolved(population=population, watch=watch, events=(), alarms=tuple(alarms), diversity=diversity)
    events = [
        event
        for event in plan(
            population,
            step,
            settings.evolution,
            board,
            list(race.operators.values()),
            settings.run.seed,
            _between(population, weight_distances(cosine_N_N)),
            collapsed(alarms),
        )
        if settings.rl.frozen != f"{event.role}s"
    ]
    breed(race.engine, events, race.operators, race.device)
    return Evolved(
        population=apply(population, events),
        watch=watch,
        events=tuple(events),
        alarms=tuple(alarms),
        diversity=diversity,
    )


def _recent(state: State, teacher: MemberId) -> Sequence[Task]:
    return [entry.task for entry in state.archive if entry.teacher == teacher][-RECENT:]


def _between(population: Population, distance_N_N: Tensor) -> Mapping[tuple[MemberId, MemberId], float]:
    ids = [member.id for member in population.members]
    return {(ids[i], ids[j]): float(distance_N_N[i, j]) for i, j in combinations(range(len(ids)), 2)}
