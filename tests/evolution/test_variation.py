"""Every operator keeps the promises of all operators, and each its own."""

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from engine import tiny
from torch import Tensor

from evolution import families
from evolution.families import DEVICES, SMALL, WIDE, deltas, distance, member, sibling, silenced, trained
from redqueen.engine import peft
from redqueen.engine.protocol import MemberState, Recipe, Trajectory
from redqueen.errors import ConfigError, Fault, InputError
from redqueen.evolution import variation
from redqueen.evolution.variation import Draws, Kind, Operator, Use, child, find, portrait
from redqueen.evolution.variation.adapter import stacked, unstacked
from redqueen.evolution.variation.dare import sparse
from redqueen.evolution.variation.della import pruned
from redqueen.evolution.variation.lowrank import inner
from redqueen.evolution.variation.slerp import _weights
from redqueen.plugins import OPERATORS

CPU = torch.device("cpu")
SURE = {"copy_parent", "linear_0_5", "mean", "slerp", "fisher", "ties"}
"""Operators that draw nothing on slots as small as these."""
CROSSOVERS = [name for name, operator in OPERATORS.all().items() if operator.kind is Kind.CROSSOVER]
ROUNDING = 1e-5

every_operator = pytest.mark.parametrize("name", OPERATORS.names())
every_device = pytest.mark.parametrize("device", DEVICES)


def couple(shapes: families.Shapes = SMALL, rank: int = 4, *, seed: int = 0) -> list[MemberState]:
    """Two unrelated parents that were trained."""
    return [
        trained(member(shapes, rank, seed=2 * seed), seed=seed),
        trained(member(shapes, rank, seed=2 * seed + 1), seed=seed + 1),
    ]


def breed(
    name: str, parents: Sequence[MemberState], *, seed: int = 0, device: str = "cpu", **values: float
) -> MemberState:
    operator = OPERATORS.get(name).given(values) if values else OPERATORS.get(name)
    return child(operator, parents[: operator.parents or 2], seed=seed, device=torch.device(device))


def tensors(state: MemberState) -> list[Tensor]:
    found = [half for name in sorted(state.factors) for half in state.factors[name]]
    if state.optimiser is not None:
        found += [half for name in sorted(state.factors) for half in state.optimiser.exp_avg_sq[name]]
    return found


def equal(one: MemberState, other: MemberState) -> bool:
    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


# What all operators promise.


@every_operator
@every_device
@pytest.mark.parametrize("rank", [1, 4])
def test_a_child_is_of_its_parents_shape_and_starts_with_a_fresh_optimiser(name, device, rank):
    parents = couple(rank=rank)
    made = breed(name, parents, device=device)
    assert (made.rank, made.alpha, made.optimiser) == (rank, 2.0 * rank, None)
    assert made.factors.keys() == parents[0].factors.keys()
    for slot, pair in made.factors.items():
        for mine, theirs in zip(pair, parents[0].factors[slot], strict=True):
            assert (mine.shape, mine.dtype, mine.device) == (theirs.shape, torch.float32, CPU)
            assert mine.isfinite().all()


@every_operator
@every_device
def test_parents_are_untouched_and_share_nothing_with_the_child(name, device):
    parents, before = couple(), couple()
    made = breed(name, parents, device=device)
    for half in tensors(made):
        half.fill_(7.0)
    assert all(equal(parent, copy) for parent, copy in zip(parents, before, strict=True))


@every_operator
@every_device
def test_an_operator_changes_no_tensor_that_it_is_given(name, device):
    on = torch.device(device)
    parents = couple()[: OPERATORS.get(name).parents or 2]
    given, before = stacked(parents, on), stacked(parents, on)
    OPERATORS.get(name)(given, Draws(0, on))
    for mine, theirs in zip(given, before, strict=True):
        for one, other in zip(mine.stacks, theirs.stacks, strict=True):
            assert torch.equal(one.a_S_R_I, other.a_S_R_I)
            assert torch.equal(one.b_S_O_R, other.b_S_O_R)


def test_a_member_made_of_an_adapter_shares_nothing_with_it():
    [adapter] = stacked([member()], CPU)
    for half in tensors(unstacked(adapter)):
        half.fill_(7.0)
    assert equal(unstacked(adapter), member())


