"""Each Triton kernel gives what its plain torch twin gives: on a GPU, or else in Triton's interpreter."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
pytest.importorskip("triton", reason="Triton is not installed")

from redqueen.engine import kernels, ops  # noqa: E402
from redqueen.engine.decode_state import INDEX, POSITION, TOKEN, DecodeState  # noqa: E402

DEVICE = torch.device("cuda" if CUDA else "cpu")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def plain(monkeypatch):
    """Have `ops` compute in plain torch whatever the device."""
    monkeypatch.setattr(ops, "HAVE_TRITON", False)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE)


def close(mine: torch.Tensor, twin: torch.Tensor, tolerance: float = 2e-5) -> None:
    assert mine.shape == twin.shape
    assert (mine - twin).abs().max().item() <= tolerance * max(1.0, twin.abs().max().item())


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("width", [128, 576])
def test_add_and_norm(plain, add, width):
    h_N_H, weight_H = randn(5, width), randn(width)
    delta_N_H = randn(5, width) if add else None
    mine_N_H, twin_N_H = h_N_H.clone(), h_N_H.clone()
    close(
        kernels.add_rms_norm_(mine_N_H, delta_N_H, weight_H, 1e-5),
        ops.add_rms_norm_(twin_N_H, delta_N_H, weight_H, 1e-5),
    )
    close(mine_N_H, twin_N_H)


@pytest.mark.parametrize("width", [40, 1536])
def test_swiglu_and_its_derivative(plain, width):
    gate_up_N_2F = randn(3, 2 * width).requires_grad_()
    twin_N_F = ops.swiglu(gate_up_N_2F)
    grad_N_F = randn(3, width)
    (twin_N_2F,) = torch.autograd.grad(twin_N_F, gate_up_N_2F, grad_N_F)
    close(kernels.swiglu(gate_up_N_2F.detach()), twin_N_F.detach())
    close(kernels.swiglu_backward(gate_up_N_2F.detach(), grad_N_F), twin_N_2F)


def tables(positions: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    angle_T_D = randn(positions, dim // 2).repeat(1, 2)
    return angle_T_D.cos(), angle_T_D.sin()


@pytest.mark.parametrize("dim", [12, 32])
@pytest.mark.parametrize("inverse", [False, True])
def test_rotation(plain, inverse, dim):
    cos_T_D, sin_T_D = tables(20, dim)
    qkv_N_O, position_N = randn(6, 5 * dim), torch.tensor([0, 3, 19, 7, 7, 1], device=DEVICE)
    mine = kernels.rope(qkv_N_O, position_N, cos_T_D, sin_T_D, 4, inverse=inverse)
    close(mine, ops._rotate(qkv_N_O, position_N, cos_T_D, sin_T_D, 4, inverse=inverse))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("window", [0, 5, 70])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 4, 32), (6, 2, 64), (7, 1, 16), (4, 2, 12), (2, 1, 80)])
def test_a_token_enters_the_cache_and_attends(plain, norm, window, heads, kv_heads, dim):
    positions, capacities, starts = [0, 4, 130, 63], [16, 16, 144, 64], [16, 32, 48, 192]
    width = (heads + 2 * kv_heads) * dim
    cos_T_D, sin_T_D = tables(256, dim)
    k_cache, v_cache = randn(256 * kv_heads, dim), randn(256 * kv_heads, dim)
    qkv_R_O = randn(4, width)
    norms = (randn(dim), randn(dim), 1e-6) if norm else None
    position_R, start_R, capacity_R = (torch.tensor(x, device=DEVICE) for x in (positions, starts, capacities))

    q, k, v = qkv_R_O.split([heads * dim, kv_heads * dim, kv_heads * dim], -1)
    if norms is not None:
        q = F.rms_norm(q.unflatten(-1, (heads, dim)), (dim,), norms[0], norms[2]).flatten(1)
        k = F.rms_norm(k.unflatten(-1, (kv_heads, dim)), (dim,), norms[1], norms[2]).flatten(1)
    turned = ops.rope(torch.cat([q, k, v], -1), position_R, cos_T_D, sin_T_D, heads + kv_heads)
    q, k, v = turned.split([heads * dim, kv_heads * dim, kv_heads * dim], -1)
    twin_R_O = torch.empty(4, heads * dim, device=DEVICE)
    k_twin, v_twin = k_cache.clone(), v_cache.clone()
    for row in range(4):
        region = slice(starts[row] * kv_heads, (starts[row] + capacities[row]) * kv_heads)
        k_G_L_D = k_twin[region].view(kv_heads, capacities[row], dim)
        v_G_L_D = v_twin[region].view(kv_heads, capacities[row], dim)
        k_G_L_D[:, positions[row]] = k[row].view(kv_heads, dim)
        v_G_L_D[:, positions[row]] = v[row].view(kv_heads, dim)
        low = max(0, positions[row] - window + 1) if window else 0
        seen = F.scaled_dot_product_attention(
            q[row].view(heads, 1, dim),
            k_G_L_D[:, low : positions[row] + 1].repeat_interleave(heads // kv_heads, 0),
            v_G_L_D[:, low : positions[row] + 1].repeat_interleave(heads // kv_heads, 0),
            scale=0.2,
        )
        twin_R_O[row] = seen.flatten()

    where = (position_R, start_R, capacity_R)
    kernels.rope_write_(qkv_R_O, norms, *where, cos_T_D, sin_T_D, k_cache, v_cache, heads, kv_heads)
    close(k_cache, k_twin)
    close(v_cache, v_twin)
    mine_R_O = kernels.attend(
        qkv_R_O, k_cache, v_cache, *where, heads=heads, kv_heads=kv_heads, dim=dim, scale=0.2, window=window
    )
    close(mine_R_O, twin_R_O)


@pytest.mark.parametrize("window", [0, 5, 70])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 4, 32), (6, 2, 64), (7, 1, 16), (4, 2, 12), (2, 1, 80)])
def test_tokens_of_prompts_see_what_each_would_see_alone(window, heads, kv_heads, dim):
    """Tiles of neighbours: one from a prompt's beginning, one after what a copy left, a short one, and none."""
    pieces = [(0, 16, 16, 144), (130, 3, 160, 144), (70, 9, 304, 80)]
    positions = [first + at for first, count, _, _ in pieces for at in range(count)]
    starts = [start for _, count, start, _ in pieces for _ in range(count)]
    capacities = [capacity for _, count, _, capacity in pieces for _ in range(count)]
    position_N, start_N, capacity_N = (torch.tensor(x, device=DEVICE) for x in (positions, starts, capacities))
    k_cache, v_cache = randn(400 * kv_heads, dim), randn(400 * kv_heads, dim)
    q_N_O = randn(len(positions) + 2, heads * dim + 8)
    options = {"heads": heads, "kv_heads": kv_heads, "dim": dim, "scale": 0.2, "window": window}
    first_Q, count_Q = torch.tensor([[0, 16, 19, 0], [16, 3, 9, 0]], device=DEVICE)
    where = (position_N, start_N, capacity_N)
    mine_N_O = kernels.attend_prompts(q_N_O, k_cache, v_cache, (first_Q, count_Q), *where, **options)
    close(mine_N_O[: len(positions)], kernels.attend(q_N_O[: len(positions)], k_cache, v_cache, *where, **options))
    assert not mine_N_O[len(positions) :].any(), "rows without a tile"


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("window", [0, 70])
def test_attention_with_its_keys_split_is_that_without(rows, window, monkeypatch):
    """Also where some parts have no keys."""
    position_R = torch.tensor([0, 3, 64, 127, 128, 200, 255, 63, 90][:rows], device=DEVICE)
    start_R, capacity_R = torch.zeros_like(position_R), torch.full_like(position_R, 256)
    q_R_O, k_cache, v_cache = randn(rows, 6 * 32), randn(512, 32), randn(512, 32)
    where = (position_R, start_R, capacity_R)
    options = {"heads": 6, "kv_heads": 2, "dim": 32, "scale": 0.2, "window": window}
    split = kernels.attend(q_R_O, k_cache, v_cache, *where, **options)
    monkeypatch.setattr("redqueen.engine.kernels.attention.MOST_PARTS", 1)
    close(split, kernels.attend(q_R_O, k_cache, v_cache, *where, **options))


