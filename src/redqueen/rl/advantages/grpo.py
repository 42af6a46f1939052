"""GRPO (arXiv 2402.03300): rewards whitened within each prompt."""

from collections.abc import Sequence

from redqueen.rl.advantages import Estimator
from redqueen.rl.advantages.groups import by_prompt, centred, deviation, within
from redqueen.rl.rollout import Rollout

EPSILON = 1e-6
"""Keeps the division defined; it is not a floor, so the least difference within a group counts in full."""


def estimate(rollouts: Sequence[Rollout]) -> list[float]:
    """(r - mean) / (std + 1e-6) over a prompt's rollouts, with the population's standard deviation; 0 for a prompt
    that was sampled once.

    Dividing by the group's own deviation gives prompts that are nearly always or nearly never solved the same weight
    as balanced ones.
    """
    return within(rollouts, (by_prompt(one) for one in rollouts), _whitened)


def _whitened(rewards: list[float]) -> list[float]:
    scale = deviation(rewards) + EPSILON
    return [value / scale for value in centred(rewards)]


ESTIMATOR = Estimator(estimate, by_length=True)