@every_operator
@every_device
def test_the_same_seed_gives_the_same_child_and_another_seed_another(name, device):
    parents = couple()
    made = breed(name, parents, seed=5, device=device)
    assert equal(made, breed(name, parents, seed=5, device=device))
    others = [breed(name, parents, seed=seed, device=device) for seed in range(6, 10)]
    # An operator that draws one small number may draw it twice.
    assert any(not equal(made, other) for other in others) == (name not in SURE)


@every_operator
def test_seeds_of_64_bits_are_told_apart(name):
    parents = couple()
    made = [breed(name, parents, seed=seed) for seed in (2**64 - 1, 2**63 - 1, 2**32 - 1, 1)]
    assert any(not equal(made[0], other) for other in made[1:]) == (name not in SURE)


def _scaled(state: MemberState, a: Tensor, b: Tensor) -> MemberState:
    return replace(state, factors={name: (x * a[:, None], y * b) for name, (x, y) in state.factors.items()})


def _hard_parents(rank: int) -> dict[str, list[MemberState]]:
    one, other = (replace(each, optimiser=None) for each in couple(rank=rank))
    steep = torch.logspace(0, -30, rank)
    twins = {name: (a[:1].expand(rank, -1) + 1e-6 * a, b) for name, (a, b) in one.factors.items()}
    return {
        "both say nothing": [silenced(one), silenced(other)],
        "the first says nothing": [silenced(one), other],
        "the second says nothing": [one, silenced(other)],
        "one slot says nothing": [silenced(one, ["layer0"]), silenced(other, ["layer0", "layer3"])],
        "steep": [_scaled(one, steep**0, steep), _scaled(other, steep.flip(0) ** 0.5, steep)],
        "almost parallel rows": [replace(one, factors=twins), other],
        "huge beside tiny": [_scaled(one, steep**0, 1e12 * steep**0), _scaled(other, steep**0, 1e-12 * steep**0)],
        "the same": [one, one],
        "opposite": [one, _scaled(one, steep**0, -(steep**0))],
        "one is trained": [trained(one), other],
    }


@every_operator
@every_device
@pytest.mark.parametrize("rank", [1, 4])
@pytest.mark.parametrize("case", _hard_parents(2))
def test_a_child_of_difficult_parents_is_finite_and_can_learn(name, device, rank, case):
    parents = _hard_parents(rank)[case]
    made = breed(name, parents, device=device)
    for slot, (a_R_I, b_O_R) in made.factors.items():
        assert a_R_I.isfinite().all(), slot
        assert b_O_R.isfinite().all(), slot
        # Through a row of A that is not zero, B gets a gradient; through a column of B, A does.
        assert (a_R_I.norm(dim=1) + b_O_R.norm(dim=0) > 0).all(), slot
    if case == "both say nothing":
        assert all(not delta.any() for delta in deltas(made).values())


@every_operator
@every_device
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (1, 5), (5, 1), (2, 2)])
def test_a_rank_above_a_slots_sides_is_as_good_as_any(name, device, shape):
    parents = couple([shape] * 3, rank=8)
    made = breed(name, parents, device=device)
    for a_R_I, b_O_R in made.factors.values():
        assert (a_R_I.shape, b_O_R.shape) == ((8, shape[1]), (shape[0], 8))
        assert (a_R_I.norm(dim=1) + b_O_R.norm(dim=0) > 0).all()
        assert (b_O_R @ a_R_I).any()


CASES = [
    (shapes, rank, cosine, flat)
    for shapes, rank in ((SMALL, 4), (SMALL, 16), (WIDE, 8), (WIDE, 32))
    for cosine, flat in ((None, False), (None, True), (0.0, False), (0.5, True), (0.9, False))
]


@every_operator
@every_device
def test_norm_and_cosines_lie_in_the_range_that_is_documented(name, device):
    operator = OPERATORS.get(name)
    for seed, (shapes, rank, cosine, flat) in enumerate(CASES):
        one = member(shapes, rank, seed=seed, flat=flat)
        other = (
            member(shapes, rank, seed=1000 + seed, flat=flat)
            if cosine is None
            else sibling(one, cosine, seed=2000 + seed)
        )
        parents = [one, other][: operator.parents or 2]
        norm, cosines = portrait(breed(name, parents, seed=seed, device=device), parents)
        for value, (least, most) in ((norm, operator.norm), *((each, operator.cosine) for each in cosines)):
            assert least - ROUNDING <= value <= most + ROUNDING, (rank, cosine, flat, norm, cosines)


