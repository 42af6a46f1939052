"""An update is what PEFT and torch's AdamW would do to each member alone, whoever shares the batch."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import tiny
from redqueen.engine.bank import BARE
from redqueen.engine.memory import out_of_memory
from redqueen.engine.protocol import MemberState, Recipe, SampleRequest, Trajectory
from redqueen.engine.trainer import Trainer
from redqueen.errors import InputError

EXACT = torch.float64
RECIPE = Recipe(
    # Of gradients that are zero but for rounding, a smaller eps would make whole steps.
    lr=0.02, betas=(0.8, 0.95), eps=1e-5, weight_decay=0.1, max_grad_norm=2.0, ratio_cap=1.5, normaliser=7.0,
)  # fmt: skip


def trajectories(members: Sequence[str], *, per_member: int = 2, seed: int = 0) -> list[Trajectory]:
    """Completions that the sampler thought a little more or less likely than they are, in no order."""
    random = Random(seed)
    batch = []
    for member in members:
        for _ in range(per_member):
            count = random.randrange(1, 12)
            each_token = tuple(random.gauss(0, 1) for _ in range(count))
            batch.append(
                Trajectory(
                    member=member,
                    prompt=tiny.tokens(random, random.randrange(1, 14)),
                    completion=tiny.tokens(random, count),
                    logprobs=tuple(random.gauss(-4.6, 1) for _ in range(count)),
                    advantages=random.choice([each_token, each_token[0]]),
                    temperature=random.choice([0.7, 1.0, 1.3]),
                )
            )
    random.shuffle(batch)
    return batch


class Alone:
    """One member in PEFT, trained by the letter of `Recipe`."""

    def __init__(self, model: Any, recipe: Recipe) -> None:
        self.model, self.recipe = model, recipe
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=recipe.lr, betas=recipe.betas, eps=recipe.eps, weight_decay=recipe.weight_decay
        )

    def loss(self, one: Trajectory) -> Tensor:
        ids = torch.tensor([[*one.prompt, *one.completion]])
        logits_T_V = self.model(ids).logits[0, len(one.prompt) - 1 : -1] / one.temperature
        logprob_T = logits_T_V.log_softmax(-1).gather(1, torch.tensor(one.completion)[:, None])[:, 0]
        ratio_T = (logprob_T.detach() - torch.tensor(one.logprobs, dtype=logprob_T.dtype)).exp()
        advantage_T = torch.tensor(one.advantages, dtype=logprob_T.dtype)
        return -(ratio_T.clamp(max=self.recipe.ratio_cap) * advantage_T * logprob_T).sum() / self.recipe.normaliser

    def step(self, batch: Sequence[Trajectory]) -> tuple[float, float]:
        """Loss, and norm of the gradient before it is clipped."""
        self.optimiser.zero_grad()
        loss = torch.stack([self.loss(one) for one in batch]).sum()
        loss.backward()
        limit = math.inf if self.recipe.max_grad_norm is None else self.recipe.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self.weights, limit)
        self.optimiser.step()
        return loss.item(), norm.item()

    def factors(self) -> dict[str, tuple[Tensor, Tensor]]:
        parameters = dict(self.model.named_parameters())
        names = [name.removesuffix(".lora_A.default.weight") for name in parameters if ".lora_A." in name]
        return {
            name.removeprefix("base_model.model."): tuple(
                parameters[f"{name}.lora_{half}.default.weight"].detach() for half in "AB"
            )
            for name in names
        }  # pyright: ignore[reportReturnType]


def relative(mine: MemberState, right: dict[str, tuple[Tensor, Tensor]], start: MemberState) -> float:
    """How far from the right weights, in units of how far those have moved."""
    assert mine.factors.keys() == right.keys()

    def stacked(factors) -> Tensor:
        return torch.cat([half.flatten() for name in sorted(right) for half in factors[name]])

    there = stacked(right)
    return float((stacked(mine.factors) - there).norm() / (there - stacked(start.factors)).norm())


CASES = [
    *((architecture, EXACT, 2, 2, 1e-9) for architecture in tiny.ARCHITECTURES),
    ("llama", EXACT, 8, 5, 1e-9),
    ("gemma3", EXACT, 8, 5, 1e-9),
    ("llama", torch.float32, 8, 5, 1e-3),
    ("gemma3", torch.float32, 8, 5, 1e-3),
]


@pytest.mark.parametrize(("architecture", "dtype", "members", "steps", "allowed"), CASES)
def test_members_that_train_together_train_as_alone_in_peft(architecture, dtype, members, steps, allowed, tmp_path):
    with tiny.engine(architecture, dtype, members=members) as opened:
        opened.trainer.micro_tokens = 96
        start = {member: opened.read(member) for member in opened.members}
        factors = {member: (1.0, 0.5, 0.1)[place % 3] for place, member in enumerate(opened.members)}
        alone = {
            member: Alone(
                tiny.with_adapter(architecture, state, tmp_path / member, dtype, train=True),
                replace(RECIPE, lr=RECIPE.lr * factors[member]),
            )
            for member, state in start.items()
        }
        clipped = set()
        for step in range(steps):
            batch = [replace(one, lr_factor=factors[one.member]) for one in trajectories(opened.members, seed=step)]
            stats = tiny.update(opened, batch, RECIPE)
            for member in opened.members:
                mine = [one for one in batch if one.member == member]
                loss, norm = alone[member].step(mine)
                assert stats[member].loss == pytest.approx(loss, rel=100 * allowed, abs=100 * allowed)
                assert stats[member].grad_norm == pytest.approx(norm, rel=100 * allowed)
                clipped.add(norm > 2.0)
        for member in opened.members:
            assert relative(opened.read(member), alone[member].factors(), start[member]) <= allowed
    assert clipped == {True, False} or members == 2, "both sides of the clipping are wanted"


@pytest.mark.parametrize("recipe", [replace(RECIPE, max_grad_norm=None), Recipe(lr=1e-2, ratio_cap=0.5)])
def test_other_recipes(recipe, tmp_path):
    with tiny.engine("qwen2", EXACT, members=1) as opened:
        start = opened.read("m0")
        alone = Alone(tiny.with_adapter("qwen2", start, tmp_path / "m0", EXACT, train=True), recipe)
        for step in range(2):
            batch = trajectories(["m0"], per_member=3, seed=step)
            tiny.update(opened, batch, recipe)
            alone.step(batch)
        assert relative(opened.read("m0"), alone.factors(), start) <= 1e-9


def test_the_statistics_are_those_of_the_tokens(tmp_path):
    batch = trajectories(["m1"], per_member=4)
    with tiny.engine("llama", EXACT) as opened:
        model = tiny.with_adapter("llama", opened.read("m1"), tmp_path / "m1", EXACT)
        [stats] = tiny.update(opened, batch, RECIPE).values()
    entropies, log_ratios = [], []
    for one in batch:
        with torch.no_grad():
            logits_T_V = model(torch.tensor([[*one.prompt, *one.completion]])).logits[0, len(one.prompt) - 1 : -1]
        logprob_T_V = (logits_T_V / one.temperature).log_softmax(-1)
        entropies += (-(logprob_T_V.exp() * logprob_T_V).sum(-1)).tolist()
        found_T = logprob_T_V.gather(1, torch.tensor(one.completion)[:, None])[:, 0]
        log_ratios += (found_T - torch.tensor(one.logprobs)).tolist()
    count = len(entropies)
    assert (stats.sequences, stats.trained_tokens, stats.skipped) == (4, count, False)
    assert stats.tokens == count + sum(len(one.prompt) for one in batch)
    assert stats.entropy == pytest.approx(sum(entropies) / count)
    assert stats.ratio_mean == pytest.approx(sum(map(math.exp, log_ratios)) / count)
    assert stats.ratio_max == pytest.approx(math.exp(max(log_ratios)))
    assert stats.kl == pytest.approx(sum(math.exp(log) - 1 - log for log in log_ratios) / count)


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_who_has_no_trajectories_does_not_change_by_one_bit(architecture):
    with tiny.engine(architecture, members=4) as opened:
        tiny.update(opened, trajectories(opened.members), RECIPE)
        before = {member: opened.read(member, optimiser=True) for member in opened.members}
        weights = {name: weight.clone() for name, weight in opened.base.model.named_parameters()}
        prompt = SampleRequest(prompt=(1, 2, 3), key=0, max_tokens=8)
        samples = tiny.sample(opened, [prompt])
        stats = tiny.update(opened, trajectories(["m1", "m3"]), RECIPE)
        assert stats.keys() == {"m1", "m3"}
        for member in ("m0", "m2"):
            assert same(opened.read(member, optimiser=True), before[member])
        for member in ("m1", "m3"):
            assert not same(opened.read(member, optimiser=True), before[member])
        assert tiny.sample(opened, [prompt]) == samples
        assert not opened.bank.masters_A_D[BARE].any() and not opened.bank.compute_A_D[BARE].any()
        for name, weight in opened.base.model.named_parameters():
            assert torch.equal(weight, weights[name])


def same(one: MemberState, other: MemberState) -> bool:
    """Bit by bit, with the optimiser's memory."""
    pairs = [(one.factors, other.factors)]
    if (one.optimiser is None) != (other.optimiser is None):
        return False
    if one.optimiser is not None and other.optimiser is not None:
        if one.optimiser.step != other.optimiser.step:
            return False
        pairs += [(one.optimiser.exp_avg, other.optimiser.exp_avg)]
        pairs += [(one.optimiser.exp_avg_sq, other.optimiser.exp_avg_sq)]
    return all(
        torch.equal(a, b)
        for mine, theirs in pairs
        for name in mine
        for a, b in zip(mine[name], theirs[name], strict=True)
    )


