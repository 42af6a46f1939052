"""Evolve: before every so many steps the weakest of each role are replaced by children of the best."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from torch import Tensor

from redqueen.analysis.distance import weight_distances
from redqueen.analysis.watch import Watch, collapsed
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.evolution.breeding import breed
from redqueen.evolution.replacement import Event, apply, due, plan
from redqueen.phases.diversity import snapshot
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.phases.trial import NO_TRIALS, Trials, hold_trials
from redqueen.population.members import Population


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolved:
    """The population before a step, after its events if there were any."""

    population: Population
    events: tuple[Event, ...] = ()
    trials: Trials = NO_TRIALS
    dead: Mapping[MemberId, MemberState] = field(default_factory=dict)
    """As they were, with their optimisers: a step that is given up takes its events back."""
    watch: Watch | None = None
    """After what was seen before the events; None where nobody looked."""


async def evolve(race: Race, state: State) -> Evolved:
    """What happens between the state's last step and the next one."""
    settings, step, population = race.settings, state.step + 1, state.population
    if settings.population.single or not due(step, settings.evolution):
        return Evolved(population=population)
    if any(grave.step == step for grave in population.graves):
        # As a checkpoint has it that an older version wrote: its events came at the end of a step.
        return Evolved(population=population)
    seen = snapshot(race, state, step, population)
    trials = await hold_trials(race, state, step)
    if not population.teachers and not trials.values:
        # Nobody is rated, and there was no task to compare students by.
        return Evolved(population=population, trials=trials, watch=seen.watch)
    events = [
        event
        for event in plan(
            population,
            step,
            settings.evolution,
            state.board,
            list(race.operators.values()),
            settings.run.seed,
            _between(population, weight_distances(seen.cosine_N_N)),
            collapsed(seen.alarms),
            trials.values,
        )
        if settings.rl.frozen != f"{event.role}s"
    ]
    dead = {event.dead: race.engine.read(event.dead, optimiser=True) for event in events}
    breed(race.engine, events, race.operators, race.device, fresh=race.fresh)
    return Evolved(
        population=apply(population, events), events=tuple(events), trials=trials, dead=dead, watch=seen.watch
    )


def take_back(race: Race, evolved: Evolved) -> None:
    """Undo the events on the engine."""
    for event in evolved.events:
        race.engine.remove(event.child.id)
    for id, state in evolved.dead.items():
        race.engine.write(id, state)


def _between(population: Population, distance_N_N: Tensor) -> Mapping[tuple[MemberId, MemberId], float]:
    ids = [member.id for member in population.members]
    return {(ids[i], ids[j]): float(distance_N_N[i, j]) for i, j in combinations(range(len(ids)), 2)}