@every_operator
def test_a_child_can_be_saved_and_read_back(name, tmp_path):
    made = breed(name, couple())
    peft.save(made, tmp_path / "child", base_name="tiny", modules=list(made.factors))
    assert equal(made, peft.load(tmp_path / "child"))


# A child goes on learning.


def _lesson(members: Sequence[str], seed: int) -> list[Trajectory]:
    random = Random(seed)
    return [
        Trajectory(
            member=each,
            prompt=tiny.tokens(random, 6),
            completion=tiny.tokens(random, 8),
            logprobs=(-math.log(tiny.VOCABULARY),) * 8,
            advantages=advantage,
        )
        for each in members
        for advantage in (1.0, -0.7, 0.4)
    ]


def test_after_one_update_every_component_of_every_child_has_a_gradient():
    # Without inertia, the optimiser's first moments are the last gradient.
    recipe = Recipe(lr=1e-3, betas=(0.0, 0.999))
    with tiny.engine("llama", members=2) as opened:
        one, other = opened.read("m0"), opened.read("m1")
        quiet = [name for name in one.factors if "q_proj" in name or "down_proj" in name]
        couples = {
            "": [one, other],
            "fresh": [opened.fresh(), opened.fresh()],
            "half": [silenced(one, quiet), silenced(other, quiet)],
            "mixed": [silenced(one, quiet), other],
        }
        for case, parents in couples.items():
            for name in OPERATORS.names():
                opened.write(f"{name} {case}", breed(name, parents, seed=3))
        for name, seed in (("component_mask", 1), ("rank_perturbation", 2)):
            twice = breed(name, [breed(name, [one], seed=seed)], seed=seed + 1)
            opened.write(f"{name} twice", twice)
        children = [each for each in opened.members if each not in ("m0", "m1")]
        for step in (1, 2):
            tiny.update(opened, _lesson(children, step), recipe)
            for each in children:
                state = opened.read(each, optimiser=True).optimiser
                assert state is not None
                for slot, (a_R_I, b_O_R) in state.exp_avg.items():
                    if step == 1:
                        assert (a_R_I.norm(dim=1) + b_O_R.norm(dim=0) > 0).all(), (each, slot)
                    else:
                        assert (a_R_I.norm(dim=1) > 0).all(), (each, slot)
                        assert (b_O_R.norm(dim=0) > 0).all(), (each, slot)


# What each operator promises.


@every_device
@pytest.mark.parametrize(("shapes", "rank"), [(SMALL, 4), (WIDE, 16), (SMALL, 1), ([(4, 6), (6, 4), (3, 3)], 8)])
def test_spectral_keeps_the_norm_of_every_slot(device, shapes, rank):
    parent = member(shapes, rank, norm=0.37)
    masked = breed("component_mask", [parent])
    for before in (parent, masked):
        made = breed("spectral", [before], device=device)
        old, new = deltas(before), deltas(made)
        for slot in old:
            assert float(new[slot].norm()) == pytest.approx(float(old[slot].norm()), rel=ROUNDING)
        assert portrait(made, [before])[0] == pytest.approx(1, rel=ROUNDING)


def test_spectral_turns_both_bases_and_changes_the_singular_values():
    u, _, vt = torch.linalg.svd(deltas(member([(64, 48)], 8))["layer0"].float(), full_matrices=False)
    # Far apart, so that the components can be told from each other afterwards.
    parent = MemberState(8, 16.0, {"layer0": (vt[:8], u[:, :8] * 3.0 ** -torch.arange(8))})
    made = breed("spectral", [parent])
    assert 0.02 < distance(made, parent) < 0.3
    old_R, new_R = (torch.linalg.svdvals(deltas(each)["layer0"])[:8] for each in (parent, made))
    spread = float((new_R / old_R).log().std())
    assert 0.02 < spread < 0.3
    turned = [torch.linalg.svd(deltas(each)["layer0"], full_matrices=False) for each in (parent, made)]
    for old, new in ((turned[0].U[:, :8], turned[1].U[:, :8]), (turned[0].Vh[:8].T, turned[1].Vh[:8].T)):
        # Each space stays, its basis does not.
        assert torch.linalg.svdvals(old.T @ new).min() > 1 - 1e-5
        assert 0.5 < float((old * new).sum(0).abs().min()) < 0.9999


def test_spectral_turns_as_far_at_any_rank():
    turns = []
    for rank in (4, 64):
        parent = member([(128, 128)] * 8, rank, flat=True)
        turns.append(portrait(breed("spectral", [parent]), [parent])[1][0])
    assert turns[0] == pytest.approx(turns[1], abs=0.01)


