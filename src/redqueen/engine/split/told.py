"""What the leader of a base that is split tells the other processes, and by what they see that they agree."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from redqueen.engine.call_queue import Kind
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import MemberId, MemberState, Recipe, SampleRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a process needs to know to open its part."""

    base: str
    dtype: torch.dtype
    device: torch.device
    rank: int
    size: int
    meeting: Path
    options: Mapping[str, Any]
    """Of the engine."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """All processes have their parts; how long that takes depends on the base."""


@dataclass(frozen=True, slots=True)
class Took:
    """What joins a batch that is under way; the requests of each call."""

    calls: Sequence[Sequence[SampleRequest]]


@dataclass(frozen=True, slots=True)
class Wrote:
    member: MemberId
    state: MemberState


@dataclass(frozen=True, slots=True)
class Removed:
    member: MemberId


@dataclass(frozen=True, slots=True)
class Agreed:
    limits: Limits


@dataclass(frozen=True, slots=True)
class Turn:
    """Of scoring, of an update, or of sampling, whose requests come as they are taken."""

    kind: Kind
    items: Any
    recipe: Recipe | None


def digest(kind: Kind, found: Any) -> bytes:
    """Of what keeps the processes together: the tokens that were sampled, and the gradients of members."""
    if kind == "update":
        found = {member: stats.grad_norm for member, stats in found.items()}
    return b"" if kind == "score" else hashlib.sha256(repr(found).encode()).digest()