@pytest.mark.parametrize("window", [0, 5, 70])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 4, 32), (6, 2, 64), (7, 1, 16), (4, 2, 12)])
@pytest.mark.parametrize("parts", [1, 16])
def test_rows_that_share_a_prompt_see_what_each_would_see_alone(heads, kv_heads, dim, window, parts, monkeypatch):
    """Bundles of a full size, of two rows, of one row with a prompt of one token; and rows without a sequence."""
    monkeypatch.setattr("redqueen.engine.kernels.attention.MOST_PARTS", parts)
    bundles = [(0, 8, 100), (8, 2, 33), (10, 1, 0)]
    capacity, rows = 144, 13
    k_cache, v_cache = randn(rows * capacity * kv_heads, dim), randn(rows * capacity * kv_heads, dim)
    shared = [count for _, number, count in bundles for _ in range(number)] + [0, 0]
    for first, number, count in bundles:
        for cache in (k_cache, v_cache):
            by_row = cache.view(rows, kv_heads, capacity, dim)
            by_row[first : first + number, :, :count] = by_row[first, :, :count].clone()
    position_R = torch.tensor([count + 5 * at for at, count in enumerate(shared)], device=DEVICE).clamp(max=143)
    start_R = torch.arange(rows, device=DEVICE) * capacity
    where = (position_R, start_R, torch.full((rows,), capacity, device=DEVICE))
    first_Q, count_Q = torch.tensor([[0, 8, 10, 0], [8, 2, 1, 0]], device=DEVICE)
    options = {"heads": heads, "kv_heads": kv_heads, "dim": dim, "scale": 0.2, "window": window}
    q_R_O = randn(rows, heads * dim + 8)
    of = (torch.tensor(shared, device=DEVICE), first_Q, count_Q)
    mine_R_O = kernels.attend(q_R_O, k_cache, v_cache, *where, of, **options)
    close(mine_R_O[:11], kernels.attend(q_R_O, k_cache, v_cache, *where, **options)[:11])


