"""How fast the engine and peers that a caller passes sample and update: same base, prompts and lengths, one run.

Contestants take turns, so that other load hits all of them; each figure is the median of its turns. Sampling is timed
from the call to its last sample, prompts included; an update with its optimiser step.
"""

import asyncio
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from redqueen.bench import BenchReport, workload
from redqueen.bench.workload import Options, Span, Work
from redqueen.console import print_table, size_text
from redqueen.engine.base import Base
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, Recipe, SampleRequest, Trajectory
from redqueen.errors import InputError
from redqueen.resources import device_name, machine_name, place
from redqueen.settings.models import EngineConfig

if TYPE_CHECKING:
    from rich.console import Console

OURS = "Red Queen"
ALONE = 32
"""Requests that are also sampled one by one, for the agreement."""
RECIPE = Recipe(lr=1e-5, normaliser=1e4)

Way = tuple[str, int]
"""A contestant and its number of adapters."""
RunOnce = Callable[[], int]
"""Does the work once; returns its tokens."""
States = Mapping[str, MemberState]
Turns = dict[Way, list[tuple[int, float]]]
"""Tokens and seconds of every turn."""
Peaks = dict[Way, tuple[int | None, int | None]]
"""Bytes of the memory at most: measured and predicted."""


class SamplingPeer(Protocol):
    name: str

    def sampling(self, requests: Sequence[SampleRequest]) -> RunOnce: ...


class TrainingPeer(Protocol):
    name: str

    def updating(self, batch: Sequence[Trajectory], recipe: Recipe) -> RunOnce: ...

    def at_once(self, batch: Sequence[Trajectory]) -> int:
        """Of the largest micro-batch."""
        ...


Samplers = Callable[[Callable[[], Base], States, int], tuple[Sequence[SamplingPeer], Sequence[str]]]
"""From the base, the members and the rows to the installed peers, and notes about them."""
Trainers = Callable[[Callable[[], Base], States, int], tuple[Sequence[TrainingPeer], Sequence[str]]]
"""The same from the tokens of a micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContestant:
    name: str
    adapters: int
    rows: int
    """Sequences at once, at most."""
    tokens: int
    tokens_per_s: float
    ratio: float
    """Ours: to ours with the first number of adapters. A peer's: ours with as many adapters, divided by it."""
    peak_bytes: int | None = None
    """Measured, on CUDA: base, adapters and all that an update takes beside them."""
    predicted_bytes: int | None = None
    """The same by the engine's memory plan."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Shares of what is sampled in a full batch that are the same when sampled alone."""

    requests: int
    tokens: float
    completions: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport(BenchReport):
    benchmark: str
    machine: str
    device: str
    dtype: str
    quantise: str
    shape: str
    path: str
    rank: int
    memory: str | None
    """Of the device, that might be used; None for all."""
    requests: int
    prompt: Span
    output: Span
    head: float
    repeats: int
    seed: int
    contestants: tuple[EngineContestant, ...]
    agreement: Agreement | None
    notes: tuple[str, ...]

    def render(self, console: "Console") -> None:
        alike = f", alike in their first {self.head:.0%}" if self.head else ""
        lengths = f"prompts of {_shown(self.prompt)} tokens{alike}, completions of {_shown(self.output)}"
        stored = "" if self.quantise == "none" else f", linear layers in {self.quantise}"
        limit = "" if self.memory is None else f", of which {self.memory} may be used"
        console.print(f"{self.machine}; {self.device}{limit}; {self.dtype}{stored}", soft_wrap=True)
        console.print(f"{self.benchmark} on {self.shape} (path {self.path}), rank {self.rank}", soft_wrap=True)
        console.print(f"{self.requests} texts: {lengths}; median of {self.repeats} turns", soft_wrap=True)
        rows = self.contestants
        figures = {
            "adapters": [str(row.adapters) for row in rows],
            "rows": [str(row.rows) for row in rows],
            "tokens/s": [f"{row.tokens_per_s:,.0f}" for row in rows],
            "ratio": [f"{row.ratio:.2f}x" for row in rows],
        }
        if any(row.peak_bytes is not None for row in rows):
            figures["peak"] = [_size(row.peak_bytes) for row in rows]
            figures["predicted"] = [_size(row.predicted_bytes) for row in rows]
        print_table(console, {"way": [row.name for row in rows]}, figures)
        of_peers = "" if all(row.name == OURS for row in rows) else "; of a peer: ours to it"
        console.print(f"ratio: to ours with the first number of adapters{of_peers}", soft_wrap=True)
        if self.agreement is not None:
            agreed = f"{self.agreement.tokens:.1%} of the tokens, {self.agreement.completions:.1%} of the completions"
            console.print(f"as sampled one by one ({self.agreement.requests} requests): {agreed}", soft_wrap=True)
        for note in self.notes:
            console.print(note, soft_wrap=True)


