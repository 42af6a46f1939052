"""Solve and grade: the panel of each match attempts its teacher's tasks, and attempts are graded while others grow."""

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.analysis.account import Counted
from redqueen.engine.flow import Checked, sample_and_check
from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Stop
from redqueen.phases.race import Posed, Race, Try
from redqueen.population.matchmaking import Match
from redqueen.tasks.protocol import Attempt, Task, Verdict


@dataclass(frozen=True, slots=True)
class Sitting:
    """One student before one task."""

    place: int
    task: Task
    student: MemberId
    prompt: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attempts:
    """A step's attempts; their grades may still be on their way."""

    sittings: tuple[Sitting, ...]
    checked: Checked[tuple[list[Verdict], int]]


async def solve(race: Race, step: int, matches: Sequence[Match], posed: Sequence[Posed]) -> Attempts:
    """Sample all attempts of the step in one batch."""
    settings = race.settings
    sittings: list[Sitting] = []
    for each in posed:
        if isinstance(each.task, Task):
            prompt = race.tokens(race.kinds[each.task.kind].solve_prompt(each.task))
            sittings += [
                Sitting(each.proposal.place, each.task, student, prompt)
                for student in matches[each.proposal.match].students
            ]
    requests = [
        SampleRequest(
            prompt=sitting.prompt,
            member=race.adapter(sitting.student),
            key=race.key(step, "solve", sitting.place, sitting.student, number),
            max_tokens=settings.tasks.attempt_tokens,
            temperature=settings.rl.temperature,
        )
        for sitting in sittings
        for number in range(settings.tasks.attempts)
    ]
    count = settings.tasks.attempts
    groups = [range(number * count, (number + 1) * count) for number in range(len(sittings))]

    async def check(number: int, samples: Sequence[Sample]) -> tuple[list[Verdict], int]:
        return await _check(race, sittings[number], samples)

    return Attempts(tuple(sittings), await sample_and_check(race.engine, requests, groups, check))


async def grade(race: Race, step: int, attempts: Attempts) -> tuple[list[Try], dict[MemberId, int]]:
    """Every attempt with its verdict, and the verifier's runs for each student."""
    results = await attempts.checked.results()
    race.journal.flush(step)
    tries: list[Try] = []
    runs: dict[MemberId, int] = {}
    samples = iter(attempts.checked.samples)
    for sitting, (verdicts, count) in zip(attempts.sittings, results, strict=True):
        runs[sitting.student] = runs.get(sitting.student, 0) + count
        for number, verdict in enumerate(verdicts):
            tries.append(Try(sitting.place, sitting.student, number, sitting.prompt, next(samples), verdict))
    return tries, runs


async def _check(race: Race, sitting: Sitting, samples: Sequence[Sample]) -> tuple[list[Verdict], int]:
    kind = race.kinds[sitting.task.kind]

    async def judge(attempts: Sequence[Attempt]) -> tuple[list[Verdict], int]:
        counted = Counted(race.verifier)
        return await kind.grade(attempts, counted), counted.runs

    attempts = [Attempt(sitting.task, sample.text, sample.stop is Stop.LENGTH) for sample in samples]
    return await race.journal.attempts(attempts, judge)
