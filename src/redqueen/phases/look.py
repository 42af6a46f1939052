"""Look: every so many steps, how members do on slices of benchmarks. It changes nothing of the race."""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from redqueen.engine.protocol import MemberId, SampleRequest
from redqueen.evals.data import Loaded
from redqueen.keys import key
from redqueen.phases.race import Race
from redqueen.population.members import Population, Role

BASE = "base"
"""The subject of the bare base's figures."""
Looked = Mapping[tuple[str, str], float]
"""The share of right greedy answers, by subject and benchmark."""


async def look(race: Race, step: int, population: Population, base_on: Collection[str]) -> Looked:
    """Of every adapter and both roles; of the bare base too, except on benchmarks that it was looked at on."""
    settings = race.settings.evals
    if race.slices is None or step % settings.every:
        return {}
    who: dict[str, MemberId | None] = {
        race.adapter(member.id): race.adapter(member.id) for member in population.members
    }
    found: dict[tuple[str, str], float] = {}
    for loaded in race.slices.loaded:
        name = loaded.benchmark.name
        base: dict[str, MemberId | None] = {} if name in base_on else {BASE: None}
        for subject, right in (await _shares(race, loaded, who | base)).items():
            found[subject, name] = right
        for role in Role:
            members = [race.adapter(member.id) for member in population.of(role)]
            found[str(role), name] = fmean(found[member, name] for member in members)
    return found


async def _shares(race: Race, loaded: Loaded, who: Mapping[str, MemberId | None]) -> dict[str, float]:
    """Sampled in one batch. Verdicts are journalled, so that a step that is done again comes out as it did."""
    assert race.slices is not None
    prompts, benchmark = race.slices.prompts, loaded.benchmark
    asked = {item.id: benchmark.prompt(item, prompts) for item in loaded.items}
    tokens = {id: race.slices.encode(prompt, prompts) for id, prompt in asked.items()}
    room = {id: min(race.settings.evals.max_tokens, race.positions - len(each)) for id, each in tokens.items()}
    wanted = [(subject, item) for item in loaded.items if room[item.id] > 0 for subject in who]
    requests = [
        SampleRequest(
            prompt=tokens[item.id],
            member=who[subject],
            key=key("look", benchmark.name, item.id),
            max_tokens=room[item.id],
            temperature=0.0,
            stop=asked[item.id].stop,
        )
        for subject, item in wanted
    ]
    samples = await race.engine.sample(requests) if requests else []
    texts = [sample.text for sample in samples]

    async def grade(_: Sequence[str]) -> tuple[list[bool], int]:
        answers = [
            (item, benchmark.extract(item, text, prompts)) for (_, item), text in zip(wanted, texts, strict=True)
        ]
        return [grade.correct for grade in await benchmark.grade(answers, race.verifier)], 0

    about = [
        f"{benchmark.name} {loaded.sha256} {item.id} {text}" for (_, item), text in zip(wanted, texts, strict=True)
    ]
    grades, _ = await race.journal.grades(about, grade)
    right = dict.fromkeys(who, 0)
    for (subject, _), correct in zip(wanted, grades, strict=True):
        right[subject] += correct
    return {subject: count / len(loaded.items) for subject, count in right.items()}
