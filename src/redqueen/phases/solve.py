"""Solve: the panel of each match attempts its teacher's tasks.

With `tasks.replay` students also attempt recent tasks once more. They learn from these attempts; nobody wins or loses
by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.analysis.account import Counted
from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Stop
from redqueen.keys import Part
from redqueen.phases.journal import Judged
from redqueen.phases.race import Race
from redqueen.phases.sampling import Pending
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Role
from redqueen.rl.rollout import NO_MATCH, Proposal, Rollout
from redqueen.tasks import sources
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.verdicts import Verdict

REPLAYED = 10
"""Steps from which tasks are attempted once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """A student in front of a task."""

    task: Task
    student: MemberId
    key: tuple[Part, ...]
    """Where its random numbers come from, beside the step and the attempt's number."""
    place: int
    match: int = NO_MATCH
    replays: str | None = None


def sittings(proposal: Proposal, matches: Sequence[Match]) -> list[Sitting]:
    """Of the match's panel in front of a proposal, if it is a task."""
    task = proposal.became
    if not isinstance(task, Task):
        return []
    return [
        Sitting(
            task=task,
            student=student,
            key=("solve", proposal.place, student),
            place=proposal.place,
            match=proposal.match,
        )
        for student in matches[proposal.match].students
    ]


async def sit(race: Race, step: int, sittings: Sequence[Sitting], attempts: int) -> Pending[Verdict]:
    """So many attempts of each sitting, in one batch, graded while others grow."""
    groups = [requests_of(race, step, sitting, attempts) for sitting in sittings]

    async def check(group: int, samples: Sequence[Sample]) -> Judged[Rollout[Verdict]]:
        return await graded_sitting(race, sittings[group], groups[group], samples)

    return await sample_and_check(race.engine, groups, check)


def requests_of(race: Race, step: int, sitting: Sitting, attempts: int) -> list[SampleRequest]:
    return asked(race, step, sitting.task, race.adapter(sitting.student), sitting.key, attempts)


async def graded_sitting(
    race: Race, sitting: Sitting, requests: Sequence[SampleRequest], samples: Sequence[Sample]
) -> Judged[Rollout[Verdict]]:
    """The attempts of a sitting with their verdicts, and the verifier's runs for them."""
    verdicts, runs = await graded(race, sitting.task, samples)
    return [
        Rollout(
            role=Role.STUDENT,
            member=sitting.student,
            kind=sitting.task.kind,
            match=sitting.match,
            place=sitting.place,
            group=sitting.place,
            number=number,
            request=request,
            sample=sample,
            became=verdict,
            replays=sitting.replays,
        )
        for number, (request, sample, verdict) in enumerate(zip(requests, samples, verdicts, strict=True))
    ], runs


def replays(race: Race, state: State, step: int, place: int) -> list[Sitting]:
    """Recent tasks for every student, at places after the step's own."""
    count = race.settings.tasks.replay
    fit = sometimes_solved(race, state, step - REPLAYED) if count else []
    sittings: list[Sitting] = []
    for student in state.population.students:
        for task in race.numbers(step, "replay", student.id).sample(fit, min(count, len(fit))):
            sittings.append(
                Sitting(
                    task=task,
                    student=student.id,
                    key=("replay", task.id, student.id),
                    place=place + len(sittings),
                    replays=task.id,
                )
            )
    return sittings


def sometimes_solved(race: Race, state: State, since: int) -> list[Task]:
    """The tasks since this step that were solved now and then, each once, of kinds that are still asked for."""
    fit = [
        entry.task
        for entry in state.archive
        if entry.step >= since and entry.trivial is None and 0 < entry.solved < entry.attempts
    ]
    return list({task.id: task for task in fit if task.kind in race.kinds}.values())


def asked(
    race: Race, step: int, task: Task, adapter: MemberId | None, key: tuple[Part, ...], attempts: int
) -> list[SampleRequest]:
    """Attempts of one adapter at a task, or of the bare base; `key` is where their random numbers come from."""
    prompt = race.tokens(race.kinds[task.kind].solve_prompt(task))
    return [
        SampleRequest(
            prompt=prompt,
            member=adapter,
            key=race.key(step, *key, number),
            max_tokens=race.settings.tasks.attempt_tokens,
            temperature=race.temperature(Role.STUDENT),
        )
        for number in range(attempts)
    ]


async def graded(race: Race, task: Task, samples: Sequence[Sample]) -> Judged[Verdict]:
    """The verdicts on attempts at a task, journalled, and the verifier's runs for them."""

    async def grade(attempts: Sequence[Attempt]) -> Judged[Verdict]:
        counted = Counted(race.verifier)
        with race.checks.of(task.kind, len(attempts)):
            return await sources.graded(race.kinds[task.kind], attempts, counted), counted.runs

    attempts = [Attempt(task, sample.text, sample.stop is Stop.LENGTH) for sample in samples]
    return await race.journal.attempts(attempts, grade)
