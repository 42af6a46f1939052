"""Advantage estimators: numbers worked out by hand, and what holds for all of them."""

import math
import subprocess
import sys
from collections import defaultdict
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redqueen.errors import Fault
from redqueen.plugins import ESTIMATORS
from redqueen.rl.advantages.groups import FLOOR
from redqueen.rl.advantages.reinforce_pp import CLIP
from redqueen.rl.batch import weigh
from redqueen.rl.rollout import Rollout
from rl.making import rewarded

EVERY = sorted(ESTIMATORS.names())
PER_PROMPT = [name for name in EVERY if name != "trr++"]
"""A prompt whose sequences, two or more, all have the same reward gives zeros."""


def attempts(group, *rewards: float, kind: str = "code_o") -> list[Rollout]:
    return [rewarded("student", kind, group, reward) for reward in rewards]


def proposals(group, *rewards: float, kind: str = "code_o") -> list[Rollout]:
    return [rewarded("teacher", kind, group, reward) for reward in rewards]


def estimated(name: str, sequences: list[Rollout]) -> list[float]:
    return ESTIMATORS.get(name).estimate(sequences)


def close(*values: float):
    return pytest.approx(list(values), rel=1e-12, abs=1e-15)


# Two tasks of a student, four attempts each: one solved once in four, one always.
TWO_TASKS = [*attempts("a", 1, -0.5, -0.5, -1), *attempts("b", 1, 1, 1, 1)]


def test_reinforce_pp_centres_by_prompt_and_divides_by_the_deviation_over_all_sequences():
    # a: mean -1/4, centred 5/4 -1/4 -1/4 -3/4; b: 0 0 0 0
    # squares 25/16 + 1/16 + 1/16 + 9/16 = 36/16 over all 8 sequences: variance 9/32, std 0.5303300858899106
    # 1.25 / 0.5303300858899106 = 2.357022603955158, the others are -1/5 and -3/5 of it
    assert estimated("reinforce++", TWO_TASKS) == close(
        2.357022603955158, -0.4714045207910317, -0.4714045207910317, -1.414213562373095, 0, 0, 0, 0
    )


def test_reinforce_pp_divides_by_no_less_than_a_tenth():
    # mean 0.52, centred +-0.02, std 0.02 < 0.1: +-0.2
    assert estimated("reinforce++", proposals("p", 0.5, 0.54)) == close(-0.2, 0.2)


def test_reinforce_pp_clips_at_five():
    # a: mean 0.5, centred +-0.5; 98 more that agree. variance 0.5 / 100 = 0.005, std 0.0707 < 0.1: +-0.5 / 0.1 = +-5
    assert estimated("reinforce++", [*attempts("a", 1, 0), *attempts("b", *[1.0] * 98)])[:2] == close(5, -5)
    # mean 0.75, centred 0.75 -0.75; std sqrt(1.125 / 100) = 0.10607: +-7.07, clipped
    assert estimated("reinforce++", [*attempts("a", 1.5, 0), *attempts("b", *[1.0] * 98)])[:2] == [5, -5]


def test_reinforce_pp_compares_prompts_that_were_sampled_once_within_their_role_and_kind():
    sequences = [
        *proposals(0, 1),
        *proposals(1, 0),
        *proposals(2, 0.5, kind="code_i"),
        *attempts(0, -0.5),
        *attempts(1, -0.5),
        *proposals(3, 0, 0.5),
    ]
    # (teacher, code_o) once: mean 1/2, +-1/2; (teacher, code_i) once: alone, 0; (student, code_o) once: agree, 0
    # the prompt that was sampled twice keeps its own mean 1/4, +-1/4
    # squares 1/4 + 1/4 + 1/16 + 1/16 = 5/8 over 7: std sqrt(5/56) = 0.2988071523335984
    # 0.5 / 0.2988... = 1.6733200530681511
    half = 1.6733200530681511
    assert estimated("reinforce++", sequences) == close(half, -half, 0, 0, 0, -half / 2, half / 2)


