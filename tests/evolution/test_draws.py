"""Draws depend on the seed alone, and are distributed as they say."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.families import DEVICES
from redqueen.evolution.variation.draws import _BLOCK, Draws

CPU = torch.device("cpu")
MANY = 2 * _BLOCK + 12_345
every_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_numbers_do_not_depend_on_how_many_threads_draw_them(threads):
    found = []
    for count in (1, 3):
        threads(count)
        draws = Draws(7, CPU)
        found.append([draws.normal(MANY), draws.uniform(MANY), draws.coins(0.3, MANY), draws.subset(5, 40, rows=3)])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@every_device
def test_a_seed_gives_its_numbers_again_and_another_seed_others(device):
    def some(seed: int) -> list[torch.Tensor]:
        draws = Draws(seed, torch.device(device))
        return [draws.normal(50), draws.uniform(50), draws.coins(0.5, 50), draws.subset(3, 50)]

    assert all(torch.equal(one, other) for one, other in zip(some(1), some(1), strict=True))
    assert not any(torch.equal(one, other) for one, other in zip(some(1), some(2), strict=True))
    assert (Draws(1, CPU).number(0, 1), Draws(1, CPU).integer(0, 99)) == (
        Draws(1, CPU).number(0, 1),
        Draws(1, CPU).integer(0, 99),
    )


@every_device
def test_no_two_calls_draw_the_same(device):
    draws = Draws(0, torch.device(device))
    assert not torch.equal(draws.normal(20), draws.normal(20))
    assert not torch.equal(draws.coins(0.5, 64), draws.coins(0.5, 64))
    assert draws.number(0, 1) != draws.number(0, 1)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_blocks_meet_without_a_gap_or_a_repetition(extra):
    count = _BLOCK + extra
    drawn = Draws(3, CPU).normal(count)
    assert drawn.shape == (count,)
    assert torch.equal(drawn[:1000], Draws(3, CPU).normal(1000))
    assert drawn[-1] != 0
    longer = Draws(3, CPU).normal(2 * _BLOCK)
    assert torch.equal(longer[:count], drawn) or extra == 1
    assert not torch.equal(longer[:1000], longer[_BLOCK : _BLOCK + 1000])


@every_device
def test_moments_of_normal_and_uniform_numbers(device):
    draws = Draws(11, torch.device(device))
    normal, uniform = draws.normal(300_000).double(), draws.uniform(300_000, low=-2, high=4).double()
    assert abs(float(normal.mean())) < 5 / math.sqrt(300_000)
    assert float(normal.std()) == pytest.approx(1, abs=0.01)
    assert float(normal.pow(4).mean()) == pytest.approx(3, abs=0.1)
    assert (float(uniform.mean()), float(uniform.std())) == pytest.approx((1, 6 / math.sqrt(12)), abs=0.02)
    assert float(uniform.min()) >= -2
    assert float(uniform.max()) <= 4
    assert draws.normal(2, 3, 4).shape == (2, 3, 4)
    assert draws.normal(3).dtype == draws.uniform(3).dtype == torch.float32


@every_device
@pytest.mark.parametrize("chance", [0.0, 0.0001, 0.3, 0.5, 1.0])
def test_coins_fall_as_often_as_they_should(chance, device):
    tosses = 1_000_003
    found = float(Draws(5, torch.device(device)).coins(chance, tosses).double().mean())
    assert abs(found - chance) <= 5 * math.sqrt(chance * (1 - chance) / tosses) + 1 / 65536 * (0 < chance < 1)


@every_device
@given(seed=st.integers(0, 2**64 - 1), of=st.integers(1, 60), rows=st.integers(1, 5), part=st.floats(0, 1))
@settings(max_examples=30)
def test_a_subset_has_exactly_its_size(seed, of, rows, part, device):
    size = round(part * of)
    chosen = Draws(seed, torch.device(device)).subset(size, of, rows=rows)
    assert chosen.shape == (rows, of)
    assert (chosen.sum(dim=1) == size).all()


def test_a_subset_prefers_nobody():
    chosen = Draws(0, CPU).subset(3, 10, rows=20_000).double().mean(dim=0)
    assert torch.allclose(chosen, torch.full((10,), 0.3, dtype=torch.float64), atol=0.02)


def test_an_integer_reaches_both_ends():
    draws = Draws(0, CPU)
    assert {draws.integer(1, 3) for _ in range(60)} == {1, 2, 3}
    assert draws.integer(4, 4) == 4
