"""Dr. GRPO, "GRPO done right" (arXiv 2503.20783): GRPO without its two divisions, by deviation and by length."""

from collections.abc import Sequence

from redqueen.rl.advantages import Estimator
from redqueen.rl.advantages.groups import by_prompt, centred, within
from redqueen.rl.rollout import Rollout


def estimate(rollouts: Sequence[Rollout]) -> list[float]:
    """r - mean over a prompt's rollouts; 0 for a prompt that was sampled once."""
    return within(rollouts, (by_prompt(one) for one in rollouts), centred)


ESTIMATOR = Estimator(estimate)