def after(architecture: str, *, micro_tokens: int = 4096, checkpointing: bool = False) -> list[MemberState]:
    """The members after two updates."""
    with tiny.engine(architecture, EXACT) as opened:
        opened.trainer.micro_tokens, opened.trainer.checkpointing = micro_tokens, checkpointing
        for seed in range(2):
            tiny.update(opened, trajectories(opened.members, per_member=4, seed=seed), RECIPE)
        return [opened.read(member) for member in opened.members]


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma3"])
def test_neither_micro_batches_nor_checkpointing_change_the_update(architecture):
    right = after(architecture)
    for micro_tokens, checkpointing in [(1, False), (80, False), (4096, True), (80, True)]:
        factors = after(architecture, micro_tokens=micro_tokens, checkpointing=checkpointing)
        for mine, theirs in zip(factors, right, strict=True):
            assert tiny.difference(mine, theirs) <= 1e-9


@pytest.mark.parametrize("architecture", tiny.FAST)
def test_the_fast_path_trains_as_the_general_path(architecture):
    batch = trajectories(["m0", "m1", "m2"])
    with tiny.engine(architecture, EXACT) as opened:
        body, bank = tiny.general(opened, architecture)
        for _ in range(2):
            mine = tiny.update(opened, batch, RECIPE)
            theirs = Trainer(body=body, bank=bank, micro_tokens=4096, checkpointing=False).update(batch, RECIPE)
        for member in opened.members:
            assert mine[member].grad_norm == pytest.approx(theirs[member].grad_norm, rel=1e-9)
            assert tiny.difference(opened.read(member), bank.read(member)) <= 1e-9


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_memory_that_runs_out_half_way_back_changes_nothing_but_the_micro_batch(architecture, checkpointing, capsys):
    batch = trajectories(["m0", "m1", "m2"], per_member=4)
    with tiny.engine(architecture, EXACT) as roomy, tiny.engine(architecture, EXACT) as tight:
        for opened in (roomy, tight):
            opened.trainer.checkpointing = checkpointing
        roomy.trainer.micro_tokens, tight.trainer.micro_tokens = 100, 401
        failures = run_out(tight, 150)
        for step in range(2):
            right = tiny.update(roomy, batch, RECIPE)
            stats = tiny.update(tight, batch, RECIPE)
            assert stats == right
            printed = capsys.readouterr().err
            if step == 0:
                assert failures and printed == "".join(
                    f"redqueen: out of memory; going on with {tokens} tokens at once\n" for tokens in (200, 100)
                )
            else:
                assert printed == "", "what was learnt about the memory is forgotten"
        for member in roomy.members:
            assert same(tight.read(member, optimiser=True), roomy.read(member, optimiser=True))


