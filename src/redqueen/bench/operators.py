"""What a child costs: every operator on adapters of a base's slots, and a peer that a caller passes.

Contestants take turns, so that other load hits all of them, and a ratio is the median of the turns' ratios. A peer is
compared with the operator alone, from stacked parents to a stacked child; what a user waits for, from member to member,
is reported beside it.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch

from redqueen.bench import BenchReport, workload
from redqueen.console import print_table, size_text
from redqueen.engine import memory, shapes
from redqueen.engine.adaptable import adaptable
from redqueen.engine.protocol import MemberState, OptimiserState
from redqueen.errors import InputError
from redqueen.evolution import variation
from redqueen.evolution.variation import Draws, Operator
from redqueen.evolution.variation.adapter import stacked, unstacked
from redqueen.resources import device_name, machine_name, place
from redqueen.settings.models import EngineConfig

if TYPE_CHECKING:
    from rich.console import Console

COPIES = 8
"""Of a member, in memory at once: two parents with moments, as states and stacked."""
WARMUP_SLOTS = [(48, 40), (40, 48)]
"""For a first turn that is not timed."""
MAX_SECONDS = 60.0
"""After which an operator gets no further turn."""

Slots = Sequence[tuple[int, int]]
"""Outputs and inputs."""


class OperatorPeer(Protocol):
    """Another implementation of operators."""

    version: str
    operators: Mapping[str, tuple[str, bool]]
    """Our name -> its name, and whether both do the same work."""

    def seconds(self, operator: str) -> float: ...


OpenPeer = Callable[[Slots, int, torch.device], AbstractContextManager[OperatorPeer]]
"""From slots, rank and device to a peer that is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    name: str
    kind: str
    seconds: float
    """From parents to child as members; median of the turns."""
    turns: int
    """Fewer than asked for where they take long."""
    operator_seconds: float
    norm: float
    """Of the child's Delta W, to the mean of its parents'."""
    cosine: tuple[float, ...]
    """Of the child's Delta W and each parent's."""
    peer_seconds: float | None = None
    same: bool | None = None
    """Whether the peer does the same work."""
    ratio: float | None = None
    """The peer's seconds divided by the operator's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsReport(BenchReport):
    machine: str
    device: str
    threads: int
    shape: str
    rank: int
    slots: int
    parameters_per_member: int
    repeats: int
    seed: int
    peer: str | None
    operators: tuple[OperatorCost, ...]

    def render(self, console: "Console") -> None:
        console.print(f"{self.machine}; {self.device}, {self.threads} threads", soft_wrap=True)
        size = f"{self.parameters_per_member / 1e6:,.2f} million parameters each"
        console.print(f"{self.slots} slots of {self.shape}, rank {self.rank}, {size}", soft_wrap=True)
        rows = self.operators
        figures = {
            "child": [_shown(row.seconds) for row in rows],
            "alone": [_shown(row.operator_seconds) for row in rows],
            "norm": [f"{row.norm:.2f}" for row in rows],
            "cosine": [" ".join(f"{cosine:.2f}" for cosine in row.cosine) for row in rows],
        }
        if self.peer is not None:
            figures["peer"] = [_shown(row.peer_seconds) for row in rows]
            figures["ratio"] = ["" if row.ratio is None else f"{row.ratio:.2f}x" for row in rows]
            figures["same"] = [{None: "", True: "yes", False: "no"}[row.same] for row in rows]
        print_table(console, {"operator": [row.name for row in rows]}, figures)
        turns = f"times are medians of {self.repeats} turns, or of those that began within {MAX_SECONDS:.0f} s"
        console.print(f"{turns}; alone: from stacked parents to a stacked child", soft_wrap=True)
        if self.peer is not None:
            ratio = "ratio: its seconds to the operator's alone; same: whether both do the same work"
            console.print(f"the peer is {self.peer}; {ratio}", soft_wrap=True)


def measure(
    base: str,
    operators: Sequence[str],
    rank: int,
    repeats: int,
    settings: EngineConfig,
    open_peer: OpenPeer | None = None,
) -> OperatorsReport:
    """`base` is a base's name, or `random:SHAPE`."""
    chosen = [variation.find(name) for name in operators]
    device, _ = place(settings)
    linears = adaptable(shapes.outline(base), settings.target_modules)
    names, slots = [linear.name for linear in linears], [(linear.outputs, linear.inputs) for linear in linears]
    parameters = rank * sum(outputs + inputs for outputs, inputs in slots)
    _afford(parameters, rank, base)
    alpha = settings.alpha or 2.0 * rank
    parents = [_member(names, slots, rank, alpha, seed) for seed in (0, 1)]
    costs = []
    with nullcontext() if open_peer is None else open_peer(slots, rank, device) as peer:
        for operator in chosen:
            _warm(operator, device)
            with _progress(operator.name):
                costs.append(_cost(operator, parents, repeats, device, peer))
        version = None if peer is None else peer.version
    return OperatorsReport(
        machine=machine_name(),
        device=device_name(device),
        threads=torch.get_num_threads(),
        shape=base,
        rank=rank,
        slots=len(slots),
        parameters_per_member=parameters,
        repeats=repeats,
        seed=workload.SEED,
        peer=version,
        operators=tuple(costs),
    )


