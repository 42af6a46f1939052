"""REINFORCE++ with a baseline per prompt (arXiv 2501.03262): centred by prompt, whitened over all that a member did."""

from collections import Counter
from collections.abc import Sequence

from redqueen.rl.advantages import Estimator
from redqueen.rl.advantages.groups import FLOOR, by_kind, by_prompt, centred, deviation, within
from redqueen.rl.rollout import Rollout

CLIP = 5.0
"""Beyond this an advantage is cut off: one lucky sequence among many that agree does not make the step alone."""


def estimate(rollouts: Sequence[Rollout]) -> list[float]:
    """(r - the group's mean) / max(std, 0.1), clipped to +-5.

    A group is a prompt's rollouts. Those of prompts that were sampled once have no one to be compared with, so those
    of one role and kind form a group together.

    std is the population's standard deviation of the centred rewards of all the member's rollouts, of both roles if
    it has both, groups that agree included. Every group has mean 0, so it is the same about 0 and about the mean, and
    no second mean is taken off: that would move the zeros of groups that agree.
    """
    if not rollouts:
        return []
    sizes = Counter(by_prompt(one) for one in rollouts)
    keys = [by_prompt(one) if sizes[by_prompt(one)] > 1 else by_kind(one) for one in rollouts]
    values = within(rollouts, keys, centred)
    scale = max(deviation(values), FLOOR)
    return [max(-CLIP, min(CLIP, value / scale)) for value in values]


ESTIMATOR = Estimator(estimate, needs_groups=False)