def test_copies_of_prefixes():
    k_L_X_D, v_L_X_D = randn(3, 400 * 2, 12), randn(3, 400 * 2, 12)
    twins = k_L_X_D.clone(), v_L_X_D.clone()
    copies = [(16, 144, 160, 80, 70), (16, 144, 240, 160, 131), (160, 80, 0, 16, 0)]
    for start, capacity, to, room, count in copies:
        for twin in twins:
            for head in range(2):
                of, at = 2 * start + head * capacity, 2 * to + head * room
                twin[:, at : at + count] = twin[:, of : of + count]
    copy_5_S = torch.tensor(copies, device=DEVICE).t().contiguous()
    kernels.copy_prefixes_(k_L_X_D, v_L_X_D, copy_5_S, longest=131, kv_heads=2)
    close(k_L_X_D, twins[0])
    close(v_L_X_D, twins[1])


@pytest.mark.parametrize("rank", [4, 16, 24])
@pytest.mark.parametrize("inputs", [48, 1100])
@pytest.mark.parametrize("sizes", [[96, 40, 40], [300]])
@pytest.mark.parametrize(("gap", "tile"), [(0, 16), (24, 16), (24, 64)])
def test_adapters_of_tiles(plain, rank, inputs, sizes, gap, tile):
    tiles = [(2, 0, 16), (2, 16, 3), (0, 19, 7), (3, 26, 1), (0, 0, 0)]
    if tile > 16:
        tiles = [(2, 0, 19), (0, 19, 7), (3, 26, 1), (0, 0, 0)]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size + gap)
    a_A_L_I, b_A_O_R = randn(4, len(sizes) * rank, inputs), randn(4, sum(sizes), rank)
    x_N_I, y_N_O = randn(30, inputs), randn(30, starts[-1])
    twin_N_O = y_N_O.clone()
    for member, first, count in tiles:
        here = slice(first, first + count)
        at = 0
        for index, ((start, _), size) in enumerate(zip(pairwise(starts), sizes, strict=True)):
            u = x_N_I[here] @ a_A_L_I[member, index * rank : (index + 1) * rank].t()
            twin_N_O[here, start : start + size] += 0.5 * u @ b_A_O_R[member, at : at + size].t()
            at += size
    table = kernels.expand_table(list(zip(starts[:-1], sizes, strict=True)), rank, DEVICE)
    member_K, start_K, count_K = torch.tensor(tiles, device=DEVICE).unbind(1)
    where = (member_K.contiguous(), start_K.contiguous(), count_K.contiguous())
    u_P_N_L = kernels.shrink(x_N_I, a_A_L_I, where, 0.5, tile)
    kernels.expand_(y_N_O, u_P_N_L, b_A_O_R, where, table, tile)
    close(y_N_O, twin_N_O)