def _cost(
    operator: Operator, parents: Sequence[MemberState], repeats: int, device: torch.device, peer: OperatorPeer | None
) -> OperatorCost:
    states = list(parents[: operator.parents or 2])
    if operator.moments:
        states = [_trained(state) for state in states]
    peer_name, same = (None, None) if peer is None else peer.operators.get(operator.name, (None, None))
    seconds, alone, peers = [], [], []
    made = states[0]
    started = time.perf_counter()
    while len(seconds) < repeats and (not seconds or time.perf_counter() - started < MAX_SECONDS):
        seed = len(seconds)
        stacks, before = workload.timed(lambda: stacked(states, device), device)
        child, middle = workload.timed(lambda seed=seed, stacks=stacks: operator(stacks, Draws(seed, device)), device)
        del stacks
        made, after = workload.timed(lambda child=child: unstacked(child), device)
        del child
        alone.append(middle)
        seconds.append(before + middle + after)
        if peer is not None and peer_name is not None:
            peers.append(peer.seconds(peer_name))
    norm, cosines = variation.portrait(made, parents[: operator.parents or 2])
    return OperatorCost(
        name=operator.name,
        kind=str(operator.kind),
        seconds=statistics.median(seconds),
        turns=len(seconds),
        operator_seconds=statistics.median(alone),
        norm=norm,
        cosine=cosines,
        peer_seconds=statistics.median(peers) if peers else None,
        same=same,
        ratio=statistics.median(peer / own for peer, own in zip(peers, alone, strict=True)) if peers else None,
    )


def _warm(operator: Operator, device: torch.device) -> None:
    """Keep what is loaded at the first product or decomposition out of the figures."""
    names = [str(index) for index in range(len(WARMUP_SLOTS))]
    states = [_member(names, WARMUP_SLOTS, 4, 8.0, seed) for seed in range(operator.parents or 2)]
    variation.child(operator, states, seed=0, device=device)


def _member(names: Sequence[str], slots: Slots, rank: int, alpha: float, seed: int) -> MemberState:
    """A as in new members, and a B whose components fall off as in trained ones."""
    numbers = torch.Generator().manual_seed(seed)
    falling_R = (1 + torch.arange(rank)) ** -0.5
    factors = {}
    for name, (outputs, inputs) in zip(names, slots, strict=True):
        a_R_I = torch.empty(rank, inputs).uniform_(-1, 1, generator=numbers).div_(math.sqrt(inputs))
        b_O_R = torch.randn(outputs, rank, generator=numbers).mul_(workload.B_STD * falling_R)
        factors[name] = a_R_I, b_O_R
    return MemberState(rank, alpha, factors)


def _trained(state: MemberState) -> MemberState:
    """With second moments, which are all that operators read; the first ones share their memory."""
    squares = {name: (a_R_I.square(), b_O_R.square()) for name, (a_R_I, b_O_R) in state.factors.items()}
    return replace(state, optimiser=OptimiserState(1, squares, squares))


def _afford(parameters: int, rank: int, base: str) -> None:
    needed, free = 4 * COPIES * parameters, memory.available(torch.device("cpu"))
    if needed > free:
        raise InputError(
            f"breeding on {base} at rank {rank} takes {size_text(needed)}, and {size_text(free)} are free",
            "use a smaller base or a lower rank",
        )


@contextmanager
def _progress(name: str) -> Iterator[None]:
    """Show the operator's name on a terminal: some take minutes."""
    shown = sys.stderr.isatty()
    if shown:
        print(f"\r{name} ...\x1b[K", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
