"""Where members live, and where their sequences do: nobody reaches into a neighbour's place."""

import math
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import tiny
from redqueen.engine.bank import BARE, Bank, Linear
from redqueen.engine.kv_cache import SCRATCH, KVCache
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, OptimiserState, Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.errors import InputError

MODULE = "model.layers.0.self_attn.q_proj"
SHAPES = [[Linear("q", 6, 5), Linear("k", 6, 3)], [Linear("o", 5, 6)]]


def bank(members=("a", "b"), **options) -> Bank:
    options = {"rank": 2, "alpha": 4.0, "device": torch.device("cpu"), "dtype": torch.float32, **options}
    return Bank(SHAPES, members=members, **options)


def same(one: MemberState, other: MemberState) -> bool:
    return tiny.difference(one, other) == 0 and (one.rank, one.alpha) == (other.rank, other.alpha)


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_fresh_members_share_a_and_say_exactly_what_the_base_says(architecture):
    with LocalEngine(tiny.base(architecture), members=["m0", "m1"], rank=4, seed=3) as opened:
        one, other = opened.read("m0"), opened.read("m1")
        assert same(one, other)
        for name, (a_R_I, b_O_R) in one.factors.items():
            # Spread as PEFT spreads them: evenly, up to one over the root of the inputs.
            bound = 1 / math.sqrt(a_R_I.shape[1])
            assert 0.8 * bound < a_R_I.abs().max() <= bound, name
            assert a_R_I.std() == pytest.approx(bound / math.sqrt(3), rel=0.25), name
            assert not b_O_R.any()
        requests = [
            ScoreRequest(prompt=(1, 2, 3), completion=(4, 5, 6), member=member, hidden=True)
            for member in (None, "m0", "m1")
        ]
        bare, *members = tiny.score(opened, requests)
    for score in members:
        assert score.logprobs == bare.logprobs
        assert score.hidden is not None and bare.hidden is not None and torch.equal(score.hidden, bare.hidden)


def test_the_seed_draws_the_shared_factors():
    states = [bank(seed=seed).read("a") for seed in (0, 0, 1)]
    assert same(states[0], states[1]) and not same(states[0], states[2])


def test_members_are_looked_at_where_they_are():
    with tiny.engine("llama", members=2) as opened:
        opened.write("m1", tiny.shaken(opened.read("m1"), 1))

        def make(states):
            names = [threading.current_thread().name, *(tensor.data_ptr() for tensor in states[1].factors[MODULE])]
            return [tiny.difference(state, opened.bank.read(id)) for state, id in zip(states, ids, strict=True)], names

        ids = ["m1", "m0"]
        differences, (thread, a_at, _) = opened.look(ids, make)
        row_D = opened.bank.masters_A_D[opened.bank.row("m0")]
        assert row_D.data_ptr() <= a_at < row_D.data_ptr() + row_D.nbytes
        assert thread.startswith("engine")
        assert tiny.difference(opened.look(["m1"], lambda _: opened.read("m0")), opened.read("m0")) == 0
        with pytest.raises(InputError, match="no member 'm9'"):
            opened.look(["m9"], make)
    assert differences == [0, 0]


def test_what_is_written_is_read_and_is_a_copy():
    held = bank()
    state = tiny.shaken(held.read("a"), 1)
    held.write("a", state)
    assert same(held.read("a"), state) and not same(held.read("b"), state)
    for a_R_I, b_O_R in [*held.read("a").factors.values(), *state.factors.values()]:
        a_R_I.zero_()
        b_O_R.zero_()
    assert same(held.read("a"), tiny.shaken(held.read("b"), 1))


def test_the_compute_copy_follows_its_masters():
    held = bank(dtype=torch.bfloat16)
    state = tiny.shaken(held.read("a"), 1)
    held.write("a", state)
    held.write("c", state)  # which makes the bank grow
    assert same(held.read("a"), state), "masters keep all their digits"
    assert torch.equal(held.compute_A_D, held.masters_A_D.bfloat16())
    assert not torch.equal(held.compute_A_D.float(), held.masters_A_D)


def test_a_newcomer_changes_nobody():
    with tiny.engine("llama", members=2) as opened:
        train(opened, "m0", "m1")
        before = {member: opened.read(member, optimiser=True) for member in opened.members}
        requests = [ScoreRequest(prompt=(1, 2), completion=(3, 4, 5), member=member) for member in ("m0", "m1", None)]
        scores = tiny.score(opened, requests)
        version = opened.bank.version
        opened.write("new", tiny.shaken(opened.read("m0"), 9))
        assert opened.members == ["m0", "m1", "new"] and opened.bank.version > version
        assert tiny.score(opened, requests) == scores
        for member, state in before.items():
            now = opened.read(member, optimiser=True)
            assert same(now, state) and now.optimiser is not None and state.optimiser is not None
            assert now.optimiser.step == state.optimiser.step == 1
        assert same(opened.read("new"), tiny.shaken(opened.read("m0"), 9))


def train(opened: LocalEngine, *members: str) -> None:
    batch = [
        Trajectory(member=member, prompt=(1, 2), completion=(3, 4), logprobs=(-4.0, -4.0), advantages=1.0)
        for member in members
    ]
    tiny.update(opened, batch, Recipe(lr=0.1))


def test_who_leaves_makes_room_and_leaves_nothing_behind():
    with tiny.engine("llama", members=3) as opened:
        train(opened, "m1")
        size, others = opened.bank.masters_A_D.shape[0], [opened.read(member) for member in ("m0", "m2")]
        opened.remove("m1")
        with pytest.raises(InputError, match="no member 'm1'; the members are m0, m2"):
            opened.read("m1")
        opened.bank.add(["new"])
        assert opened.bank.masters_A_D.shape[0] == size, "its place is free"
        fresh = opened.read("new", optimiser=True)
        assert fresh.optimiser is None and not any(b_O_R.any() for _, b_O_R in fresh.factors.values())
        assert all(same(opened.read(m), state) for m, state in zip(("m0", "m2"), others, strict=True))


