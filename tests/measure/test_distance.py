"""Distances agree with what the written-out updates and the base's own divergences say, and a size is a size."""

import asyncio
from dataclasses import replace

import pytest
import torch
from engine import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redqueen.analysis.distance import (
    Probe,
    effective_size,
    first_alike,
    function_distances,
    mean_distance,
    pairs,
    probes,
    weight_cosines,
    weight_distances,
)
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, ScoreRequest
from redqueen.errors import InputError

SHAPES = {"q": (5, 7), "down": (9, 4)}
seeds = st.integers(0, 10_000)


def member(seed: int, rank: int = 3, alpha: float = 6.0, shapes=SHAPES) -> MemberState:
    numbers = torch.Generator().manual_seed(seed)
    factors = {
        name: (torch.randn(rank, inputs, generator=numbers), torch.randn(outputs, rank, generator=numbers))
        for name, (outputs, inputs) in shapes.items()
    }
    return MemberState(rank, alpha, factors)


def scaled(state: MemberState, by: float) -> MemberState:
    return replace(state, factors={name: (a, by * b) for name, (a, b) in state.factors.items()})


def whole(state: MemberState) -> Tensor:
    """The update, written out."""
    scale = state.alpha / state.rank
    return torch.cat([(scale * b.double() @ a.double()).flatten() for a, b in state.factors.values()])


# Weights


@given(seeds, st.lists(st.tuples(st.integers(1, 6), st.floats(0.5, 64)), min_size=1, max_size=5))
@settings(max_examples=50)
def test_cosines_are_those_of_the_written_out_updates_whatever_the_ranks(seed, forms):
    states = [member(seed + index, rank, alpha) for index, (rank, alpha) in enumerate(forms)]
    unit = torch.stack([whole(state) / whole(state).norm() for state in states])
    torch.testing.assert_close(weight_cosines(states), unit @ unit.T, rtol=0, atol=1e-12)


def test_a_member_is_at_no_distance_from_itself_however_it_is_factored_or_scaled():
    mine = member(1)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64))[0]
    factors = {name: (turn @ a.double(), b.double() @ turn.T) for name, (a, b) in mine.factors.items()}
    other = MemberState(3, 6.0, factors)
    distance = weight_distances(weight_cosines([mine, other, scaled(mine, 1e-3), scaled(mine, -1.0)]))
    assert distance[0].tolist() == pytest.approx([0, 0, 0, 2], abs=1e-7)


def test_members_that_change_nothing_are_equal_to_each_other_and_unrelated_to_the_rest():
    silent, other = scaled(member(1), 0.0), scaled(member(2), 0.0)
    assert weight_cosines([silent, member(3), other]).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


def test_factors_that_cancel_each_other_change_nothing():
    """As after arithmetic in float32: what is left of the update is rounding, and has no direction."""
    mine = member(1, 2)
    a, b = mine.factors["q"]
    a, b = torch.cat([a, a.nextafter(torch.tensor(9.0))]), torch.cat([b, -b], 1)
    assert float((b @ a).norm()) > 0
    cancelled = MemberState(4, 6.0, {"q": (a, b)})
    other = member(3, shapes={"q": SHAPES["q"]})
    assert weight_cosines([cancelled, other, scaled(other, 0.0)])[0].tolist() == [1, 0, 1]


def test_a_small_update_still_has_a_direction():
    mine = member(1)
    assert float(weight_cosines([mine, scaled(mine, 1e-15)])[0, 1]) == pytest.approx(1)
    factors = {name: (torch.cat([a, 1.0001 * a]), torch.cat([b, -b], 1)) for name, (a, b) in mine.factors.items()}
    assert float(weight_cosines([mine, MemberState(6, 6.0, factors)])[0, 1]) == pytest.approx(-1, abs=1e-5)


def test_a_fresh_population_is_one_member():
    with tiny.engine("llama", members=0) as opened:
        cosines = weight_cosines([opened.fresh()] * 3)
    assert effective_size(cosines) == pytest.approx(1)
    assert mean_distance(weight_distances(cosines)) == 0


@pytest.mark.parametrize(
    ("shapes", "told"),
    [({"q": (5, 7)}, "only one of them adapts down"), ({"q": (5, 7), "down": (9, 5)}, r"down is \(9, 4\) for one")],
)
def test_members_of_different_modules_are_not_compared(shapes, told):
    with pytest.raises(InputError, match=told):
        weight_cosines([member(1), member(2, shapes=shapes)])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_cosines_are_the_same_on_a_gpu():
    states = [member(seed) for seed in range(4)]
    torch.testing.assert_close(weight_cosines(states, "cuda"), weight_cosines(states))


# What they say


def test_probes_are_the_bare_bases_own_and_come_from_their_key():
    prompts = [(5, 17, 80), (3, 44)]
    with tiny.engine("llama") as opened:
        found = asyncio.run(probes(opened, prompts, 1, 6))
        again, other = (asyncio.run(probes(opened, prompts, key, 6)) for key in (1, 2))
        alone = asyncio.run(probes(opened, prompts[:1], 1, 6))
    assert [probe.prompt for probe in found] == prompts
    assert [len(probe.completion) for probe in found] == [6, 6]
    assert found == again
    assert found != other
    assert alone == found[:1]


