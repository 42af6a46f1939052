"""What prompts share is found, kept and forgotten."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redqueen.engine.decode_state import Completion
from redqueen.engine.packed_prefill import Piece, chunks, pack, prompt_tiles, size_of
from redqueen.engine.prefixes import LEAST, common
from redqueen.engine.prompt_index import PromptIndex, Region, starts, worth_keeping
from redqueen.engine.protocol import SampleRequest
from redqueen.engine.routing import LONG_TILE, PROMPT_TILE

HEAD, OTHER = tuple(range(100)), tuple(range(500, 560))


def group(prompt: tuple[int, ...], start: int, member: int = 1) -> list[Completion]:
    request = SampleRequest(prompt=(*prompt, 0), member="m", key=0, max_tokens=1)
    return [Completion(request=request, member=member, matcher=None, start=start, capacity=256)]


@given(st.lists(st.integers(0, 1), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_common(one, other):
    shared = common(tuple(one), tuple(other))
    assert one[:shared] == other[:shared]
    assert shared == min(len(one), len(other)) or one[shared] != other[shared]


def test_prompts_that_come_together_start_from_the_first_of_their_like():
    prompts = [group((*HEAD, 7), 0), group((*HEAD, 3, 3), 1), group((*OTHER, 1), 2), group((*HEAD, 3), 3, member=2)]
    prompts += [group((*HEAD[:40], 999, *OTHER), 4), group((*OTHER, 2), 5)]
    first, second = starts(prompts, PromptIndex())
    assert {start.region.start: start.shared for start in first} == {1: 0, 2: 0, 3: 0}
    shared = {start.region.start: (start.source.start, start.shared) for start in second if start.source is not None}
    assert shared == {0: (1, 100), 4: (1, 40), 5: (2, 60)}


def test_a_prompt_that_shares_little_does_not_lead_those_that_share_much():
    prompts = [group((*HEAD[:LEAST], -1), 0), group((*HEAD, 1), 1), group((*HEAD, 2), 2)]
    first, second = starts(prompts, PromptIndex())
    assert [start.region.start for start in first] == [0, 1]
    assert [(start.region.start, start.source and start.source.start, start.shared) for start in second] == [
        (2, 1, 100)
    ]


def test_what_is_in_the_cache_is_found_until_its_room_is_wanted():
    index = PromptIndex()
    regions = [Region(1, (*HEAD, at), at, 256) for at in range(3)]
    for region in regions:
        index.add(region)
    assert index.evict() is None, "all are in use"
    for region in regions:
        index.keep(region)
    assert index.find(1, (*HEAD, 0, 5)) == (regions[0], 101)
    assert index.find(2, HEAD) == (None, 0)
    first, second = starts([group((*HEAD, 1), 9), group(HEAD[:20], 10)], index)
    assert not second
    assert [(start.source, start.shared) for start in first] == [(None, 0), (regions[1], 101)]
    assert not worth_keeping(first), "one is there already, one too short"
    assert [index.evict(), index.evict(), index.evict()] == [regions[2], regions[0], regions[1]], "oldest use first"
    assert index.find(1, HEAD) == (None, 0)


def test_no_token_is_lost_in_packing():
    rng = Random(0)
    pieces = [
        Piece(member=at // 9, start=16 * at, capacity=4096, first=rng.randrange(50), tokens=(at,) * rng.randint(1, 700))
        for at in range(1, 40)
    ] + [Piece(member=9, start=10000 + at, capacity=16, first=at, tokens=(at,)) for at in range(200)]
    for most in (64, 512, 8192):
        rows = []
        for chunk in chunks(pieces, most):
            size = size_of(chunk)
            long = size // LONG_TILE + 10
            layout = pack(chunk, size, long)
            token_4_N, rest = layout[: 4 * size].reshape(4, size), layout[4 * size :]
            tile_3_K, tile_2_Q = rest[: 3 * long].reshape(3, long), rest[3 * long :].reshape(2, prompt_tiles(size))
            count = sum(len(piece.tokens) for piece in chunk)
            assert count <= most
            rows += token_4_N[:, :count].T.tolist()
            assert (token_4_N[2, count:] == 0).all(), "what is left over is in the scratch region"
            for tiles, longest in ((tile_3_K[1:], LONG_TILE), (tile_2_Q, PROMPT_TILE)):
                covered = np.concatenate([np.arange(start, start + n) for start, n in tiles.T])
                assert sorted(covered) == list(range(count)) and tiles[1].max() <= longest
            member_N = np.concatenate([[piece.member] * len(piece.tokens) for piece in chunk])
            for member, start, n in tile_3_K.T:
                assert (member_N[start : start + n] == member).all()
        wanted = [
            [token, piece.first + at, piece.start, piece.capacity]
            for piece in pieces
            for at, token in enumerate(piece.tokens)
        ]
        assert rows == wanted
