"""Rows to train on: what is dropped, what divides the loss, and the pull to the base."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.errors import ConfigError, Fault
from redqueen.plugins import ESTIMATORS
from redqueen.rl.advantages import Estimator
from redqueen.rl.batch import MIN_ROWS, weigh
from redqueen.rl.kl import penalised
from redqueen.rl.rollout import Rollout
from rl.making import rewarded


def attempts(group, *rewards: float) -> list[Rollout]:
    return [
        rewarded("student", "code_o", group, reward, number=number, length=3, limit=7)
        for number, reward in enumerate(rewards)
    ]


# Four tasks that are solved half the time, and one that always is.
ROLLOUTS = [
    rewarded(
        "student",
        "code_o",
        number // 2,
        -1 if number in (1, 3, 5, 7) else 1,
        number=number,
        length=10 * (number + 1),
        limit=100 if number < 4 else 200,
    )
    for number in range(10)
]


def test_a_row_is_divided_by_the_number_of_all_rollouts_and_its_limit():
    # r - mean is +-1; 10 rollouts: 1 / (10 * 100) and 1 / (10 * 200)
    rows = weigh(ROLLOUTS, ESTIMATORS.get("dr_grpo"), keep_zeros=False)
    assert [row.number for row in rows] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [row.advantage for row in rows] == pytest.approx([0.001, -0.001] * 2 + [0.0005, -0.0005] * 2)
    assert [row.scale for row in rows] == pytest.approx([0.001] * 4 + [0.0005] * 4)


def test_a_row_by_length_is_divided_by_its_own():
    # (r - mean) / (1 + 1e-6); 10 rollouts of 10, 20, ... 80 tokens
    rows = weigh(ROLLOUTS, ESTIMATORS.get("grpo"), keep_zeros=False)
    assert [row.scale for row in rows] == pytest.approx(
        [1 / 100, 1 / 200, 1 / 300, 1 / 400, 0.002, 1 / 600, 1 / 700, 1 / 800]
    )
    assert [row.advantage for row in rows[:2]] == pytest.approx([0.01 / 1.000001, -0.005 / 1.000001])


@pytest.mark.parametrize("name", sorted(ESTIMATORS.names()))
@pytest.mark.parametrize("keep_zeros", [False, True])
def test_the_sum_over_tokens_is_the_loss_that_is_meant(name, keep_zeros):
    rng = Random(name)
    rewards = [rng.choice([1, 1, -0.5]) for _ in range(64)]
    lengths = [rng.randint(1, 50) for _ in rewards]
    limits = [rng.choice([50, 80]) for _ in rewards]
    rollouts = [
        rewarded("student", "code_o", n // 4, rewards[n], number=n, length=lengths[n], limit=limits[n])
        for n in range(64)
    ]
    logprobs = [[-rng.random() for _ in range(length)] for length in lengths]
    method = ESTIMATORS.get(name)

    rows = weigh(rollouts, method, keep_zeros)
    summed = math.fsum(row.advantage * logprob for row in rows for logprob in logprobs[row.number])

    divisors = lengths if name == "grpo" else limits
    each = zip(method.estimate(rollouts), divisors, logprobs, strict=True)
    meant = math.fsum(advantage / divisor * math.fsum(own) for advantage, divisor, own in each) / 64
    assert summed == pytest.approx(meant)
    if name != "trr++":
        assert (len(rows) == 64) == keep_zeros, "some groups agree"


def test_zeros_are_kept_where_a_kl_term_needs_them():
    rows = weigh(ROLLOUTS, ESTIMATORS.get("dr_grpo"), keep_zeros=True)
    assert [row.number for row in rows] == list(range(10))
    assert [(row.advantage, row.scale) for row in rows[8:]] == [(0.0, 1 / 2000)] * 2


@pytest.mark.parametrize("keep_zeros", [False, True])
def test_fewer_than_eight_rows_with_an_advantage_are_no_batch(keep_zeros):
    assert MIN_ROWS == 8
    few = [*attempts(0, 1, 0, 0), *attempts(1, 1, 0, 0, 0), *attempts(2, *[1.0] * 20)]
    method = ESTIMATORS.get("dr_grpo")
    assert weigh(few, method, keep_zeros) == [], "seven say something"
    enough = [*few, *attempts(1, 0)]
    assert len(weigh(enough, method, keep_zeros)) == (28 if keep_zeros else 8)


def test_no_rollouts_are_no_batch():
    for method in ESTIMATORS.all().values():
        assert weigh([], method, keep_zeros=True) == []


@pytest.mark.parametrize(("length", "limit"), [(0, 9), (10, 9)])
def test_a_length_that_cannot_be_is_a_fault(length, limit):
    with pytest.raises(Fault, match="tokens where 1 to"):
        rollout = rewarded("student", "code_o", 0, 1.0, length=length, limit=limit)
        weigh([rollout], ESTIMATORS.get("grpo"), keep_zeros=False)


@pytest.mark.parametrize(
    ("advantages", "told"),
    [
        ([1.0], "gave 1 advantages for 2 rollouts"),
        ([1.0, math.nan], "gave nan for a student's text of reward -1.0"),
        ([1.0, None], "gave None for a student's text of reward -1.0"),
        (None, "gave NoneType; mend it: it must give a list of numbers"),
        (iter([1.0, 2.0]), "gave list_iterator; mend it"),
    ],
)
def test_an_estimator_that_gives_too_few_or_no_numbers_is_told(advantages, told):
    with pytest.raises(ConfigError, match=told):
        weigh(attempts(0, 1.0, -1.0), Estimator(lambda rollouts: advantages), keep_zeros=False)


def test_what_is_weighed_stays_as_it_was():
    before = list(ROLLOUTS)
    rows = weigh(ROLLOUTS, ESTIMATORS.get("dr_grpo"), keep_zeros=True)
    assert before == ROLLOUTS
    assert [replace(row, advantage=0.0, scale=0.0) for row in rows] == ROLLOUTS


@given(st.lists(st.sampled_from([0.0, 0.5, -1.0]), max_size=30), st.booleans(), st.booleans())
def test_rows_are_in_order_and_are_either_all_or_those_that_say_something(advantages, by_length, keep_zeros):
    method = Estimator(lambda rollouts: advantages, by_length=by_length)
    count = len(advantages)
    rows = weigh(attempts(0, *advantages), method, keep_zeros)
    telling = [index for index, advantage in enumerate(advantages) if advantage]
    wanted = [] if len(telling) < MIN_ROWS else list(range(count)) if keep_zeros else telling
    assert [row.number for row in rows] == wanted
    assert all(row.advantage == advantages[row.number] * row.scale for row in rows)


def test_a_token_pays_for_what_it_is_likelier_than_under_the_base():
    # 0.002 - 0.1 * 0.01 * (-1 + 3) = 0; 0.002 - 0.001 * 0 = 0.002; 0.002 - 0.001 * (-2 + 1) = 0.003
    assert penalised(0.002, (-1.0, -0.5, -2.0), (-3.0, -0.5, -1.0), beta=0.1, scale=0.01) == pytest.approx(
        (0.0, 0.002, 0.003), abs=1e-15
    )


def test_without_a_price_every_token_has_the_rows_advantage():
    assert penalised(-0.25, (-1.0, -2.0), (-5.0, -0.1), beta=0.0, scale=0.01) == (-0.25, -0.25)


def test_log_probabilities_of_other_tokens_are_refused():
    with pytest.raises(ValueError, match="zip"):
        penalised(0.0, (-1.0, -2.0), (-5.0,), beta=0.1, scale=1.0)


def test_the_pull_is_the_gradient_of_the_next_tokens_kl():
    logits, base = [0.3, -1.0, 0.8], [1.0, 0.2, -0.5]

    def logprobs(values: list[float]) -> list[float]:
        total = math.log(sum(map(math.exp, values)))
        return [value - total for value in values]

    def kl(values: list[float]) -> float:
        own = logprobs(values)
        return sum(math.exp(p) * (p - q) for p, q in zip(own, logprobs(base), strict=True))

    own = logprobs(logits)
    paid = penalised(0.0, own, logprobs(base), beta=0.5, scale=0.25)
    for j in range(3):
        # The mean over the token i that is drawn, of its advantage times d log p_i / d logit_j.
        pull = sum(math.exp(own[i]) * paid[i] * ((i == j) - math.exp(own[j])) for i in range(3))
        step = [1e-5 * (i == j) for i in range(3)]
        up, down = ([x + sign * d for x, d in zip(logits, step, strict=True)] for sign in (1, -1))
        assert pull == pytest.approx(-0.5 * 0.25 * (kl(up) - kl(down)) / 2e-5, rel=1e-6)
