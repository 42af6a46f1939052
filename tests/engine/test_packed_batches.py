"""Sequences side by side, with what their prompts share passed through the base once, train as rows of one length do.

On a GPU the runs of tokens attend by one kernel; here by the same function in plain torch.
"""

from dataclasses import replace
from random import Random

import pytest
import torch

from engine import tiny
from engine.test_prompts import LENGTHS, group, groups, passed, total
from engine.test_update import EXACT, RECIPE
from redqueen.engine import packed_batches
from redqueen.engine.attention import PathAttention
from redqueen.engine.micro_batches import KEYS
from redqueen.engine.packed_batches import BLOCKS
from redqueen.engine.protocol import ScoreRequest, Trajectory


def with_heads(members: list[str], seed: int = 0) -> list[Trajectory]:
    """Some prompts of each member begin alike: with two heads, of which one begins like the other."""
    random = Random(seed)
    head = tiny.tokens(random, 40)
    other = (*head[:34], *tiny.tokens(random, 30))
    sequences = groups(members, seed)
    for member in members:
        for start in (head, head, other, other):
            grown = group(random, member, random.randrange(3, 20), LENGTHS[:3])
            sequences += [replace(one, prompt=(*start, *one.prompt)) for one in grown]
    random.shuffle(sequences)
    return sequences


@pytest.mark.parametrize("micro_tokens", [None, 400])
@pytest.mark.parametrize("blocks", [BLOCKS, (4, 8, 16)])
@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_updates_are_those_of_rows(architecture, blocks, micro_tokens, monkeypatch):
    monkeypatch.setattr(packed_batches, "BLOCKS", blocks)
    with tiny.engine(architecture, EXACT) as rows, tiny.engine(architecture, EXACT) as packed:
        packed.trainer.packed = True
        packed.trainer.micro_tokens = micro_tokens or packed.trainer.micro_tokens
        batch = with_heads(rows.members)
        of_rows, of_packed = passed(rows), passed(packed)
        right, mine = (tiny.update(opened, batch, RECIPE) for opened in (rows, packed))
        assert sum(of_packed) < sum(of_rows) or micro_tokens
        for member in rows.members:
            assert mine[member].sequences == right[member].sequences
            assert mine[member].grad_norm == pytest.approx(right[member].grad_norm, rel=1e-9)
            assert mine[member].entropy == pytest.approx(right[member].entropy, rel=1e-9)
            assert tiny.difference(rows.read(member), packed.read(member)) <= 1e-9


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_scores_are_those_of_each_sequence_by_itself(architecture):
    with tiny.engine(architecture, EXACT) as opened:
        opened.trainer.packed = True
        requests = [
            ScoreRequest(
                prompt=one.prompt, completion=one.completion, member=member, temperature=one.temperature, hidden=True
            )
            for one in with_heads(opened.members)
            for member in (one.member, None)
        ]
        together = tiny.score(opened, requests)
        opened.trainer.packed = False
        for request, mine in zip(requests, together, strict=True):
            [right] = tiny.score(opened, [request])
            assert mine.logprobs == pytest.approx(right.logprobs, abs=1e-9)
            assert mine.hidden is not None and right.hidden is not None
            assert torch.allclose(mine.hidden, right.hidden, rtol=0, atol=1e-6)


def test_sequences_that_share_nothing_are_one_run_each():
    """Nobody's keys are copied then."""
    random = Random(0)
    batch = [one for member in ("m0", "m1") for count in (5, 30, 9) for one in group(random, member, count, [12])]
    with tiny.engine("llama", EXACT) as rows, tiny.engine("llama", EXACT) as packed:
        packed.trainer.packed = True
        [part] = packed.trainer._micro_batches(batch)
        assert isinstance(part.attention, PathAttention) and part.attention.key_X is None
        runs = part.attention.until_query_Z.diff().tolist()
        # Those of each member are filled up to a whole block.
        assert sorted(count for count in runs if count in (17, 42, 21)) == [17, 17, 21, 21, 42, 42] and len(runs) == 8
        assert part.attention.until_key_Z.tolist() == part.attention.until_query_Z.tolist()
        assert sum(runs) == 2 * BLOCKS[0] == packed.trainer.largest(batch)[1], "and they take no memory for copies"
        for opened in (rows, packed):
            tiny.update(opened, batch, RECIPE)
        for member in rows.members:
            assert tiny.difference(rows.read(member), packed.read(member)) <= 1e-9


@pytest.mark.parametrize(
    ("tokens", "room", "block"),
    [(250, 1 << 16, 256), (380, 1 << 16, 128), (16_000, 1 << 16, 1_024), (16_000, 16_200, 256), (16_000, 16_050, 128)],
)
def test_blocks_are_large_where_that_takes_little_filling_and_fits(tokens, room, block):
    """Each has a copy of its member's factors, and gradients of its own."""
    random = Random(0)
    lengths = [50] * (tokens // 50) + [tokens % 50] * (tokens % 50 > 0)
    batch = [one for length in lengths for one in group(random, "m0", length - 4, [4])]
    with tiny.engine("llama", EXACT) as opened:
        opened.trainer.packed, opened.trainer.micro_tokens = True, room
        [part] = opened.trainer._micro_batches(batch)
        assert opened.trainer.largest(batch) == (len(batch), len(part.token_N))
    assert len(part.token_N) // len(part.member_K) == block


def test_heads_pass_through_the_base_once():
    random = Random(0)
    head = tiny.tokens(random, 100)
    batch = [replace(one, prompt=(*head, *one.prompt)) for _ in range(8) for one in group(random, "m0", 5, LENGTHS[:4])]
    with tiny.engine("llama", EXACT) as opened:
        opened.trainer.packed = True
        counts = passed(opened)
        tiny.update(opened, batch, RECIPE)
    own = 100 + 8 * (5 + sum(LENGTHS[:4]))
    assert own <= sum(counts) < own + BLOCKS[0], "and little else"
    assert sum(counts) < 0.15 * total(batch)


def _copied(part) -> list[int]:
    """The tokens whose keys are copied."""
    return [] if part.attention.key_X is None else part.attention.key_X.tolist()


def test_batches_keep_to_their_room():
    with tiny.engine("llama", EXACT) as opened:
        opened.trainer.packed = True
        batch = with_heads(opened.members)
        for room in (300, 700, 1 << 16):
            opened.trainer.micro_tokens = room
            parts = list(opened.trainer._micro_batches(batch))
            sizes = [(len(part.token_N) + -(-len(_copied(part)) // KEYS), len(part.items)) for part in parts]
            tokens, sequences = max(sizes)
            assert opened.trainer.largest(batch) == (sequences, tokens) and tokens <= room
            assert sorted(at for part in parts for at in part.items) == list(range(len(batch)))
    assert len(parts) == 1


def test_a_sequence_for_which_there_is_no_room_does_not_part_the_others():
    random = Random(0)
    with tiny.engine("llama", EXACT) as opened:
        opened.trainer.packed, opened.trainer.micro_tokens = True, 400
        batch = group(random, "m0", 30, [4] * 40)
        usual = len(list(opened.trainer._micro_batches(batch)))
        batch += group(random, "m1", 350, [80])
        assert len(list(opened.trainer._micro_batches(batch))) == usual + 1