def test_slot_noise_changes_a_third_of_the_slots_and_no_other():
    parent = member(SMALL * 3)
    made = breed("slot_noise", [parent])
    changed = [
        slot
        for slot, pair in made.factors.items()
        if not all(torch.equal(mine, theirs) for mine, theirs in zip(pair, parent.factors[slot], strict=True))
    ]
    assert len(changed) == round(0.33 * len(parent.factors))
    assert all(
        not torch.equal(made.factors[slot][half], parent.factors[slot][half]) for slot in changed for half in (0, 1)
    )


@pytest.mark.parametrize(("name", "sigma"), [("full_noise", 0.15), ("slot_noise", 0.1)])
def test_noise_is_a_share_of_each_factors_spread(name, sigma):
    parent = member([(96, 128)] * 2, 16)
    made = breed(name, [parent], **({"share": 0.99} if name == "slot_noise" else {}))
    for slot, pair in made.factors.items():
        for mine, theirs in zip(pair, parent.factors[slot], strict=True):
            noise = mine - theirs
            assert float(noise.std() / theirs.std()) == pytest.approx(sigma, rel=0.08)
            assert abs(float((noise * theirs).sum() / (noise.norm() * theirs.norm()))) < 0.1


def test_input_noise_is_uniform_and_on_a_alone():
    parent = member([(96, 128)] * 2, 16)
    made = breed("input_noise", [parent])
    for slot, (a_R_I, b_O_R) in made.factors.items():
        before_R_I, same_O_R = parent.factors[slot]
        noise_R_I = a_R_I - before_R_I
        assert torch.equal(b_O_R, same_O_R)
        assert float(noise_R_I.norm() / before_R_I.norm()) == pytest.approx(0.1, rel=0.05)
        bound = math.sqrt(3) * 0.1 * float(before_R_I.square().mean().sqrt())
        assert 0.95 * bound < float(noise_R_I.abs().max()) <= bound * 1.0001


@pytest.mark.parametrize(("rank", "share", "left"), [(8, 0.3, 5), (4, 0.3, 2), (1, 0.3, 1), (4, 0.99, 1)])
def test_component_mask_silences_its_share_and_leaves_the_others_as_they_are(rank, share, left):
    parent = member(SMALL, rank)
    made = breed("component_mask", [parent], share=share)
    for slot, delta_O_I in deltas(made).items():
        kept_N = torch.linalg.svdvals(delta_O_I)
        kept_N = kept_N[kept_N > 1e-5]
        assert len(kept_N) == left
        old_R = torch.linalg.svdvals(deltas(parent)[slot])
        assert ((kept_N[:, None] - old_R).abs().amin(dim=1) < 1e-5).all()


def test_component_mask_leaves_something_where_the_rank_is_above_the_sides():
    parent = member([(2, 5)] * 20, 8)
    assert all(float(delta.norm()) > 0.01 for delta in deltas(breed("component_mask", [parent])).values())


def test_rank_perturbation_keeps_the_largest_components_and_adds_fresh_directions():
    parent = member(SMALL, 8)
    kept = set()
    for seed in range(8):
        made = breed("rank_perturbation", [parent], seed=seed)
        counts = set()
        for slot, (a_R_I, _) in made.factors.items():
            old_R, new_R = (torch.linalg.svdvals(deltas(each)[slot])[:8] for each in (parent, made))
            count = int((new_R > 1e-5).sum())
            counts.add(count)
            assert torch.allclose(new_R[:count], old_R[:count], atol=1e-5)
            inside_R_I = a_R_I / a_R_I.norm(dim=1, keepdim=True)
            assert (inside_R_I[:count] @ inside_R_I[count:].T).abs().max() < 1e-4
            parents_R_I = torch.linalg.qr(parent.factors[slot][0].T).Q.T
            assert (inside_R_I[count:] @ parents_R_I.T).norm(dim=1).max() < 0.95
        assert len(counts) == 1
        kept |= counts
    assert kept <= set(range(1, 8))
    assert len(kept) > 2


def test_extrapolation_at_eta_1_is_the_better_parent():
    parents = couple()
    assert distance(breed("extrapolation", parents, least=1, most=1), parents[0]) < ROUNDING


