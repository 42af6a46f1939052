"""Sequences of all members in micro-batches of similar length, for training and scoring.

Sequences of one member with the same prompt go as one row, in which the prompt stands once, where that saves enough:
attention takes longer with a mask.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.attention import Shared, Whole
from redqueen.engine.bank import Bank
from redqueen.engine.kv_cache import rounded
from redqueen.engine.protocol import MemberId, ScoreRequest, Trajectory

Sequences = Sequence[Trajectory] | Sequence[ScoreRequest]
WORTH = 4
"""A prompt is shared where one of this many tokens is saved by it, or more."""
KEYS = 8
"""For completions that share a prompt, its keys and values are laid out once more. So many tokens' together take at
most the memory of one token in all: fewer key heads than query heads need less, and a mask then needs some of that."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What goes through the base as one sequence: a prompt, and the completions that go on from it."""

    items: tuple[int, ...]
    """The places of its sequences in the call."""
    length: int
    keys: int
    """Tokens of all its sequences, the prompt with each, where they share it; 0 where there is but one."""

    @property
    def width(self) -> int:
        return rounded(self.length)

    @property
    def room(self) -> int:
        """As many tokens as take its memory."""
        return self.width + -(-self.keys // KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Rows of similar length, padded at their ends."""

    items: Sequence[int]
    """The places of their sequences in the call."""
    counts: Sequence[int]
    """Tokens of each sequence's completion."""
    last: Sequence[int]
    """The last token of each sequence among all tokens of the batch."""
    token_N: Tensor
    attention: Whole
    member_K: Tensor
    """The bank's row of each row."""
    place_M: Tensor
    """The tokens before each token whose probability matters."""
    target_M: Tensor
    temperature_M: Tensor


def micro_batches(items: Sequences, max_tokens: int, bank: Bank, positions: int) -> Iterator[MicroBatch]:
    """Batches that take the memory of `max_tokens` tokens at most, on a base of so many positions."""
    for rows in _plan(items, max_tokens):
        yield _micro_batch(items, rows, bank, positions)


def largest(items: Sequences, max_tokens: int) -> tuple[int, int]:
    """The micro-batch of these that takes the most memory: its sequences, and how many tokens take as much."""
    sizes = [(sum(len(row.items) for row in rows), len(rows) * rows[0].room) for rows in _plan(items, max_tokens)]
    return max(sizes, key=lambda size: size[1])


def _plan(items: Sequences, max_tokens: int) -> Iterator[list[_Row]]:
    """Longest first: should memory not suffice, it shows at once. Who shares nothing has no part in the slower
    attention of those who do."""
    every = _rows(items, max_tokens)
    for shared in (True, False):
        rows = [row for row in every if (len(row.items) > 1) == shared]
        rows.sort(key=lambda row: (-row.room, -row.length, row.items))
        at = 0
        for count in _shares([row.room for row in rows], max_tokens):
            yield rows[at : at + count]
            at += count


def _micro_batch(items: Sequences, rows: list[_Row], bank: Bank, positions: int) -> MicroBatch:
    device = bank.device
    chosen = [at for row in rows for at in row.items]
    width = max(row.width for row in rows)
    token_B_T = np.zeros((len(rows), width), np.int64)
    position_B_T = np.tile(np.minimum(np.arange(width), positions - 1), (len(rows), 1))
    place, last = [], []
    for index, row in enumerate(rows):
        prompt = items[row.items[0]].prompt
        end = len(prompt)
        token_B_T[index, :end] = prompt
        for at in row.items:
            start, end = end, end + len(items[at].completion)
            token_B_T[index, start:end] = items[at].completion
            position_B_T[index, start:end] = np.arange(len(prompt), len(prompt) + end - start)
            before_C = np.arange(start - 1, end - 1)
            before_C[0] = len(prompt) - 1
            place.append(index * width + before_C)
            last.append(index * width + end - 1)
    counts = [len(items[at].completion) for at in chosen]
    if len(chosen) > len(rows):
        attention = Shared.of(
            position_B_T,
            prompt_B=np.array([len(items[row.items[0]].prompt) for row in rows]),
            row_S=np.repeat(np.arange(len(rows)), [len(row.items) for row in rows]),
            count_S=np.array(counts),
            device=device,
        )
    else:
        attention = Whole(len(rows), torch.from_numpy(position_B_T.reshape(-1)).to(device))
    target_M = np.concatenate([np.asarray(items[at].completion, np.int64) for at in chosen])
    temperature_M = np.repeat([items[at].temperature for at in chosen], counts)
    return MicroBatch(
        items=chosen,
        counts=counts,
        last=last,
        token_N=torch.from_numpy(token_B_T).to(device).flatten(),
        attention=attention,
        member_K=torch.tensor([bank.row(items[row.items[0]].member) for row in rows], device=device),
        place_M=torch.from_numpy(np.concatenate(place)).to(device),
        target_M=torch.from_numpy(target_M).to(device),
        temperature_M=to_tensor(temperature_M, bank.masters_A_D.dtype, device),
    )


def _rows(items: Sequences, room: int) -> list[_Row]:
    """Each member's sequences, those with the same prompt together as far as there is room."""
    groups: dict[tuple[MemberId | None, tuple[int, ...]], list[int]] = {}
    for at, one in enumerate(items):
        groups.setdefault((one.member, tuple(one.prompt)), []).append(at)
    rows = []
    for group in groups.values():
        while group:
            row = _Row((group[0],), _length(items[group[0]]), 0)
            keys = row.length
            for at in group[1:]:
                keys += _length(items[at])
                longer = _Row((*row.items, at), row.length + len(items[at].completion), keys)
                if longer.room > room:
                    break
                row = longer
            group = group[len(row.items) :]
            if (row.keys - row.length) * WORTH >= row.keys:
                rows.append(row)
            else:
                rows += [_Row((at,), _length(items[at]), 0) for at in row.items]
    return rows


def _shares(widths: Sequence[int], room: int) -> list[int]:
    """How many sequences (widest first) go into each batch: as few batches as have room, of about equal sizes, since
    a small rest costs nearly as much time as a full one."""
    counts = _cut(widths, room)
    for even in range(-(-sum(widths) // max(1, len(counts))), room, 256):
        closer = _cut(widths, even)
        if len(closer) == len(counts):
            return closer
    return counts


def _cut(widths: Sequence[int], room: int) -> list[int]:
    counts, at = [], 0
    while at < len(widths):
        counts.append(min(max(1, room // widths[at]), len(widths) - at))
        at += counts[-1]
    return counts


def _length(one: Trajectory | ScoreRequest) -> int:
    return len(one.prompt) + len(one.completion)


def to_tensor(values: np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float64)).to(dtype).to(device)
