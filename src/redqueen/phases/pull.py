"""Pull: after every so many steps the members of a role move towards their mean."""

from collections.abc import Collection

from redqueen.engine.protocol import MemberId
from redqueen.evolution.consensus import pulled
from redqueen.phases.race import Race
from redqueen.population.members import Population, Role


def averaged_roles(race: Race, population: Population) -> list[Role]:
    """The roles whose members are averaged in this race."""
    if race.settings.evolution.pull == 0 or race.settings.population.single:
        return []
    return [role for role in Role if len(population.of(role)) > 1 and not race.frozen(role)]


def pulled_roles(race: Race, step: int, population: Population) -> list[Role]:
    """Those whose members move after this step."""
    return [] if step % race.settings.evolution.pull_every else averaged_roles(race, population)


def pull(race: Race, step: int, population: Population, unfit: Collection[MemberId]) -> None:
    """Move the members. Those that are not fit to learn have no part in the mean, unless none is."""
    for role in pulled_roles(race, step, population):
        ids = [member.id for member in population.of(role)]
        states = [race.engine.read(id, optimiser=True) for id in ids]
        fit = [state for id, state in zip(ids, states, strict=True) if id not in unfit]
        for id, state in zip(ids, pulled(states, race.settings.evolution.pull, fit or states), strict=True):
            race.engine.write(id, state)
