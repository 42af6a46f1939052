"""Solve: the panel of each match attempts its teacher's tasks, and attempts are graded while others grow."""

from collections.abc import Sequence

from redqueen.analysis.account import Counted
from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Stop
from redqueen.phases.journal import Judged
from redqueen.phases.race import Race
from redqueen.phases.sampling import Pending, sample_groups
from redqueen.population.matchmaking import Match
from redqueen.population.members import Role
from redqueen.rl.rollout import Proposal, Rollout
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.verdicts import Verdict


async def solve(race: Race, step: int, matches: Sequence[Match], proposals: Sequence[Proposal]) -> Pending[Verdict]:
    """Sample all attempts of the step in one batch."""
    settings = race.settings
    size = settings.tasks.attempts
    sittings: list[tuple[Proposal, Task, MemberId]] = []
    requests: list[SampleRequest] = []
    for proposal in proposals:
        if not isinstance(task := proposal.became, Task):
            continue
        prompt = race.tokens(race.kinds[task.kind].solve_prompt(task))
        for student in matches[proposal.match].students:
            sittings.append((proposal, task, student))
            requests += [
                SampleRequest(
                    prompt=prompt,
                    member=race.adapter(student),
                    key=race.key(step, "solve", proposal.place, student, number),
                    max_tokens=settings.tasks.attempt_tokens,
                    temperature=settings.rl.temperature,
                )
                for number in range(size)
            ]

    async def check(group: int, samples: Sequence[Sample]) -> Judged[Rollout[Verdict]]:
        proposal, task, student = sittings[group]
        verdicts, runs = await _check(race, task, samples)
        return [
            Rollout(
                role=Role.STUDENT,
                member=student,
                kind=proposal.kind,
                match=proposal.match,
                place=proposal.place,
                group=proposal.place,
                number=number,
                request=requests[group * size + number],
                sample=sample,
                became=verdict,
            )
            for number, (sample, verdict) in enumerate(zip(samples, verdicts, strict=True))
        ], runs

    return await sample_groups(race, requests, size, check)


async def _check(race: Race, task: Task, samples: Sequence[Sample]) -> Judged[Verdict]:
    async def grade(attempts: Sequence[Attempt]) -> Judged[Verdict]:
        counted = Counted(race.verifier)
        return await race.kinds[task.kind].grade(attempts, counted), counted.runs

    attempts = [Attempt(task, sample.text, sample.stop is Stop.LENGTH) for sample in samples]
    return await race.journal.attempts(attempts, grade)