def test_extrapolation_goes_past_the_better_parent_away_from_the_worse():
    one = member([(6, 6)] * 4, 6)
    other = member([(6, 6)] * 4, 6, seed=1)
    made = breed("extrapolation", [one, other], least=1.25, most=1.25)
    for slot, delta in deltas(made).items():
        right = 1.25 * deltas(one)[slot] - 0.25 * deltas(other)[slot]
        assert (delta - right).norm() < ROUNDING * right.norm()
    norms = [portrait(breed("extrapolation", [one, other], seed=seed), [one, other])[0] for seed in range(20)]
    assert max(norms) - min(norms) > 0.1


@pytest.mark.parametrize(
    "name", ["layer_wise", "svd_subspace", "extrapolation", "linear", "linear_0_5", "slerp", "fisher"]
)
@every_device
def test_a_child_of_two_equal_parents_is_that_parent(name, device):
    parent = couple(WIDE, 8)[0]
    # On a GPU every slot is cut to its rank by an iteration, which is a little less exact than LAPACK's SVD.
    cut = name == "fisher" and device == "cuda"
    assert distance(breed(name, [parent, parent], device=device), parent) < (3 if cut else 1) * ROUNDING


def test_layer_wise_takes_every_slot_whole_from_one_of_both():
    one, other = couple([(8, 6)] * 200)
    made = breed("layer_wise", [one, other])
    first = [torch.equal(made.factors[slot][0], one.factors[slot][0]) for slot in made.factors]
    for from_one, (slot, pair) in zip(first, made.factors.items(), strict=True):
        source = (one if from_one else other).factors[slot]
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(pair, source, strict=True))
    assert 70 < sum(first) < 130


def test_svd_subspace_takes_the_largest_of_the_better_parent_and_the_smaller_of_the_other():
    one, other = couple([(12, 10)] * 3, 4)
    cuts = set()
    for seed in range(8):
        made = breed("svd_subspace", [one, other], seed=seed)
        for slot, delta in deltas(made).items():
            (u, s, v), (x, y, z) = (torch.linalg.svd(deltas(each)[slot], full_matrices=False) for each in (one, other))
            found = [
                cut
                for cut in (1, 2, 3)
                if torch.allclose(
                    delta, (u[:, :cut] * s[:cut]) @ v[:cut] + (x[:, cut:4] * y[cut:4]) @ z[cut:4], atol=1e-5
                )
            ]
            assert len(found) == 1
            cuts.add(found[0])
    assert cuts == {1, 2, 3}


def _means_agree(drawn_N_E: Tensor, right_E: Tensor, variance_E: Tensor) -> None:
    """Means over N draws lie about what is right as far as chance allows, over all entries together."""
    z_E = ((drawn_N_E.double().mean(0) - right_E) / (variance_E / len(drawn_N_E)).sqrt()).flatten()
    count = len(z_E)
    assert abs(float(z_E.mean())) < 4 / math.sqrt(count)
    assert float((z_E.abs() > 3).double().mean()) < 0.02
    assert float(z_E.square().mean()) == pytest.approx(1, abs=5 * math.sqrt(2 / count))


DRAWN = 2000


@every_device
def test_dare_is_unbiased_before_it_is_cut_to_the_rank(device):
    delta_O_I = deltas(member([(16, 24)], 4))["layer0"]
    many_N_O_I = delta_O_I.float().expand(DRAWN, -1, -1).to(device)
    drawn = sparse(many_N_O_I, Draws(1, torch.device(device)), 0.7).cpu()
    _means_agree(drawn, delta_O_I, delta_O_I**2 * 0.7 / 0.3)
    kept = drawn != 0
    assert torch.allclose(drawn[kept], (delta_O_I.float() / Draws.coin(0.3)).expand_as(drawn)[kept])


def test_dares_child_is_the_parents_mean_on_average_where_nothing_is_cut():
    one, other = member([(6, 6)], 6), member([(6, 6)], 6, seed=1)

    def many(of: MemberState) -> MemberState:
        return replace(of, factors={f"layer{index:04}": of.factors["layer0"] for index in range(DRAWN)})

    made = deltas(breed("dare", [many(one), many(other)]))
    first, second = (deltas(each)["layer0"] for each in (one, other))
    drawn = torch.stack([made[slot] for slot in sorted(made)])
    _means_agree(drawn, (first + second) / 2, (first**2 + second**2) / 4 * 0.7 / 0.3)