@pytest.mark.parametrize("tile", [16, 64])
@pytest.mark.parametrize(("rank", "width", "inputs"), [(4, 40, 48), (24, 300, 1100)])
def test_adapters_of_gate_and_up(plain, rank, width, inputs, tile):
    tiles = torch.tensor([(2, 0, 16), (0, 16, 7), (3, 23, 1), (0, 0, 0)], device=DEVICE)
    where = tuple(column.contiguous() for column in tiles.unbind(1))
    a_A_L_I, b_A_O_R = randn(4, 2 * rank, inputs), randn(4, 2 * width, rank)
    x_N_I, y_N_2F = randn(24, inputs), randn(24, 2 * width)
    table = kernels.expand_table([(0, width), (width, width)], rank, DEVICE)
    u_P_N_L = kernels.shrink(x_N_I, a_A_L_I, where, 0.05, tile)
    mine_N_F = kernels.expand_gated(y_N_2F, u_P_N_L, b_A_O_R, where, tile)
    kernels.expand_(y_N_2F, u_P_N_L, b_A_O_R, where, table, tile)
    close(mine_N_F, ops.swiglu(y_N_2F), 1e-4)


def batch_of(counts: dict[int, int], rows: int) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The groups of so many rows of each member, and the member of each row; rows that are left over are the last's."""
    members = [member for member, count in counts.items() for _ in range(count)]
    members += [members[-1]] * (rows - len(members))
    order = list(counts)
    groups = torch.tensor([order.index(member) for member in members], device=DEVICE)
    return (groups, torch.tensor(order + [0] * (rows - len(order)), device=DEVICE)), torch.tensor(
        members, device=DEVICE
    )


BATCHES = [({2: 1}, 8), ({3: 2, 0: 1, 2: 17}, 24), ({4: 30, 1: 61, 3: 1, 0: 20, 2: 28}, 140)]
"""Rows of each member, and of the batch."""


