"""A worker as the driver sees it: what it was asked, what became of it, and how quick it is."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from redqueen.cluster.ledger import Update
from redqueen.cluster.links import Link
from redqueen.cluster.worker import Greeting
from redqueen.engine.protocol import MemberId

RECENT = 20
"""Calls of each kind that a worker's seconds are the mean of."""


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """What became of a worker."""

    time: float
    """Seconds since 1970, UTC."""
    worker: str
    what: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNow:
    """A worker that is here."""

    name: str
    machine: str
    process: int
    members: tuple[MemberId, ...]
    seconds: Mapping[str, float]
    """By method: what the last calls took for each thing that they were about."""


@dataclass(slots=True, eq=False)
class Job:
    """Something that a shard's worker is asked."""

    shard: int
    method: str
    arguments: tuple[Any, ...] = ()
    _: KW_ONLY
    size: int
    """How many requests, texts or members it is about."""
    update: Update | None = None
    """What goes into the ledger when it is answered."""
    answer: Any = None
    error: BaseException | None = None
    done: bool = False
    losses: int = 0
    sent: float = 0.0
    again: int = 0
    """Texts that members learn from once more before it is answered."""


@dataclass(slots=True, eq=False)
class Hand:
    """A worker, as long as it is here."""

    link: Link
    _: KW_ONLY
    asked: float | None = None
    """When it was asked whether it is there, if it has not answered."""
    greeting: Greeting | None = None
    """What it said when it was open."""
    took: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=RECENT)))
    """By method: seconds of the last calls, for each thing that they were about."""
    jobs: set[Job] = field(default_factory=set)
    answered: float = 0.0
    """When it last did."""
    has: dict[int, int] = field(default_factory=dict)
    """By shard, the number of the first entry of the ledger that it lacks."""

    @property
    def place(self) -> str:
        greeting = self.greeting
        return "" if greeting is None else f"on {greeting.machine}, process {greeting.process}"