def test_trr_pp_whitens_within_a_role_and_kind_whatever_the_prompt():
    sequences = [*TWO_TASKS, *attempts("c", 1, -1, kind="code_i"), *proposals("p", 0.5, 0.25)]
    # student code_o: sum 3, mean 3/8; centred 5/8, -7/8, -7/8, -11/8, 5/8 x 4
    # squares (5 * 25 + 2 * 49 + 121) / 64 = 344/64; / 8 = 43/64: std 0.81967981553775
    # 0.625 / 0.81967... = 0.7624928516630234, -0.875 / ... = -1.0674899923282328, -1.375 / ... = -1.6774842736586514
    # student code_i: mean 0, std 1; teacher code_o: mean 0.375, centred +-0.125, std 0.125: +-1
    up, down, lowest = 0.7624928516630234, -1.0674899923282328, -1.6774842736586514
    assert estimated("trr++", sequences) == close(up, down, down, lowest, up, up, up, up, 1, -1, 1, -1)


def test_trr_pp_divides_by_no_less_than_a_tenth():
    # mean 0.52, std 0.02 < 0.1
    assert estimated("trr++", [*proposals("p", 0.5), *proposals("q", 0.54)]) == close(-0.2, 0.2)


def test_grpo_whitens_within_a_prompt():
    # a: mean 0, std sqrt((1 + 1/4 + 1/4 + 0) / 4) = sqrt(3/8) = 0.6123724356957945, + 1e-6 = 0.6123734356957945
    # 1 / 0.61237... = 1.63299049519314, -0.5 / ... = -0.81649524759657
    # c: mean 1/2, std 1/2, + 1e-6: +-0.5 / 0.500001 = +-0.999998000004
    sequences = [*attempts("a", 1, -0.5, -0.5, 0), *attempts("b", 1, 1, 1), *proposals("c", 0, 1)]
    assert estimated("grpo", sequences) == close(
        1.63299049519314, -0.81649524759657, -0.81649524759657, 0, 0, 0, 0, -0.999998000004, 0.999998000004
    )


def test_rloo_takes_the_mean_of_the_others():
    # a: 1 - (-0.5 - 0.5 - 1) / 3 = 5/3; -0.5 - (1 - 0.5 - 1) / 3 = -1/3 twice; -1 - (1 - 0.5 - 0.5) / 3 = -1
    assert estimated("rloo", [*TWO_TASKS, *proposals("p", 1)]) == close(5 / 3, -1 / 3, -1 / 3, -1, 0, 0, 0, 0, 0)


def test_dr_grpo_takes_the_mean_and_nothing_else():
    # a: mean -1/4
    assert estimated("dr_grpo", [*TWO_TASKS, *proposals("p", 1)]) == close(1.25, -0.25, -0.25, -0.75, 0, 0, 0, 0, 0)


def test_groups_of_the_same_name_in_another_role_or_kind_are_other_groups():
    apart = [*attempts(0, 1, 0), *proposals(0, 0.5, 0.25), *attempts(0, -1, -0.5, kind="code_i")]
    named = [*attempts(0, 1, 0), *proposals(1, 0.5, 0.25), *attempts(2, -1, -0.5, kind="code_i")]
    for name in EVERY:
        assert estimated(name, apart) == estimated(name, named)


def test_only_grpo_divides_by_length():
    assert [name for name in EVERY if ESTIMATORS.get(name).by_length] == ["grpo"]
    assert set(EVERY) - set(PER_PROMPT) == {"trr++"}


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_a_fault(reward):
    with pytest.raises(Fault, match="student's reward is"):
        weigh(attempts(0, reward), ESTIMATORS.get("grpo"), keep_zeros=False)


def test_nothing_gives_nothing():
    assert all(estimated(name, []) == [] for name in EVERY)


def test_advantages_and_batches_come_without_torch():
    modules = "redqueen.rl.rewards, redqueen.rl.advantages, redqueen.rl.batch, redqueen.rl.kl"
    subprocess.run([sys.executable, "-c", f"import sys, {modules}; assert 'torch' not in sys.modules"], check=True)


