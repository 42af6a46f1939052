"""Ratings: equal to the reference package where it is sound, and finite where it is not."""

import math
import statistics

import pytest
import trueskill
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.population.ratings import BETA, DRAW, MU, PRIOR, SIGMA, TAU, MatchResult, Rating, expected, rate

# The package's own `erfc` is good to seven digits only.
_normal = statistics.NormalDist()
ORACLE = trueskill.TrueSkill(
    MU,
    SIGMA,
    BETA,
    TAU,
    DRAW,
    backend=(lambda x: math.erfc(-x / math.sqrt(2)) / 2, _normal.pdf, _normal.inv_cdf),
)

mus = st.floats(0, 50)
sigmas = st.floats(0.5, 10)
ratings = st.builds(Rating, mus, sigmas)
far = st.builds(Rating, st.floats(-500, 500), st.floats(1e-3, 100))
results = st.sampled_from(list(MatchResult))


@settings(max_examples=1_000)
@given(ratings, ratings, results)
def test_a_match_changes_ratings_as_the_reference_package_says(student, teacher, result):
    ours = rate(student, teacher, result)
    winner, loser = (teacher, student) if result is MatchResult.TEACHER else (student, teacher)
    theirs = trueskill.rate_1vs1(
        ORACLE.create_rating(winner.mu, winner.sigma),
        ORACLE.create_rating(loser.mu, loser.sigma),
        drawn=result is MatchResult.DRAW,
        env=ORACLE,
    )
    if result is MatchResult.TEACHER:
        theirs = theirs[::-1]
    for mine, reference in zip(ours, theirs, strict=True):
        assert mine.mu == pytest.approx(reference.mu, abs=1e-6)
        assert mine.sigma == pytest.approx(reference.sigma, abs=1e-6)


@given(far, far, results)
def test_ratings_stay_finite_and_uncertain_however_far_apart(student, teacher, result):
    for before, after in zip((student, teacher), rate(student, teacher, result), strict=True):
        assert math.isfinite(after.mu)
        assert 0 < after.sigma <= math.hypot(before.sigma, TAU) * (1 + 1e-12)


@pytest.mark.parametrize("gap", [1e3, 1e6])
def test_an_upset_closes_the_gap_by_each_ones_share_of_the_uncertainty(gap):
    student, teacher = rate(Rating(0, 3), Rating(gap, 4), MatchResult.STUDENT)
    spread2 = 9 + 16 + 2 * TAU**2 + 2 * BETA**2
    assert student.mu / gap == pytest.approx((9 + TAU**2) / spread2, rel=1e-2)
    assert (gap - teacher.mu) / gap == pytest.approx((16 + TAU**2) / spread2, rel=1e-2)


def test_a_foregone_win_teaches_nothing():
    student, teacher = rate(Rating(1e3, 2), Rating(0, 2), MatchResult.STUDENT)
    assert (student.mu, teacher.mu) == (1e3, 0)


@given(ratings, ratings, results)
def test_both_roles_are_rated_alike(student, teacher, result):
    mirrored = {
        MatchResult.STUDENT: MatchResult.TEACHER,
        MatchResult.TEACHER: MatchResult.STUDENT,
        MatchResult.DRAW: MatchResult.DRAW,
    }
    there = rate(student, teacher, result)
    back = rate(teacher, student, mirrored[result])[::-1]
    for one, other in zip(there, back, strict=True):
        assert one.mu == pytest.approx(other.mu, abs=1e-9)
        assert one.sigma == pytest.approx(other.sigma, abs=1e-9)


@given(ratings, ratings)
def test_the_two_expectations_add_up_to_one(student, teacher):
    assert expected(student, teacher) + expected(teacher, student) == pytest.approx(1)


def test_equals_are_expected_to_halve_and_the_better_one_to_win():
    assert expected(PRIOR, PRIOR) == 0.5
    assert expected(Rating(30, 1), Rating(25, 1)) == pytest.approx(0.7953, abs=1e-4)
    assert expected(Rating(30, 8), Rating(25, 8)) < expected(Rating(30, 1), Rating(25, 1)), "doubt draws to the middle"


def test_the_lower_bound_is_three_sigma_below():
    assert PRIOR.lower == 0
    assert Rating(30, 2).lower == 24
