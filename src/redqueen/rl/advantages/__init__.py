"""How much better or worse each of a member's rollouts was than it could have been expected to be.

An estimator is one file with one pure function, `estimate`: the rollouts of one member -> an advantage each. It must
give finite numbers, and exactly 0.0 where there is nothing to learn, because such rollouts are left out of the update.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redqueen.rl.rollout import Rollout


@dataclass(frozen=True, slots=True)
class Estimator:
    """A function from rewards to advantages, and how its advantages enter the loss."""

    estimate: Callable[[Sequence[Rollout]], list[float]]
    """The rollouts of one member -> an advantage each, in their order."""
    by_length: bool = False
    """Each rollout's loss is divided by its own length, as GRPO was published, which makes the tokens of a long wrong
    answer count less than those of a short one; otherwise by its token limit, a constant."""
    needs_groups: bool = True
    """It compares the rollouts of one prompt with each other: a prompt with a single one says nothing."""
