"""How much better or worse each of a member's rollouts was than it could have been expected to be.

An estimator is one file with one pure function, `estimate`: the rollouts of one member -> an advantage each. To add
one, write the file, and name it in `ESTIMATORS` and in `rl.estimator` of the settings. It must give finite numbers,
and exactly 0.0 where there is nothing to learn, because such rollouts are left out of the update.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redqueen.rl.advantages import dr_grpo, grpo, reinforce_pp, rloo, trr_pp
from redqueen.rl.rollout import Rollout

Estimator = Callable[[Sequence[Rollout]], list[float]]
"""The rollouts of one member -> an advantage each, in their order."""


@dataclass(frozen=True, slots=True)
class Method:
    """An estimator, and how its advantages enter the loss."""

    estimate: Estimator
    by_length: bool
    """Each rollout's loss is divided by its own length, as GRPO was published, which makes the tokens of a long wrong
    answer count less than those of a short one; otherwise by its token limit, a constant."""
    needs_groups: bool = True
    """It compares the rollouts of one prompt with each other: a prompt with a single one says nothing."""


ESTIMATORS: dict[str, Method] = {
    "reinforce++": Method(reinforce_pp.estimate, by_length=False, needs_groups=False),
    "trr++": Method(trr_pp.estimate, by_length=False, needs_groups=False),
    "grpo": Method(grpo.estimate, by_length=True),
    "rloo": Method(rloo.estimate, by_length=False),
    "dr_grpo": Method(dr_grpo.estimate, by_length=False),
}
