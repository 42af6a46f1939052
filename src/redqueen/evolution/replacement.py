"""Who dies and who takes the seat: the plan of an event, as data, before any weight changes.

The published rules kill newborns: a child that returns to the prior has the lowest bound of all. So by default a
member dies by the mean of its rating and only when it has been judged, and a child starts at its role's mean; the
published rules are `evolution.rule = "paper"`.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from redqueen.errors import ConfigError
from redqueen.evolution.fitness import FITNESS
from redqueen.evolution.selection import SELECTION, Distances, ranked
from redqueen.keys import key, numbers
from redqueen.population.board import Board
from redqueen.population.members import Birth, Member, MemberId, Population, Role
from redqueen.population.ratings import PRIOR, SIGMA, Rating
from redqueen.settings.models import EvolutionConfig

FRESH = "fresh"
"""The operator of an event that puts in a fresh member."""
MIN_AGE = 1.5
"""Intervals that a child lives before it can die: at its first event it has been judged for one, by few matches."""


class Breeder(Protocol):
    """What a plan must know of an operator."""

    @property
    def name(self) -> str: ...

    @property
    def parents(self) -> int:
        """1 for a mutation, 2 for a crossover."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One replacement."""

    step: int
    role: Role
    seat: str
    dead: MemberId
    child: Member
    """With its rating and its birth."""
    operator: str
    parents: tuple[MemberId, ...]
    """The better one first; none of a fresh member."""
    seed: int
    """For what the operator draws."""


def due(step: int, settings: EvolutionConfig) -> bool:
    """Whether there is an event after this step; steps count from 1."""
    return settings.every > 0 and step > 0 and step % settings.every == 0


def plan(
    population: Population,
    step: int,
    settings: EvolutionConfig,
    board: Board,
    operators: Sequence[Breeder],
    run_seed: int,
    distances: Distances | None = None,
    collapsed: Collection[Role] = frozenset(),
) -> list[Event]:
    """The replacements after this step, none where none is due.

    Parents are survivors, and nobody dies twice, so the events may be carried out in any order.
    """
    if not due(step, settings):
        return []
    recent = board.since(step - settings.every + 1)
    events: list[Event] = []
    for role in Role:
        events += _plan_role(
            population, role, step, settings, recent, operators, run_seed, distances, role in collapsed
        )
    return events


def apply(population: Population, events: Sequence[Event]) -> Population:
    """The population after these events."""
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
) -> list[Event]:
    members = {each.id: each for each in population.of(role)}
    if len(members) < 2:
        return []
    fitness = FITNESS[settings.fitness](population, role, recent)
    selection = SELECTION[settings.selection]
    breeding = {id: each.breeding for id, each in fitness.items()}
    survival = breeding if settings.rule == "paper" else {id: each.survival for id, each in fitness.items()}
    doomed = _doomed(members, breeding, selection.adjust(survival, distances), step, settings)
    adjusted = selection.adjust(breeding, distances)
    survivors = {id: adjusted[id] for id in members if id not in doomed}
    rating = _newborn(list(members.values()), settings)
    events: list[Event] = []
    for index, dead in enumerate(doomed):
        rng = numbers(run_seed, step, "evolve", str(role), index)
        if collapsed and settings.inject and index == 0:
            operator, parents = FRESH, ()
        else:
            usable = [each for each in operators if each.parents <= len(survivors)]
            if not usable:
                raise ConfigError(
                    f"one {role} is left to breed from, and evolution.operators names no mutation",
                    "add one that needs a single parent, such as full_noise",
                )
            breeder = rng.choice(usable)
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
    """Who dies, the worst first: fewer than the share where elites and the young leave fewer."""
    spared = set(ranked(breeding)[: settings.elites])
    if settings.rule == "ours":
        # Founders have all been judged from the start.
        spared |= {
            id for id, each in members.items() if each.birth.step > 0 and each.age(step) < MIN_AGE * settings.every
        }
    count = max(1, math.floor(settings.share * len(members) + 1e-9))
    return [id for id in reversed(ranked(survival)) if id not in spared][:count]


def _newborn(role: Sequence[Member], settings: EvolutionConfig) -> Rating:
    """What is believed of a child before it has played. The mean is the whole role's, the dying included."""
    if settings.rule == "paper":
        return PRIOR
    return Rating(statistics.fmean(each.rating.mu for each in role), SIGMA)
