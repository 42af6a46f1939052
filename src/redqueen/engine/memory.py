"""The memory that a base with its members needs, computed from its shape before any of it is allocated.

The terms follow the code: what a body keeps for the backward pass, what `bank.py` stacks, what `kv_cache.py` reserves.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from redqueen.engine.bank import Linear, aligned, master_dtype
from redqueen.engine.body import MAX_POSITIONS
from redqueen.engine.messages import size_text
from redqueen.engine.quantised import quantised_layers

GIB = 1 << 30
HEAD_BYTES = 1 << 30
"""Logits that exist at the same time."""
SPARE = 0.08
"""Share of the memory for the allocator's fragments and the libraries' workspaces."""
BESIDE = 0.125
"""Share of a device's memory that several engines leave to what none of them plans: each has a context and captured
graphs of its own, and one that takes more than its share makes the others give theirs back at every turn."""
ENOUGH_TOKENS = {"cuda": 65_536, "cpu": 4_096}
"""Tokens at once where memory allows them; more was not tried."""
MIN_TOKENS = 256
"""With room for fewer, hardly a sequence would fit."""
FEW_TOKENS = 4_096
"""When not even these fit, activations are checkpointed, and then members hosted."""
GRADIENTS = 4
"""Where members are hosted, gradients get up to one part in so many of what is left."""
COPIES = 3
"""Times that the host must hold what is hosted: where it is, as it is read for a checkpoint, and as it is packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a base that memory depends on."""

    parameters: int
    quantised: int
    """Of these."""
    quantised_bytes: int
    written_out: int
    """Numbers of the largest weight that is computed with at once, where it is stored otherwise."""
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    dim: int
    vocabulary: int
    positions: int
    fast: bool
    """It takes the path of the Llama family."""

    @classmethod
    def of(cls, model: Any, *, fast: bool) -> "Shape":
        """The model may be without weights."""
        config = model.config.get_text_config()
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        intermediate = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        layers = quantised_layers(model)
        sizes = [layer.in_features * layer.out_features for layer in layers]
        # The fast path has q, k and v as one weight, and gate and up.
        stacked = max((heads + 2 * kv_heads) * dim, 2 * intermediate) * config.hidden_size if fast and layers else 0
        return cls(
            parameters=sum(p.numel() for p in {id(p): p for p in model.parameters()}.values()) + sum(sizes),
            quantised=sum(sizes),
            quantised_bytes=sum(layer.weight.nbytes for layer in layers),
            written_out=max([stacked, *sizes]),
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            intermediate=intermediate,
            heads=heads,
            kv_heads=kv_heads,
            dim=dim,
            vocabulary=config.vocab_size,
            positions=getattr(config, "max_position_embeddings", MAX_POSITIONS),
            fast=fast,
        )

    def nbytes(self, dtype: torch.dtype) -> int:
        """Of the base's weights."""
        return (self.parameters - self.quantised) * dtype.itemsize + self.quantised_bytes

    def part(self, of: int, parameters: int) -> "Shape":
        """What each of so many processes has of it."""
        kv_heads = max(1, self.kv_heads // of)
        return replace(
            self, parameters=parameters, heads=self.heads // of, kv_heads=kv_heads, intermediate=self.intermediate // of
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What fits, and what it takes of the device; bytes unless a name says otherwise."""

    weights: int
    member: int
    """Masters and compute copy of one member, or the latter alone where masters are hosted; the bare base has a row
    like a member's."""
    trained_member: int
    """What training adds for each: both moments and the gradient; 0 where nothing trains or members are hosted."""
    members: int
    hosted: bool
    """Masters and moments are in the host's memory."""
    host: int
    """What they take there."""
    together: int
    """Members whose gradients are there at the same time; 0 where nothing trains."""
    gradient: int
    """Of one member."""
    cache_token: int
    """Keys and values of one token."""
    activation_token: int
    """Forward and backward pass of one token; where nothing trains the forward pass alone."""
    passing: int
    """Logits and their gradient, the rotary tables, a weight of the base that is written out; where members are hosted
    the gradients, and the states of the one that takes its step."""
    micro_tokens: int
    """Tokens that pass at once; 0 when not one sequence fits."""
    checkpointing: bool
    cache_tokens: int
    """Tokens that the KV cache may hold."""

    def described(self) -> str:
        """What there is room for beside the base and its members, and where those are."""
        again = ", most of them computed again" if self.checkpointing else ""
        room = f"activations of {self.micro_tokens:,} tokens{again} and a cache of {self.cache_tokens:,}"
        return f"{room}, with {self.where()}" if self.hosted else room

    def where(self) -> str:
        """What of the members is in the host's memory, where they are hosted."""
        size = f"{size_text(self.host)} of the host's memory"
        if not self.together:
            return f"the members' masters in {size}"
        return f"the members' masters and moments in {size} and the gradients of {self.together:,} at a time"

    def resident(self) -> int:
        """The base and its members, at rest between steps."""
        return self.weights + self.member + self.members * (self.member + self.trained_member)

    def peak(self, tokens: int, cache_tokens: int = 0) -> int:
        """Of an update, or where nothing trains of scoring, with this many tokens at once and a KV cache of this size
        beside them."""
        return self.resident() + self.passing + tokens * self.activation_token + cache_tokens * self.cache_token

    def untrained(self, trained: int) -> int:
        """What a peak is less where no more members than these have ever been trained."""
        if self.hosted:
            return max(0, self.together - trained) * self.gradient
        return (self.members - trained) * self.trained_member


@dataclass(frozen=True, slots=True)
class Limits:
    """Batch sizes that follow from a process's memory: those that compute the same keep to the least of each."""

    micro_tokens: int
    prefill_tokens: int
    cache_tokens: int
    together: int | None = None
    """Members whose gradients are there at the same time; None is all of an update."""

    @classmethod
    def least(cls, of: Sequence["Limits"]) -> "Limits":
        return cls(
            min(each.micro_tokens for each in of),
            min(each.prefill_tokens for each in of),
            min(each.cache_tokens for each in of),
            min((each.together for each in of if each.together is not None), default=None),
        )


def plan(
    shape: Shape,
    linears: list[Linear],
    *,
    rank: int,
    members: int,
    memory: int,
    device: str,
    dtype: torch.dtype,
    trains: bool = True,
    host: int | None = None,
    hosted: bool | None = None,
) -> MemoryPlan:
    """Share `memory` bytes between weights, members, the cache and an update. What does not train keeps nothing for
    it: no moments, no gradients, no activations of layers that are behind.

    Where few tokens at once would fit, activations are computed again; where that is not enough, members are hosted on
    a GPU, if the host has room for them: `host` bytes are free there, any number when left out. `hosted` decides
    instead of the room."""
    places = [False] if hosted is None else [hosted]
    if hosted is None and device == "cuda" and (trains or dtype != master_dtype(dtype)):
        places = [False, True]
    plans = [
        _plan(
            shape, linears, rank=rank, members=members, memory=memory, device=device, dtype=dtype, trains=trains,
            hosted=place, checkpointing=checkpointing, host=host,
        )
        for place in places for checkpointing in ((False, True) if trains else (False,))
    ]  # fmt: skip
    few = min(FEW_TOKENS, ENOUGH_TOKENS[device])
    enough = [each for each in plans if each.micro_tokens >= few]
    # Copies to and from the host at every update are not worth a few tokens more.
    return enough[0] if enough else max(plans, key=lambda each: each.micro_tokens * (1 if each.hosted else 2))


def _plan(
    shape: Shape,
    linears: list[Linear],
    *,
    rank: int,
    members: int,
    memory: int,
    device: str,
    dtype: torch.dtype,
    trains: bool,
    hosted: bool,
    checkpointing: bool,
    host: int | None,
) -> MemoryPlan:
    width, exact = dtype.itemsize, master_dtype(dtype).itemsize
    row = sum(aligned(rank * linear.inputs) + aligned(rank * linear.outputs) for linear in linears)
    weights = shape.nbytes(dtype)
    tables = 2 * min(shape.positions, MAX_POSITIONS) * shape.dim * exact
    head = min(HEAD_BYTES, 4 * shape.vocabulary * ENOUGH_TOKENS[device])
    passing = head + head * width // 4 * trains + tables + shape.written_out * width
    cache_token = 2 * shape.layers * shape.kv_heads * shape.dim * width
    gradient = row * exact * trains
    if hosted:
        member, trained_member = row * width, 0
        passing += 3 * gradient
        on_host = row * exact * (members + 1) + 2 * gradient * members
    else:
        member, trained_member = row * (exact if width == exact else exact + width), 3 * gradient
        on_host = 0
    # One row more than there are members: the bare base's.
    room = int(memory * (1 - SPARE)) - weights - members * (member + trained_member) - member - passing
    together = members * trains
    if hosted and trains:
        together = max(1, min(members, room // GRADIENTS // gradient))
        passing, room = passing + together * gradient, room - together * gradient
    activation = _activation(shape, trains=trains, checkpointing=checkpointing) * width
    # The cache stays allocated meanwhile, so the two share what is left.
    micro = min(max(0, room // 2) // activation, ENOUGH_TOKENS[device])
    short = host is not None and COPIES * on_host > int(host * (1 - SPARE))
    micro = 0 if micro < MIN_TOKENS or short else micro
    return MemoryPlan(
        weights=weights,
        member=member,
        trained_member=trained_member,
        members=members,
        hosted=hosted,
        host=on_host,
        together=together,
        gradient=gradient,
        cache_token=cache_token,
        activation_token=activation,
        passing=passing,
        micro_tokens=micro,
        checkpointing=checkpointing,
        cache_tokens=max(0, room - micro * activation) // cache_token,
    )


def available(device: torch.device) -> int:
    """Bytes that this process can still allocate on a device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    facts = Path("/proc/meminfo")
    if not facts.exists():
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    match = re.search(r"MemAvailable:\s+(\d+) kB", facts.read_text())
    assert match is not None
    return int(match[1]) * 1024


def whole(device: torch.device) -> int:
    """All memory that a device has."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def share(device: torch.device, engines: int) -> int:
    """The same where so many engines share a device."""
    if device.type != "cuda":
        return available(device) // engines
    # Of all memory, so that it does not matter what the others have allocated already; but no more than is free.
    own = int(torch.cuda.mem_get_info(device)[1] * (1 - BESIDE)) // engines - torch.cuda.memory_allocated(device)
    return min(own, available(device))


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError):
        return True
    if error.__context__ is not None and out_of_memory(error.__context__):
        return True  # what had to end because of it may fail in its own way
    messages = ("not enough memory", "can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(message in str(error) for message in messages)


def _activation(shape: Shape, *, trains: bool, checkpointing: bool) -> int:
    """Numbers per token that are kept for the backward pass, and those in flight at its widest layer; without a
    backward pass those of one layer."""
    qkv = (shape.heads + 2 * shape.kv_heads) * shape.dim
    seen = shape.heads * shape.dim
    # The residual stream before each norm, each norm's result, the rotated q, k, v, what attention saw, gate and up,
    # and their product.
    block = 4 * shape.hidden + qkv + seen + 3 * shape.intermediate
    if not shape.fast:
        # Modules of `transformers` keep more: norms in float32, activations one by one.
        block += 8 * shape.hidden + qkv + 2 * shape.intermediate
    # In the backward pass of the widest layer: the gradients of its output, of its input and of the product.
    passing = 3 * shape.intermediate + 4 * shape.hidden
    if not trains:
        # What adapters add to a layer on the way forward takes no more than its gradients would.
        return block + passing
    kept = shape.layers * shape.hidden + block if checkpointing else shape.layers * block
    return kept + passing