def run_out(opened, tokens: int) -> list[int]:
    """Have the memory run out when the backward pass of more tokens than this has reached the first block; how many
    tokens it was, each time."""
    hidden = opened.body.hidden
    failures: list[int] = []

    def tight(token_N, routing, attention, **options):
        if routing.gradients is not None and token_N.numel() > tokens:
            attend = attention.attend

            def watched(layer, q, *rest):
                if layer == 0 and q.requires_grad:
                    q.register_hook(lambda _: fail())
                return attend(layer, q, *rest)

            def fail():
                assert routing.gradients.sum_T_D.any(), "nothing has been added up yet"
                failures.append(token_N.numel())
                raise torch.OutOfMemoryError("out of memory: for the test")

            attention = Watched(attention.batch, attention.position_N, watched)
        return hidden(token_N, routing, attention, **options)

    opened.body.hidden = tight
    return failures


class Watched:
    """Attention as it is, by way of a function."""

    def __init__(self, batch: int, position_N: Tensor, attend) -> None:
        self.batch, self.position_N, self.attend = batch, position_N, attend


@pytest.mark.parametrize("micro_tokens", [1, 4096])
@pytest.mark.parametrize("advantage", [math.inf, -math.inf, math.nan])
def test_a_gradient_that_is_not_finite_costs_its_member_the_step_and_nobody_else(advantage, micro_tokens):
    batch = trajectories(["m0", "m1", "m2"])
    at = next(at for at, one in enumerate(batch) if one.member == "m1")
    spoilt = [*batch[:at], replace(batch[at], advantages=advantage), *batch[at + 1 :]]
    with tiny.engine("llama", EXACT) as opened, tiny.engine("llama", EXACT) as healthy:
        for one in (opened, healthy):
            one.trainer.micro_tokens = micro_tokens
            tiny.update(one, trajectories(one.members, seed=1), RECIPE)
        before = opened.read("m1", optimiser=True)
        stats = tiny.update(opened, spoilt, RECIPE)
        right = tiny.update(healthy, batch, RECIPE)
        assert {member: one.skipped for member, one in stats.items()} == {"m0": False, "m1": True, "m2": False}
        assert same(opened.read("m1", optimiser=True), before)
        for member in ("m0", "m2"):
            assert stats[member] == right[member]
            assert tiny.difference(opened.read(member), healthy.read(member)) <= 1e-12
        stats = tiny.update(opened, batch, RECIPE)
        assert not stats["m1"].skipped, "it does not recover"


