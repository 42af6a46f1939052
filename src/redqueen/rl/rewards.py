"""What a proposal and an attempt are worth.

A teacher's reward rests on rho = solved / attempts over its whole panel. A shape is a function of
(solved, attempts).
"""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from random import Random

from redqueen.errors import ConfigError, Fault
from redqueen.tasks.verdicts import Grade

Shape = Callable[[int, int], float]
"""(solved, attempts) of a valid task -> its teacher's reward."""

INVALID = -1.0
"""A teacher's reward for a proposal that was rejected."""


def paper(solved: int, attempts: int) -> float:
    """1 - rho, and nothing for a task that nobody solved: the harder the better, as long as it can be done."""
    _check(solved, attempts)
    return (attempts - solved) / attempts if solved else 0.0


def azr(solved: int, attempts: int) -> float:
    """Absolute Zero's: nothing at both ends, 1 - rho between them. It pays what `paper` pays, since 1 - 1 = 0."""
    _check(solved, attempts)
    return (attempts - solved) / attempts if 0 < solved < attempts else 0.0


def learnability(solved: int, attempts: int) -> float:
    """4 rho (1 - rho): most for a task that is solved half the time."""
    _check(solved, attempts)
    return 4 * solved * (attempts - solved) / attempts**2


STUDENT: dict[Grade, float] = {Grade.CORRECT: 1.0, Grade.WRONG: -0.5, Grade.MALFORMED: -1.0, Grade.VOID: 0.0}


def teacher_reward(shape: Shape, solved: int, attempts: int, counts: bool) -> float:
    """For a valid task; where its difficulty does not count, being hard pays nothing."""
    reward = shape(solved, attempts)
    if not isinstance(reward, Real) or not math.isfinite(reward):
        what = f"rl.reward gave {reward!r} for a task solved {solved} times in {attempts} attempts"
        raise ConfigError(what, "mend it: a reward is a finite number")
    return reward if counts else min(reward, 0.0)


def student_reward(grade: Grade) -> float:
    return STUDENT[grade]


def shuffled(rewards: Sequence[float], rng: Random) -> list[float]:
    """The control: the same rewards dealt out at random, so that whatever is still learned is not from them."""
    return rng.sample(rewards, len(rewards))


def _check(solved: int, attempts: int) -> None:
    if not 0 <= solved <= attempts or attempts == 0:
        raise Fault(f"a task solved {solved} times in {attempts} attempts has no solve rate")
