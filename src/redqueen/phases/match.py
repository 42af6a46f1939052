"""Match: who meets whom, and what teachers are asked."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from redqueen.errors import ConfigError
from redqueen.phases.propose import Asking, askings
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match, schedule
from redqueen.tasks.archive import Archive, Entry


def match(race: Race, state: State, step: int) -> tuple[Sequence[Match], Sequence[Asking]]:
    """The step's, which comes after the state's."""
    rules = race.settings.match
    rng = race.numbers(step, "match")
    matches = schedule(state.population, race.maker, state.board, rng, rules.panel, rules.kept_apart)
    return matches, askings(race, state, step, matches)


async def foresee(race: Race, state: State, entries: Sequence[Entry]) -> Archive:
    """The archive with the step's entries. With it the next step's prompts are made and encoded, while there is time:
    their tokens are found again when it begins, unless evolution makes others of them."""
    archive = state.archive.add(entries)
    with suppress(ConfigError):  # the step itself will say it
        match(race, replace(state, archive=archive), state.step + 1)
    return archive
