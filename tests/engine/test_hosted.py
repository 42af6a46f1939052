"""Members whose masters and moments are in the host's memory sample, score and learn as any, bit for bit."""

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from engine import tiny
from engine.test_bank import bank
from engine.test_update import RECIPE, same, trajectories
from redqueen.analysis.distance import weight_cosines
from redqueen.engine import memory, pinned, shapes
from redqueen.engine.adaptable import adaptable
from redqueen.engine.bank import BARE
from redqueen.engine.local import LocalEngine
from redqueen.engine.memory import GIB, MemoryPlan
from redqueen.engine.protocol import MemberState, SampleRequest, ScoreRequest, Trajectory
from redqueen.errors import InputError, MachineError
from redqueen.evolution.consensus import pulled
from redqueen.evolution.variation import child, find

CPU = torch.device("cpu")
HALF = torch.bfloat16


def states(opened: LocalEngine) -> list[MemberState]:
    return [opened.read(member, optimiser=True) for member in opened.members]


def answers(opened: LocalEngine) -> list[Any]:
    """What members and the bare base write, and how likely they find it."""
    random = Random(3)
    asked = [
        SampleRequest(prompt=tiny.tokens(random, 5), member=member, key=key, max_tokens=7)
        for key, member in enumerate([None, *opened.members])
    ]
    samples = tiny.sample(opened, asked)
    scored = [ScoreRequest(prompt=one.prompt, completion=(4, 2, 9), member=one.member) for one in asked]
    return [[one.tokens for one in samples], [one.logprobs for one in samples + tiny.score(opened, scored)]]


@pytest.fixture
def pair() -> Any:
    """Engines that are opened with and without hosted members, closed at the end."""
    opened: list[LocalEngine] = []

    def both(*of: Any, **options: Any) -> list[LocalEngine]:
        opened.extend(tiny.engine(*of, **options, hosted=hosted) for hosted in (True, False))
        return opened

    yield both
    for engine in opened:
        engine.close()


Pair = Callable[..., list[LocalEngine]]


def test_what_is_computed_with_is_apart_from_hosted_masters():
    held = bank(hosted=True)
    assert held.compute_A_D is not held.masters_A_D and held.compute_A_D.dtype == held.masters_A_D.dtype
    held.write("a", tiny.shaken(held.fresh(), 1))
    held.add(["c", "d"])
    held.reserve(5)
    assert torch.equal(held.compute_A_D, held.masters_A_D) and held.masters_A_D[held.row("a")].any()
    assert not held.masters_A_D[BARE].any()


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_hosted_members_do_what_others_do(architecture: str, dtype: torch.dtype, pair: Pair):
    hosted, plain = pair(architecture, dtype)
    assert hosted.plan.hosted and hosted.bank.hosted and not plain.plan.hosted
    hosted.trainer.together = None
    for seed in range(3):
        assert answers(hosted) == answers(plain)
        factors = dict(zip(plain.members, (1.0, 0.5, 0.5), strict=True))
        batch = [replace(one, lr_factor=factors[one.member]) for one in trajectories(plain.members, seed=seed)]
        assert tiny.update(hosted, batch, RECIPE) == tiny.update(plain, batch, RECIPE)
        for mine, other in zip(states(hosted), states(plain), strict=True):
            assert same(mine, other)
    assert answers(hosted) == answers(plain)


@pytest.mark.parametrize("together", [1, 2])
def test_groups_are_updates_of_some_of_the_members(together: int, pair: Pair):
    hosted, plain = pair("llama")
    hosted.trainer.together = together
    for seed in range(3):
        batch = trajectories(plain.members, seed=seed)
        stats = tiny.update(hosted, batch, RECIPE)
        members, right = list(stats), {}
        for at in range(0, len(members), together):
            group = members[at : at + together]
            right |= tiny.update(plain, [one for one in batch if one.member in group], RECIPE)
        assert stats == right
        for mine, other in zip(states(hosted), states(plain), strict=True):
            assert same(mine, other)
    assert answers(hosted) == answers(plain)


def ragged(members: list[str], seed: int) -> list[Trajectory]:
    return trajectories(members, seed=seed)


def as_long_as_each_other(members: list[str], seed: int) -> list[Trajectory]:
    random = Random(seed)
    return [
        Trajectory(
            member=member, prompt=tiny.tokens(random, 9), completion=tiny.tokens(random, 7), logprobs=(-4.0,) * 7,
            advantages=random.gauss(0, 1),
        )
        for member in members for _ in range(2)
    ]  # fmt: skip


