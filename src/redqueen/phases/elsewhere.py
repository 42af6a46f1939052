"""Elsewhere: what members have become at requests that no race trains, and who is called back.

Rewards say nothing of what a race does not ask, so a member may lose it and look well. All answer the same requests of
other kinds every so many steps, beside the bare base. Who has gone too far is moved back towards the base and learns at
half its rate from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from redqueen.analysis.distance import Probe, function_distances
from redqueen.engine.protocol import MemberId, Sample, SampleRequest
from redqueen.keys import key
from redqueen.phases.race import Race
from redqueen.population.members import Population
from redqueen.runs.metrics import ELSEWHERE
from redqueen.tasks.protocol import Form

REQUESTS = (
    "A farmer has 48 eggs. She sells a third of them in the morning and half of the rest in the afternoon. How many "
    "are left? Explain each step, then say the answer.",
    "A train leaves at 9:40 and arrives at 13:05. It stands still for 25 minutes on the way. For how long does it "
    "move? Show your work.",
    "Three friends share the cost of a tent. Anna pays 20 more than Ben, and Ben pays twice as much as Carl. The tent "
    "costs 145. What does each of them pay?",
    "Solve 3x + 7 = 5x - 9 for x, and check your solution.",
    "Write a Python function `is_palindrome(text)` that ignores case, spaces and punctuation, with a docstring.",
    "Write a Python function that merges overlapping intervals in a list of pairs. Explain how long it takes.",
    "What does a context manager do in Python? Give a short example.",
    "Write an SQL query that lists the five customers with the highest total of their orders in 2023.",
    "Explain to a child why the sky is blue, in one paragraph.",
    "Summarise in two sentences what the water cycle is.",
    "Translate into French and into German: The library is closed on Sundays, but you can return books at any time.",
    "Name four differences between a frog and a toad, as a list.",
    "Write a polite e-mail to a landlord whose heating has been broken for three days.",
    "All bloops are razzies, and some razzies are lazzies. Are some bloops certainly lazzies? Explain.",
    "What are the causes of inflation? Answer with a short list and one sentence for each entry.",
    "Write the opening of a short story about a lighthouse keeper who finds a letter.",
)
TOKENS = 128
"""Of each answer at most."""
BACK = 0.8
"""The part of a member's update that is left each time it is moved back. The distance goes about with the square of the
update: this takes a third of it away, and as little as need be of what was learned."""
FEWEST = 2.0**-8
"""The part that is left at least, all times together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """By adapter; lengths and entropies of the bare base too, as None."""

    distance: Mapping[MemberId, float]
    """From the bare base in functions, on its answers: half the mean squared difference of log-probabilities, about
    nats a token."""
    length: Mapping[MemberId | None, float]
    """Tokens of an answer of its own, mean."""
    entropy: Mapping[MemberId | None, float]
    """Nats a token of its own answers, mean."""
    probes: tuple[Probe, ...]
    """What the base answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """A member that had gone too far."""

    member: MemberId
    distance: float
    ceiling: float
    kept: float
    """The part of its update that is left."""
    now: float
    """Its distance then."""
    says: str


async def look_elsewhere(race: Race, population: Population) -> Elsewhere | None:
    """None where the base was made for a race's own form and knows nothing else, or ends all its answers at once."""
    if race.settings.tasks.form == Form.SHORT:
        return None
    prompts = [race.encode([{"role": "user", "content": text}]) for text in REQUESTS]
    prompts = [prompt for prompt in prompts if len(prompt) + TOKENS <= race.positions]
    adapters = list(dict.fromkeys(race.adapter(member.id) for member in population.members))
    subjects = [None, *adapters]
    samples = await race.engine.sample([_request(*asked, id) for id in subjects for asked in enumerate(prompts)])
    answers = {id: samples[at * len(prompts) : (at + 1) * len(prompts)] for at, id in enumerate(subjects)}
    told = zip(prompts, answers[None], strict=True)
    probes = tuple(Probe(prompt, sample.tokens) for prompt, sample in told if sample.tokens)
    if not probes:
        return None
    return Elsewhere(
        probes=probes,
        distance=await _distances(race, adapters, probes),
        length={id: fmean(len(sample.tokens) for sample in own) for id, own in answers.items()},
        entropy={id: _entropy(own) for id, own in answers.items()},
    )


async def call_back(race: Race, population: Population, seen: Elsewhere | None) -> tuple[Recall, ...]:
    """Shorten the updates of those who learn and are beyond the ceiling until they are within it or hardly any is left.
    Who does not learn is what it is meant to be."""
    ceiling = race.settings.guard.drift_ceiling
    if seen is None or not ceiling:
        return ()
    learning = {race.adapter(member.id) for member in population.members if not race.frozen(member.role)}
    far = {id: distance for id, distance in seen.distance.items() if id in learning and distance > ceiling}
    now, kept = dict(far), dict.fromkeys(far, 1.0)
    while left := [id for id in far if now[id] > ceiling and kept[id] > FEWEST]:
        for id in left:
            race.engine.write(id, race.engine.read(id, optimiser=True).scaled(BACK))
            kept[id] *= BACK
        now |= await _distances(race, left, seen.probes)
    return tuple(
        Recall(
            member=id,
            distance=distance,
            ceiling=ceiling,
            kept=kept[id],
            now=now[id],
            says=f"{id} was {distance:.3g} nats a token from the base at requests of other kinds, beyond {ceiling:g}: "
            f"it was moved back to {kept[id]:.2g} of its update, {now[id]:.2g} from the base"
            f"{', which is still beyond it,' if now[id] > ceiling else ''} and learns at half its rate from now on",
        )
        for id, distance in far.items()
    )


def _request(number: int, prompt: tuple[int, ...], member: MemberId | None) -> SampleRequest:
    """Everybody has the same random numbers at a request, in all steps of all races."""
    return SampleRequest(prompt=prompt, member=member, key=key(ELSEWHERE.name, number), max_tokens=TOKENS)


async def _distances(race: Race, adapters: Sequence[MemberId], probes: Sequence[Probe]) -> dict[MemberId, float]:
    distance_M_M = await function_distances(race.engine, [*adapters, None], probes)
    return dict(zip(adapters, distance_M_M[-1].tolist(), strict=False))


def _entropy(samples: Sequence[Sample]) -> float:
    return -fmean([logprob for sample in samples for logprob in sample.logprobs] or [0.0])