@every_device
def test_dellas_pruning_is_unbiased_and_spares_the_large(device):
    delta_O_I = deltas(member([(16, 24)], 4))["layer0"]
    many_N_I = delta_O_I.float().repeat(DRAWN, 1).to(device)
    drawn = pruned(many_N_I, Draws(2, torch.device(device)), 0.7, 0.2).cpu().view(DRAWN, 16, 24)
    kept_O_I = (drawn != 0).double().mean(0)
    assert 0.15 < kept_O_I.min() < kept_O_I.max() < 0.45
    _means_agree(drawn, delta_O_I, delta_O_I**2 * (1 / kept_O_I.clamp(0.2, 0.4) - 1))
    order = delta_O_I.abs().argsort(dim=1)
    small, large = (kept_O_I.gather(1, part) for part in (order[:, :8], order[:, -8:]))
    assert large.mean() - small.mean() > 0.08


def test_ties_keeps_large_entries_that_agree_in_sign():
    one, other = member([(8, 8)] * 2, 8), member([(8, 8)] * 2, 8, seed=1)
    made = deltas(breed("ties", [one, other]))
    for slot, delta in made.items():
        parts = [deltas(each)[slot] for each in (one, other)]
        # The 51 smallest of 64 go: a share of 0.8, rounded.
        trimmed = [part * (part.abs() > part.abs().flatten().kthvalue(51).values) for part in parts]
        sign = (trimmed[0] + trimmed[1]).sign()
        agree = [(part.sign() == sign) & (part != 0) for part in trimmed]
        count = (agree[0].double() + agree[1].double()).clamp_min(1)
        right = (trimmed[0] * agree[0] + trimmed[1] * agree[1]) / count
        assert torch.allclose(delta, right, atol=1e-5)


def test_fisher_is_the_mean_where_nobody_has_learnt_anything():
    one, other = (replace(each, optimiser=None) for each in couple(WIDE, 8))
    assert distance(breed("fisher", [one, other]), breed("linear_0_5", [one, other])) < 1e-4


def test_fisher_is_the_trained_parent_where_the_other_is_not():
    one, other = couple()
    fresh = replace(other, optimiser=None)
    assert distance(breed("fisher", [one, fresh]), one) < ROUNDING
    assert distance(breed("fisher", [fresh, one]), one) < ROUNDING


@pytest.mark.parametrize("size", [1.0, 1e-12, 1e-20])
def test_fisher_leans_to_whoever_has_learnt_more(size):
    one, other = (replace(each, optimiser=None) for each in couple())
    more, less = trained(one, 10 * size), trained(other, size)
    assert portrait(breed("fisher", [more, less]), [more, less])[1][0] > 0.9
    assert portrait(breed("fisher", [less, more]), [less, more])[1][1] > 0.9
    even = portrait(breed("fisher", [trained(one, size), less]), [one, other])[1]
    assert abs(even[0] - even[1]) < 0.2


def test_fisher_weighs_entry_by_entry():
    one, other = member([(6, 6)], 6), member([(6, 6)], 6, seed=1)
    more, less = trained(one, seed=3), trained(other, seed=4)

    def information(state: MemberState) -> Tensor:
        assert state.optimiser is not None
        a_R_I, b_O_R = state.optimiser.exp_avg_sq["layer0"]
        return (b_O_R.double().mean(1)[:, None] * a_R_I.double().mean(0)).sqrt()

    share = information(more) / (information(more) + information(less))
    right = share * deltas(one)["layer0"] + (1 - share) * deltas(other)["layer0"]
    assert torch.allclose(deltas(breed("fisher", [more, less]))["layer0"], right, atol=1e-5)


@every_device
@pytest.mark.parametrize("way", [0.5, 0.2])
@pytest.mark.parametrize("cosine", [0.0, 0.5, 0.9])
def test_slerp_is_on_the_arc_and_between_the_norms_before_it_is_cut(way, cosine, device):
    one = member()
    other = sibling(one, cosine)
    other = replace(other, factors={name: (a, 3 * b) for name, (a, b) in other.factors.items()})
    for x, y in zip(*(each.stacks for each in stacked([one, other], torch.device(device))), strict=True):
        (w_S, v_S), xx_S, yy_S, xy_S = _weights(x, y, way), inner(x, x), inner(y, y), inner(x, y)
        length_S = (w_S**2 * xx_S + v_S**2 * yy_S + 2 * w_S * v_S * xy_S).sqrt()
        target_S = (1 - way) * xx_S.sqrt() + way * yy_S.sqrt()
        assert torch.allclose(length_S, target_S, rtol=1e-5)
        angle_S = (xy_S / (xx_S * yy_S).sqrt()).acos()
        turned_S = ((w_S * xx_S + v_S * xy_S) / (length_S * xx_S.sqrt())).clamp(-1, 1).acos()
        assert torch.allclose(turned_S, way * angle_S, atol=1e-4)


