"""How fast the engine samples and updates, and beside it the peers that a caller brings: same base, same prompts, same
lengths, one run.

Contestants take turns, so that whatever else the machine does hits all of them; each figure is the median of its
turns. Sampling is timed from the call to its last sample, prompts included; an update with its optimiser step.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from redqueen.bench import workload
from redqueen.bench.workload import Options, Span, Work
from redqueen.engine.base import Base
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, Recipe, SampleRequest, Trajectory
from redqueen.resources import device_name, machine_name, place
from redqueen.settings.models import EngineConfig

if TYPE_CHECKING:
    from rich.console import Console

OURS = "Red Queen"
ALONE = 32
"""Requests that are sampled one by one for the agreement."""
RECIPE = Recipe(lr=1e-5, normaliser=1e4)

Way = tuple[str, int]
"""A contestant and its number of adapters."""
Run = Callable[[], int]
"""Does the work once; how many tokens it came to."""
States = Mapping[str, MemberState]
Turns = dict[Way, list[tuple[int, float]]]
"""Tokens and seconds of every turn."""


class SamplingPeer(Protocol):
    name: str

    def sampling(self, requests: Sequence[SampleRequest]) -> Run: ...


class TrainingPeer(Protocol):
    name: str

    def updating(self, batch: Sequence[Trajectory], recipe: Recipe) -> Run: ...

    def at_once(self, batch: Sequence[Trajectory]) -> int:
        """Sequences in a micro-batch, at most."""
        ...


Samplers = Callable[[Callable[[], Base], States, int], tuple[Sequence[SamplingPeer], Sequence[str]]]
"""From the base, the members and the rows to the peers that there are, and notes about them."""
Trainers = Callable[[Callable[[], Base], States, int], tuple[Sequence[TrainingPeer], Sequence[str]]]
"""The same from the tokens of a micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    name: str
    adapters: int
    """In the batch."""
    rows: int
    """Sequences at once, at most."""
    tokens: int
    """Of one turn."""
    tokens_per_s: float
    """Median of the turns."""
    ratio: float
    """For us: to ours with the first number of adapters. For a peer: ours with as many adapters, divided by it."""
    peak_bytes: int | None = None
    """Measured, on CUDA: base, adapters and all that an update takes beside them."""
    predicted_bytes: int | None = None
    """What the engine's plan says that is."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much of what is sampled in a full batch is what is sampled alone."""

    requests: int
    tokens: float
    """Share of the tokens that are the same."""
    completions: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """What `redqueen bench sample` and `redqueen bench update` found."""

    benchmark: str
    machine: str
    device: str
    dtype: str
    shape: str
    path: str
    rank: int
    requests: int
    prompt: Span
    output: Span
    repeats: int
    seed: int
    contestants: tuple[Contestant, ...]
    agreement: Agreement | None
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich.table import Table

        lengths = f"prompts of {_shown(self.prompt)} tokens, completions of {_shown(self.output)}"
        console.print(f"{self.machine}; {self.device}, {self.dtype}", soft_wrap=True)
        console.print(f"{self.benchmark} on {self.shape} (path {self.path}), rank {self.rank}", soft_wrap=True)
        console.print(f"{self.requests} texts: {lengths}; median of {self.repeats} turns", soft_wrap=True)
        alone = all(one.name == OURS for one in self.contestants)
        of_peers = "" if alone else "; of a peer: ours to it"
        table = Table(caption=f"ratio: to ours with the first number of adapters{of_peers}")
        table.add_column("way")
        peaks = any(contestant.peak_bytes is not None for contestant in self.contestants)
        for column in ("adapters", "rows", "tokens/s", "ratio", *(("peak", "predicted") if peaks else ())):
            table.add_column(column, justify="right")
        for one in self.contestants:
            cells = [one.name, str(one.adapters), str(one.rows), f"{one.tokens_per_s:,.0f}", f"{one.ratio:.2f}x"]
            if peaks:
                cells += ["" if n is None else workload.size(n) for n in (one.peak_bytes, one.predicted_bytes)]
            table.add_row(*cells)
        console.print(table)
        if self.agreement is not None:
            agreed = f"{self.agreement.tokens:.1%} of the tokens, {self.agreement.completions:.1%} of the completions"
            console.print(f"as sampled one by one ({self.agreement.requests} requests): {agreed}", soft_wrap=True)
        for note in self.notes:
            console.print(note, soft_wrap=True)


def sample(options: Options, settings: EngineConfig, samplers: Samplers | None = None) -> EngineReport:
    """Completions of ragged lengths at temperature 1, with their log-probabilities."""
    device, dtype = place(settings)
    work = workload.settle(options, device)
    workload.afford(work.base, device, dtype, twice=samplers is not None)
    engine, states = workload.open_engine(work, settings, device, dtype)
    with engine:
        asked = {n: workload.requests(work, engine.shape.vocabulary, n) for n in work.members}
        ways: dict[Way, Run] = {(OURS, n): _sampling(engine, requests) for n, requests in asked.items()}
        peers, notes = [], []
        if samplers is not None:
            peers, notes = samplers(lambda: workload.open_base(work.base, device, dtype, work.seed), states, work.rows)
        for peer in peers:
            ways |= {(peer.name, n): peer.sampling(requests) for n, requests in asked.items()}
        for run in ways.values():
            run()
        turns = _turns(ways, work.repeats, device)
        agreement = _agreement(engine, asked[max(asked)]) if options.agreement else None
    rows = dict.fromkeys(ways, work.rows)
    return _report("sample", work, engine, _contestants(turns, rows, {}), agreement, notes)