@pytest.mark.parametrize(("make", "allowed"), [(as_long_as_each_other, 0.0), (ragged, 1e-9)])
def test_groups_change_nothing_but_rounding(make: Callable[..., list[Trajectory]], allowed: float):
    """A batch is as wide as its longest sequence, and its width decides the order in which a product sums: where all
    are as long as each other, nothing changes at all."""
    found = []
    for together in (1, 2, None):
        with tiny.engine("llama", torch.float64, members=5, hosted=True) as opened:
            opened.trainer.together = together
            for seed in range(3):
                tiny.update(opened, make(opened.members, seed), RECIPE)
            found.append([opened.read(member) for member in opened.members])
    for other in found[:2]:
        for mine, right in zip(other, found[2], strict=True):
            assert tiny.difference(mine, right) <= allowed


def test_members_come_and_go_and_go_on_elsewhere(pair: Pair):
    hosted, plain = pair("llama")
    hosted.trainer.together = None
    batch = trajectories(["m0", "m1", "m2"])
    for opened in (hosted, plain):
        tiny.update(opened, batch, RECIPE)
        opened.remove("m1")
        opened.write("new", opened.read("m0", optimiser=True))
        opened.write("more", opened.read("m2"))
        opened.write("m0", opened.fresh())
    assert hosted.members == plain.members
    with tiny.engine("llama", members=0, hosted=True) as resumed:
        resumed.trainer.together = None
        for member in plain.members:
            resumed.write(member, plain.read(member, optimiser=True))
        batch = trajectories(plain.members, seed=1)
        right = tiny.update(plain, batch, RECIPE)
        for opened in (hosted, resumed):
            assert tiny.update(opened, batch, RECIPE) == right
            for member in plain.members:
                assert same(opened.read(member, optimiser=True), plain.read(member, optimiser=True))
            assert answers(opened) == answers(plain)


def test_averages_children_and_distances_are_the_same(pair: Pair):
    hosted, plain = pair("llama")
    hosted.trainer.together = None
    found = []
    for opened in (hosted, plain):
        tiny.update(opened, trajectories(opened.members), RECIPE)
        cosines = opened.look(opened.members, weight_cosines)
        for member, state in zip(opened.members, pulled(states(opened), 0.5, states(opened)), strict=True):
            opened.write(member, state)
        for operator in map(find, ("mean", "fisher")):
            parents = [opened.read(member, optimiser=operator.moments) for member in ("m0", "m1")]
            opened.write(operator.name, child(operator, parents, seed=1, device=opened.device))
        found.append((cosines, states(opened), answers(opened)))
    (cosines, mine, said), (right_cosines, right, right_said) = found
    assert torch.equal(cosines, right_cosines) and said == right_said
    assert all(same(*both) for both in zip(mine, right, strict=True))


def test_a_gradient_that_is_not_finite_costs_its_member_alone_the_step():
    with tiny.engine("llama", hosted=True) as opened:
        opened.trainer.together = 2
        before = opened.read("m1", optimiser=True)
        batch = [
            replace(one, advantages=float("nan")) if one.member == "m1" else one for one in trajectories(opened.members)
        ]
        stats = tiny.update(opened, batch, RECIPE)
        assert [stats[member].skipped for member in opened.members] == [False, True, False]
        assert same(opened.read("m1", optimiser=True), before)


def test_what_fails_after_some_have_learnt_is_not_tried_again(monkeypatch):
    """A user's mistake is: calls that shared an update are then made one by one."""
    batch = sorted(trajectories(["m0", "m1", "m2"]), key=lambda one: one.member)
    with tiny.engine("llama", hosted=True) as opened:
        opened.trainer.together = 1
        hidden, broken = opened.body.hidden, opened.bank.row("m2")

        def tight(token_N, routing, attention, **options):
            if int(routing.member_K[0]) == broken:
                raise torch.OutOfMemoryError("out of memory: for the test")
            return hidden(token_N, routing, attention, **options)

        monkeypatch.setattr(opened.body, "hidden", tight)
        before = [opened.read(member) for member in opened.members]
        with pytest.raises(MachineError, match="does not fit into memory"):
            tiny.update(opened, batch, RECIPE)
        assert [same(opened.read(f"m{at}"), before[at]) for at in range(3)] == [False, False, True]
        with pytest.raises(InputError, match="does not fit into memory"):
            tiny.update(opened, [one for one in batch if one.member == "m2"], RECIPE)


# The plan


def planned(base: str, members: int, size: int, quantise: Any = "none", **options: Any) -> MemoryPlan:
    model = shapes.outline(base, quantise)
    shape, linears = memory.Shape.of(model, fast=True), adaptable(model, None)
    options = {"device": "cuda", "dtype": HALF, **options}
    return memory.plan(shape, linears, rank=16, members=members, memory=size, **options)