def test_nobody_lives_in_the_place_of_the_bare_base():
    held = bank(members=[])
    for name in "abc":
        held.write(name, tiny.shaken(bank().read("a"), 1))
    held.remove("a")
    held.add(["d", "e"])
    assert len(set(held.rows.values())) == 4 and BARE not in held.rows.values()
    assert not held.masters_A_D[BARE].any()


@pytest.mark.parametrize("act", [lambda held: held.write(None, FULL), lambda held: held.remove(None)])
def test_the_bare_base_is_nobody_to_write_or_to_remove(act):
    held = bank()
    with pytest.raises(InputError):
        act(held)
    assert not held.masters_A_D[BARE].any() and list(held.rows) == ["a", "b"]


def test_factors_do_not_overlap():
    """Each is written with a number of its own, and all are read back."""
    held = bank(members=["a"], rank=3)
    factors = {
        name: tuple(torch.full_like(half, 2 * at + side + 1) for side, half in enumerate(pair))
        for at, (name, pair) in enumerate(held.read("a").factors.items())
    }
    held.write("a", MemberState(3, 4.0, factors))  # pyright: ignore[reportArgumentType]
    assert same(held.read("a"), MemberState(3, 4.0, factors))  # pyright: ignore[reportArgumentType]


FULL = bank().read("a")
Q, O = FULL.factors["q"], FULL.factors["o"]  # noqa: E741
FOREIGN: dict[str, Callable[[], MemberState]] = {
    "another rank": lambda: replace(FULL, rank=3),
    "another alpha": lambda: replace(FULL, alpha=4.5),
    "a module too few": lambda: replace(FULL, factors={"q": Q, "o": O}),
    "a module too many": lambda: replace(FULL, factors={**FULL.factors, "v": Q}),
    "another width": lambda: replace(FULL, factors={**FULL.factors, "k": Q}),
    "factors the other way round": lambda: replace(FULL, factors={**FULL.factors, "q": (Q[1], Q[0])}),
    "an optimiser of another shape": lambda: replace(
        FULL, optimiser=OptimiserState(1, FULL.factors, {**FULL.factors, "k": Q})
    ),
}


@pytest.mark.parametrize("member", ["a", "new"])
@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_a_state_that_does_not_fit_is_refused_in_one_line_and_changes_nothing(foreign, member):
    held = bank()
    held.write("a", tiny.shaken(FULL, 1))
    before = held.masters_A_D.clone()
    with pytest.raises(InputError) as refusal:
        held.write(member, foreign())
    assert "\n" not in str(refusal.value)
    assert torch.equal(held.masters_A_D, before) and list(held.rows) == ["a", "b"]


@pytest.mark.parametrize("options", [{"rank": 0}, {"alpha": 0.0}, {"alpha": float("nan")}])
def test_an_adapter_without_substance_is_refused(options):
    with pytest.raises(InputError, match="use numbers above 0"):
        LocalEngine(tiny.base("llama"), **{"rank": 4, **options})


# Regions of the cache

CALLS = st.lists(st.tuples(st.booleans(), st.integers(1, 12), st.integers(0, 99)), max_size=60)


@settings(max_examples=60)
@given(CALLS)
def test_regions_never_overlap_and_come_back_as_one(calls):
    cache = KVCache(tokens=64, layers=1, kv_heads=1, dim=1, device=torch.device("cpu"), dtype=torch.float32)
    taken: list[tuple[int, int]] = []
    for takes, size, which in calls:
        if takes or not taken:
            start = cache.allocate(size)
            used = {place for low, length in taken for place in range(low, low + length)}
            room = [p for p in range(SCRATCH, SCRATCH + 64 - size + 1) if not used & set(range(p, p + size))]
            assert start == min(room, default=None), "not the lowest place that is free"
            if start is not None:
                taken.append((start, size))
        else:
            cache.release(*taken.pop(which % len(taken)))
    for region in taken:
        cache.release(*region)
    assert cache.allocate(64) == SCRATCH and cache.allocate(1) is None


@settings(max_examples=30)
@given(st.integers(1, 4), st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_every_position_of_every_sequence_has_a_place_of_its_own(kv_heads, sizes):
    cache = KVCache(tokens=64, layers=1, kv_heads=kv_heads, dim=1, device=torch.device("cpu"), dtype=torch.float32)
    starts = [start for size in sizes if (start := cache.allocate(size)) is not None]
    regions = [(torch.tensor([start]), torch.tensor([size])) for start, size in zip(starts, sizes, strict=False)]
    places = [
        place
        for start_1, size_1 in regions
        for place in cache.places(start_1, size_1, torch.arange(int(size_1))[None]).flatten().tolist()
    ]
    assert len(set(places)) == len(places) == kv_heads * sum(sizes[: len(starts)])
    assert SCRATCH * kv_heads <= min(places) and max(places) < cache.k.shape[1]


def test_a_bank_without_members_computes_in_the_bases_dtype():
    opened = LocalEngine(tiny.base("llama", torch.bfloat16), rank=4, memory_bytes=1 << 30)
    with opened:
        opened.bank.add(["late"])
        request = SampleRequest(prompt=(1, 2, 3), member="late", key=1, max_tokens=4)
        assert len(tiny.sample(opened, [request])[0].tokens) == 4
