"""TRR++, task-relative REINFORCE++ of Absolute Zero (arXiv 2505.03335): a baseline for each role and kind."""

from collections.abc import Sequence

from redqueen.rl.advantages import Estimator
from redqueen.rl.advantages.groups import FLOOR, by_kind, centred, deviation, within
from redqueen.rl.rollout import Rollout


def estimate(rollouts: Sequence[Rollout]) -> list[float]:
    """(r - mean) / max(std, 0.1) over the member's rollouts of one role and kind, with the population's standard
    deviation.

    Prompts are not told apart: a task that is always solved counts as success, and one that never is as failure.
    """
    return within(rollouts, (by_kind(one) for one in rollouts), _whitened)


def _whitened(rewards: list[float]) -> list[float]:
    scale = max(deviation(rewards), FLOOR)
    return [value / scale for value in centred(rewards)]


ESTIMATOR = Estimator(estimate, needs_groups=False)
