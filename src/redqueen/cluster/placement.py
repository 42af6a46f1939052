"""Which shard a member belongs to, and which worker a shard is at home on.

A shard follows from the member's seat alone, so that a child is where its predecessor was and the number of workers
changes nothing. Teachers are dealt out from the first shard on and students from the last, so that a few of each are
not all in the first.
"""

import re
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from redqueen.engine.protocol import MemberId

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
W = TypeVar("W")
_SEAT = re.compile(r"(?:.*/)?([ts])([0-9]+)(?:\.[0-9]+)?", re.DOTALL)
"""`t0`, `s3.2`, or such a name in a race's namespace."""


def shard_of(member: MemberId, shards: int) -> int:
    """Where a member lives; one without a seat goes by its name."""
    seat = _SEAT.fullmatch(member)
    if seat is None:
        return zlib.crc32(member.encode()) % shards
    number = int(seat[2]) % shards
    return number if seat[1] == "t" else shards - 1 - number


def shard_of_prompt(prompt: Sequence[int], shards: int) -> int:
    """Where the bare base is asked, which every worker has: completions of one prompt share its pass."""
    return zlib.crc32(repr(tuple(prompt)).encode()) % shards


def homes(before: Sequence[W | None], workers: Sequence[W], *, evenly: bool = True) -> list[W | None]:
    """For each shard the worker that it is at home on, or None where there are no workers. As few shards move as can:
    one stays where it was unless that worker is gone or, where they are to be dealt out evenly, has more than its
    part."""
    if not workers:
        return [None] * len(before)
    most = -(-len(before) // len(workers))
    counts = Counter(dict.fromkeys(range(len(workers)), 0))
    places: list[int | None] = []
    for worker in before:
        at = workers.index(worker) if worker in workers else None
        if at is not None and (counts[at] < most or not evenly):
            counts[at] += 1
            places.append(at)
        else:
            places.append(None)
    for shard, at in enumerate(places):
        if at is None:
            places[shard] = least = min(counts, key=lambda at: (counts[at], at))
            counts[least] += 1
    return [None if at is None else workers[at] for at in places]


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """What goes to each shard."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
