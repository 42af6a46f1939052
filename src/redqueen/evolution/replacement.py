"""Who dies and who takes the seat: the plan of an event, as data, before any weight changes.

The published rules kill newborns: a child that starts at the prior has the lowest bound of all. So by default a
member dies by the mean of its rating and only after enough matches, and a child starts at its role's mean. The
published rules are `evolution.rule = "paper"`.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from redqueen.errors import ConfigError
from redqueen.evolution.fitness import Fitness, Measure
from redqueen.evolution.selection import Distances, Selection, ranked
from redqueen.keys import key, numbers
from redqueen.plugins import FITNESS, SELECTIONS
from redqueen.population.board import Board
from redqueen.population.members import Birth, Member, MemberId, Population, Role
from redqueen.population.ratings import PRIOR, SIGMA, Rating
from redqueen.settings.models import EvolutionConfig

FRESH = "fresh"
"""The operator of an event that puts in a fresh member."""
MIN_AGE = 1.5
"""Intervals that a child lives before it can die: at its first event it has played few matches."""


class Breeder(Protocol):
    """What a plan must know of an operator: its name, and how many parents it takes; 0 is all survivors."""

    @property
    def name(self) -> str: ...

    @property
    def parents(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    step: int
    role: Role
    seat: str
    dead: MemberId
    child: Member
    operator: str
    parents: tuple[MemberId, ...]
    """The better one first; a fresh member has none."""
    seed: int


def due(step: int, settings: EvolutionConfig) -> bool:
    """Whether there are events before this step; steps count from 1. Nobody is replaced after a run's last step, so
    no run ends with a child that has learnt nothing."""
    return settings.every > 0 and step > 1 and (step - 1) % settings.every == 0


def plan(
    population: Population,
    step: int,
    settings: EvolutionConfig,
    board: Board,
    operators: Sequence[Breeder],
    run_seed: int,
    distances: Distances | None = None,
    collapsed: Collection[Role] = frozenset(),
    trials: Mapping[MemberId, float] | None = None,
) -> list[Event]:
    """The replacements before this step, if any are due. Parents are survivors, so the events may be carried out in any
    order. `trials` has what members were worth on common tasks; without it the settings' fitness counts."""
    if not due(step, settings):
        return []
    recent = board.since(step - settings.every)
    events: list[Event] = []
    for role in Role:
        events += _plan_role(
            population, role, step, settings, recent, operators, run_seed, distances, role in collapsed, trials or {}
        )
    return events


def apply(population: Population, events: Sequence[Event]) -> Population:
    for event in events:
        population = population.replaced(event.dead, event.child, event.step)
    return population


def _plan_role(
    population: Population,
    role: Role,
    step: int,
    settings: EvolutionConfig,
    recent: Board,
    operators: Sequence[Breeder],
    run_seed: int,
    distances: Distances | None,
    collapsed: bool,
    trials: Mapping[MemberId, float],
) -> list[Event]:
    members = {member.id: member for member in population.of(role)}
    if len(members) < 2:
        return []
    measure: Measure = FITNESS.get(settings.fitness)
    selection: Selection = SELECTIONS.get(settings.selection)
    fitness = measure(population, role, recent)
    if trials.keys() >= members.keys():
        # Alike members may do exactly alike: then it is as it would be without a trial.
        order = sorted(members, key=lambda id: (trials[id], fitness[id].survival))
        fitness = {id: Fitness(place, place) for place, id in enumerate(order)}
    breeding = {id: own.breeding for id, own in fitness.items()}
    survival = breeding if settings.rule == "paper" else {id: own.survival for id, own in fitness.items()}
    doomed = _doomed(members, breeding, selection.adjust(survival, distances), step, settings)
    adjusted = selection.adjust(breeding, distances)
    survivors = {id: adjusted[id] for id in members if id not in doomed}
    # A child starts at the mean of the whole role, the dying included.
    rating = Rating(statistics.fmean(member.rating.mu for member in members.values()), SIGMA)
    if settings.rule == "paper":
        rating = PRIOR
    events: list[Event] = []
    for index, dead in enumerate(doomed):
        rng = numbers(run_seed, step, "evolve", str(role), index)
        if collapsed and settings.inject and index == 0:
            operator, parents = FRESH, ()
        else:
            usable = [operator for operator in operators if operator.parents <= len(survivors)]
            if not usable:
                raise ConfigError(
                    f"one {role} is left to breed from, and evolution.operators names no mutation",
                    "add one that needs a single parent: `redqueen operators` lists them",
                )
            breeder = rng.choice(usable)
            picked = list(survivors)
            if breeder.parents:
                picked = selection.pick(survivors, breeder.parents, settings.share, rng)
            operator, parents = breeder.name, tuple(sorted(picked, key=lambda id: -breeding[id]))
        seat = members[dead].seat
        birth = Birth(step, None if operator == FRESH else operator, parents)
        child = Member(id=population.next_id(seat), role=role, seat=seat, rating=rating, birth=birth)
        seed = key(run_seed, step, "evolve", str(role), index, "operator")
        events.append(
            Event(
                step=step, role=role, seat=seat, dead=dead, child=child, operator=operator, parents=parents, seed=seed
            )
        )
    return events


def _doomed(
    members: Mapping[MemberId, Member],
    breeding: Mapping[MemberId, float],
    survival: Mapping[MemberId, float],
    step: int,
    settings: EvolutionConfig,
) -> list[MemberId]:
    """Who dies, the worst first: the share, or fewer where too few are neither elite nor young."""
    spared = set(ranked(breeding)[: settings.elites])
    if settings.rule == "ours":
        # Founders have played from the start.
        children = [member for member in members.values() if member.birth.step > 0]
        spared |= {child.id for child in children if child.age(step) < MIN_AGE * settings.every}
    count = max(1, math.floor(settings.share * len(members) + 1e-9))
    return [id for id in reversed(ranked(survival)) if id not in spared][:count]
