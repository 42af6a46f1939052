"""Prompts whose keys and values are in the KV cache: a prompt that begins like one of them starts from a copy.

The keys and values of a token follow from the member's weights and from the tokens up to it. So whatever two prompts of
a member share from their first token on is equal, and nothing is any more once the weights have changed.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redqueen.engine.decode_state import Completion
from redqueen.engine.prefill import Prompts
from redqueen.engine.prefixes import LEAST, common, followed


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A region of the KV cache that begins with these tokens of a member."""

    member: int
    tokens: tuple[int, ...]
    start: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Start:
    """How a prompt enters the KV cache: some of its tokens as a copy, the others through the base."""

    completions: Sequence[Completion]
    region: Region
    """Of its first completion."""
    source: Region | None
    shared: int
    """Tokens that are copied from there."""


class PromptIndex:
    """By member. Regions that nobody uses any more are kept until their room is wanted, the longest unused goes
    first."""

    def __init__(self) -> None:
        self._sorted: dict[int, list[Region]] = {}
        self._idle: dict[Region, None] = {}

    def find(self, member: int, tokens: tuple[int, ...]) -> tuple[Region | None, int]:
        """The region that shares the most tokens with these, and how many."""
        regions = self._sorted.get(member, [])
        at = bisect_left(regions, tokens, key=lambda region: region.tokens)
        near = regions[max(0, at - 1) : at + 1]
        best = max(near, key=lambda region: common(region.tokens, tokens), default=None)
        if best is None:
            return None, 0
        if best in self._idle:
            del self._idle[best]
            self._idle[best] = None
        return best, common(best.tokens, tokens)

    def add(self, region: Region) -> None:
        regions = self._sorted.setdefault(region.member, [])
        regions.insert(bisect_left(regions, region.tokens, key=lambda other: other.tokens), region)

    def keep(self, region: Region) -> None:
        """Nobody uses it any more."""
        self._idle[region] = None

    def evict(self) -> Region | None:
        """Forget one that nobody uses: its room is free."""
        if not self._idle:
            return None
        region = next(iter(self._idle))
        del self._idle[region]
        self._sorted[region.member].remove(region)
        return region

    def clear(self) -> list[Region]:
        """Forget all; those that nobody uses."""
        idle = list(self._idle)
        self._sorted.clear()
        self._idle.clear()
        return idle


def starts(prompts: Prompts, index: PromptIndex) -> tuple[list[Start], list[Start]]:
    """How allocated prompts begin: first those that start from what the cache has, or from nothing, then those that
    start from one of the first."""
    first: list[Start] = []
    second: list[Start] = []
    regions = sorted(((_region(group), group) for group in prompts), key=lambda pair: (pair[0].member, pair[0].tokens))
    leader: Region | None = None
    for at, (region, group) in enumerate(regions):
        held, known = index.find(region.member, region.tokens)
        following = regions[at + 1][0] if at + 1 < len(regions) else region
        shared = 0
        if leader is not None and leader.member == region.member:
            after = following.tokens if following is not region and following.member == region.member else ()
            shared = followed(leader.tokens, region.tokens, after)
        if shared > known:
            second.append(Start(group, region, leader, shared))
            continue
        first.append(Start(group, region, held, known) if known >= LEAST else Start(group, region, None, 0))
        leader = region
    return first, second


def _region(completions: Sequence[Completion]) -> Region:
    """The last token of a prompt is the first step's."""
    [owner, *_] = completions
    return Region(owner.member, tuple(owner.request.prompt[:-1]), owner.start, owner.capacity)


def worth_keeping(starts: Iterable[Start]) -> list[Start]:
    """Those of which others may begin with a copy, each prompt once."""
    return [start for start in starts if LEAST <= len(start.region.tokens) > start.shared]
