"""Drift: how far members are from the bare base, and from each other, in what they say.

They are compared on the same texts in every step: what the base writes to a few prompts for students and teachers that
are made from the seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redqueen.analysis.distance import function_distances, mean_distance, probes
from redqueen.engine.protocol import MemberId
from redqueen.phases.items import item
from redqueen.phases.propose import proposal_prompt
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.members import Population, Role
from redqueen.tasks.archive import Archive
from redqueen.tasks.protocol import Task

QUESTIONS = 4
"""Seeds that are asked as students are; teachers are asked once for each kind."""
ITEMS = 2
"""Of each source, asked as students are too."""
TOKENS = 32
"""Of the base's answer to each."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Half the mean squared difference of log-probabilities: about nats a token."""

    from_base: Mapping[MemberId, float]
    """By adapter."""
    within_role: Mapping[Role, float]
    """Mean over all pairs; empty where all have one adapter."""


async def drift(race: Race, state: State, population: Population) -> Drift | None:
    """None where the base ends all its texts at once."""
    prompts = [prompt for prompt in _prompts(race, state) if len(prompt) + TOKENS <= race.positions]
    texts = [probe for probe in await probes(race.engine, prompts, race.key(0, "probes"), TOKENS) if probe.completion]
    if not texts:
        return None
    adapters = list(dict.fromkeys(race.adapter(member.id) for member in population.members))
    distance_M_M = await function_distances(race.engine, [*adapters, None], texts)
    within: dict[Role, float] = {}
    if not race.settings.population.single:
        for role in Role:
            places = [place for place, member in enumerate(population.members) if member.role is role]
            if places:
                within[role] = mean_distance(distance_M_M[places][:, places])
    return Drift(dict(zip(adapters, distance_M_M[-1].tolist(), strict=False)), within)


def _prompts(race: Race, state: State) -> list[tuple[int, ...]]:
    seeds = Archive(state.archive.seeds)
    questions = [race.kinds[seed.kind].solve_prompt(seed) for seed in seeds.seeds if seed.kind in race.kinds]
    requests = [proposal_prompt(race, seeds, kind, race.numbers(0, "probes", kind)) for kind in race.proposed]
    drawn = [item(race, kind, race.key(0, "probes", kind, number)) for kind in race.sources for number in range(ITEMS)]
    asked = [race.kinds[task.kind].solve_prompt(task) for task in drawn if isinstance(task, Task)]
    return [race.tokens(prompt) for prompt in (*questions[:QUESTIONS], *requests, *asked)]