rewards = st.one_of(st.sampled_from([1.0, -0.5, -1.0, 0.0, 0.1, 0.7, 1 / 3]), st.floats(-1e6, 1e6))
members = st.lists(
    st.builds(
        rewarded,
        st.sampled_from(["teacher", "student"]),
        st.sampled_from(["code_o", "code_i"]),
        st.integers(0, 3),
        rewards,
    ),
    max_size=40,
)
estimators = st.sampled_from(EVERY)
per_prompt = st.sampled_from(PER_PROMPT)


@given(estimators, members)
@example("grpo", attempts(0, 1.0, 1.0 + 2**-52))
@example("grpo", attempts(0, 5e-324, 0.0))
def test_every_sequence_gets_one_finite_advantage(name, sequences):
    advantages = estimated(name, sequences)
    assert len(advantages) == len(sequences)
    assert all(math.isfinite(advantage) for advantage in advantages)


@given(estimators, members, st.randoms(use_true_random=False))
def test_the_order_of_the_sequences_changes_nothing(name, sequences, rng: Random):
    order = rng.sample(range(len(sequences)), len(sequences))
    advantages = estimated(name, sequences)
    assert estimated(name, [sequences[i] for i in order]) == [advantages[i] for i in order]


@given(per_prompt, members, rewards, st.integers(2, 50))
def test_a_prompt_whose_sequences_agree_gives_exact_zeros(name, others, reward, count):
    advantages = estimated(name, [*others, *attempts("agree", *[reward] * count)])
    assert advantages[len(others) :] == [0.0] * count


@given(estimators, rewards, st.integers(1, 60))
@example("trr++", 1 / 49, 49)
@example("reinforce++", 0.1, 3)
def test_a_member_whose_rewards_all_agree_gets_exact_zeros(name, reward, count):
    assert estimated(name, [one for group in range(count) for one in attempts(group // 2, reward)]) == [0.0] * count


@given(per_prompt, members, st.dictionaries(st.integers(0, 3), st.integers(-8, 8)))
def test_a_prompt_that_pays_everybody_more_changes_nothing(name, sequences, shifts):
    # Each prompt twice over, so that none is sampled once; in eighths, so that shifting rounds nothing.
    def paid(shift) -> list[Rollout]:
        return [
            rewarded(one.role, one.kind, one.group, round(one.reward % 4 * 8) / 8 * sign + shift.get(one.group, 0))
            for one in sequences
            for sign in (1, -1)
        ]

    assert estimated(name, paid(shifts)) == pytest.approx(estimated(name, paid({})), rel=1e-9, abs=1e-9)


@given(estimators, members)
def test_of_two_sequences_of_a_prompt_the_better_paid_never_gets_less(name, sequences):
    advantages = estimated(name, sequences)
    groups = defaultdict(list)
    for one, advantage in zip(sequences, advantages, strict=True):
        groups[one.role, one.kind, one.group].append((one.reward, advantage))
    for group in groups.values():
        ranked = [advantage for _, advantage in sorted(group)]
        assert ranked == sorted(ranked)


@given(st.sampled_from(["rloo", "dr_grpo", "grpo"]), members)
def test_advantages_sum_to_zero_over_a_prompt(name, sequences):
    advantages = estimated(name, sequences)
    groups = defaultdict(list)
    for one, advantage in zip(sequences, advantages, strict=True):
        groups[one.role, one.kind, one.group].append(advantage)
    assert all(math.fsum(group) == pytest.approx(0, abs=1e-6) for group in groups.values())


@given(members)
def test_reinforce_pp_stays_within_its_clip(sequences):
    assert all(abs(advantage) <= CLIP for advantage in estimated("reinforce++", sequences))


@given(members)
def test_reinforce_pp_has_unit_variance_where_neither_floor_nor_clip_bind(sequences):
    twice = [*sequences, *sequences]
    differences = estimated("dr_grpo", twice)
    spread = math.sqrt(math.fsum(each**2 for each in differences) / max(len(twice), 1))
    advantages = estimated("reinforce++", twice)
    if spread > FLOOR and max(map(abs, differences)) < CLIP * spread:
        assert math.fsum(each**2 for each in advantages) / len(twice) == pytest.approx(1)
    else:
        assert advantages == pytest.approx(
            [max(-CLIP, min(CLIP, each / max(spread, FLOOR))) for each in differences], rel=1e-9, abs=1e-12
        )
