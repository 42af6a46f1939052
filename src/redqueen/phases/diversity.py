"""How far apart members are and how varied their tasks, and what the watch against collapse makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from redqueen.analysis.distance import weight_cosines
from redqueen.analysis.diversity import Diversity, entropy, take
from redqueen.analysis.watch import DESCRIPTORS_FLOOR, Alarm, Watch
from redqueen.engine.protocol import MemberId
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.members import Population
from redqueen.runs.metrics import DESCRIPTORS_BITS, EFFECTIVE_SIZE, WEIGHT_DISTANCE
from redqueen.tasks.protocol import Task

RECENT = 64
"""Tasks of a teacher by which its variety is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    diversity: Diversity
    watch: Watch
    """With what was seen now."""
    alarms: tuple[Alarm, ...]
    cosine_N_N: Tensor
    """Between the members' weights, in the population's order."""


def snapshot(race: Race, state: State, step: int, population: Population) -> Snapshot:
    """Of this population; the archive and the watch are the state's."""
    ids = [member.id for member in population.members]
    cosine_N_N = race.engine.look(ids, lambda states: weight_cosines(states, race.device))
    recent = {teacher.id: _recent(state, teacher.id) for teacher in population.teachers}
    diversity = take(step, population, cosine_N_N, recent)
    watch, alarms = state.watch.see(diversity)
    if entropy(seed.descriptor for seed in state.archive.seeds) < DESCRIPTORS_FLOOR:
        # Seeds of one type ask for tasks of one type.
        alarms = [alarm for alarm in alarms if alarm.measure != DESCRIPTORS_BITS.name]
    if race.settings.evolution.pull:
        # Members that are averaged are meant to be alike.
        alarms = [alarm for alarm in alarms if alarm.measure not in (EFFECTIVE_SIZE.name, WEIGHT_DISTANCE.name)]
    return Snapshot(diversity=diversity, watch=watch, alarms=tuple(alarms), cosine_N_N=cosine_N_N)


def _recent(state: State, teacher: MemberId) -> Sequence[Task]:
    return [entry.task for entry in state.archive if entry.teacher == teacher][-RECENT:]
