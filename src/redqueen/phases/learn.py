"""Update: every text that a member wrote becomes a row with its advantage, and every member takes one step.

Nothing that was sampled is thrown away but what says nothing: with a per-prompt estimator a task whose attempts all
agree has no gradient and costs no time. A member that has lost its footing is left as it is, and that is said.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from redqueen.engine.protocol import MemberId, Recipe, Sample, ScoreRequest, Trajectory, UpdateStats
from redqueen.phases.judge import Scored
from redqueen.phases.race import Race, Try
from redqueen.phases.state import State
from redqueen.population.members import Role
from redqueen.rl.advantages import ESTIMATORS, Rewarded
from redqueen.rl.batch import MIN_ROWS, weigh
from redqueen.rl.kl import penalised
from redqueen.rl.rewards import shuffled, student_reward
from redqueen.runs.metrics import ENTROPY, GRAD_NORM, VALID
from redqueen.tasks.protocol import Task

NOTHING_TO_LEARN = "rows"
EPS = 1e-12
"""Adam's: advantages are divided by sequences and token limits, so gradients are small, and the usual 1e-8 would make
the size of a step depend on the limit."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One text of a member, and what it was worth."""

    member: MemberId
    role: Role
    kind: str
    group: tuple[int, ...]
    prompt: tuple[int, ...]
    sample: Sample
    limit: int
    """Tokens that it could have had."""
    sound: bool
    """A proposal that became a task, an attempt that was well formed."""
    reward: float


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a member was not updated."""

    member: MemberId
    measure: str
    value: float | None
    floor: float | None
    says: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of a step's lessons, by adapter."""

    stats: Mapping[MemberId, UpdateStats]
    skips: tuple[Skip, ...]
    lr: float


def lessons(race: Race, scored: Sequence[Scored], tries: Sequence[Try]) -> list[Lesson]:
    """Every text of the step but void attempts: the teachers' in the order of the places, then the students'."""
    limits = race.settings.tasks
    taught = [
        Lesson(
            each.posed.proposal.teacher,
            Role.TEACHER,
            each.posed.proposal.kind,
            (each.posed.proposal.group,),
            each.posed.proposal.prompt,
            each.posed.proposal.sample,
            limits.proposal_tokens,
            isinstance(each.posed.task, Task),
            each.reward,
        )
        for each in scored
    ]
    kinds = {each.posed.proposal.place: each.posed.proposal.kind for each in scored}
    solved = [
        Lesson(
            each.student,
            Role.STUDENT,
            kinds[each.place],
            (each.place, 0),
            each.prompt,
            each.sample,
            limits.attempt_tokens,
            each.verdict.well_formed,
            student_reward(each.verdict.grade),
        )
        for each in tries
        if not each.verdict.void
    ]
    return taught + solved


def entropy(of: Sequence[Lesson]) -> float:
    """Nats a token, estimated by what was sampled."""
    logprobs = [logprob for lesson in of for logprob in lesson.sample.logprobs]
    return -fmean(logprobs)


def sound(of: Sequence[Lesson]) -> float:
    """The share of texts that came to anything."""
    return fmean(lesson.sound for lesson in of)


async def learn(race: Race, state: State, step: int, given: Sequence[Lesson]) -> Learned:
    """One optimiser step for every adapter that has something to learn from and is fit to."""
    rl = race.settings.rl
    lr = rl.lr * min(1.0, step / rl.warmup) if rl.warmup else rl.lr
    by_adapter: dict[MemberId, list[Lesson]] = defaultdict(list)
    for lesson in given:
        if not race.frozen(lesson.role):
            by_adapter[race.adapter(lesson.member)].append(lesson)
    rows: list[tuple[Trajectory, float]] = []
    skips: list[Skip] = []
    for adapter, own in by_adapter.items():
        unfit = _unfit(race, state, adapter, own)
        telling = [] if unfit else _rows(race, step, adapter, own)
        if unfit:
            skips.append(unfit)
        elif not telling:
            says = f"{adapter} was not updated: fewer than {MIN_ROWS} of its texts tell it anything"
            skips.append(Skip(adapter, NOTHING_TO_LEARN, None, MIN_ROWS, says))
        rows += telling
    batch = await _held(race, rows) if rl.kl else [row for row, _ in rows]
    stats = await race.engine.update(batch, Recipe(lr=lr, eps=EPS)) if batch else {}
    for adapter, one in stats.items():
        if one.skipped:
            says = f"{adapter} was not updated: its gradient is not finite"
            skips.append(Skip(adapter, GRAD_NORM.name, None, None, says))
    return Learned(stats, tuple(skips), lr)


def _unfit(race: Race, state: State, adapter: MemberId, own: Sequence[Lesson]) -> Skip | None:
    guard = race.settings.guard
    spread = entropy(own)
    if spread < guard.entropy_floor:
        says = f"{adapter} was not updated: its entropy is {spread:.4f} nats a token, below {guard.entropy_floor:g}"
        return Skip(adapter, ENTROPY.name, spread, guard.entropy_floor, says)
    valid = sound(own)
    if valid < guard.valid_floor <= state.health.best_valid.get(adapter, 0.0):
        says = f"{adapter} was not updated: {valid:.1%} of its texts are sound, fewer than {guard.valid_floor:.1%}"
        return Skip(adapter, VALID.name, valid, guard.valid_floor, says)
    return None


def _rows(race: Race, step: int, adapter: MemberId, own: Sequence[Lesson]) -> list[tuple[Trajectory, float]]:
    """What the adapter is trained on, each row with what its advantage was multiplied by."""
    rl = race.settings.rl
    rewards = [lesson.reward for lesson in own]
    if rl.shuffle:
        for role in Role:
            places = [place for place, lesson in enumerate(own) if lesson.role is role]
            dealt = shuffled([rewards[place] for place in places], race.numbers(step, "shuffle", adapter, str(role)))
            for place, reward in zip(places, dealt, strict=True):
                rewards[place] = reward
    rewarded = [
        Rewarded(str(lesson.role), lesson.kind, lesson.group, reward)
        for lesson, reward in zip(own, rewards, strict=True)
    ]
    lengths = [len(lesson.sample.tokens) for lesson in own]
    limits = [lesson.limit for lesson in own]
    weighted = weigh(rewarded, lengths, limits, ESTIMATORS[rl.estimator], rl.kl > 0)
    return [
        (
            Trajectory(
                member=adapter,
                prompt=own[row.index].prompt,
                completion=own[row.index].sample.tokens,
                logprobs=own[row.index].sample.logprobs,
                advantages=row.advantage,
                temperature=rl.temperature,
            ),
            row.scale,
        )
        for row in weighted
    ]


async def _held(race: Race, rows: Sequence[tuple[Trajectory, float]]) -> list[Trajectory]:
    """The rows with the price of being unlike the bare base on every token."""
    scores = await race.engine.score(
        [ScoreRequest(prompt=row.prompt, completion=row.completion, temperature=row.temperature) for row, _ in rows]
    )
    held: list[Trajectory] = []
    for (row, scale), base in zip(rows, scores, strict=True):
        assert isinstance(row.advantages, float)
        priced = penalised(row.advantages, row.logprobs, base.logprobs, race.settings.rl.kl, scale)
        held.append(replace(row, advantages=priced))
    return held
