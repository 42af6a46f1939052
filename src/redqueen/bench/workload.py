"""The workload of the engine's benchmarks: a base, members, and random texts of ragged lengths.

Speed depends on a base's shape and not on what it has learnt, so bases with random weights serve as well as real ones.
Every completion runs to its limit, so that all contestants do the same work.
"""

import dataclasses
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from redqueen.console import size_text
from redqueen.engine import base as bases
from redqueen.engine import memory, shapes
from redqueen.engine.base import Base
from redqueen.engine.cap import capped
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, SampleRequest, Trajectory
from redqueen.engine.quantised import Quantisation
from redqueen.errors import InputError
from redqueen.resources import most_memory, refuse_base
from redqueen.settings.models import EngineConfig

SEED = 0
B_STD = 0.02
"""Of the members' B factors, which start at zero: members must differ."""

T = TypeVar("T")
Span = tuple[int, int]
"""Lowest and highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None is a default for the base."""

    shape: str = "tiny"
    base: str | None = None
    """A real base, instead of the shape."""
    members: tuple[int, ...] = (1, 8)
    rank: int = 16
    rows: int | None = None
    requests: int | None = None
    """Completions, or sequences of an update."""
    prompt: Span | None = None
    output: Span | None = None
    head: float = 0.0
    repeats: int = 3
    agreement: bool = False
    sampled: bool = False
    """Before an update as much is sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every contestant does."""

    base: str
    """`random:SHAPE`, or a real one."""
    members: tuple[int, ...]
    """Numbers of adapters, each measured by itself."""
    rank: int
    rows: int
    """Completions that are sampled at once."""
    requests: int
    prompt: Span
    output: Span
    head: float
    """The share of a prompt, from its first token on, in which it is like the others."""
    per_prompt: int
    """Neighbouring completions of one prompt and member."""
    repeats: int

    def __post_init__(self) -> None:
        if self.requests < max(self.members):
            raise InputError(
                f"{max(self.members)} members cannot share {self.requests} {'text' if self.requests == 1 else 'texts'}",
                "use at least one per member",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    rows: int
    prompt: Span
    output: Span
    sequences: int
    update_prompt: Span
    update_output: Span
    per_prompt: int = 1


_SMALL = _Size(rows=64, prompt=(32, 64), output=(32, 64), sequences=128, update_prompt=(32, 64), update_output=(32, 64))
_LARGE = _Size(
    rows=512, prompt=(32, 256), output=(16, 256), sequences=128, update_prompt=(128, 128), update_output=(384, 384)
)
_GROUPS = _Size(
    rows=1024,
    prompt=(60, 200),
    output=(20, 100),
    sequences=128,
    update_prompt=(60, 200),
    update_output=(20, 100),
    per_prompt=8,
)
_SIZES = {"tiny": _SMALL, "1m": _GROUPS, "7b": dataclasses.replace(_LARGE, rows=256)}


def settle(options: Options, device: torch.device, *, training: bool = False) -> Work:
    """The options with the defaults filled in."""
    usual = _LARGE if device.type == "cuda" else _SMALL
    if options.base is None:
        usual = _SIZES.get(options.shape, _LARGE)
    rows = options.rows or usual.rows
    return Work(
        base=options.base or f"{shapes.RANDOM}{options.shape}",
        members=tuple(dict.fromkeys(options.members)),
        rank=options.rank,
        rows=rows,
        requests=options.requests or (max(usual.sequences, 8 * max(options.members)) if training else 2 * rows),
        prompt=options.prompt or (usual.update_prompt if training else usual.prompt),
        output=options.output or (usual.update_output if training else usual.output),
        head=options.head,
        per_prompt=1 if training else usual.per_prompt,
        repeats=options.repeats,
    )


def afford(
    base: str, device: torch.device, dtype: torch.dtype, quantise: Quantisation = "none", *, twice: bool = False
) -> None:
    """Refuse a base that does not fit into memory; peers load it a second time."""
    weights = memory.Shape.of(shapes.outline(base, quantise), fast=True).nbytes(dtype)
    free = memory.available(device)
    if weights * (2 if twice else 1) > free:
        raise InputError(
            f"{base} takes {size_text(weights)}{', twice with the peers' if twice else ''}, "
            f"and {size_text(free)} are free on {device.type}",
            "use a smaller base" if weights > free else "use a smaller base, or `redqueen bench`, which has no peers",
        )


def open_base(name: str, device: torch.device, dtype: torch.dtype, quantise: Quantisation = "none") -> Base:
    """Without end tokens and tokenizer: completions run to their limits and are not decoded."""
    if name.startswith(shapes.RANDOM):
        return shapes.random_base(name.removeprefix(shapes.RANDOM), device=device, dtype=dtype, quantise=quantise)
    loaded = bases.load(name, device=device, dtype=dtype, quantise=quantise)
    return dataclasses.replace(loaded, tokenizer=None, eos_ids=frozenset())


def open_engine(
    work: Work, settings: EngineConfig, device: torch.device, dtype: torch.dtype
) -> tuple[LocalEngine, dict[str, MemberState]]:
    """An engine with the largest number of members, and the state of each."""
    names = [f"m{index}" for index in range(max(work.members))]
    most = most_memory(settings, device)
    refuse_base(work.base, settings, device, dtype)
    with capped(device, most):
        engine = LocalEngine(
            open_base(work.base, device, dtype, settings.quantise),
            members=names,
            rank=work.rank,
            alpha=settings.alpha,
            target_modules=settings.target_modules,
            rows=work.rows,
            most_bytes=most,
        )
    numbers = torch.Generator().manual_seed(SEED)
    states = {}
    for name in names:
        state = engine.read(name)
        factors = {
            module: (a_R_I, torch.randn(b_O_R.shape, generator=numbers) * B_STD)
            for module, (a_R_I, b_O_R) in state.factors.items()
        }
        states[name] = dataclasses.replace(state, factors=factors)
        engine.write(name, states[name])
    return engine, states


def requests(work: Work, vocabulary: int, count: int, turn: int = 0) -> list[SampleRequest]:
    """Completions to sample, spread evenly over `count` members. Every turn and number of members has prompts of its
    own, of the same lengths: an engine may remember earlier ones."""
    return [
        SampleRequest(prompt=prompt, member=f"m{at // work.per_prompt % count}", key=at, max_tokens=len(completion))
        for at, (prompt, completion) in enumerate(_texts(work, vocabulary, f"{count} members, turn {turn}"))
    ]


def trajectories(work: Work, vocabulary: int, count: int) -> list[Trajectory]:
    """Sequences to train on, spread evenly over `count` members."""
    # As if sampled from a uniform distribution, to which random weights come close.
    logprob = -math.log(vocabulary)
    return [
        Trajectory(
            member=f"m{index % count}",
            prompt=prompt,
            completion=completion,
            logprobs=(logprob,) * len(completion),
            advantages=1.0 if index // count % 2 else -1.0,
        )
        for index, (prompt, completion) in enumerate(_texts(work, vocabulary))
    ]


def _texts(work: Work, vocabulary: int, seed: str = "") -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompts and completions, always of the same lengths."""
    lengths, tokens = random.Random(SEED), random.Random(seed)
    head = tuple(tokens.randrange(vocabulary) for _ in range(work.prompt[1]))

    def text(span: Span, shared: float = 0.0) -> tuple[int, ...]:
        length = lengths.randint(*span)
        known = int(shared * length)
        return (*head[:known], *(tokens.randrange(vocabulary) for _ in range(length - known)))

    texts: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while len(texts) < work.requests:
        prompt = text(work.prompt, work.head)
        texts += [(prompt, text(work.output)) for _ in range(work.per_prompt)]
    return texts[: work.requests]


def timed(work: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """What the work returns, and its seconds, those of the device included."""
    synchronize(device)
    started = time.perf_counter()
    result = work()
    synchronize(device)
    return result, time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def allocated(device: torch.device) -> int:
    """Bytes of this process: the allocator's count on CUDA, the resident set on a CPU."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
