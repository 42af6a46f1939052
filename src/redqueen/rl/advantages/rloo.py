"""RLOO, REINFORCE leave-one-out (arXiv 2402.14740): each sequence against the others of its prompt."""

from collections.abc import Sequence

from redqueen.rl.advantages import Estimator
from redqueen.rl.advantages.groups import by_prompt, centred, within
from redqueen.rl.rollout import Rollout


def estimate(rollouts: Sequence[Rollout]) -> list[float]:
    """r - the mean of the others' rewards; 0 for a prompt that was sampled once.

    The baseline does not depend on the sequence itself, so the gradient is unbiased.
    """
    return within(rollouts, (by_prompt(one) for one in rollouts), _against_the_others)


def _against_the_others(rewards: list[float]) -> list[float]:
    # r - (sum - r) / (n - 1) = (r - mean) n / (n - 1), and this form is exactly 0 where all agree.
    others = max(len(rewards) - 1, 1)
    return [value * len(rewards) / others for value in centred(rewards)]


ESTIMATOR = Estimator(estimate)
