"""Update: every text that a member wrote becomes a row with its advantage, and every member takes one step.

Nothing that was sampled is thrown away but what says nothing: with a per-prompt estimator a task whose attempts all
agree has no gradient and costs no time. A member that has lost its footing does not learn, and that is said.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from redqueen.engine.flops import Passage
from redqueen.engine.protocol import MemberId, Recipe, ScoreRequest, Trajectory, UpdateStats
from redqueen.phases.pull import averaged_roles
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


PATIENCE = 5
"""Steps in a row that a member may be unfit to learn. It does not change by itself, so it is then moved towards the
base, again and again until it is fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Why a member was not updated."""

    member: MemberId
    measure: str
    value: float | None
    floor: float | None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What came of a step's rollouts, by adapter."""

    stats: Mapping[MemberId, UpdateStats]
    skips: tuple[Skip, ...]
    lrs: Mapping[MemberId, float]
    """The learning rates of those that were updated."""
    unfit_steps: Mapping[MemberId, int]
    """Of those that were not fit to learn: the steps in a row, from 0 again for those that were taken back."""
    passages: Mapping[MemberId, Passage] = field(default_factory=dict)
    """What went through the base for it."""


def entropy(rollouts: Sequence[Rollout]) -> float:
    """Nats a token, estimated by what was sampled."""
    # A list: of anything else `fmean` counts every number.
    return -fmean([logprob for rollout in rollouts for logprob in rollout.sample.logprobs])


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
    texts = _by_adapter(race, [rollout for rollout in rollouts if not race.frozen(rollout.role)])
    unfit = {adapter: skip for adapter, own in texts.items() if (skip := _unfit(race, state, adapter, own))}
    rows: list[tuple[MemberId, Rollout]] = []
    skips = list(unfit.values())
    factors: dict[MemberId, float] = {}
    for adapter in texts:
        if adapter in unfit:
            continue
        dealt = _dealt(race, step, adapter, _lessons(race, adapter, texts, unfit))
        telling = weigh(dealt, race.estimator, rl.kl > 0)
        if not telling:
            says = f"{adapter} was not updated: fewer than {MIN_ROWS} of its texts tell it anything"
            skips.append(Skip(member=adapter, measure=NOTHING_TO_LEARN, value=None, floor=MIN_ROWS, says=says))
        rows += [(adapter, row) for row in telling]
        factors[adapter] = _lr_factor(race, state, step, adapter, telling)
    advantages = await _held(race, [row for _, row in rows]) if rl.kl else [row.advantage for _, row in rows]
    batch = [
        row.trajectory(adapter, advantage, factors[adapter])
        for (adapter, row), advantage in zip(rows, advantages, strict=True)
    ]
    recipe = Recipe(lr=rl.lr, eps=EPS, max_grad_norm=rl.max_grad_norm)
    stats = await race.engine.update(batch, recipe) if batch else {}
    for adapter, one in stats.items():
        if one.skipped:
            says = f"{adapter} was not updated: its gradient is not finite"
            skips.append(Skip(member=adapter, measure=GRAD_NORM.name, value=None, floor=None, says=says))
    # Who wrote nothing in this step is as it was.
    unfit_steps = {adapter: steps for adapter, steps in state.health.unfit_steps.items() if adapter not in texts}
    for adapter in unfit:
        unfit_steps[adapter] = state.health.unfit_steps.get(adapter, 0) + 1
        if unfit_steps[adapter] == PATIENCE:
            race.engine.write(adapter, race.engine.read(adapter, optimiser=True).scaled(0.5))
            unfit_steps[adapter] = 0
            says = f"{adapter} was not fit to learn for {PATIENCE} steps: it was moved half of its way back to the base"
            skips.append(replace(unfit[adapter], says=says))
    return Learned(
        stats=stats,
        skips=tuple(skips),
        lrs={adapter: rl.lr * factors[adapter] for adapter in stats},
        unfit_steps=unfit_steps,
        passages=_passages(batch),
    )


def _lessons(
    race: Race, adapter: MemberId, texts: Mapping[MemberId, Sequence[Rollout]], unfit: Collection[MemberId]
) -> list[Rollout]:
    """What an adapter learns from: its own texts, then those of the others of its role where the settings have them
    shared. Nobody learns from a member that is not fit to learn itself."""
    own, share = texts[adapter], race.settings.rl.share
    roles = {rollout.role for rollout in own if share in (f"{rollout.role}s", "everybody")}
    others = [rollout for other in texts if other != adapter and other not in unfit for rollout in texts[other]]
    return [*own, *(rollout for rollout in others if rollout.role in roles)]


def _lr_factor(race: Race, state: State, step: int, adapter: MemberId, rows: Sequence[Rollout]) -> float:
    """What the learning rate is multiplied by: for a role of its own rate, a young member, a late step, one that was
    called back, one that is averaged with others, a handful of rows."""
    rl, population = race.settings.rl, state.population
    member = next((member for member in population.members if member.id == adapter), None)
    steps = step if member is None else member.steps(step)
    factor = min(1.0, steps / rl.warmup) if rl.warmup else 1.0
    if rl.half_life:
        factor *= 0.5 ** (step / rl.half_life)
    factor *= state.health.rates.get(adapter, 1.0)
    if member is not None and member.role is Role.TEACHER and rl.teacher_lr is not None:
        factor *= rl.teacher_lr / rl.lr
    if member is not None and member.role in averaged_roles(race, population):
        factor *= race.settings.evolution.pull_rate
    if rl.full_rows:
        telling = sum(row.advantage != 0 for row in rows)
        factor *= min(1.0, math.sqrt(telling / rl.full_rows))
    return factor


def _passages(batch: Sequence[Trajectory]) -> dict[MemberId, Passage]:
    texts: dict[MemberId, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
    for row in batch:
        texts[row.member].append((row.prompt, len(row.completion)))
    return {member: Passage.of(own) for member, own in texts.items()}


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
    """Advantages with the price of being unlike the bare base on every token. For a text that another member wrote it
    is the writer's likeness that counts."""
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
