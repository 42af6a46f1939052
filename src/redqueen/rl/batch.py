"""From a member's rewarded rollouts to those that it is trained on.

The engine sums `advantage * log p` over all tokens it is given. Whatever divides that sum is put into the advantages
here, so rollouts that are left out or a member with fewer of them change nobody else's loss.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from redqueen.errors import ConfigError, Fault
from redqueen.rl.advantages import Estimator
from redqueen.rl.rollout import Rollout

MIN_ROWS = 8
"""Texts with an advantage that a member's step takes: with fewer it would follow a handful of samples, and Adam makes
it as long as any other."""


def weigh(rollouts: Sequence[Rollout], estimator: Estimator, keep_zeros: bool) -> list[Rollout]:
    """One member's rollouts with their advantages, in their order; none if fewer than `MIN_ROWS` have one.

    With N rollouts, of which i has length_i of at most limit_i tokens, the sum over tokens of advantage * log p is

        1/N * sum over i of  A_i / limit_i * sum over its tokens of log p

    or with the length in place of the limit, if the estimator says so. N counts all rollouts, so leaving out those
    whose advantage is exactly zero changes nothing but the time. A KL term pulls at those as well: `keep_zeros`.
    """
    for rollout in rollouts:
        length, limit = len(rollout.sample.tokens), rollout.request.max_tokens
        if not 0 < length <= limit:
            raise Fault(f"a rollout has {length} tokens where 1 to {limit} can be")
        if not math.isfinite(rollout.reward):
            raise Fault(f"a {rollout.role}'s reward is {rollout.reward}")
    rows: list[Rollout] = []
    for rollout, advantage in zip(rollouts, _estimated(rollouts, estimator), strict=True):
        tokens = len(rollout.sample.tokens) if estimator.by_length else rollout.request.max_tokens
        scale = 1 / (len(rollouts) * tokens)
        rows.append(replace(rollout, advantage=advantage * scale, scale=scale))
    telling = [row for row in rows if row.advantage != 0]
    if len(telling) < MIN_ROWS:
        return []
    return rows if keep_zeros else telling


def _estimated(rollouts: Sequence[Rollout], estimator: Estimator) -> list[float]:
    """The estimator's advantages. It may be the user's own, so whatever else it gives is refused in one line."""
    advantages: object = estimator.estimate(rollouts)
    if not isinstance(advantages, list | tuple):
        raise ConfigError(f"rl.estimator gave {type(advantages).__name__}", "mend it: it must give a list of numbers")
    if len(advantages) != len(rollouts):
        what = f"rl.estimator gave {len(advantages)} advantages for {len(rollouts)} rollouts"
        raise ConfigError(what, "mend it: it must give one for each")
    for rollout, advantage in zip(rollouts, advantages, strict=True):
        if not isinstance(advantage, Real) or not math.isfinite(advantage):
            what = f"rl.estimator gave {advantage!r} for a {rollout.role}'s text of reward {rollout.reward}"
            raise ConfigError(what, "mend it: advantages are finite numbers")
    return list(map(float, advantages))
