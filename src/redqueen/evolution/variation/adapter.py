"""A member's weights as operators see them: slots of one shape are stacked and computed together.

A slot is one adapted module of the base, with the update `alpha / rank * B @ A`. Tensors here must never be changed in
place: they may be those of a parent.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redqueen.engine.protocol import MemberState
from redqueen.errors import Fault, InputError

ROW_NORM = 1 / math.sqrt(3)
"""The norm of a row of A in a fresh member, whose entries are uniform within +-1 / sqrt(inputs)."""
_DECAY = 0.999
"""Of AdamW's second moments, the default of recipes."""
_STACK_NUMBERS = {"cpu": 1 << 22, "cuda": 1 << 28}
"""The most numbers in a stack: what a CPU's caches can help with, or what fits beside the rest on CUDA."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Slots of one shape."""

    names: tuple[str, ...]
    a_S_R_I: Tensor
    b_S_O_R: Tensor
    moments: tuple[Tensor, Tensor] | None = None
    """The optimiser's second moments of both factors, bias-corrected; None for a member that was never trained."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def rank(self) -> int:
        return self.a_S_R_I.shape[1]

    def part(self, at: Tensor | slice) -> "Stack":
        """Some of the slots, untrained."""
        names = self.names[at] if isinstance(at, slice) else tuple(self.names[index] for index in at.tolist())
        return Stack(names, self.a_S_R_I[at], self.b_S_O_R[at])

    def with_factors(self, a_S_R_I: Tensor, b_S_O_R: Tensor) -> "Stack":
        """The same slots with other weights, untrained."""
        return Stack(self.names, a_S_R_I, b_S_O_R)


@dataclass(frozen=True, slots=True)
class Adapter:
    """All slots of one member."""

    rank: int
    alpha: float
    stacks: tuple[Stack, ...]

    @property
    def slots(self) -> int:
        return sum(map(len, self.stacks))

    def map(self, change: Callable[[Stack], Stack]) -> "Adapter":
        return replace(self, stacks=tuple(change(stack) for stack in self.stacks))

    def split(self, of_slots: Tensor) -> Iterator[tuple[Stack, Tensor]]:
        """Every stack with its part of a tensor over all slots."""
        return zip(self.stacks, of_slots.split([len(stack) for stack in self.stacks]), strict=True)


Parents = Sequence[Adapter]
"""One or two, the better one first."""


def pairs(parents: Parents) -> Iterator[tuple[Stack, Stack]]:
    """The same slots of two parents, stack by stack."""
    first, second = parents
    return zip(first.stacks, second.stacks, strict=True)


def zip_map(parents: Parents, change: Callable[[Stack, Stack], Stack]) -> Adapter:
    """The child of two parents, stack by stack."""
    return replace(parents[0], stacks=tuple(change(first, second) for first, second in pairs(parents)))


def stacked(states: Sequence[MemberState], device: torch.device) -> list[Adapter]:
    """Members of one shape, with their slots in the same order."""
    all_shapes = [
        {name: (a_R_I.shape, b_O_R.shape) for name, (a_R_I, b_O_R) in state.factors.items()} for state in states
    ]
    first, shapes = states[0], all_shapes[0]
    for state, own in zip(states, all_shapes, strict=True):
        if (state.rank, state.alpha) != (first.rank, first.alpha):
            differ = f"rank {first.rank} and alpha {first.alpha:g}, the other {state.rank} and {state.alpha:g}"
            raise InputError(f"one parent has {differ}", "use adapters that were made with the same settings")
        if own != shapes:
            odd = min(name for name in own.keys() | shapes.keys() if own.get(name) != shapes.get(name))
            raise InputError(f"the parents do not adapt {odd} alike", "use adapters that were made for one base")
        if not all(bool(tensor.isfinite().all()) for pair in state.factors.values() for tensor in pair):
            raise InputError("a parent's weights are not all finite numbers", "use another adapter")
    batches = list(_batches(shapes, _STACK_NUMBERS[device.type]))
    return [_stack(state, batches, device) for state in states]


def unstacked(adapter: Adapter) -> MemberState:
    """The member's state: on the CPU, with tensors of its own and a fresh optimiser."""
    factors = {}
    for stack in adapter.stacks:
        if not bool(stack.a_S_R_I.isfinite().all() & stack.b_S_O_R.isfinite().all()):
            raise Fault(f"an operator made weights for {stack.names[0]} that are not finite")
        own = [factor.to("cpu", torch.float32, copy=True) for factor in (stack.a_S_R_I, stack.b_S_O_R)]
        factors |= dict(zip(stack.names, zip(*own, strict=True), strict=True))
    return MemberState(adapter.rank, adapter.alpha, factors)


def _batches(shapes: dict[str, tuple[torch.Size, torch.Size]], limit: int) -> Iterator[tuple[str, ...]]:
    alike: dict[tuple[torch.Size, torch.Size], list[str]] = {}
    for name in sorted(shapes):
        alike.setdefault(shapes[name], []).append(name)
    for (a, b), names in alike.items():
        size = max(1, limit // (a.numel() + b.numel()))
        for start in range(0, len(names), size):
            yield tuple(names[start : start + size])


def _stack(state: MemberState, batches: Iterable[tuple[str, ...]], device: torch.device) -> Adapter:
    def gather(tensors: Iterable[Tensor]) -> Tensor:
        return torch.stack(list(tensors)).to(device, torch.float32)

    stacks = []
    for names in batches:
        factors = [state.factors[name] for name in names]
        moments = None
        if state.optimiser is not None:
            squares = [state.optimiser.exp_avg_sq[name] for name in names]
            # Moments start at zero: without this the older of two parents would seem to have learnt more.
            grown = 1 - _DECAY ** max(1, state.optimiser.step)
            moments = gather(a / grown for a, _ in squares), gather(b / grown for _, b in squares)
        stacks.append(Stack(names, gather(a for a, _ in factors), gather(b for _, b in factors), moments))
    return Adapter(state.rank, state.alpha, tuple(stacks))
