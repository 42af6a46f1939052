"""Sequences for training and scoring side by side, none of them padded: what a GPU's attention of ragged lengths takes.

A member's prompts form trees: a prompt holds only the tokens in which it differs from the one that it follows, and a
completion only its own. Each piece attends to its path, from the first token of the first prompt on; a prompt with a
single completion is one piece with it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
import torch

from redqueen.engine.attention import PathAttention
from redqueen.engine.bank import Bank
from redqueen.engine.micro_batches import KEYS, MicroBatch, Sequences, to_tensor
from redqueen.engine.prefixes import followed
from redqueen.engine.routing import tile_size
from redqueen.engine.transfer import to_device

BLOCKS = (128, 256, 512, 1024)
"""Tokens of one member: every member's are filled up to a multiple of one of these. Each block has a copy of its
member's factors, and gradients of its own."""


@dataclass(slots=True)
class _Branch:
    """A prompt with some of its completions."""

    prompt: tuple[int, ...]
    shared: int
    """Tokens that it has from the tree's first prompt."""
    items: list[int]
    """The indices of its sequences in the call."""


@dataclass(slots=True)
class _Tree:
    member: int
    branches: list[_Branch] = field(default_factory=list)
    tokens: int = 0
    keys: int = 0
    """Tokens of all paths."""

    @property
    def room(self) -> int:
        """Its memory, as a number of tokens."""
        return self.tokens + -(-self.keys // KEYS)

    @property
    def shares(self) -> bool:
        return len(self.branches) > 1 or len(self.branches[0].items) > 1


def packed_batches(items: Sequences, max_tokens: int, bank: Bank) -> Iterator[MicroBatch]:
    """Batches with the memory of at most `max_tokens` tokens."""
    for trees in plan(items, max_tokens, bank):
        yield _batch(items, trees, _block(trees, max_tokens), bank)


def largest(items: Sequences, max_tokens: int, bank: Bank) -> tuple[int, int]:
    """The batch that takes the most memory: its sequences, and its memory as a number of tokens."""
    sizes = [
        (sum(len(branch.items) for tree in trees for branch in tree.branches), _size(trees, _block(trees, max_tokens)))
        for trees in plan(items, max_tokens, bank)
    ]
    return max(sizes, key=lambda size: (size[1], size[0]))


def plan(items: Sequences, max_tokens: int, bank: Bank) -> list[list[_Tree]]:
    """The trees of each batch: few batches, of about equal sizes. A tree for which there is no room is a batch of its
    own."""
    least = BLOCKS[0]
    filling = least + -(-least // KEYS)
    trees = sorted(_trees(items, max(1, max_tokens - filling), bank), key=lambda tree: -tree.room)
    large = [[tree] for tree in trees if _size([tree], least) > max_tokens]
    trees = [tree for tree in trees if _size([tree], least) <= max_tokens]
    count = -(-sum(tree.tokens for tree in trees) // max_tokens)
    while True:
        batches: list[list[_Tree]] = [[] for _ in range(count)]
        filled = [0] * count
        for tree in trees:
            at = filled.index(min(filled))
            batches[at].append(tree)
            filled[at] += tree.room
        if all(_size(batch, least) <= max_tokens for batch in batches):
            return large + [sorted(batch, key=lambda tree: tree.member) for batch in batches if batch]
        count += max(1, count // 8)


def _size(trees: Sequence[_Tree], block: int) -> int:
    """The memory of a batch, as a number of tokens. Where any path is shared, all keys are copied."""
    counts = _counts(trees)
    filled = sum(-(-count // block) * block for count in counts)
    if not any(tree.shares for tree in trees):
        return filled
    keys = sum(tree.keys for tree in trees) + filled - sum(counts)
    return filled + -(-keys // KEYS)


def _counts(trees: Sequence[_Tree]) -> list[int]:
    """Tokens of each member."""
    counts = Counter[int]()
    for tree in trees:
        counts[tree.member] += tree.tokens
    return list(counts.values())


def _block(trees: Sequence[_Tree], max_tokens: int) -> int:
    fitting = [block for block in BLOCKS if _size(trees, block) <= max_tokens]
    return tile_size(_counts(trees), fitting or BLOCKS[:1])


def _trees(items: Sequences, max_tokens: int, bank: Bank) -> list[_Tree]:
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for at, item in enumerate(items):
        groups.setdefault((bank.row(item.member), tuple(item.prompt)), []).append(at)
    ordered = sorted(groups)
    trees: list[_Tree] = []
    for (member, prompt), following in zip_longest(ordered, ordered[1:]):
        after = following[1] if following is not None and following[0] == member else ()
        waiting = groups[member, prompt]
        while waiting:
            shared = count = 0
            if trees and trees[-1].member == member:
                shared = followed(trees[-1].branches[0].prompt, prompt, after)
                count = _fitting(items, prompt, waiting, max_tokens - trees[-1].room, shared) if shared else 0
            if not count:
                trees.append(_Tree(member))
                shared, count = 0, max(1, _fitting(items, prompt, waiting, max_tokens, 0))
            tokens, keys = _passed(items, prompt, waiting[:count], shared)
            trees[-1].branches.append(_Branch(prompt, shared, waiting[:count]))
            trees[-1].tokens += tokens
            trees[-1].keys += keys
            waiting = waiting[count:]
    return trees


def _fitting(items: Sequences, prompt: Sequence[int], waiting: Sequence[int], room: int, shared: int) -> int:
    """How many of these sequences fit."""
    count = len(waiting)
    while count:
        tokens, keys = _passed(items, prompt, waiting[:count], shared)
        if tokens + -(-keys // KEYS) <= room:
            break
        count -= 1
    return count


def _passed(items: Sequences, prompt: Sequence[int], chosen: Sequence[int], shared: int) -> tuple[int, int]:
    """The tokens of a branch, and those of its paths."""
    completions = [len(items[at].completion) for at in chosen]
    pieces = 1 if len(completions) == 1 else len(completions) + 1
    return len(prompt) - shared + sum(completions), pieces * len(prompt) + sum(completions)


def _batch(items: Sequences, trees: Sequence[_Tree], block: int, bank: Bank) -> MicroBatch:
    pieces = _Pieces()
    chosen: list[int] = []
    place: list[np.ndarray] = []
    last: list[int] = []
    members: list[int] = []
    for number, tree in enumerate(trees):
        first = np.zeros(0, np.int64)
        for branch in tree.branches:
            alone = items[branch.items[0]].completion if len(branch.items) == 1 else ()
            run = pieces.add((*branch.prompt[branch.shared :], *alone), first[: branch.shared])
            path = run[: len(branch.prompt)]
            first = first if len(first) else path
            for at in branch.items:
                own = run if alone else pieces.add(items[at].completion, path)
                # A completion's first token follows the prompt's last.
                place.append(own[len(path) - 1 : -1])
                last.append(int(own[-1]))
                chosen.append(at)
        if number + 1 == len(trees) or trees[number + 1].member != tree.member:
            pieces.fill(block)
            members += [tree.member] * (len(pieces.tokens) // block - len(members))
    device = bank.device
    counts = [len(items[at].completion) for at in chosen]
    temperature_M = np.repeat([items[at].temperature for at in chosen], counts)
    return MicroBatch(
        items=chosen,
        counts=counts,
        last=last,
        token_N=to_device(np.array(pieces.tokens), device),
        attention=pieces.attention(len(members), device),
        member_K=to_device(np.array(members), device),
        place_M=to_device(np.concatenate(place), device),
        target_M=to_device(np.concatenate([np.asarray(items[at].completion, np.int64) for at in chosen]), device),
        temperature_M=to_tensor(temperature_M, bank.masters_A_D.dtype, device),
    )


class _Pieces:
    """Tokens in their order, and what each run of them attends to."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._positions: list[np.ndarray] = []
        self._paths: list[np.ndarray] = []
        self._counts: list[int] = []
        self._follows = False
        """Whether any run has a path of more than itself."""

    def add(self, tokens: Sequence[int], before: np.ndarray) -> np.ndarray:
        """Tokens that follow those at these places; the places of all of them, from the first on."""
        path = np.concatenate([before, np.arange(len(self.tokens), len(self.tokens) + len(tokens))])
        self.tokens += tokens
        self._positions.append(np.arange(len(before), len(path)))
        self._paths.append(path)
        self._counts.append(len(tokens))
        self._follows |= len(before) > 0
        return path

    def fill(self, block: int) -> None:
        """Up to a whole block; what fills it sees only itself."""
        if missing := -len(self.tokens) % block:
            self.add([0] * missing, np.zeros(0, np.int64))
            self._positions[-1][:] = 0

    def attention(self, blocks: int, device: torch.device) -> PathAttention:
        query_Z = np.array(self._counts)
        key_Z = np.array([len(path) for path in self._paths])
        return PathAttention(
            blocks,
            to_device(np.concatenate(self._positions), device),
            key_X=to_device(np.concatenate(self._paths), device) if self._follows else None,
            until_query_Z=to_device(np.concatenate([[0], np.cumsum(query_Z)]).astype(np.int32), device),
            until_key_Z=to_device(np.concatenate([[0], np.cumsum(key_Z)]).astype(np.int32), device),
            most_queries=int(query_Z.max()),
            most_keys=int(key_Z.max()),
        )
