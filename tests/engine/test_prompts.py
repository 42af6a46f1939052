"""A prompt that several sequences of a member go on from passes through the base once, and nothing else changes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
import torch

from engine import tiny
from engine.test_update import EXACT, RECIPE, Alone, relative, run_out, same
from redqueen.engine import lora
from redqueen.engine.protocol import ScoreRequest, Trajectory

LENGTHS = [1, 2, 3, 7, 12, 17, 23, 40]
"""Of completions: two sizes of branches, and one of a single token."""


def group(random: Random, member: str, prompt: int, lengths: Sequence[int]) -> list[Trajectory]:
    """Completions of these lengths that go on from one prompt."""
    start = tiny.tokens(random, prompt)
    return [
        Trajectory(
            member=member,
            prompt=start,
            completion=tiny.tokens(random, count),
            logprobs=tuple(random.gauss(-4.6, 1) for _ in range(count)),
            advantages=tuple(random.gauss(0, 1) for _ in range(count)),
            temperature=random.choice([0.7, 1.0, 1.3]),
        )
        for count in lengths
    ]


def groups(members: Sequence[str], seed: int = 0) -> list[Trajectory]:
    """Of 1, 4 and 8 sequences for each member, in no order; two members have one prompt in common."""
    random = Random(seed)
    sequences = []
    for member in members:
        random.shuffle(lengths := list(LENGTHS))
        sequences += group(random, member, random.randrange(1, 30), [5])
        sequences += group(random, member, random.randrange(10, 20), lengths[:4])
        sequences += group(random, member, random.randrange(30, 60), lengths)
    common = group(random, members[0], 25, LENGTHS[:4])
    sequences += common + [replace(one, member=members[-1]) for one in common]
    random.shuffle(sequences)
    return sequences


def passed(opened) -> list[int]:
    """How many tokens, with padding, go through the base each time."""
    hidden, counts = opened.body.hidden, []

    def counted(token_N, *args, **options):
        counts.append(len(token_N))
        return hidden(token_N, *args, **options)

    opened.body.hidden = counted
    return counts


def total(batch: Sequence[Trajectory]) -> int:
    return sum(len(one.prompt) + len(one.completion) for one in batch)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_members_train_as_alone_in_peft(architecture, checkpointing, tmp_path):
    with tiny.engine(architecture, EXACT) as opened:
        opened.trainer.checkpointing = checkpointing
        start = {member: opened.read(member) for member in opened.members}
        batch = groups(opened.members)
        counts = passed(opened)
        stats = tiny.update(opened, batch, RECIPE)
        assert sum(counts) < 0.8 * total(batch), "the prompts are not shared"
        for member in opened.members:
            alone = Alone(tiny.with_adapter(architecture, start[member], tmp_path / member, EXACT, train=True), RECIPE)
            mine = [one for one in batch if one.member == member]
            loss, norm = alone.step(mine)
            assert stats[member].loss == pytest.approx(loss, rel=1e-9)
            assert stats[member].grad_norm == pytest.approx(norm, rel=1e-9)
            assert (stats[member].sequences, stats[member].tokens) == (len(mine), total(mine))
            assert relative(opened.read(member), alone.factors(), start[member]) <= 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3"])
def test_neighbours_in_a_batch_do_not_change_one_bit(architecture, seed):
    with tiny.engine(architecture) as together, tiny.engine(architecture) as alone:
        batch = groups(together.members, seed)
        counts = passed(together)
        stats = tiny.update(together, batch, RECIPE)
        assert len(counts) == 2, "what is shared and what is not are one batch each"
        assert tiny.update(alone, [one for one in batch if one.member == "m1"], RECIPE)["m1"] == stats["m1"]
        assert same(together.read("m1", optimiser=True), alone.read("m1", optimiser=True))


@pytest.mark.parametrize("architecture", ["mistral", "gemma3"])
def test_a_neighbour_whose_weights_are_broken_breaks_nobody_else(architecture):
    with tiny.engine(architecture) as opened, tiny.engine(architecture) as healthy:
        state = opened.read("m1")
        opened.write("m1", replace(state, factors={name: (a * math.nan, b) for name, (a, b) in state.factors.items()}))
        batch = groups(opened.members)
        stats, right = (tiny.update(one, batch, RECIPE) for one in (opened, healthy))
        assert [stats[member].skipped for member in opened.members] == [False, True, False]
        for member in ("m0", "m2"):
            assert stats[member] == right[member]
            assert same(opened.read(member), healthy.read(member))


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_scores_are_those_of_each_sequence_by_itself(architecture):
    with tiny.engine(architecture, EXACT) as opened:
        requests = [
            ScoreRequest(
                prompt=one.prompt, completion=one.completion, member=member, temperature=one.temperature, hidden=True
            )
            for one in groups(opened.members)
            for member in (one.member, None)
        ]
        counts = passed(opened)
        together = tiny.score(opened, requests)
        assert sum(counts) < 0.7 * sum(len(one.prompt) + len(one.completion) for one in requests)
        for request, mine in zip(requests, together, strict=True):
            [right] = tiny.score(opened, [request])
            assert mine.logprobs == pytest.approx(right.logprobs, abs=1e-9)
            assert mine.hidden is not None and right.hidden is not None
            assert torch.allclose(mine.hidden, right.hidden, rtol=0, atol=1e-6)


def test_a_group_for_which_there_is_no_room_is_cut():
    batch = group(Random(0), "m0", 50, LENGTHS)
    with tiny.engine("llama", EXACT) as roomy, tiny.engine("llama", EXACT) as tight:
        tight.trainer.micro_tokens = 200
        once, cut = passed(roomy), passed(tight)
        for opened in (roomy, tight):
            tiny.update(opened, batch, RECIPE)
        assert len(once) == 1 < len(cut) and max(cut) <= 200
        assert sum(once) < sum(cut) < total(batch), "what is left of it is shared"
        assert tight.trainer.largest(batch)[1] <= 200 < roomy.trainer.largest(batch)[1]
        assert tiny.difference(roomy.read("m0"), tight.read("m0")) <= 1e-9


def test_memory_that_runs_out_cuts_groups_before_it_gives_up(capsys):
    batch = groups(["m0", "m1"])
    with tiny.engine("llama", EXACT, members=2) as roomy, tiny.engine("llama", EXACT, members=2) as tight:
        tight.trainer.micro_tokens = 1024
        assert run_out(tight, 112) is not None
        tiny.update(roomy, batch, RECIPE)
        tiny.update(tight, batch, RECIPE)
        assert "going on with 128 tokens at once" in capsys.readouterr().err
        for member in roomy.members:
            assert tiny.difference(roomy.read(member), tight.read(member)) <= 1e-9


def test_prompts_that_save_little_are_not_shared():
    batch = group(Random(0), "m0", 4, [60] * 8)
    with tiny.engine("llama") as opened:
        counts = passed(opened)
        tiny.update(opened, batch, RECIPE)
        assert sum(counts) == total(batch)


def test_products_in_pieces_are_the_products(monkeypatch):
    batch = groups(["m0", "m1", "m2"])
    with tiny.engine("llama", EXACT) as opened, tiny.engine("llama", EXACT) as cut:
        tiny.update(opened, batch, RECIPE)
        # The widest factors then take 32 tokens at once, the narrower ones more.
        monkeypatch.setattr(lora, "SINGLE_THREAD", 32 * 3 * 4 * 32)
        tiny.update(cut, batch, RECIPE)
        for member in opened.members:
            assert 0 < tiny.difference(opened.read(member), cut.read(member)) <= 1e-12
