"""Propose and verify: what teachers are asked for, and what their texts become."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from redqueen.analysis.account import Counted
from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Stop
from redqueen.errors import ConfigError
from redqueen.keys import Part
from redqueen.phases.journal import Judged
from redqueen.phases.race import Race
from redqueen.phases.sampling import Pending
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Role
from redqueen.rl.rollout import NO_MATCH, Proposal, Rollout
from redqueen.tasks.archive import Archive
from redqueen.tasks.protocol import Draft, Kind, Prompt, Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import StrictVerifier

REFERENCES = 16
"""Earlier tasks that a prompt may draw from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A teacher in front of a prompt."""

    teacher: MemberId
    kind: str
    prompt: Prompt
    key: tuple[Part, ...]
    """Where its random numbers come from, beside the step and the proposal's number."""
    match: int = NO_MATCH


def askings(race: Race, state: State, step: int, matches: Sequence[Match]) -> list[Asking]:
    """Of all teachers of the step."""
    prompts = [
        (match, kind, prompt)
        for match in range(len(matches))
        for kind, prompt in prompts_of(race, state, step, match, mixed(race, step, match))
    ]
    return [
        Asking(teacher=matches[match].teacher, kind=kind, prompt=prompt, key=("propose", match, group), match=match)
        for group, (match, kind, prompt) in enumerate(prompts)
    ]


def requests_of(race: Race, step: int, asking: Asking) -> list[SampleRequest]:
    """`tasks.proposals` proposals to its prompt."""
    return [
        SampleRequest(
            prompt=race.tokens(asking.prompt),
            member=race.adapter(asking.teacher),
            key=race.key(step, *asking.key, number),
            max_tokens=race.settings.tasks.proposal_tokens,
            temperature=race.temperature(Role.TEACHER),
        )
        for number in range(race.settings.tasks.proposals)
    ]


async def ask(race: Race, step: int, askings: Sequence[Asking]) -> Pending[Task | Rejection]:
    """All proposals to these prompts, in one batch; places are in the order of the prompts."""
    groups = [requests_of(race, step, asking) for asking in askings]

    async def check(group: int, samples: Sequence[Sample]) -> Judged[Proposal]:
        return await checked(race, askings[group], group, list(enumerate(groups[group])), samples)

    return await sample_and_check(race.engine, groups, check)


async def checked(
    race: Race,
    asking: Asking,
    group: int,
    numbered: Sequence[tuple[int, SampleRequest]],
    samples: Sequence[Sample],
) -> Judged[Proposal]:
    """Proposals to one prompt, by their numbers, with what they became, and the verifier's runs for them."""
    results, runs = await _check(race, race.kinds[asking.kind], asking.prompt.context, samples)
    return [
        Rollout(
            role=Role.TEACHER,
            member=asking.teacher,
            kind=asking.kind,
            match=asking.match,
            place=group * race.settings.tasks.proposals + number,
            group=group,
            number=number,
            request=request,
            sample=sample,
            became=became,
        )
        for (number, request), sample, became in zip(numbered, samples, results, strict=True)
    ], runs


async def screen(race: Race, state: State, proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals without the tasks that are not wanted."""
    became = [proposal.became for proposal in proposals]
    # What is found here is not in the journal, so that it must be found again.
    screened = await race.guards.screen(became, state.archive, StrictVerifier(race.verifier))
    return [replace(proposal, became=became) for proposal, became in zip(proposals, screened, strict=True)]


def readable(race: Race, task: Task | Rejection) -> Task | Rejection:
    """The task, if the base can take its question."""
    if isinstance(task, Task):
        prompt = race.tokens(race.kinds[task.kind].solve_prompt(task))
        if len(prompt) + race.settings.tasks.attempt_tokens > race.positions:
            return task.rejected(Reason.PROGRAM_TOO_LONG, "its question does not fit the base")
    return task


def prompts_of(race: Race, state: State, step: int, match: Part, kinds: Sequence[str]) -> list[tuple[str, Prompt]]:
    """What the match's teacher is asked, of those kinds that teachers are asked for."""
    asked = [kind for kind in kinds if kind in race.proposed]
    return [
        (kind, proposal_prompt(race, state.archive, kind, race.numbers(step, "references", match, number)))
        for number, kind in enumerate(asked)
    ]


def mixed(race: Race, step: int, match: Part) -> list[str]:
    """The kinds of a match's `tasks.prompts`, those of sources among them."""
    return shared_out(race.shares, race.settings.tasks.prompts, race.numbers(step, "kinds", match))


def shared_out(shares: Mapping[str, float], total: int, rng: Random) -> list[str]:
    """Each kind as often as its share says, what is left over by lot."""
    exact = {kind: share * total for kind, share in shares.items()}
    counts = {kind: math.floor(count + 1e-9) for kind, count in exact.items()}
    left = {kind: max(exact[kind] - counts[kind], 0.0) for kind in counts}
    while sum(counts.values()) < total:
        drawn = rng.choices(list(left), [weight + 1e-12 for weight in left.values()])[0]
        counts[drawn] += 1
        left[drawn] = 0.0
    return [kind for kind, count in counts.items() for _ in range(count)]


def proposal_prompt(race: Race, archive: Archive, kind: str, rng: Random) -> Prompt:
    """What a teacher is asked; with fewer references where they leave no room for an answer."""
    references = archive.references(race.kinds[kind], REFERENCES, rng)
    room = race.positions - race.settings.tasks.proposal_tokens
    while True:
        prompt = race.kinds[kind].propose_prompt(references, Random(rng.getrandbits(64)))
        length = len(race.tokens(prompt))
        if length <= room:
            return prompt
        if not references:
            raise ConfigError(
                f"a prompt of {length} tokens and tasks.proposal_tokens = "
                f"{race.settings.tasks.proposal_tokens} do not fit the base's {race.positions}",
                'lower tasks.proposal_tokens, or set tasks.form to "short"',
            )
        longest = max(references, key=lambda task: len(str(task.record())))
        references = [task for task in references if task is not longest]


async def _check(
    race: Race, kind: Kind[Any, Any], context: Mapping[str, str], samples: Sequence[Sample]
) -> Judged[Task | Rejection]:
    """What the proposals to one prompt became, and the verifier's runs for it."""
    read = [_read(kind, sample, context) for sample in samples]

    async def validate(drafts: Sequence[Draft]) -> Judged[Task | Rejection]:
        counted = Counted(race.verifier)
        with race.checks.of(kind.name, len(drafts)):
            became = await kind.validate(drafts, counted)
            became = await race.guards.refuse_shortcuts(became, race.families, counted)
        return became, counted.runs

    valid, runs = await race.journal.drafts([proposal for proposal in read if isinstance(proposal, Draft)], validate)
    left = iter(readable(race, became) for became in valid)
    return [next(left) if isinstance(proposal, Draft) else proposal for proposal in read], runs


def _read(kind: Kind[Any, Any], sample: Sample, context: Mapping[str, str]) -> Draft | Rejection:
    read: Draft | Rejection = kind.parse_proposal(sample.text, context)
    return read.rejected(Reason.CUT, "stopped at the length limit") if sample.stop is Stop.LENGTH else read
