"""How much better or worse each of a member's sequences was than it could have been expected to be.

An estimator is one file with one pure function, `estimate`: the sequences of one member -> an advantage each. To add
one, write the file, and name it in `ESTIMATORS` and in `rl.estimator` of the settings. It must give finite numbers,
and exactly 0.0 where there is nothing to learn, because such sequences are left out of the update.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redqueen.rl.advantages import dr_grpo, grpo, reinforce_pp, rloo, trr_pp
from redqueen.rl.advantages.groups import Rewarded

__all__ = ["ESTIMATORS", "Estimator", "Method", "Rewarded"]

Estimator = Callable[[Sequence[Rewarded]], list[float]]
"""The sequences of one member -> an advantage each, in their order."""


@dataclass(frozen=True, slots=True)
class Method:
    """An estimator, and how its advantages enter the loss."""

    estimate: Estimator
    by_length: bool
    """Each sequence's loss is divided by its own length, as GRPO was published, which makes the tokens of a long wrong
    answer count less than those of a short one; otherwise by its token limit, a constant."""


ESTIMATORS: dict[str, Method] = {
    "reinforce++": Method(reinforce_pp.estimate, by_length=False),
    "trr++": Method(trr_pp.estimate, by_length=False),
    "grpo": Method(grpo.estimate, by_length=True),
    "rloo": Method(rloo.estimate, by_length=False),
    "dr_grpo": Method(dr_grpo.estimate, by_length=False),
}