def test_linear_draws_its_weight():
    one, other = couple([(6, 6)] * 4, 6)
    weights = []
    for seed in range(30):
        made = deltas(breed("linear", [one, other], seed=seed))["layer0"]
        first, second = deltas(one)["layer0"], deltas(other)["layer0"]
        weight = float(((made - second) * (first - second)).sum() / (first - second).square().sum())
        assert torch.allclose(made, weight * first + (1 - weight) * second, atol=1e-5)
        weights.append(weight)
    assert min(weights) > -1e-4 < 0.2 < 0.8 < max(weights) < 1.0001
    assert min(weights) < 0.2


# What is refused.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: member(SMALL, 5), "rank 4 and alpha 8, the other 5 and 10"),
        (lambda one: member(SMALL[1:], 4), "do not adapt layer0 alike"),
        (lambda one: member([(24, 33), *SMALL[1:]], 4), "do not adapt layer0 alike"),
        (lambda one: replace(one, alpha=3.0), "alpha 8, the other 4 and 3"),
        (lambda one: replace(one, factors={f"other.{name}": pair for name, pair in one.factors.items()}), "layer0"),
    ],
)
def test_parents_that_do_not_match_are_refused(change, says):
    one = member()
    with pytest.raises(InputError, match=says):
        breed("linear", [one, change(one)])


@every_operator
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("half", [0, 1])
def test_parents_that_are_not_finite_are_refused(name, value, half):
    parents = couple()
    parents[(OPERATORS.get(name).parents or 2) - 1].factors["layer2"][half][0, 0] = value
    with pytest.raises(InputError, match="finite"):
        breed(name, parents)


@every_operator
def test_a_wrong_number_of_parents_is_refused(name):
    operator = OPERATORS.get(name)
    for count in {0, 1, 2, 3} - {operator.parents} if operator.parents else {0}:
        with pytest.raises(InputError, match=f"makes a child of {operator.parents or 1}, not of {count}"):
            child(operator, [member()] * count, seed=0)


def test_the_mean_of_a_role_is_that_of_all_its_updates():
    one = member(SMALL, 4, seed=1)
    others = [sibling(one, 0.9, seed=seed) for seed in (2, 3)]
    made = child(OPERATORS.get("mean"), [one, *others], seed=0)
    for name, delta_O_I in deltas(made).items():
        mean_O_I = torch.stack([deltas(each)[name] for each in (one, *others)]).mean(0)
        u, s, v = torch.linalg.svd(mean_O_I)
        assert torch.allclose(delta_O_I, u[:, :4] * s[:4] @ v[:4], atol=1e-5)


def test_an_operator_that_makes_something_infinite_is_reported():
    broken = Operator(
        name="broken",
        kind=Kind.MUTATION,
        make=lambda parents, draws: parents[0].map(lambda each: each.with_factors(each.a_S_R_I / 0, each.b_S_O_R)),
        reference="here",
    )
    with pytest.raises(Fault, match="not finite"):
        child(broken, [member()], seed=0)


# Operators of one's own.

OWN = '''\
"""Half of a parent."""

from redqueen.evolution.variation import Kind, Operator


def _halved(parents, draws, *, by: float = 2.0):
    """Delta W divided."""
    [parent] = parents
    return parent.map(lambda stack: stack.with_factors(stack.a_S_R_I, stack.b_S_O_R / by))


HALVED = Operator(name="halved", kind=Kind.MUTATION, make=_halved, reference="own")
'''


