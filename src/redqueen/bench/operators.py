"""What a child costs: every operator on adapters of a base's slots, and beside it a peer that a caller brings.

Contestants take turns, so that whatever else the machine does hits all of them, and a ratio is the median of the turns'
ratios. A peer is compared with the operator alone, from stacked parents to a stacked child. What a user waits for, from
member to member, stands beside it.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from redqueen.bench import workload
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
"""Of a member, that are in memory at the same time at most: two parents with moments, as states and stacked."""
SMALL = [(48, 40), (40, 48)]
"""Slots for a first turn that nobody times."""

LONG = 60.0
"""Seconds after which an operator gets no further turn."""

T = TypeVar("T")
Slots = Sequence[tuple[int, int]]
"""Outputs and inputs."""


class Peer(Protocol):
    """Somebody else's operators."""

    version: str
    operators: Mapping[str, tuple[str, bool]]
    """By our names: theirs, and whether both do the same work."""

    def seconds(self, operator: str) -> float:
        """What one of theirs takes for a child."""
        ...


OpenPeer = Callable[[Slots, int, torch.device], AbstractContextManager[Peer]]
"""From slots, rank and device to a peer that is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operator."""

    name: str
    kind: str
    seconds: float
    """From parents to child as members, which is what a user waits for; medians of the turns."""
    turns: int
    """As asked for, or fewer where they take long."""
    operator_seconds: float
    """The operator alone."""
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
class OperatorsReport:
    """What `redqueen bench operators` found."""

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
    operators: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich import box
        from rich.table import Table

        console.print(f"{self.machine}; {self.device}, {self.threads} threads", soft_wrap=True)
        each = f"{self.parameters_per_member / 1e6:,.2f} million parameters each"
        console.print(f"{self.slots} slots of {self.shape}, rank {self.rank}, {each}", soft_wrap=True)
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("operator", no_wrap=True)
        peer = () if self.peer is None else ("peer", "ratio", "same")
        for column in ("child", "alone", "norm", "cosine", *peer):
            table.add_column(column, justify="right")
        for row in self.operators:
            cosines = " ".join(f"{cosine:.2f}" for cosine in row.cosine)
            cells = [row.name, _shown(row.seconds), _shown(row.operator_seconds), f"{row.norm:.2f}", cosines]
            if self.peer is not None:
                ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
                cells += [_shown(row.peer_seconds), ratio, "" if row.same is None else "yes" if row.same else "no"]
            table.add_row(*cells)
        console.print(table)
        turns = f"times are medians of {self.repeats} turns, or of those that began within {LONG:.0f} s"
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
    rows = []
    with nullcontext() if open_peer is None else open_peer(slots, rank, device) as peer:
        for operator in chosen:
            _warm(operator, device)
            with _progress(operator.name):
                rows.append(_row(operator, parents, repeats, device, peer))
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
        seed=0,
        peer=version,
        operators=tuple(rows),
    )


def _row(
    operator: Operator, parents: Sequence[MemberState], repeats: int, device: torch.device, peer: Peer | None
) -> Row:
    states = list(parents[: operator.parents])
    if operator.moments:
        states = [_trained(state) for state in states]
    theirs, same = (None, None) if peer is None else peer.operators.get(operator.name, (None, None))
    seconds, alone, peers = [], [], []
    made = states[0]
    started = time.perf_counter()
    while len(seconds) < repeats and (not seconds or time.perf_counter() - started < LONG):
        seed = len(seconds)
        adapters, before = _timed(lambda: stacked(states, device), device)
        adapter, middle = _timed(lambda seed=seed, adapters=adapters: operator(adapters, Draws(seed, device)), device)
        del adapters
        made, after = _timed(lambda adapter=adapter: unstacked(adapter), device)
        del adapter
        alone.append(middle)
        seconds.append(before + middle + after)
        if peer is not None and theirs is not None:
            peers.append(peer.seconds(theirs))
    norm, cosines = variation.portrait(made, parents[: operator.parents])
    return Row(
        name=operator.name,
        kind=str(operator.kind),
        seconds=statistics.median(seconds),
        turns=len(seconds),
        operator_seconds=statistics.median(alone),
        norm=norm,
        cosine=cosines,
        peer_seconds=statistics.median(peers) if peers else None,
        same=same,
        ratio=statistics.median(their / our for their, our in zip(peers, alone, strict=True)) if peers else None,
    )


def _timed(work: Callable[[], T], device: torch.device) -> tuple[T, float]:
    workload.synchronize(device)
    started = time.perf_counter()
    made = work()
    workload.synchronize(device)
    return made, time.perf_counter() - started


def _warm(operator: Operator, device: torch.device) -> None:
    """What is loaded or set up at the first use of a product or a decomposition shall not be in the figures."""
    names = [str(index) for index in range(len(SMALL))]
    states = [_member(names, SMALL, 4, 8.0, seed) for seed in range(operator.parents)]
    variation.child(operator, states, seed=0, device=device)


def _member(names: Sequence[str], slots: Slots, rank: int, alpha: float, seed: int) -> MemberState:
    """A as in fresh members, and a B whose components fall off as those of trained ones do."""
    numbers = torch.Generator().manual_seed(seed)
    falling_R = (1 + torch.arange(rank)) ** -0.5
    factors = {}
    for name, (outputs, inputs) in zip(names, slots, strict=True):
        a_R_I = torch.empty(rank, inputs).uniform_(-1, 1, generator=numbers).div_(math.sqrt(inputs))
        b_O_R = torch.randn(outputs, rank, generator=numbers).mul_(workload.B_STD * falling_R)
        factors[name] = a_R_I, b_O_R
    return MemberState(rank, alpha, factors)


def _trained(state: MemberState) -> MemberState:
    """With second moments, which is all that an operator looks at: the first ones need no memory of their own."""
    squares = {name: (a_R_I.square(), b_O_R.square()) for name, (a_R_I, b_O_R) in state.factors.items()}
    return replace(state, optimiser=OptimiserState(1, squares, squares))


def _afford(parameters: int, rank: int, base: str) -> None:
    wanted, free = 4 * COPIES * parameters, memory.available(torch.device("cpu"))
    if wanted > free:
        raise InputError(
            f"breeding on {base} at rank {rank} takes {workload.size(wanted)}, and {workload.size(free)} are free",
            "use a smaller base or a lower rank",
        )


@contextmanager
def _progress(name: str) -> Iterator[None]:
    """The operator at work, on a terminal: some take minutes."""
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