def test_function_distance_is_half_the_mean_squared_difference_of_log_probabilities():
    on = [Probe((5, 17, 80), (3, 9)), Probe((44,), (61, 2, 30))]
    with tiny.engine("llama") as opened:
        found = asyncio.run(function_distances(opened, ["m0", None, "m2"], on))
        scores = tiny.score(
            opened,
            [ScoreRequest(prompt=p.prompt, completion=p.completion, member=m) for m in ("m0", None, "m2") for p in on],
        )
    logprobs = [[*scores[i].logprobs, *scores[i + 1].logprobs] for i in (0, 2, 4)]
    for i, mine in enumerate(logprobs):
        for j, other in enumerate(logprobs):
            expected = sum((a - b) ** 2 for a, b in zip(mine, other, strict=True)) / 2 / 5
            assert float(found[i, j]) == pytest.approx(expected)
    assert float(found[0, 2]) > 0


def test_near_the_base_function_distance_is_the_divergence():
    """That is, the KL divergence over the whole vocabulary, as far as some hundred tokens a prompt can tell."""
    prompts = [(first, 2 * first) for first in range(8)]
    with tiny.engine("llama", torch.float64, members=2) as opened:
        for name in ("m0", "m1"):
            opened.write(name, scaled(opened.read(name), 0.05))
        found = asyncio.run(function_distances(opened, ["m0", "m1"], asyncio.run(probes(opened, prompts * 200, 0, 1))))
        logprob_M_V, other_M_V = (all_logprobs(opened, name, prompts) for name in ("m0", "m1"))
    divergence = float((logprob_M_V.exp() * (logprob_M_V - other_M_V)).sum(1).mean())
    assert divergence > 1e-4
    assert float(found[0, 1]) == pytest.approx(divergence, rel=0.15)


def all_logprobs(opened: LocalEngine, name: str, prompts: list[tuple[int, ...]]) -> Tensor:
    requests = [
        ScoreRequest(prompt=prompt, completion=(token,), member=name)
        for prompt in prompts
        for token in range(tiny.VOCABULARY)
    ]
    scores = tiny.score(opened, requests)
    return torch.tensor([score.logprobs[0] for score in scores]).view(len(prompts), -1)


def test_no_text_is_no_comparison():
    with tiny.engine("llama", members=1) as opened, pytest.raises(InputError, match="at least one probe"):
        asyncio.run(function_distances(opened, ["m0"], []))


# How many they count for


def cosines(seed: int, count: int, width: int) -> Tensor:
    vectors = torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return unit @ unit.T


similarities = st.builds(cosines, seeds, st.integers(1, 8), st.integers(1, 8))


@given(similarities)
def test_the_effective_size_is_between_one_and_the_number_of_members(similarity):
    assert 1 <= effective_size(similarity) <= len(similarity)


@given(similarities, st.randoms())
def test_the_order_of_members_does_not_matter(similarity, random):
    order = list(range(len(similarity)))
    random.shuffle(order)
    assert effective_size(similarity[order][:, order]) == pytest.approx(effective_size(similarity))


@given(similarities, st.integers(2, 3))
def test_copies_of_everybody_count_for_nothing(similarity, times):
    repeated = similarity.repeat(times, times)
    assert effective_size(repeated) == pytest.approx(effective_size(similarity))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_unrelated_families_count_by_their_shares(families):
    """As the exponential of the entropy of the shares, and so never for more than there are families."""
    family = torch.tensor(families)
    size = effective_size((family.unsqueeze(1) == family).double())
    shares = torch.tensor([families.count(each) / len(families) for each in set(families)], dtype=torch.float64)
    assert size == pytest.approx(float((-(shares * shares.log()).sum()).exp()))
    assert size <= len(set(families)) + 1e-9


def test_two_members_count_for_more_the_less_they_are_alike():
    sizes = [
        effective_size(torch.tensor([[1, cosine], [cosine, 1]], dtype=torch.float64)) for cosine in (1, 0.9, 0.5, 0)
    ]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1, pytest.approx(2))


def test_the_mean_distance_leaves_out_a_members_distance_to_itself():
    assert mean_distance(torch.tensor([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]])) == 2
    assert mean_distance(torch.zeros(1, 1)) == 0


def test_pairs_have_every_order():
    found = pairs(["a", "b"], torch.tensor([[0.0, 0.5], [0.5, 0.0]]))
    assert found == {("a", "a"): 0, ("a", "b"): 0.5, ("b", "a"): 0.5, ("b", "b"): 0}


def test_members_with_the_same_weights_are_known_by_the_first_of_them():
    def member(value: float, rank: int = 1, module: str = "m") -> MemberState:
        return MemberState(rank=rank, alpha=2.0, factors={module: (torch.ones(1, 2), torch.full((2, 1), value))})

    states = {"a": member(1.0), "b": member(2.0), "c": member(1.0), "d": member(1.0, module="n"), "e": member(2.0)}
    assert first_alike(states) == {"a": "a", "b": "b", "c": "a", "d": "d", "e": "b"}
    assert first_alike({}) == {}