def updates(u_R_L: torch.Tensor, b_A_O_R: torch.Tensor, member_R: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Of every row."""
    rank, at, parts = b_A_O_R.shape[2], 0, []
    for index, size in enumerate(sizes):
        u_R_K = u_R_L[:, index * rank : (index + 1) * rank]
        parts.append(torch.einsum("rk,rok->ro", u_R_K, b_A_O_R[member_R, at : at + size]))
        at += size
    return torch.cat(parts, 1)


@pytest.mark.parametrize(("counts", "rows"), BATCHES)
@pytest.mark.parametrize(("rank", "dim", "norm"), [(4, 16, False), (24, 40, True), (8, 64, False)])
def test_queries_keys_and_values_with_adapters(counts, rows, rank, dim, norm):
    heads, kv_heads, inputs = 4, 2, 200
    sizes = [heads * dim, kv_heads * dim, kv_heads * dim]
    groups, member_R = batch_of(counts, rows)
    x_R_I, weight_O_I, bias_O = randn(rows, inputs), randn(sum(sizes), inputs), randn(sum(sizes))
    u_R_L, b_A_O_R = randn(rows, 3 * rank), randn(5, sum(sizes), rank)
    norms = (randn(dim), randn(dim), 1e-5) if norm else None
    capacity = 16
    position_R = torch.arange(rows, device=DEVICE) % capacity
    start_R = torch.arange(rows, device=DEVICE) * capacity
    where = (position_R, start_R, torch.full((rows,), capacity, device=DEVICE))
    caches = torch.zeros(4, rows * capacity * kv_heads, dim, device=DEVICE)
    angles = tables(capacity, dim)
    twin_R_O = x_R_I @ weight_O_I.t() + bias_O + updates(u_R_L, b_A_O_R, member_R, sizes)
    kernels.rope_write_(twin_R_O, norms, *where, *angles, caches[2], caches[3], heads, kv_heads)
    mine_R_O = kernels.linear_rope(
        x_R_I, u_R_L, weight_O_I, bias_O, b_A_O_R, groups, norms, where, angles, (caches[0], caches[1]), heads, kv_heads
    )
    close(mine_R_O, twin_R_O[:, : sizes[0]], 1e-4)
    close(caches[0], caches[2], 1e-4)
    close(caches[1], caches[3], 1e-4)


@pytest.mark.parametrize(("counts", "rows"), BATCHES)
@pytest.mark.parametrize(("rank", "width", "inputs"), [(4, 40, 48), (24, 300, 200)])
def test_gate_and_up_with_adapters(plain, counts, rows, rank, width, inputs):
    groups, member_R = batch_of(counts, rows)
    x_R_I, weight_O_I = randn(rows, inputs), randn(2 * width, inputs) / 10
    u_R_L, b_A_O_R = randn(rows, 2 * rank), randn(5, 2 * width, rank)
    twin_R_F = ops.swiglu(x_R_I @ weight_O_I.t() + updates(u_R_L, b_A_O_R, member_R, [width, width]))
    close(kernels.linear_gated(x_R_I, u_R_L, weight_O_I, b_A_O_R, groups), twin_R_F, 1e-4)


def test_a_member_without_numbers_spoils_nobody_else():
    groups, member_R = batch_of({3: 2, 0: 4, 2: 17}, 24)
    x_R_I, weight_O_I, u_R_L, b_A_O_R = randn(24, 48), randn(80, 48), randn(24, 8), randn(5, 80, 4)
    right_R_F = kernels.linear_gated(x_R_I, u_R_L, weight_O_I, b_A_O_R, groups)
    b_A_O_R[0] = float("nan")
    others = member_R != 0
    close(kernels.linear_gated(x_R_I, u_R_L, weight_O_I, b_A_O_R, groups)[others], right_R_F[others])


@pytest.mark.parametrize("rows", [8, 40, 128])
@pytest.mark.parametrize(("rank", "outputs", "inputs"), [(4, 40, 48), (24, 300, 1100)])
def test_products_in_parts(rows, rank, outputs, inputs):
    tiles = [(2, 0, min(16, rows - 3)), (0, rows - 3, 2), (3, rows - 1, 1), (0, 0, 0)]
    where = tuple(torch.tensor(column, device=DEVICE) for column in zip(*tiles, strict=True))
    x_R_I, weight_O_I, a_A_L_I = randn(rows, inputs), randn(outputs, inputs), randn(5, rank, inputs)
    y_P_R_O, u_P_R_L = kernels.linear_parts(x_R_I, weight_O_I, a_A_L_I, where, 0.5, 16)
    close(y_P_R_O.sum(0), x_R_I @ weight_O_I.t(), 1e-4)
    for member, start, count in tiles:
        here = slice(start, start + count)
        close(u_P_R_L.sum(0)[here], 0.5 * x_R_I[here] @ a_A_L_I[member].t(), 1e-4) if count else None


@pytest.mark.parametrize(("rank", "width"), [(4, 40), (24, 300), (128, 1100)])
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("follows", [True, False])
def test_sum_norm_and_what_follows(plain, rank, width, adds, follows):
    groups, member_R = batch_of({2: 3, 0: 4, 3: 1}, 8)
    y_P_R_H, u_P_R_L, b_A_H_R = randn(3, 8, width), randn(2, 8, rank), randn(5, width, rank) / 10
    a_A_L_H, h_R_H, norm_H = randn(5, 3 * rank, width), randn(8, width), randn(width)
    y_R_H = y_P_R_H.sum(0) + updates(u_P_R_L.sum(0), b_A_H_R, member_R, [width]) if adds else None
    mine_R_H = h_R_H.clone()
    added = (y_P_R_H, u_P_R_L, b_A_H_R) if adds else None
    x_R_H, u_R_L = kernels.add_norm_shrink_(mine_R_H, added, groups, norm_H, 1e-5, (a_A_L_H, 0.5) if follows else None)
    twin_R_H = ops.add_rms_norm_(h_R_H, y_R_H, norm_H, 1e-5)
    close(mine_R_H, h_R_H, 1e-4)
    close(x_R_H, twin_R_H, 1e-4)
    if follows:
        close(u_R_L, 0.5 * torch.einsum("rh,rlh->rl", twin_R_H, a_A_L_H[member_R]), 1e-4)
    else:
        assert u_R_L.shape == (8, 0)


@pytest.mark.parametrize("vocabulary", [50, 4096, 9001])
def test_sampling(plain, vocabulary):
    logits_R_V = 3 * randn(12, vocabulary)
    temperature_R = torch.tensor([0.0, 1.0, 0.5, 2.0] * 3, device=DEVICE)
    key_R = torch.randint(-(2**63), 2**63 - 1, (12,), device=DEVICE)
    index_R = torch.arange(12, device=DEVICE)
    mine_R, mine_logprob_R = kernels.sample(logits_R_V, temperature_R, key_R, index_R)
    twin_R, twin_logprob_R = ops.sample(logits_R_V, temperature_R, key_R, index_R)
    assert mine_R.tolist() == twin_R.tolist()
    close(mine_logprob_R, twin_logprob_R)


def test_a_batch_with_long_parts_draws_the_same_tokens(monkeypatch):
    logits_R_V = 3 * randn(6, 30_000)
    temperature_R = torch.tensor([0.0, 1.0, 0.5, 2.0, 1.0, 1.0], device=DEVICE)
    numbers_R = torch.arange(6, device=DEVICE)
    short_R, short_logprob_R = kernels.sample(logits_R_V, temperature_R, numbers_R, numbers_R)
    monkeypatch.setattr("redqueen.engine.kernels.head.PROGRAMS", 12)
    long_R, long_logprob_R = kernels.sample(logits_R_V, temperature_R, numbers_R, numbers_R)
    assert short_R.tolist() == long_R.tolist()
    close(short_logprob_R, long_logprob_R)


def test_slots_advance(plain):
    state = DecodeState(40, 500, DEVICE)  # some are at the last position
    state._state_7_S.random_(0, 1000)
    slot_R = torch.tensor([3, 0, 17, 0, 40], device=DEVICE)
    logits_R_V = randn(5, 50)
    before_7_S = state._state_7_S.clone()
    token_R, _ = state.advance(slot_R, state.rows(slot_R), logits_R_V)
    twin_7_S, state._state_7_S = state._state_7_S, before_7_S
    kernels.advance_(state._state_7_S, slot_R, token_R, 499, token=TOKEN, position=POSITION, index=INDEX)
    assert (state._state_7_S[:, 1:] == twin_7_S[:, 1:]).all()


def test_sampling_stays_among_likely_tokens_at_both_ends(plain):
    """All weight on the first or on the last token of a vocabulary of several blocks."""
    for likely in (0, 9000):
        logits_R_V = torch.full((64, 9001), -200.0, device=DEVICE)
        logits_R_V[:, likely] = 0.0
        ones_R = torch.ones(64, device=DEVICE)
        keys_R = torch.arange(64, device=DEVICE)
        token_R, logprob_R = kernels.sample(logits_R_V, ones_R, keys_R, keys_R)
        assert set(token_R.tolist()) == {likely}
        close(logprob_R, torch.zeros_like(logprob_R))


def test_logits_that_are_not_numbers_still_give_a_token(plain):
    logits_R_V = torch.full((3, 50), float("nan"), device=DEVICE)
    keys_R = torch.arange(3, device=DEVICE)
    token_R, _ = kernels.sample(logits_R_V, torch.tensor([0.0, 1.0, 0.5], device=DEVICE), keys_R, keys_R)
    assert all(0 <= token < 50 for token in token_R.tolist())


@pytest.mark.parametrize("vocabulary", [50, 5001])
def test_head_and_its_derivative(plain, vocabulary):
    logits_M_V = 3 * randn(7, vocabulary)
    target_M = torch.randint(vocabulary, (7,), device=DEVICE)
    temperature_M = torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0, 0.7, 1.3], device=DEVICE)
    weight_M = randn(7)
    mine, twin = (f(logits_M_V, target_M, temperature_M) for f in (kernels.head_forward, ops.head_forward))
    for one, other in zip(mine, twin, strict=True):
        close(one, other)
    args = (logits_M_V, target_M, temperature_M, twin[1], weight_M, torch.float32)
    close(kernels.head_backward(*args), ops.head_backward(*args))
    exact_M_V = logits_M_V.clone().requires_grad_()
    logprob_M = (exact_M_V / temperature_M[:, None]).log_softmax(-1)[torch.arange(7), target_M]
    (grad_M_V,) = torch.autograd.grad((logprob_M * weight_M).sum(), exact_M_V)
    close(ops.head_backward(*args), grad_M_V)