def test_an_operator_of_ones_own_comes_from_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    operator = find(f"{path}:HALVED")
    assert (operator.name, operator.use, operator.about) == ("halved", Use.OWN, "Delta W divided.")
    parent = member()
    assert portrait(child(operator, [parent], seed=0), [parent])[0] == pytest.approx(0.5, rel=1e-6)
    quarter = find(f"{path}:HALVED by=4")
    assert portrait(child(quarter, [parent], seed=0), [parent])[0] == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.py:HALVED", None, "there is no file"),
        ("mine.py:THIRD", OWN, "defines no Operator 'THIRD'; it has HALVED"),
        ("mine.py:_halved", OWN, "defines no Operator '_halved'"),
        ("mine.py:", OWN, "defines no Operator ''"),
        ("mine.py:HALVED", "import nothing_of_this_name", "fails when it is imported: ModuleNotFoundError"),
        ("mine.py:HALVED", "def (", "fails when it is imported: SyntaxError"),
        ("mine.py:HALVED", "1 / 0", "fails when it is imported: ZeroDivisionError"),
        ("mine.py:HALVED", "", "defines no Operator 'HALVED'; it has none"),
    ],
)
def test_what_is_wrong_with_a_file_of_ones_own_is_said_in_one_line(name, text, message, tmp_path):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError) as raised:
        find(f"{tmp_path}/{name}")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_name_that_is_almost_right_is_suggested():
    with pytest.raises(ConfigError, match="did you mean spectral"):
        find("spectrall")
    with pytest.raises(ConfigError, match=r"use FILE\.py:NAME or one of"):
        find("zzz")


# The registry.


def test_operators_have_names_of_their_own_and_say_what_they_do():
    for name, operator in OPERATORS.all().items():
        assert operator.name == name == operator.make.__name__
        assert 10 < len(operator.about) < 120
        assert operator.about.endswith(".")
        assert operator.reference
        assert all(isinstance(value, float) for value in operator.defaults.values())
        assert operator.norm[0] <= operator.norm[1]
        assert -1 <= operator.cosine[0] <= operator.cosine[1] <= 1
    assert len({operator.about for operator in OPERATORS.all().values()}) == len(OPERATORS.names())


SHARED = {"weighted", "noisy", "sparse", "pruned"}
"""What operators borrow from each other, or tests look at."""


@every_operator
def test_an_operator_is_one_public_function_in_one_small_file(name):
    text = (Path(variation.__file__).parent / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 60
    public = {
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    assert public - SHARED == {name}


def test_della_of_silent_slots_is_silent_however_much_it_drops():
    parents = [silenced(each) for each in couple()]
    assert all(not b_O_R.any() for _, b_O_R in breed("della", parents, drop=0.89, spread=0.2).factors.values())


def test_fisher_weighs_four_times_the_information_four_times_and_not_by_age():
    one, other = member([(6, 6)], 6), member([(6, 6)], 6, seed=1)
    more, less = trained(one, 4.0, seed=3), trained(other, 1.0, seed=3)
    right = 0.8 * deltas(one)["layer0"] + 0.2 * deltas(other)["layer0"]
    assert torch.allclose(deltas(breed("fisher", [more, less]))["layer0"], right, atol=1e-5)
    # The same gradients, seen by an optimiser that has run for longer.
    assert less.optimiser is not None
    grown = {step: 1 - 0.999**step for step in (3, 500)}
    squares = {
        name: tuple(half * grown[500] / grown[3] for half in pair) for name, pair in less.optimiser.exp_avg_sq.items()
    }
    older = replace(less, optimiser=replace(less.optimiser, step=500, exp_avg_sq=squares))
    assert torch.allclose(deltas(breed("fisher", [more, older]))["layer0"], right, atol=1e-5)


def test_layer_wise_takes_as_many_slots_of_the_better_parent_as_it_is_told():
    one, other = couple([(8, 6)] * 200)
    made = breed("layer_wise", [one, other], share=0.9)
    first = sum(torch.equal(made.factors[slot][0], one.factors[slot][0]) for slot in made.factors)
    assert first > 150


def test_spectral_turns_each_direction_by_about_sigma():
    """The components stay where they are in size order only roughly, so the turn is read off the left basis at once."""
    parent = member([(400, 300)], 16, flat=True)
    turned = []
    for seed in range(4):
        [pair] = stacked([parent, breed("spectral", [parent], seed=seed, sigma=0.05)], CPU)[1].stacks
        u_O_R = torch.linalg.qr(pair.b_S_O_R[0])[0]
        old_O_R = torch.linalg.qr(parent.factors["layer0"][1])[0]
        assert torch.linalg.svdvals(u_O_R.T @ old_O_R).min() > 1 - 1e-4, "the space is the same"
        cosine = portrait(breed("spectral", [parent], seed=seed, sigma=0.05), [parent])[1][0]
        turned.append(cosine)
    # Two turns of sigma and the jitter of the sizes, each sigma: 1 - cosine is about 3 sigma^2 / 2.
    assert 1 - sum(turned) / 4 == pytest.approx(1.5 * 0.05**2, rel=0.25)
    assert len(set(turned)) == 4
