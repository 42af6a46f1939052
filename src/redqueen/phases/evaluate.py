"""Evaluate: every so many steps, how members do on slices of benchmarks. It changes nothing of the race."""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from redqueen.analysis.distance import first_alike
from redqueen.engine.protocol import MemberId
from redqueen.evals.answers import GREEDY, Answer
from redqueen.evals.asking import Sampling, ask, questions
from redqueen.evals.data import LoadedBenchmark
from redqueen.evals.protocol import Grade, Reply
from redqueen.keys import key
from redqueen.phases.race import Race
from redqueen.population.members import Population, Role
from redqueen.runs.metrics import BASE
from redqueen.verifier import StrictVerifier

Accuracies = Mapping[tuple[str, str], float]
"""The share of right greedy answers, by subject and benchmark."""


async def evaluate(race: Race, step: int, population: Population, base_on: Collection[str]) -> Accuracies:
    """Of every adapter and both roles; of the bare base too, except on benchmarks that it was evaluated on."""
    if race.slices is None or step % race.slices.every:
        return {}
    ids = dict.fromkeys(race.adapter(member.id) for member in population.members)
    adapters: dict[str, MemberId | None] = {**first_alike({id: race.engine.read(id) for id in ids})}
    accuracies: dict[tuple[str, str], float] = {}
    for loaded in race.slices.loaded:
        name = loaded.benchmark.name
        base: dict[str, MemberId | None] = {} if name in base_on else {BASE: None}
        for subject, accuracy in (await _accuracies(race, loaded, adapters | base)).items():
            accuracies[subject, name] = accuracy
        for role in Role:
            members = [race.adapter(member.id) for member in population.of(role)]
            accuracies[str(role), name] = fmean(accuracies[member, name] for member in members)
    return accuracies


async def _accuracies(race: Race, loaded: LoadedBenchmark, subjects: Mapping[str, MemberId | None]) -> dict[str, float]:
    """Sampled in one batch. Verdicts are journalled, so that a step that is done again comes out as it did."""
    assert race.slices is not None
    benchmark, prompts = loaded.benchmark, race.slices.prompts

    async def judge(replies: Sequence[Reply]) -> list[Grade]:
        async def grade(_: Sequence[str]) -> tuple[list[bool], int]:
            grades = await benchmark.judge(replies, prompts, StrictVerifier(race.verifier))
            return [grade.correct for grade in grades], 0

        about = [f"{benchmark.name} {loaded.sha256} {reply.item.id} {reply.text}" for reply in replies]
        correct, _ = await race.journal.grades(about, grade)
        return [Grade(correct=verdict) for verdict in correct]

    right = dict.fromkeys(subjects, 0)

    def count(answer: Answer) -> None:
        right[answer.who] += answer.correct

    batch = questions(loaded.items, subjects, (GREEDY,), lambda item, _: key("look", benchmark.name, item.id))
    sampling = Sampling(
        prompts=prompts, temperature=0.0, max_tokens=race.settings.evals.max_tokens, positions=race.positions
    )
    await ask(race.engine, race.slices.encode, benchmark, batch, sampling, judge=judge, together="batch", keep=count)
    return {subject: number / len(loaded.items) for subject, number in right.items()}
