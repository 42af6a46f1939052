"""Match: who meets whom, and what teachers are asked."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from redqueen.phases.propose import Asking, askings
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match, schedule


def match(race: Race, state: State, step: int) -> tuple[Sequence[Match], Sequence[Asking]]:
    """The step's, which comes after the state's."""
    rules = race.settings.match
    rng = race.numbers(step, "match")
    matches = schedule(state.population, race.maker, state.board, rng, rules.panel, rules.kept_apart)
    return matches, askings(race, state, step, matches)


async def foresee(race: Race, state: State, after: asyncio.Task[Any]) -> None:
    """Have the next step's prompts made and encoded once `after` is done, while there is time: their tokens are found
    again when it begins, unless evolution makes others of them."""
    if race.settings.run.ends(state.step, state.flops):
        return
    await asyncio.wait([after])
    with suppress(Exception):  # whatever is wrong with it, the step itself will say
        match(race, state, state.step + 1)
