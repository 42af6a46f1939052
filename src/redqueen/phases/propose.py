"""Propose and verify: every match's teacher is asked for tasks, and what it writes is checked while others still write.

The programs are run as soon as the texts of one prompt are there; what depends on order, whether somebody has proposed
the same before, is settled at the end, in the order of the places.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from redqueen.analysis.account import Counted
from redqueen.engine.flow import Checked, sample_and_check
from redqueen.engine.protocol import Sample, SampleRequest, Stop
from redqueen.errors import ConfigError
from redqueen.phases.race import Posed, Proposal, Race
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.tasks.guards import set_aside
from redqueen.tasks.protocol import Draft, Kind, Reason, Rejection, Task

REFERENCES = 16
"""Earlier tasks that a prompt may draw from."""


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt to a teacher."""

    match: int
    teacher: str
    kind: str
    prompt: tuple[int, ...]
    context: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Proposals:
    """A step's proposals; their programs may still be running."""

    proposals: tuple[Proposal, ...]
    checked: Checked[tuple[list[Task | Rejection], int]]
    groups: tuple[tuple[int, ...], ...]


async def propose(race: Race, state: State, step: int, matches: Sequence[Match]) -> Proposals:
    """Sample all proposals of the step in one batch."""
    questions = [
        question
        for number, match in enumerate(matches)
        for question in _questions(race, state, step, number, match.teacher)
    ]
    settings = race.settings
    count = settings.tasks.proposals
    requests = [
        SampleRequest(
            prompt=question.prompt,
            member=race.adapter(question.teacher),
            key=race.key(step, "propose", question.match, number, sibling),
            max_tokens=settings.tasks.proposal_tokens,
            temperature=settings.rl.temperature,
        )
        for number, question in enumerate(questions)
        for sibling in range(count)
    ]
    groups = [tuple(range(number * count, (number + 1) * count)) for number in range(len(questions))]

    async def check(number: int, samples: Sequence[Sample]) -> tuple[list[Task | Rejection], int]:
        return await _check(race, questions[number], samples)

    checked = await sample_and_check(race.engine, requests, groups, check)
    proposals = tuple(
        Proposal(
            place,
            question.match,
            question.teacher,
            question.kind,
            place // count,
            question.prompt,
            checked.samples[place],
        )
        for place in range(len(requests))
        for question in [questions[place // count]]
    )
    return Proposals(proposals, checked, tuple(groups))


async def verify(race: Race, state: State, step: int, proposals: Proposals) -> tuple[list[Posed], dict[str, int]]:
    """Tasks and rejections in the order of the places, and the verifier's runs for each teacher."""
    results = await proposals.checked.results()
    race.journal.flush(step)
    became: dict[int, Task | Rejection] = {}
    runs: dict[str, int] = {}
    for places, (tasks, count) in zip(proposals.groups, results, strict=True):
        became |= dict(zip(places, tasks, strict=True))
        teacher = proposals.proposals[places[0]].teacher
        runs[teacher] = runs.get(teacher, 0) + count
    screened = await race.guards.screen(
        [became[each.place] for each in proposals.proposals], state.archive, race.verifier
    )
    oversight, seed = race.settings.oversight.every, race.settings.run.seed
    posed = [
        Posed(proposal, task, isinstance(task, Task) and set_aside(oversight, seed, step, proposal.place))
        for proposal, task in zip(proposals.proposals, screened, strict=True)
    ]
    return posed, runs


def _readable(race: Race, task: Task | Rejection) -> Task | Rejection:
    """The task, if the base can take its question."""
    if isinstance(task, Task):
        prompt = race.tokens(race.kinds[task.kind].solve_prompt(task))
        if len(prompt) + race.settings.tasks.attempt_tokens > race.positions:
            return task.rejected(Reason.PROGRAM_TOO_LONG, "its question does not fit the base")
    return task


def _questions(race: Race, state: State, step: int, match: int, teacher: str) -> list[Question]:
    kinds = _mixed(race, race.numbers(step, "kinds", match))
    return [
        Question(match, teacher, kind, *_prompt(race, state, kind, race.numbers(step, "references", match, number)))
        for number, kind in enumerate(kinds)
    ]


def _mixed(race: Race, rng: Random) -> list[str]:
    """The kinds of a match's prompts: each as often as its share says, what is left over by lot."""
    total = race.settings.tasks.prompts
    exact = {kind: share * total for kind, share in race.shares.items()}
    counts = {kind: math.floor(count + 1e-9) for kind, count in exact.items()}
    left = {kind: max(exact[kind] - counts[kind], 0.0) for kind in counts}
    while sum(counts.values()) < total:
        drawn = rng.choices(list(left), [weight + 1e-12 for weight in left.values()])[0]
        counts[drawn] += 1
        left[drawn] = 0.0
    return [kind for kind, count in counts.items() for _ in range(count)]


def _prompt(race: Race, state: State, kind: str, rng: Random) -> tuple[tuple[int, ...], Mapping[str, str]]:
    """What the teacher is asked; with fewer references where they leave no room for an answer."""
    references = state.archive.references(race.kinds[kind], REFERENCES, rng)
    room = race.positions - race.settings.tasks.proposal_tokens
    while True:
        prompt = race.kinds[kind].propose_prompt(references, Random(rng.getrandbits(64)))
        tokens = race.tokens(prompt)
        if len(tokens) <= room:
            return tokens, prompt.context
        if not references:
            raise ConfigError(
                f"a prompt of {len(tokens)} tokens and tasks.proposal_tokens = "
                f"{race.settings.tasks.proposal_tokens} do not fit the base's {race.positions}",
                'lower tasks.proposal_tokens, or set tasks.form to "short"',
            )
        longest = max(references, key=lambda task: len(str(task.record())))
        references = [task for task in references if task is not longest]


async def _check(race: Race, question: Question, samples: Sequence[Sample]) -> tuple[list[Task | Rejection], int]:
    """What the proposals to one prompt became, and the verifier's runs for it."""
    kind = race.kinds[question.kind]
    read = [_read(kind, sample, question.context) for sample in samples]

    async def validate(drafts: Sequence[Draft]) -> tuple[list[Task | Rejection], int]:
        counted = Counted(race.verifier)
        return await kind.validate(drafts, counted), counted.runs

    valid, runs = await race.journal.drafts([each for each in read if isinstance(each, Draft)], validate)
    left = iter(_readable(race, each) for each in valid)
    return [next(left) if isinstance(each, Draft) else each for each in read], runs


def _read(kind: Kind[Any, Any], sample: Sample, context: Mapping[str, str]) -> Draft | Rejection:
    read: Draft | Rejection = kind.parse_proposal(sample.text, context)
    return read.rejected(Reason.CUT, "stopped at the length limit") if sample.stop is Stop.LENGTH else read
