"""Rewards: what teachers and students are paid in every case."""

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.errors import ConfigError, Fault
from redqueen.plugins import REWARDS
from redqueen.rl.rewards import INVALID, STUDENT, shuffled, student_reward, teacher_reward
from redqueen.tasks.verdicts import CUT_ATTEMPT, Grade


@st.composite
def tallies(draw):
    attempts = draw(st.integers(1, 200))
    return draw(st.integers(0, attempts)), attempts


@pytest.mark.parametrize(
    ("solved", "attempts", "paper", "azr", "learnability"),
    [
        (0, 8, 0.0, 0.0, 0.0),  # nobody solved it
        (8, 8, 0.0, 0.0, 0.0),  # everybody did
        (1, 8, 0.875, 0.875, 0.4375),  # 4 * 1/8 * 7/8 = 28/64
        (2, 8, 0.75, 0.75, 0.75),  # 4 * 1/4 * 3/4
        (4, 8, 0.5, 0.5, 1.0),
        (7, 8, 0.125, 0.125, 0.4375),
        (0, 1, 0.0, 0.0, 0.0),
        (1, 1, 0.0, 0.0, 0.0),
        (8, 16, 0.5, 0.5, 1.0),  # a panel of two: one student always, the other never
        (3, 24, 0.875, 0.875, 0.4375),  # a panel of three
    ],
)
def test_a_valid_task_pays_its_teacher_by_the_share_that_was_solved(solved, attempts, paper, azr, learnability):
    assert REWARDS.get("paper")(solved, attempts) == paper
    assert REWARDS.get("azr")(solved, attempts) == azr
    assert REWARDS.get("learnability")(solved, attempts) == learnability


@given(tallies())
def test_paper_and_azr_pay_the_same(tally):
    assert REWARDS.get("paper")(*tally) == REWARDS.get("azr")(*tally)


@given(tallies(), st.sampled_from(sorted(REWARDS.names())))
def test_a_task_that_is_always_or_never_solved_pays_nothing_and_others_at_most_one(tally, shape):
    solved, attempts = tally
    reward = teacher_reward(REWARDS.get(shape), solved, attempts, counts=True)
    assert reward == 0 if solved in (0, attempts) else 0 < reward <= 1


@given(tallies(), st.integers(1, 5), st.sampled_from(sorted(REWARDS.names())))
def test_only_the_rate_over_the_whole_panel_matters(tally, panel, shape):
    solved, attempts = tally
    assert REWARDS.get(shape)(panel * solved, panel * attempts) == pytest.approx(REWARDS.get(shape)(solved, attempts))


@given(tallies(), st.sampled_from(sorted(REWARDS.names())))
def test_a_task_whose_difficulty_does_not_count_pays_nothing(tally, shape):
    assert teacher_reward(REWARDS.get(shape), *tally, counts=False) == 0


def test_a_task_whose_difficulty_does_not_count_still_costs_what_a_shape_takes():
    assert teacher_reward(lambda solved, attempts: -0.25, 1, 8, counts=False) == -0.25


@pytest.mark.parametrize("shape", sorted(REWARDS.names()))
@pytest.mark.parametrize(("solved", "attempts"), [(0, 0), (1, 0), (9, 8), (-1, 8), (-1, -1)])
def test_a_task_without_a_solve_rate_is_a_fault(shape, solved, attempts):
    with pytest.raises(Fault, match="no solve rate"):
        teacher_reward(REWARDS.get(shape), solved, attempts, counts=True)


def test_a_rejected_proposal_pays_less_than_any_task():
    assert INVALID == -1
    assert all(REWARDS.get(shape)(solved, 8) > INVALID for shape in REWARDS.names() for solved in range(9))


def test_a_student_is_paid_for_right_and_charged_less_for_wrong_than_for_malformed():
    assert student_reward(Grade.CORRECT) == 1
    assert student_reward(Grade.WRONG) == -0.5
    assert student_reward(Grade.MALFORMED) == -1
    assert student_reward(CUT_ATTEMPT.grade) == -1, "an attempt that ran into the length limit is malformed"
    assert set(STUDENT) == set(Grade)


def test_the_papers_reward_is_highest_on_average_at_a_quarter_solved():
    def mean(p: float) -> float:
        """Over the number that is solved in 8 attempts, each with probability p."""
        return math.fsum(math.comb(8, s) * p**s * (1 - p) ** (8 - s) * REWARDS.get("paper")(s, 8) for s in range(9))

    assert mean(0.3) == pytest.approx((1 - 0.3) - (1 - 0.3) ** 8)
    assert max(range(101), key=lambda hundredths: mean(hundredths / 100)) == 26


@given(st.lists(st.floats(-1, 1)), st.integers())
def test_a_shuffle_keeps_the_rewards_and_leaves_the_original_alone(rewards, seed):
    before = list(rewards)
    assert Counter(shuffled(rewards, Random(seed))) == Counter(before)
    assert rewards == before


def test_a_shuffle_deals_every_place_every_reward_equally_often():
    rng = Random(0)
    counts = Counter(place for _ in range(4000) for place, reward in enumerate(shuffled([0, 1, 0, 0], rng)) if reward)
    # 1000 each, with a standard deviation of sqrt(4000 * 1/4 * 3/4) = 27
    assert all(abs(counts[place] - 1000) < 5 * 27 for place in range(4))
    assert shuffled([1.0, 2.0, 3.0, 4.0], Random(1)) == shuffled([1.0, 2.0, 3.0, 4.0], Random(1))


@pytest.mark.parametrize("given", [math.nan, -math.inf, None, "much"])
def test_a_shape_that_gives_no_number_is_named(given):
    with pytest.raises(ConfigError, match=r"rl\.reward gave .* for a task solved 1 times in 4 attempts"):
        teacher_reward(lambda solved, attempts: given, 1, 4, True)
