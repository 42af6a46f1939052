"""Sequences of all members in micro-batches of similar length, for training and scoring.

Sequences of one member with the same prompt become one row that holds the prompt once, where that saves enough:
attention takes longer with a mask.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.attention import CausalAttention, SharedPromptAttention
from redqueen.engine.bank import Bank
from redqueen.engine.kv_cache import rounded
from redqueen.engine.protocol import MemberId, ScoreRequest, Trajectory

Sequences = Sequence[Trajectory] | Sequence[ScoreRequest]
MIN_SAVING = 4
"""A prompt is shared where that saves at least one of this many tokens."""
KEYS = 8
"""Completions that share a prompt get copies of its keys and values. Those of this many tokens, with the mask, take at
most the memory of one token in all."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What goes through the base as one sequence: a prompt and its completions."""

    items: tuple[int, ...]
    """The indices of its sequences in the call."""
    length: int
    keys: int
    """Tokens of all its sequences, each with the prompt; 0 for a single sequence."""

    @property
    def width(self) -> int:
        return rounded(self.length)

    @property
    def room(self) -> int:
        """Its memory, as a number of tokens."""
        return self.width + -(-self.keys // KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Rows of similar length, padded at their ends."""

    items: Sequence[int]
    """The indices of their sequences in the call."""
    counts: Sequence[int]
    """Tokens of each sequence's completion."""
    last: Sequence[int]
    """The index of each sequence's last token in the batch."""
    token_N: Tensor
    attention: CausalAttention
    member_K: Tensor
    """The bank's row of each row."""
    place_M: Tensor
    """The index of the token before each target."""
    target_M: Tensor
    temperature_M: Tensor


def micro_batches(items: Sequences, max_tokens: int, bank: Bank, positions: int) -> Iterator[MicroBatch]:
    """Batches with the memory of at most `max_tokens` tokens, on a base with this many positions."""
    for rows in _plan(items, max_tokens):
        yield _micro_batch(items, rows, bank, positions)


def largest(items: Sequences, max_tokens: int) -> tuple[int, int]:
    """The micro-batch that takes the most memory: its sequences, and its memory as a number of tokens."""
    sizes = [(sum(len(row.items) for row in rows), len(rows) * rows[0].room) for rows in _plan(items, max_tokens)]
    return max(sizes, key=lambda size: size[1])


def _plan(items: Sequences, max_tokens: int) -> Iterator[list[_Row]]:
    """Longest first, so that a lack of memory shows at once. Rows with shared prompts, whose attention is slower, have
    batches of their own."""
    all_rows = _rows(items, max_tokens)
    for shared in (True, False):
        rows = [row for row in all_rows if (len(row.items) > 1) == shared]
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
        attention = SharedPromptAttention.of(
            position_B_T,
            prompt_B=np.array([len(items[row.items[0]].prompt) for row in rows]),
            row_S=np.repeat(np.arange(len(rows)), [len(row.items) for row in rows]),
            count_S=np.array(counts),
            device=device,
        )
    else:
        attention = CausalAttention(len(rows), torch.from_numpy(position_B_T.reshape(-1)).to(device))
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
    """Each member's sequences, those with the same prompt together as far as they fit."""
    groups: dict[tuple[MemberId | None, tuple[int, ...]], list[int]] = {}
    for at, item in enumerate(items):
        groups.setdefault((item.member, tuple(item.prompt)), []).append(at)
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
            if (row.keys - row.length) * MIN_SAVING >= row.keys:
                rows.append(row)
            else:
                rows += [_Row((at,), _length(items[at]), 0) for at in row.items]
    return rows


def _shares(widths: Sequence[int], room: int) -> list[int]:
    """How many sequences (widest first) go into each batch: as few batches as possible, of about equal sizes, since a
    small batch costs nearly as much time as a full one."""
    counts = _cut(widths, room)
    for smaller in range(-(-sum(widths) // max(1, len(counts))), room, 256):
        even = _cut(widths, smaller)
        if len(even) == len(counts):
            return even
    return counts


def _cut(widths: Sequence[int], room: int) -> list[int]:
    counts, at = [], 0
    while at < len(widths):
        counts.append(min(max(1, room // widths[at]), len(widths) - at))
        at += counts[-1]
    return counts


def _length(item: Trajectory | ScoreRequest) -> int:
    return len(item.prompt) + len(item.completion)


def to_tensor(values: np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float64)).to(dtype).to(device)