def test_a_member_whose_weights_are_broken_breaks_nobody_else():
    batch = trajectories(["m0", "m1", "m2"])
    with tiny.engine("llama", EXACT) as opened, tiny.engine("llama", EXACT) as healthy:
        state = opened.read("m1")
        broken = {name: (a * math.nan, b) for name, (a, b) in state.factors.items()}
        opened.write("m1", replace(state, factors=broken))
        stats, right = (tiny.update(one, batch, RECIPE) for one in (opened, healthy))
        assert [stats[member].skipped for member in ("m0", "m1", "m2")] == [False, True, False]
        for member in ("m0", "m2"):
            assert stats[member] == right[member]
            assert tiny.difference(opened.read(member), healthy.read(member)) <= 1e-12


def test_an_optimiser_state_goes_on_in_another_engine_where_it_stopped():
    batches = [trajectories(["m0", "m1"], seed=seed) for seed in range(4)]
    with tiny.engine("llama", members=2) as opened, tiny.engine("llama", members=0) as other:
        for batch in batches[:2]:
            tiny.update(opened, batch, RECIPE)
        for member in opened.members:
            other.write(member, opened.read(member, optimiser=True))
        for batch in batches[2:]:
            assert tiny.update(other, batch, RECIPE) == tiny.update(opened, batch, RECIPE)
        for member in opened.members:
            state = opened.read(member, optimiser=True)
            assert state.optimiser is not None and state.optimiser.step == 4
            assert same(other.read(member, optimiser=True), state)