def sample(options: Options, settings: EngineConfig, samplers: Samplers | None = None) -> EngineReport:
    """Completions of ragged lengths at temperature 1, with their log-probabilities."""
    _refuse_peers(samplers, settings)
    device, dtype = place(settings)
    work = workload.settle(options, device)
    workload.afford(work.base, device, dtype, settings.quantise, twice=samplers is not None)
    before = workload.allocated(device)
    engine, states = workload.open_engine(work, settings, device, dtype)
    with engine:
        by_count = {n: workload.requests(work, engine.shape.vocabulary, n) for n in work.members}
        ways: dict[Way, RunOnce] = {(OURS, n): _sampling(engine, work, n) for n in work.members}
        peers, notes = [], []
        if samplers is not None:
            peers, notes = samplers(lambda: workload.open_base(work.base, device, dtype), states, work.rows)
        for peer in peers:
            ways |= {(peer.name, n): peer.sampling(requests) for n, requests in by_count.items()}
        peaks: Peaks = {}
        for way, run in ways.items():
            peaks[way] = _peak(run, device, before), None
        turns = _turns(ways, work.repeats, device)
        agreement = _agreement(engine, by_count[max(by_count)]) if options.agreement else None
    rows = dict.fromkeys(ways, work.rows)
    return _report("sample", work, engine, _contestants(turns, rows, peaks), settings.memory, agreement, notes)


def update(options: Options, settings: EngineConfig, trainers: Trainers | None = None) -> EngineReport:
    """One optimiser step of every member on its share of the same sequences."""
    _refuse_peers(trainers, settings)
    device, dtype = place(settings)
    work = workload.settle(options, device, training=True)
    workload.afford(work.base, device, dtype, settings.quantise, twice=trainers is not None)
    before = workload.allocated(device)
    engine, states = workload.open_engine(work, settings, device, dtype)
    with engine:
        by_count = {n: workload.trajectories(work, engine.shape.vocabulary, n) for n in work.members}
        ways: dict[Way, RunOnce] = {(OURS, n): _updating(engine, batch) for n, batch in by_count.items()}
        peaks: Peaks = {}
        rows = {}
        # Fewest first: what a member needs for its training is there from its first update on.
        for n in sorted(by_count):
            first = _after_sampling(engine, work, n, by_count[n]) if options.sampled else ways[OURS, n]
            peak = _peak(first, device, before)
            rows[OURS, n] = engine.trainer.largest(by_count[n])[0]
            peaks[OURS, n] = peak, None if peak is None else _predicted(engine, by_count[n], n)
        before = workload.allocated(device)
        peers, notes = [], []
        if trainers is not None:
            peers, notes = trainers(
                lambda: workload.open_base(work.base, device, dtype), states, engine.trainer.micro_tokens
            )
        for peer in peers:
            for n, batch in by_count.items():
                ways[peer.name, n] = peer.updating(batch, RECIPE)
                peaks[peer.name, n] = _peak(ways[peer.name, n], device, before), None
                rows[peer.name, n] = peer.at_once(batch)
        turns = _turns(ways, work.repeats, device)
    return _report("update", work, engine, _contestants(turns, rows, peaks), settings.memory, None, notes)


def _refuse_peers(peers: object, settings: EngineConfig) -> None:
    if peers is not None and settings.quantise != "none":
        raise InputError("peers have the base unquantised", "set engine.quantise to none")


