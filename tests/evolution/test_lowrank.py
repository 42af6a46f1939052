"""The algebra of B @ A agrees with dense linear algebra, whatever the factors are like."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evolution.families import DEVICES, stack
from redqueen.evolution.variation.adapter import ROW_NORM, Stack
from redqueen.evolution.variation.lowrank import combined, inner, norm, orthonormal, refactored, spectrum, spectrum_of

EXACT = 1e-5
every_device = pytest.mark.parametrize("device", DEVICES)
quick = settings(max_examples=40)


def random(numbers: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=numbers)


def slots(seed: int, count: int, outputs: int, inputs: int, rank: int, device: str = "cpu") -> Stack:
    numbers = torch.Generator().manual_seed(seed)
    made = stack(random(numbers, count, rank, inputs), random(numbers, count, outputs, rank))
    return stack(made.a_S_R_I.to(device), made.b_S_O_R.to(device))


def delta(of: Stack) -> Tensor:
    return of.b_S_O_R.double() @ of.a_S_R_I.double()


def best(delta_S_O_I: Tensor, rank: int) -> Tensor:
    """The nearest of this rank."""
    u, s, vt = torch.linalg.svd(delta_S_O_I, full_matrices=False)
    return (u[..., :rank] * s[..., None, :rank]) @ vt[..., :rank, :]


def close(mine: Tensor, right: Tensor, allowed: float = EXACT) -> bool:
    return bool((mine - right).norm() <= allowed * right.norm())


def check_qr(x_S_N_K: Tensor) -> None:
    q_S_N_K, r_S_K_K = (half.double() for half in orthonormal(x_S_N_K))
    columns = min(x_S_N_K.shape[1:])
    assert q_S_N_K.shape[2] == columns
    eye = torch.eye(columns, dtype=torch.float64, device=x_S_N_K.device)
    assert (q_S_N_K.mT @ q_S_N_K - eye).abs().max() < EXACT
    error_S = (q_S_N_K @ r_S_K_K - x_S_N_K).norm(dim=(1, 2))
    assert (error_S <= EXACT * x_S_N_K.double().norm(dim=(1, 2))).all()
    assert (r_S_K_K.tril(-1).abs() <= EXACT * r_S_K_K.abs().amax(dim=(1, 2), keepdim=True)).all()


@every_device
@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 3),
    size=st.integers(1, 80),
    rank=st.integers(1, 12),
    condition=st.floats(0, 10),
    scale=st.floats(-20, 15),
    kind=st.sampled_from(["svd", "columns", "parallel"]),
)
@quick
def test_orthonormal_columns_and_the_way_back_at_any_condition(seed, count, size, rank, condition, scale, kind, device):
    numbers = torch.Generator().manual_seed(seed)
    x_S_N_K = random(numbers, count, size, rank).double()
    falling_K = torch.logspace(0, -condition, rank, dtype=torch.float64)
    if kind == "svd":
        u, s, vt = torch.linalg.svd(x_S_N_K, full_matrices=False)
        x_S_N_K = (u * falling_K[: s.shape[1]]) @ vt
    elif kind == "columns":
        x_S_N_K = x_S_N_K * falling_K
    else:
        x_S_N_K = x_S_N_K[:, :, :1] + 10**-condition * x_S_N_K
    check_qr((x_S_N_K * 10**scale).float().to(device))


@every_device
@pytest.mark.parametrize(("size", "rank"), [(4096, 32), (5000, 64)])
@pytest.mark.parametrize("condition", [0, 3, 4.5, 5.5, 10])
def test_orthonormal_in_slots_of_real_sizes(size, rank, condition, device):
    x_S_N_K = random(torch.Generator().manual_seed(0), 1, size, rank) * torch.logspace(0, -condition, rank)
    check_qr(x_S_N_K.to(device))


@every_device
def test_orthonormal_where_columns_depend_on_each_other(device):
    x_S_N_K = slots(0, 4, 20, 20, 6, device).b_S_O_R.clone()
    x_S_N_K[0] = 0
    x_S_N_K[1, :, 3] = 0
    x_S_N_K[2, :, 4] = x_S_N_K[2, :, 1]
    check_qr(x_S_N_K)


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 3),
    outputs=st.integers(1, 20),
    inputs=st.integers(1, 20),
    rank=st.integers(1, 24),
)
@quick
def test_a_spectrum_and_back_is_the_same_delta(seed, count, outputs, inputs, rank):
    parent = slots(seed, count, outputs, inputs, rank)
    found = spectrum_of(parent)
    assert (found.u_S_O_R.shape, found.v_S_I_R.shape) == ((count, outputs, rank), (count, inputs, rank))
    assert (found.s_S_R.diff(dim=1) <= 0).all()
    assert torch.allclose(found.v_S_I_R.norm(dim=1), torch.ones(count, rank), atol=EXACT)
    right_S_N = torch.linalg.svdvals(delta(parent))[:, :rank]
    assert torch.allclose(found.s_S_R[:, : right_S_N.shape[1]].double(), right_S_N, atol=EXACT * float(right_S_N.max()))
    back = refactored(parent, found)
    assert close(delta(back), delta(parent))
    assert back.moments is None


@every_device
def test_refactored_rows_are_as_long_as_fresh_ones_and_silent_slots_keep_theirs(device):
    parent = slots(3, 3, 12, 10, 4, device)
    b_S_O_R = parent.b_S_O_R.clone()
    b_S_O_R[1] = 0
    parent = stack(parent.a_S_R_I, b_S_O_R)
    back = refactored(parent, spectrum_of(parent))
    for index in (0, 2):
        assert torch.allclose(back.a_S_R_I[index].norm(dim=1).cpu(), torch.full((4,), ROW_NORM), atol=EXACT)
    assert torch.equal(back.a_S_R_I[1], parent.a_S_R_I[1])
    assert not back.b_S_O_R[1].any()


@every_device
@given(seed=st.integers(0, 1000), rank=st.integers(1, 10), sides=st.tuples(st.integers(1, 24), st.integers(1, 24)))
@quick
def test_combined_is_the_dense_sum_cut_to_the_rank(seed, rank, sides, device):
    one, other = (slots(seed + part, 2, *sides, rank, device) for part in (0, 5000))
    weights_S = torch.tensor([0.3, -1.2], device=device)
    found = combined([(weights_S, one), (1.7, other)])
    child = refactored(one, found)
    right = best(weights_S[:, None, None].double() * delta(one) + 1.7 * delta(other), rank)
    assert close(delta(child), right, 1e-4)


def test_combined_leaves_out_what_counts_nothing():
    one, other = slots(0, 2, 9, 8, 3), slots(1, 2, 9, 8, 3)
    assert torch.equal(combined([(1.0, one), (0.0, other)]).s_S_R, spectrum_of(one).s_S_R)
    assert not combined([(0.0, one), (0.0, other)]).s_S_R.any()


@every_device
def test_inner_and_norm_are_those_of_the_dense_matrices(device):
    one, other = slots(0, 3, 14, 11, 5, device), slots(1, 3, 14, 11, 5, device)
    assert torch.allclose(inner(one, other), (delta(one) * delta(other)).sum(dim=(1, 2)), atol=1e-3)
    assert torch.allclose(norm(one), delta(one).norm(dim=(1, 2)), rtol=1e-5)


def test_a_spectrum_may_be_narrower_or_wider_than_its_factors():
    parent = slots(0, 2, 14, 11, 6)
    for rank in (2, 6, 9):
        found = spectrum(parent.a_S_R_I, parent.b_S_O_R, rank)
        made = (found.u_S_O_R * found.s_S_R[:, None]) @ found.v_S_I_R.mT
        assert found.s_S_R.shape == (2, rank)
        assert close(made.double(), best(delta(parent), rank))