def test_members_are_hosted_where_nothing_else_leaves_room():
    few, some, many = (planned("random:1.5b", count, 23 * GIB) for count in (1, 30, 100))
    assert (few.hosted, few.checkpointing) == (False, False)
    assert (some.hosted, some.checkpointing) == (False, True)
    assert many.hosted and many.micro_tokens >= memory.FEW_TOKENS
    assert many.peak(many.micro_tokens, many.cache_tokens) <= 23 * GIB * (1 - memory.SPARE)
    assert 1 <= many.together <= 100
    # Of a number in bfloat16, with a master and two moments of four bytes each.
    assert 2 * many.host == many.member * (12 * 100 + 4)
    assert many.trained_member == 0 and few.trained_member == 2 * few.member
    assert planned("random:1.5b", 100, 23 * GIB, hosted=False).micro_tokens == 0


def test_evolution_alone_has_only_masters_to_host():
    plan = planned("random:1.5b", 170, 23 * GIB, trains=False)
    assert plan.hosted and (plan.together, plan.gradient) == (0, 0)
    assert plan.host == 171 * 2 * plan.member
    assert not planned("random:1.5b", 100, 23 * GIB, trains=False).hosted


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"dtype": torch.float32, "trains": False}])
def test_members_are_not_hosted_where_that_saves_nothing(options: Any):
    assert not planned("random:1.5b", 200, 23 * GIB, **options).hosted


def test_the_host_must_hold_them():
    plan = planned("random:1.5b", 100, 23 * GIB)
    assert planned("random:1.5b", 100, 23 * GIB, host=memory.COPIES * plan.host).micro_tokens == 0
    assert planned("random:1.5b", 100, 23 * GIB, host=int(memory.COPIES * plan.host / 0.9)) == plan


def test_a_peak_is_less_where_few_members_are_trained():
    hosted, plain = planned("random:1.5b", 100, 23 * GIB), planned("random:1.5b", 4, 23 * GIB)
    assert hosted.untrained(1) == (hosted.together - 1) * hosted.gradient and hosted.untrained(100) == 0
    assert plain.untrained(1) == 3 * plain.trained_member and plain.untrained(4) == 0


def test_an_engine_says_where_its_members_are(capsys):
    with tiny.engine("llama", hosted=True) as opened:
        plan, said = opened.plan, capsys.readouterr().err
        assert opened.trainer.together == plan.together == 3
    assert said == f"redqueen: there is room for {plan.described()}\n"
    assert "the members' masters and moments in 0.1 MiB of the host's memory and the gradients of 3 at a time" in said


def test_a_host_without_room_for_them_is_one_line():
    with pytest.raises(InputError) as refused:
        tiny.engine("llama", hosted=True, host_bytes=1000)
    assert "leave no room to train, and 0.0 MiB of the host's memory cannot hold their masters" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_processes_that_keep_to_each_others_limits_have_gradients_of_as_many():
    limits = memory.Limits(5, 5, 5, 7), memory.Limits(9, 9, 9), memory.Limits(8, 4, 8, 3)
    assert memory.Limits.least(limits) == memory.Limits(5, 4, 5, 3)
    assert memory.Limits.least(limits[1:2]).together is None
    with tiny.engine("llama") as opened:
        opened.agree(replace(opened.limits, together=1))
        assert opened.limits.together == 1
        assert len(asyncio.run(opened.update(trajectories(opened.members), RECIPE))) == 3


# Pages of the host


class Runtime:
    """Stands for CUDA's, which no CPU has: pages that are pinned, with the rules that it has for them."""

    cudaError = staticmethod(int)

    def __init__(self, refuses: bool) -> None:
        self.pinned: dict[int, int] = {}
        self.refuses = refuses

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        assert flags == pinned.PORTABLE and address % 4096 == size % 4096 == 0
        if self.refuses:
            return 2
        assert all(address + size <= at or at + other <= address for at, other in self.pinned.items())
        self.pinned[address] = size
        return 0

    def cudaHostUnregister(self, address: int) -> int:
        del self.pinned[address]
        return 0

    def cudaGetErrorString(self, code: int) -> str:
        return f"out of memory ({code})"


def test_pages_are_pinned_until_the_last_tensor_of_them_goes(monkeypatch):
    runtime = Runtime(refuses=False)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "check_error", lambda code: None)
    many = [pinned.host_zeros(3, 700, dtype=torch.float32, beside=torch.device("cuda")) for _ in range(4)]
    assert all(each.shape == (3, 700) and not each.any() for each in many)
    assert len(runtime.pinned) == 4 and all(each.data_ptr() in runtime.pinned for each in many)
    row = many[0][1]
    row.fill_(2.0)
    many.clear()
    gc.collect()
    assert len(runtime.pinned) == 1 and bool((row == 2).all())
    del row
    gc.collect()
    assert not runtime.pinned


def test_pages_that_cannot_be_pinned_are_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "cudart", lambda: Runtime(refuses=True))
    with pytest.raises(MachineError, match=r"cannot be pinned for the GPU \(out of memory \(2\)\); use fewer members"):
        pinned.host_zeros(10, dtype=torch.float32, beside=torch.device("cuda"))
