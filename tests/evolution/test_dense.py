"""Merges of single entries are cut back to the rank about as well as can be, and see the entries that they mean."""

import pytest
import torch
from torch import Tensor

from evolution.families import DEVICES, member, sibling
from redqueen.engine.protocol import MemberState
from redqueen.evolution.variation import child, dense
from redqueen.evolution.variation.dare import sparse
from redqueen.evolution.variation.dense import elected, threshold, truncated
from redqueen.evolution.variation.draws import Draws
from redqueen.plugins import OPERATORS

CPU = torch.device("cpu")
every_device = pytest.mark.parametrize("device", DEVICES)


def noisy_merge(outputs: int, inputs: int, rank: int, cosine: float | None) -> tuple[Tensor, Tensor]:
    """What DARE makes of two parents, and where the iteration on it starts."""
    one = member([(outputs, inputs)], rank)
    other = member([(outputs, inputs)], rank, seed=1) if cosine is None else sibling(one, cosine)
    (a, b), (c, d) = one.factors["layer0"], other.factors["layer0"]
    draws = Draws(0, CPU)
    merge = (sparse(b @ a, draws, 0.7) + sparse(d @ c, draws, 0.7)) / 2
    return merge, torch.cat([a, c, draws.normal(8, inputs)]).mT


def cut(delta_O_I: Tensor, rank: int, start_I_K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One slot, cut alone."""
    u_S_O_R, s_S_R, v_S_I_R = truncated(delta_O_I[None], rank, start_I_K[None])
    return u_S_O_R[0], s_S_R[0], v_S_I_R[0]


@every_device
@pytest.mark.parametrize(("outputs", "inputs", "rank"), [(320, 288, 8), (288, 400, 32), (600, 300, 4)])
@pytest.mark.parametrize("cosine", [None, 0.9])
def test_what_a_large_slot_loses_is_within_a_hundredth_of_the_least(outputs, inputs, rank, cosine, device):
    delta_O_I, start_I_K = (each.to(device) for each in noisy_merge(outputs, inputs, rank, cosine))
    u_O_R, s_R, v_I_R = cut(delta_O_I, rank, start_I_K)
    assert (u_O_R.shape, s_R.shape, v_I_R.shape) == ((outputs, rank), (rank,), (inputs, rank))
    exact_K = torch.linalg.svdvals(delta_O_I.double())
    lost = float((delta_O_I - (u_O_R * s_R) @ v_I_R.mT).norm())
    assert lost <= 1.01 * float(exact_K[rank:].norm())
    assert float(s_R.norm()) >= 0.95 * float(exact_K[:rank].norm())
    for basis in (u_O_R, v_I_R):
        assert (basis.mT @ basis - torch.eye(rank, device=device)).abs().max() < 3e-5


def test_a_large_slot_of_low_rank_is_cut_exactly():
    one, other = member([(320, 300)], 4).factors["layer0"], member([(320, 300)], 4, seed=1).factors["layer0"]
    delta_O_I = one[1] @ one[0] + 0.5 * other[1] @ other[0]
    u_O_R, s_R, v_I_R = cut(delta_O_I, 4, torch.cat([one[0], other[0], torch.randn(8, 300)]).mT)
    u, s, vt = torch.linalg.svd(delta_O_I)
    right = (u[:, :4] * s[:4]) @ vt[:4]
    assert torch.allclose((u_O_R * s_R) @ v_I_R.mT, right, atol=1e-5)


def test_on_cuda_small_slots_are_cut_by_the_iteration_too(monkeypatch):
    """As with grouped key heads, 128 wide: what is lost is nearly the least, with CUDA's limit on a CPU."""
    monkeypatch.setitem(dense._SMALL, "cpu", dense._SMALL["cuda"])
    delta_O_I, start_I_K = noisy_merge(128, 896, 8, None)
    u_O_R, s_R, v_I_R = cut(delta_O_I, 8, start_I_K)
    lost, least = (delta_O_I - (u_O_R * s_R) @ v_I_R.mT).norm(), torch.linalg.svdvals(delta_O_I)[8:].norm()
    assert 1 + 1e-6 < float(lost / least) < 1.01


@pytest.mark.parametrize(("outputs", "inputs", "rank"), [(30, 20, 4), (3, 5, 8), (200, 2, 3), (1, 1, 2)])
def test_a_small_slot_is_cut_exactly(outputs, inputs, rank):
    delta_O_I = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(0))
    u_O_R, s_R, v_I_R = cut(delta_O_I, rank, torch.zeros(inputs, 2 * rank + 8))
    assert (u_O_R.shape, s_R.shape, v_I_R.shape) == ((outputs, rank), (rank,), (inputs, rank))
    u, s, vt = torch.linalg.svd(delta_O_I, full_matrices=False)
    assert torch.allclose((u_O_R * s_R) @ v_I_R.mT, (u[:, :rank] * s[:rank]) @ vt[:rank], atol=1e-5)
    assert torch.allclose(v_I_R.norm(dim=0), torch.ones(rank), atol=1e-5)


@every_device
@pytest.mark.parametrize("shape", [(320, 300), (30, 5)], ids=["by the iteration", "whole"])
@pytest.mark.parametrize("slots", [2, 3])
def test_slots_that_are_cut_together_are_cut_as_alone(shape, slots, device, monkeypatch):
    parents = [member([shape] * 3, 4, seed=seed) for seed in (0, 1)]

    def born(entries: int) -> MemberState:
        monkeypatch.setitem(dense._ENTRIES, device, entries)
        return child(OPERATORS.get("dare"), parents, seed=5, device=torch.device(device))

    alone, together = born(1), born(slots * shape[0] * shape[1])
    for module, (a_R_I, b_O_R) in alone.factors.items():
        other_a_R_I, other_b_O_R = together.factors[module]
        assert torch.allclose(other_b_O_R @ other_a_R_I, b_O_R @ a_R_I, atol=1e-6)


@every_device
@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0])
def test_a_threshold_has_its_share_below_it(share, device):
    values = torch.randn(40, 25, generator=torch.Generator().manual_seed(0)).to(device)
    below = int((values <= threshold(values, share, Draws(0, values.device))).sum())
    assert below == max(1, round(share * 1000))


@every_device
def test_a_threshold_of_many_values_is_estimated_on_some_of_them(device):
    values = torch.rand(200, 300, generator=torch.Generator().manual_seed(0)).to(device)
    for seed in range(3):
        found = float(threshold(values, 0.8, Draws(seed, values.device), most=10_000))
        assert found == pytest.approx(0.8, abs=0.02)


def test_an_election_takes_the_mean_of_those_who_agree_with_the_sum():
    one = torch.tensor([[3.0, -1.0, 0.0, 2.0, 0.0, 1.0]])
    other = torch.tensor([[1.0, 4.0, 5.0, -2.0, 0.0, -3.0]])
    assert elected(one, other).tolist() == [[2.0, 4.0, 5.0, 0.0, 0.0, -3.0]]