def update(options: Options, settings: EngineConfig, trainers: Trainers | None = None) -> EngineReport:
    """One optimiser step of every member on its share of the same sequences."""
    device, dtype = place(settings)
    work = workload.settle(options, device, training=True)
    workload.afford(work.base, device, dtype, twice=trainers is not None)
    before = _allocated(device)
    engine, states = workload.open_engine(work, settings, device, dtype)
    with engine:
        asked = {n: workload.trajectories(work, engine.shape.vocabulary, n) for n in work.members}
        ways: dict[Way, Run] = {(OURS, n): _updating(engine, batch) for n, batch in asked.items()}
        peaks, rows = {}, {}
        # Fewest first: what a member needs for its training is there from its first update on.
        for n in sorted(asked):
            peak = _peak(ways[OURS, n], device, before)
            rows[OURS, n] = engine.trainer.largest(asked[n])[0]
            peaks[OURS, n] = peak, None if peak is None else _predicted(engine, asked[n], n)
        before = _allocated(device)
        peers, notes = [], []
        if trainers is not None:
            peers, notes = trainers(
                lambda: workload.open_base(work.base, device, dtype, work.seed), states, engine.trainer.micro_tokens
            )
        for peer in peers:
            for n, batch in asked.items():
                ways[peer.name, n] = peer.updating(batch, RECIPE)
                peaks[peer.name, n] = _peak(ways[peer.name, n], device, before), None
                rows[peer.name, n] = peer.at_once(batch)
        turns = _turns(ways, work.repeats, device)
    return _report("update", work, engine, _contestants(turns, rows, peaks), None, notes)


def _sampling(engine: LocalEngine, requests: Sequence[SampleRequest]) -> Run:
    return lambda: sum(len(one.tokens) for one in asyncio.run(engine.sample(requests)))


def _updating(engine: LocalEngine, batch: Sequence[Trajectory]) -> Run:
    return lambda: sum(one.tokens for one in asyncio.run(engine.update(batch, RECIPE)).values())


def _turns(ways: dict[Way, Run], repeats: int, device: torch.device) -> Turns:
    turns: Turns = {way: [] for way in ways}
    for _ in range(repeats):
        for way, run in ways.items():
            workload.synchronize(device)
            started = time.perf_counter()
            tokens = run()
            workload.synchronize(device)
            turns[way].append((tokens, time.perf_counter() - started))
    return turns


def _contestants(
    turns: Turns, rows: dict[Way, int], peaks: dict[Way, tuple[int | None, int | None]]
) -> tuple[Contestant, ...]:
    per_s = {way: statistics.median(tokens / seconds for tokens, seconds in found) for way, found in turns.items()}
    first = next(iter(per_s.values()))
    return tuple(
        Contestant(
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
    alone = [asyncio.run(engine.sample([request]))[0] for request in requests[:ALONE]]
    same = [[x == y for x, y in zip(a.tokens, b.tokens, strict=True)] for a, b in zip(together, alone, strict=True)]
    tokens = [equal for row in same for equal in row]
    return Agreement(len(same), sum(tokens) / len(tokens), sum(all(row) for row in same) / len(same))


def _allocated(device: torch.device) -> int:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def _peak(run: Run, device: torch.device, before: int) -> int | None:
    """Run it once; on CUDA, the most memory that was taken meanwhile beyond what was `before` its base was loaded."""
    if device.type != "cuda":
        run()
        return None
    torch.cuda.reset_peak_memory_stats(device)
    run()
    workload.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _predicted(engine: LocalEngine, batch: Sequence[Trajectory], count: int) -> int:
    cache = 0 if engine.sampler.cache is None else engine.sampler.cache.tokens
    # Members that were never trained have no optimiser state yet.
    untrained = (engine.plan.members - count) * engine.plan.trained_member
    return engine.plan.update_peak(engine.trainer.largest(batch)[1], cache) - untrained


def _report(
    benchmark: str,
    work: Work,
    engine: LocalEngine,
    contestants: tuple[Contestant, ...],
    agreement: Agreement | None,
    notes: Sequence[str],
) -> EngineReport:
    return EngineReport(
        benchmark=benchmark,
        machine=machine_name(),
        device=device_name(engine.device),
        dtype=str(engine.dtype).removeprefix("torch."),
        shape=work.base,
        path=engine.path,
        rank=work.rank,
        requests=work.requests,
        prompt=work.prompt,
        output=work.output,
        repeats=work.repeats,
        seed=work.seed,
        contestants=contestants,
        agreement=agreement,
        notes=tuple(notes),
    )


def _shown(bounds: Span) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]}-{bounds[1]}"
