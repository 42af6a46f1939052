"""Propose, verify and solve in one stream: nobody waits for the slowest.

A proposal is verified as soon as it ends, and what becomes a task is attempted at once, in the batch that other
proposals are still in. What depends on the whole step, whether somebody has proposed the same, is settled at the end in
the order of the places: attempts at a task that is refused by then are spare. They are on the account, and nobody
learns from them.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from redqueen.engine.protocol import Ask, Chain, MemberId, SampleRequest
from redqueen.phases import propose, solve
from redqueen.phases.clock import Span
from redqueen.phases.items import Item, draw
from redqueen.phases.items import sittings as before_students
from redqueen.phases.journal import Judged
from redqueen.phases.propose import Asking
from redqueen.phases.race import Race
from redqueen.phases.sampling import check_judged, runs_by_member
from redqueen.phases.solve import Sitting
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.rl.rollout import Proposal, Rollout
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Rejection, Verdict
from redqueen.verifier import StrictVerifier

Grading = asyncio.Task[Judged[Rollout[Verdict]]]
CHECKED_AT_ONCE = 16
"""Proposals, or one for each core. They end nearly together, and each goes to the verifier several times: checked all
at once, the first would be attempted hardly before the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """What teachers proposed and students attempted; attempts may still be graded."""

    proposals: Sequence[Judged[Proposal]]
    """In the order of the places, each with the verifier's runs for it."""
    items: Sequence[Item]
    grading: Sequence[Grading]
    """Of the attempts, in the order of their tasks' places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All texts of a step, in the order of their places."""

    proposals: Sequence[Proposal]
    items: Sequence[Item]
    attempts: Sequence[Rollout[Verdict]]
    spare: Sequence[Rollout[Verdict]]
    """Attempts at what is no task after all."""
    verifier_runs: Mapping[MemberId, int]

    def spans(self) -> dict[str, list[Span]]:
        """When rows of each phase were at work."""
        return {
            "propose": [proposal.sample.seconds for proposal in self.proposals],
            "verify": [],
            "solve": [attempt.sample.seconds for attempt in (*self.attempts, *self.spare)],
        }


async def exchange(
    race: Race,
    state: State,
    step: int,
    matches: Sequence[Match],
    askings: Sequence[Asking],
    check_stop: Callable[[], None],
) -> Exchanged:
    """Sample all texts of the step: what teachers answer to `askings`, and what students make of it. `check_stop` is
    called before anybody attempts anything, and may raise."""
    grading: dict[int, list[Grading]] = {}
    """By place."""
    few = asyncio.Semaphore(max(CHECKED_AT_ONCE, os.cpu_count() or 1))

    def begin(place: int, sittings: Sequence[Sitting]) -> Chain[None]:
        """A chain that makes the attempts of these sittings at one task."""
        groups = [solve.requests_of(race, step, sitting, race.settings.tasks.attempts) for sitting in sittings]

        async def attempt(ask: Ask) -> None:
            check_stop()
            samples = iter(await ask([request for group in groups for request in group]))
            grading[place] = [
                asyncio.create_task(solve.graded_sitting(race, sitting, group, [next(samples) for _ in group]))
                for sitting, group in zip(sittings, groups, strict=True)
            ]

        return attempt

    def proposing(asking: Asking, group: int, number: int, request: SampleRequest) -> Chain[Judged[Proposal]]:
        async def chain(ask: Ask) -> Judged[Proposal]:
            samples = await ask([request])
            async with few:
                [proposal], runs = await propose.checked(race, asking, group, [(number, request)], samples)
                wanted = await race.guards.refuse_alone([proposal.became], state.archive, StrictVerifier(race.verifier))
            proposal = replace(proposal, became=wanted[0])
            if sittings := solve.sittings(proposal, matches):
                await begin(proposal.place, sittings)(ask)
                _know(proposal.became)
            return [proposal], runs

        return chain

    chains = [
        proposing(asking, group, number, request)
        for group, asking in enumerate(askings)
        for number, request in enumerate(propose.requests_of(race, step, asking))
    ]
    items = draw(race, step, len(chains))
    posed = [(item.place, sittings) for item in items if (sittings := before_students(item, state))]
    replays = solve.replays(race, state, step, len(chains) + len(items))
    posed += [(sitting.place, [sitting]) for sitting in replays]
    try:
        written = await race.engine.stream([*chains, *(begin(place, sittings) for place, sittings in posed)])
    except BaseException:
        _drop([task for tasks in grading.values() for task in tasks])
        raise
    proposals = [result for result in written if result is not None]
    graded = [task for place in sorted(grading) for task in grading[place]]
    return Exchanged(proposals=proposals, items=items, grading=graded)


async def settled(race: Race, state: State, step: int, exchanged: Exchanged) -> Texts:
    """What came of it, once everything is graded."""
    try:
        graded = list(await asyncio.gather(*exchanged.grading))
    finally:
        _drop(exchanged.grading)
    proposals = [proposal for [proposal], _ in exchanged.proposals]
    attempts = [attempt for rollouts, _ in graded for attempt in rollouts]
    for rollouts in (proposals, attempts):
        check_judged(race, rollouts)
    race.journal.flush(step)
    wanted = race.guards.refuse_alike([proposal.became for proposal in proposals], state.archive)
    proposals = [replace(proposal, became=became) for proposal, became in zip(proposals, wanted, strict=True)]
    refused = {proposal.place for proposal in proposals if not isinstance(proposal.became, Task)}
    runs = Counter(runs_by_member(exchanged.proposals)) + Counter(runs_by_member(graded))
    return Texts(
        proposals=proposals,
        items=exchanged.items,
        attempts=[attempt for attempt in attempts if attempt.place not in refused],
        spare=[attempt for attempt in attempts if attempt.place in refused],
        verifier_runs=runs,
    )


def _know(task: Task | Rejection) -> None:
    """Have worked out what the step will ask of a task once nobody samples any more: the engine is still at work."""
    if isinstance(task, Task):
        _ = task.shape_key, task.descriptor, task.complexity


def _drop(grading: Sequence[Grading]) -> None:
    for task in grading:
        if not task.cancel() and not task.cancelled():
            task.exception()  # it has failed, or not, and nobody will ask