def test_weights_that_are_written_without_an_optimiser_state_start_with_a_fresh_one():
    batch = trajectories(["m0", "m1"])
    with tiny.engine("llama", members=2) as opened, tiny.engine("llama", members=2) as fresh:
        start = opened.read("m0")
        assert opened.read("m0", optimiser=True).optimiser is None
        tiny.update(opened, batch, RECIPE)
        opened.write("m0", start)
        assert opened.read("m0", optimiser=True).optimiser is None
        tiny.update(opened, batch, RECIPE)
        tiny.update(fresh, batch, RECIPE)
        assert same(opened.read("m0", optimiser=True), fresh.read("m0", optimiser=True))
        assert not same(opened.read("m1", optimiser=True), fresh.read("m1", optimiser=True))


def test_updates_that_are_asked_for_at_the_same_time_are_one_step_each():
    batches = [trajectories(members, seed=seed) for seed, members in enumerate([["m0", "m1"], ["m1", "m2"], ["m0"]])]

    async def together(opened):
        return await asyncio.gather(*(opened.update(batch, RECIPE) for batch in batches))

    with tiny.engine("llama", EXACT) as opened, tiny.engine("llama", EXACT) as one_by_one:
        updates = asyncio.run(together(opened))
        right = [tiny.update(one_by_one, batch, RECIPE) for batch in batches]
        assert [stats.keys() for stats in updates] == [stats.keys() for stats in right]
        for member, steps in [("m0", 2), ("m1", 2), ("m2", 1)]:
            state = opened.read(member, optimiser=True)
            assert state.optimiser is not None and state.optimiser.step == steps
            assert tiny.difference(state, one_by_one.read(member)) <= 1e-12


def test_recipes_are_not_mixed():
    batches = [trajectories(["m0"]), trajectories(["m1"])]
    still = replace(RECIPE, lr=0.0)

    async def together(opened):
        return await asyncio.gather(opened.update(batches[0], still), opened.update(batches[1], RECIPE))

    with tiny.engine("llama", EXACT) as opened:
        before = [opened.read(member) for member in ("m0", "m1")]
        asyncio.run(together(opened))
        moved = [tiny.difference(opened.read(m), state) for m, state in zip(("m0", "m1"), before, strict=True)]
    assert moved[0] == 0 < moved[1]


GOOD = Trajectory(member="m0", prompt=(1, 2), completion=(3, 4), logprobs=(-1.0, -2.0), advantages=1.0)
BAD = {
    "an unknown member": replace(GOOD, member="m9"),
    "the bare base": replace(GOOD, member=None),  # pyright: ignore[reportArgumentType]
    "an empty prompt": replace(GOOD, prompt=()),
    "an empty completion": replace(GOOD, completion=(), logprobs=()),
    "a token beyond the vocabulary": replace(GOOD, completion=(3, tiny.VOCABULARY)),
    "longer than the base": replace(GOOD, prompt=(1,) * 127),
    "log-probabilities that are too few": replace(GOOD, logprobs=(-1.0,)),
    "advantages that are too many": replace(GOOD, advantages=(1.0, 2.0, 3.0)),
    "temperature 0": replace(GOOD, temperature=0.0),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_trajectory_is_refused_in_one_line_before_anybody_changes(bad):
    async def callers(opened):
        return await asyncio.gather(
            opened.update([replace(GOOD, member="m1")], RECIPE), opened.update([GOOD, bad], RECIPE),
            return_exceptions=True,
        )  # fmt: skip

    with tiny.engine("llama") as opened:
        before = opened.read("m0", optimiser=True)
        fine, refused = asyncio.run(callers(opened))
        assert isinstance(refused, InputError) and "\n" not in str(refused)
        assert same(opened.read("m0", optimiser=True), before)
        assert isinstance(fine, dict) and fine.keys() == {"m1"}
        state = opened.read("m1", optimiser=True)
        assert state.optimiser is not None and state.optimiser.step == 1


def test_an_error_that_a_lack_of_memory_led_to_counts_as_one():
    """A capture that memory ended may complain of how it ended."""
    try:
        try:
            raise torch.OutOfMemoryError("CUDA out of memory")
        finally:
            raise RuntimeError("capturing stream has unjoined work")
    except RuntimeError as error:
        assert out_of_memory(error)
    assert not out_of_memory(RuntimeError("capturing stream has unjoined work"))
