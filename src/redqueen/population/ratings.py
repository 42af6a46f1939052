"""Ratings: TrueSkill for one teacher against one student, in closed form.

Both roles share one scale: a student rated above a teacher solves more than half of its tasks. The corrections are
written with Mills ratios, which neither underflow nor cancel however far apart two ratings are.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

MU = 25.0
SIGMA = MU / 3
BETA = SIGMA / 2
"""The standard deviation of a performance around the skill."""
TAU = SIGMA / 100
"""Added to the uncertainty before every match, since members change while they play."""
DRAW = 0.1
"""The probability of a draw between equals."""

_MARGIN = NormalDist().inv_cdf((DRAW + 1) / 2) * math.sqrt(2) * BETA
_TAIL = 6.0
"""From here on the continued fraction is exact to rounding with this many terms, and below it `erfc` is."""
_TERMS = 40


class MatchResult(StrEnum):
    """Who won a match."""

    STUDENT = "student"
    TEACHER = "teacher"
    DRAW = "draw"


@dataclass(frozen=True, slots=True)
class Rating:
    """A normal belief about a member's skill."""

    mu: float
    sigma: float

    @property
    def lower(self) -> float:
        """The lower bound: the skill is very probably above it."""
        return self.mu - 3 * self.sigma


PRIOR = Rating(MU, SIGMA)


def expected(student: Rating, teacher: Rating) -> float:
    """The probability that the student beats the teacher, which is also the solve rate that the ratings foretell."""
    return _phi((student.mu - teacher.mu) / _spread(student, teacher))


def rate(student: Rating, teacher: Rating, result: MatchResult) -> tuple[Rating, Rating]:
    student, teacher = _aged(student), _aged(teacher)
    spread = _spread(student, teacher)
    # From here on the first of the two is the winner; in a draw it does not matter.
    sign = -1.0 if result is MatchResult.TEACHER else 1.0
    lead = sign * (student.mu - teacher.mu) / spread
    v, w = _drawn(lead, _MARGIN / spread) if result is MatchResult.DRAW else _won(lead - _MARGIN / spread)
    return _moved(student, sign * v, w, spread), _moved(teacher, -sign * v, w, spread)


def _spread(student: Rating, teacher: Rating) -> float:
    return math.sqrt(student.sigma**2 + teacher.sigma**2 + 2 * BETA**2)


def _aged(rating: Rating) -> Rating:
    return Rating(rating.mu, math.hypot(rating.sigma, TAU))


def _moved(rating: Rating, v: float, w: float, spread: float) -> Rating:
    share = rating.sigma / spread
    return Rating(rating.mu + rating.sigma * share * v, rating.sigma * math.sqrt(1 - share**2 * w))


def _won(x: float) -> tuple[float, float]:
    """The corrections of mean and variance after a win; x is the lead beyond the draw margin."""
    if -x >= _TAIL:
        beyond = _beyond(-x)
        v = -x + beyond
        return v, v * beyond
    v = _density(x) / _phi(x)
    return v, v * (v + x)


def _drawn(lead: float, margin: float) -> tuple[float, float]:
    """The same after a draw."""
    far = abs(lead)
    near_end, far_end = far - margin, far + margin
    # Both ends of the interval in units of the density at the nearer one.
    ratio = math.exp(-2 * margin * far)
    mass = _mills(near_end) - ratio * _mills(far_end)
    v = (1 - ratio) / mass
    w = v * v + (far_end * ratio - near_end) / mass
    return -math.copysign(v, lead), min(max(w, 0.0), 1.0)


def _mills(z: float) -> float:
    """The upper tail of a standard normal at z, in units of its density there."""
    return 1 / (z + _beyond(z)) if z >= _TAIL else _phi(-z) / _density(z)


def _beyond(z: float) -> float:
    """The mean of a standard normal beyond z > 0, less z: Laplace's continued fraction."""
    value = z
    for term in range(_TERMS, 1, -1):
        value = z + term / value
    return 1 / value


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
