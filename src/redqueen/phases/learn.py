"""Update: every text that a member wrote becomes a row with its advantage, and every member takes one step.

Nothing that was sampled is thrown away but what says nothing: with a per-prompt estimator a task whose attempts all
agree has no gradient and costs no time. A member that has lost its footing is left as it is, and that is said.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from redqueen.engine.protocol import MemberId, Recipe, ScoreRequest, UpdateStats
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.members import Role
from redqueen.rl.batch import MIN_ROWS, weigh
from redqueen.rl.kl import penalised
from redqueen.rl.rewards import shuffled
from redqueen.rl.rollout import Rollout
from redqueen.runs.metrics import ENTROPY, GRAD_NORM, VALID

NOTHING_TO_LEARN = "rows"
EPS = 1e-12
"""Adam's: advantages are divided by sequences and token limits, so gradients are small, and the usual 1e-8 would make
the size of a step depend on the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Why a member was not updated."""

    member: MemberId
    measure: str
    value: float | None
    floor: float | None
    says: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of a step's rollouts, by adapter."""

    stats: Mapping[MemberId, UpdateStats]
    skips: tuple[Skip, ...]
    lr: float


def entropy(rollouts: Sequence[Rollout]) -> float:
    """Nats a token, estimated by what was sampled."""
    return -fmean(logprob for rollout in rollouts for logprob in rollout.sample.logprobs)


def sound(rollouts: Sequence[Rollout]) -> float:
    """The share of texts that came to anything."""
    return fmean(rollout.sound for rollout in rollouts)


def soundness(race: Race, rollouts: Sequence[Rollout]) -> dict[MemberId, float]:
    """By adapter, the share of its texts that came to anything."""
    return {adapter: sound(own) for adapter, own in _by_adapter(race, rollouts).items()}


def _by_adapter(race: Race, rollouts: Sequence[Rollout]) -> dict[MemberId, list[Rollout]]:
    by_adapter: dict[MemberId, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        if rollout.counts:
            by_adapter[race.adapter(rollout.member)].append(rollout)
    return by_adapter


async def learn(race: Race, state: State, step: int, rollouts: Sequence[Rollout]) -> Learned:
    """One optimiser step for every adapter that has something to learn from and is fit to."""
    rl = race.settings.rl
    lr = rl.lr * min(1.0, step / rl.warmup) if rl.warmup else rl.lr
    trained = [rollout for rollout in rollouts if not race.frozen(rollout.role)]
    rows: list[Rollout] = []
    skips: list[Skip] = []
    for adapter, own in _by_adapter(race, trained).items():
        unfit = _unfit(race, state, adapter, own)
        telling = [] if unfit else weigh(_dealt(race, step, adapter, own), race.estimator, rl.kl > 0)
        if unfit:
            skips.append(unfit)
        elif not telling:
            says = f"{adapter} was not updated: fewer than {MIN_ROWS} of its texts tell it anything"
            skips.append(Skip(member=adapter, measure=NOTHING_TO_LEARN, value=None, floor=MIN_ROWS, says=says))
        rows += telling
    advantages = await _held(race, rows) if rl.kl else [row.advantage for row in rows]
    batch = [
        row.trajectory(race.adapter(row.member), advantage) for row, advantage in zip(rows, advantages, strict=True)
    ]
    stats = await race.engine.update(batch, Recipe(lr=lr, eps=EPS)) if batch else {}
    for adapter, one in stats.items():
        if one.skipped:
            says = f"{adapter} was not updated: its gradient is not finite"
            skips.append(Skip(member=adapter, measure=GRAD_NORM.name, value=None, floor=None, says=says))
    return Learned(stats, tuple(skips), lr)


def _unfit(race: Race, state: State, adapter: MemberId, own: Sequence[Rollout]) -> Skip | None:
    guard = race.settings.guard
    spread = entropy(own)
    if spread < guard.entropy_floor:
        says = f"{adapter} was not updated: its entropy is {spread:.4f} nats a token, below {guard.entropy_floor:g}"
        return Skip(member=adapter, measure=ENTROPY.name, value=spread, floor=guard.entropy_floor, says=says)
    valid = sound(own)
    if valid < guard.valid_floor <= state.health.best_valid.get(adapter, 0.0):
        says = f"{adapter} was not updated: {valid:.1%} of its texts are sound, fewer than {guard.valid_floor:.1%}"
        return Skip(member=adapter, measure=VALID.name, value=valid, floor=guard.valid_floor, says=says)
    return None


def _dealt(race: Race, step: int, adapter: MemberId, own: Sequence[Rollout]) -> Sequence[Rollout]:
    """With the rewards that the adapter learns from: its own, but for the control that deals them out at random."""
    if not race.settings.rl.shuffle:
        return own
    dealt: dict[Role, Iterator[float]] = {}
    for role in Role:
        rewards = [rollout.reward for rollout in own if rollout.role is role]
        dealt[role] = iter(shuffled(rewards, race.numbers(step, "shuffle", adapter, str(role))))
    return [replace(rollout, reward=next(dealt[rollout.role])) for rollout in own]


async def _held(race: Race, rows: Sequence[Rollout]) -> list[tuple[float, ...]]:
    """Advantages with the price of being unlike the bare base on every token."""
    scores = await race.engine.score(
        [
            ScoreRequest(prompt=row.request.prompt, completion=row.sample.tokens, temperature=row.request.temperature)
            for row in rows
        ]
    )
    return [
        penalised(row.advantage, row.sample.logprobs, base.logprobs, race.settings.rl.kl, row.scale)
        for row, base in zip(rows, scores, strict=True)
    ]