def _sampling(engine: LocalEngine, work: Work, members: int) -> RunOnce:
    """The first turn is the one before those that count."""
    turns = iter([workload.requests(work, engine.shape.vocabulary, members, turn) for turn in range(work.repeats + 1)])
    return lambda: sum(len(sample.tokens) for sample in asyncio.run(engine.sample(next(turns))))


def _updating(engine: LocalEngine, batch: Sequence[Trajectory]) -> RunOnce:
    return lambda: sum(stats.tokens for stats in asyncio.run(engine.update(batch, RECIPE)).values())


def _after_sampling(engine: LocalEngine, work: Work, members: int, batch: Sequence[Trajectory]) -> RunOnce:
    """As many texts of such lengths are sampled first, and the KV cache stays: what a step of a race does."""
    sampling, updating = _sampling(engine, work, members), _updating(engine, batch)
    return lambda: sampling() + updating()


def _turns(ways: dict[Way, RunOnce], repeats: int, device: torch.device) -> Turns:
    turns: Turns = {way: [] for way in ways}
    for _ in range(repeats):
        for way, run in ways.items():
            turns[way].append(workload.timed(run, device))
    return turns


def _contestants(turns: Turns, rows: dict[Way, int], peaks: Peaks) -> tuple[EngineContestant, ...]:
    per_s = {way: statistics.median(tokens / seconds for tokens, seconds in runs) for way, runs in turns.items()}
    first = next(iter(per_s.values()))
    return tuple(
        EngineContestant(
            name=way[0],
            adapters=way[1],
            rows=rows[way],
            tokens=turns[way][0][0],
            tokens_per_s=per_s[way],
            ratio=per_s[way] / first if way[0] == OURS else per_s[OURS, way[1]] / per_s[way],
            peak_bytes=peaks.get(way, (None, None))[0],
            predicted_bytes=peaks.get(way, (None, None))[1],
        )
        for way in turns
    )


def _agreement(engine: LocalEngine, requests: Sequence[SampleRequest]) -> Agreement:
    together = asyncio.run(engine.sample(requests))[:ALONE]
    # Nothing of these prompts may be left.
    engine.sampler.backend.drop()
    alone = [asyncio.run(engine.sample([request]))[0] for request in requests[:ALONE]]
    same = [[x == y for x, y in zip(a.tokens, b.tokens, strict=True)] for a, b in zip(together, alone, strict=True)]
    tokens = [equal for row in same for equal in row]
    return Agreement(len(same), sum(tokens) / len(tokens), sum(all(row) for row in same) / len(same))


def _peak(run: RunOnce, device: torch.device, before: int) -> int | None:
    """Run it once; on CUDA, its peak memory beyond what was allocated `before` its base was loaded."""
    if device.type != "cuda":
        run()
        return None
    torch.cuda.reset_peak_memory_stats(device)
    run()
    workload.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _predicted(engine: LocalEngine, batch: Sequence[Trajectory], count: int) -> int:
    cache = engine.sampler.backend.cache
    peak = engine.plan.peak(engine.trainer.largest(batch)[1], cache.tokens if cache else 0)
    return peak - engine.plan.untrained(count)


def _report(
    benchmark: str,
    work: Work,
    engine: LocalEngine,
    contestants: tuple[EngineContestant, ...],
    memory: str | None,
    agreement: Agreement | None,
    notes: Sequence[str],
) -> EngineReport:
    return EngineReport(
        benchmark=benchmark,
        machine=machine_name(),
        device=device_name(engine.device),
        dtype=str(engine.dtype).removeprefix("torch."),
        quantise=engine.base.quantise,
        shape=work.base,
        path=engine.body.path,
        rank=work.rank,
        memory=memory,
        requests=work.requests,
        prompt=work.prompt,
        output=work.output,
        head=work.head,
        repeats=work.repeats,
        seed=workload.SEED,
        contestants=contestants,
        agreement=agreement,
        notes=tuple(notes),
    )


def _shown(bounds: Span) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]}-{bounds[1]}"


def _size(count: int | None) -> str:
    return "" if count is None else size_text(count)
