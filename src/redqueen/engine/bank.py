"""All members' adapters, stacked: one row of numbers per member, one view per adapted linear layer.

A member is one row of `masters_A_D`: its low-rank factors for every adapted layer, end to end. Whatever concerns a
member as a whole (an optimiser step, a norm, a copy) is then one operation on one row, and no operation can reach a
neighbour. Row 0 belongs to nobody and stays zero: it is the bare base.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.engine.protocol import MemberId, MemberState, OptimiserState
from redqueen.errors import InputError

ALIGN = 64
"""Every factor starts at a multiple of this many numbers, so that kernels may load them in wide pieces."""
BARE = 0
"""The bank's row of the bare base."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer of the base that every member adapts."""

    name: str
    """Its module in the base: `model.layers.0.self_attn.q_proj`."""
    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Group:
    """Linear layers that read the same input and are computed at once: q, k and v; gate and up; or a single one."""

    linears: tuple[Linear, ...]
    a_at: int
    """Where the A factors start in a member's row; they follow each other without a gap."""
    b_at: int

    @property
    def inputs(self) -> int:
        return self.linears[0].inputs

    @property
    def outputs(self) -> int:
        return sum(linear.outputs for linear in self.linears)


class Bank:
    """The members' weights, their optimiser states, and which row is whose."""

    def __init__(
        self,
        groups: Sequence[Sequence[Linear]],
        *,
        rank: int,
        alpha: float,
        members: Sequence[MemberId],
        device: torch.device,
        dtype: torch.dtype,
        seed: int = 0,
    ) -> None:
        self.rank, self.alpha, self.scale = rank, alpha, alpha / rank
        self.device, self.dtype = device, dtype
        self.groups: list[Group] = []
        at = 0
        for linears in groups:
            a_at = at
            b_at = aligned(a_at + len(linears) * rank * linears[0].inputs)
            at = aligned(b_at + rank * sum(linear.outputs for linear in linears))
            self.groups.append(Group(tuple(linears), a_at, b_at))
        self.width = at
        self._places = {
            linear.name: (linear, *place) for group in self.groups for linear, *place in _places(group, rank)
        }
        self.rows: dict[MemberId, int] = {}
        self._free: list[int] = []
        self._fresh_D = self._drawn(seed)
        self.masters_A_D = torch.zeros(1, self.width, dtype=master_dtype(dtype), device=device)
        self.compute_A_D = self._compute()
        self._exp_avg_D: dict[int, Tensor] = {}
        self._exp_avg_sq_D: dict[int, Tensor] = {}
        self._steps: dict[int, int] = {}
        self.edits = 0
        """Counts changes of anybody's weights."""
        self.version = 0
        """Changes whenever the tensors move, so that whoever holds their addresses looks again."""
        self.add(members)

    @property
    def parameters_per_member(self) -> int:
        return sum(self.rank * (linear.inputs + linear.outputs) for linear, *_ in self._places.values())

    def add(self, members: Sequence[MemberId]) -> None:
        """Fresh members: the shared A factors, and B = 0, so that they say what the base says."""
        new = [member for member in dict.fromkeys(members) if member not in self.rows]
        self._grow(len(new) - len(self._free))
        for member in new:
            row = self.rows[member] = self._free.pop()
            self.masters_A_D[row] = self._fresh_D
            self.refresh(row)

    def remove(self, member: MemberId) -> None:
        row = self.own_row(member)
        del self.rows[member]
        self.forget(row)
        self._free.append(row)
        self._free.sort(reverse=True)

    def row(self, member: MemberId | None) -> int:
        if member is None:
            return BARE
        try:
            return self.rows[member]
        except KeyError:
            known = ", ".join(list(self.rows)[:8]) or "none"
            raise InputError(f"there is no member {member!r}", f"the members are {known}") from None

    def own_row(self, member: MemberId | None) -> int:
        """The row of somebody who can change, as the bare base cannot."""
        if member is None:
            raise InputError("the bare base is not a member", "name one")
        return self.row(member)

    def a(self, group: Group) -> Tensor:
        """The A factors of a group, of all rows: [A, linears * rank, inputs]."""
        store = self.compute_A_D
        size = len(group.linears) * self.rank
        return store[:, group.a_at : group.a_at + size * group.inputs].unflatten(1, (size, group.inputs))

    def b(self, group: Group) -> Tensor:
        """The B factors of a group, of all rows: [A, outputs, rank]."""
        store = self.compute_A_D
        return store[:, group.b_at : group.b_at + group.outputs * self.rank].unflatten(1, (group.outputs, self.rank))

    def refresh(self, row: int) -> None:
        """Bring a row's compute copy up to date with its masters, and whatever else was made from it."""
        self.edits += 1
        if self.compute_A_D is not self.masters_A_D:
            self.compute_A_D[row].copy_(self.masters_A_D[row])

    def adam(self, row: int) -> tuple[Tensor, Tensor]:
        """First and second moment of a row, made when first asked for: members that only sample need none."""
        if row not in self._exp_avg_D:
            self._exp_avg_D[row] = torch.zeros_like(self.masters_A_D[row])
            self._exp_avg_sq_D[row] = torch.zeros_like(self.masters_A_D[row])
            self._steps.setdefault(row, 0)
        return self._exp_avg_D[row], self._exp_avg_sq_D[row]

    def advance(self, row: int) -> int:
        """Count one optimiser step of a row; which one it is, from 1."""
        self._steps[row] = self._steps.get(row, 0) + 1
        return self._steps[row]

    def forget(self, row: int) -> None:
        """Drop a row's optimiser state."""
        for store in (self._exp_avg_D, self._exp_avg_sq_D, self._steps):
            store.pop(row, None)

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        row = self.own_row(member)
        state = None
        if optimiser and row in self._exp_avg_D:
            exp_avg_D, exp_avg_sq_D = self.adam(row)
            state = OptimiserState(self._steps[row], self._unpack(exp_avg_D), self._unpack(exp_avg_sq_D))
        return MemberState(self.rank, self.alpha, self._unpack(self.masters_A_D[row]), state)

    def fresh(self) -> MemberState:
        return MemberState(self.rank, self.alpha, self._unpack(self._fresh_D))

    def write(self, member: MemberId, state: MemberState) -> None:
        if member is None or member in self.rows:
            self.own_row(member)
        if (state.rank, state.alpha) != (self.rank, self.alpha):
            raise InputError(
                f"member {member!r} has rank {state.rank} and alpha {state.alpha:g}, "
                f"this engine's are {self.rank} and {self.alpha:g}",
                "open the engine with the rank and alpha of what it shall hold",
            )
        weights_D = self._pack(state.factors)
        moments = None
        if state.optimiser is not None:
            moments = self._pack(state.optimiser.exp_avg), self._pack(state.optimiser.exp_avg_sq)
        self.add([member])
        row = self.row(member)
        self.masters_A_D[row].copy_(weights_D)
        self.refresh(row)
        self.forget(row)
        if state.optimiser is not None and moments is not None:
            for mine_D, theirs_D in zip(self.adam(row), moments, strict=True):
                mine_D.copy_(theirs_D)
            self._steps[row] = state.optimiser.step

    def _drawn(self, seed: int) -> Tensor:
        """The row of a new member. Drawn on the CPU in the order of the names: the same on every device."""
        fresh_D = torch.zeros(self.width, dtype=master_dtype(self.dtype))
        generator = torch.Generator().manual_seed(seed)
        for name in sorted(self._places):
            linear, a_at, _ = self._places[name]
            bound = 1 / math.sqrt(linear.inputs)
            drawn = torch.rand(self.rank * linear.inputs, generator=generator, dtype=torch.float32)
            fresh_D[a_at : a_at + drawn.numel()] = (2 * drawn - 1) * bound
        return fresh_D.to(self.device)

    def _grow(self, wanted: int) -> None:
        if wanted <= 0:
            return
        size = self.masters_A_D.shape[0]
        masters_A_D = torch.zeros(size + wanted, self.width, dtype=self.masters_A_D.dtype, device=self.device)
        masters_A_D[:size] = self.masters_A_D
        self.masters_A_D = masters_A_D
        self.compute_A_D = self._compute()
        self._free = sorted([*self._free, *range(size, size + wanted)], reverse=True)
        self.version += 1

    def _compute(self) -> Tensor:
        return self.masters_A_D if self.masters_A_D.dtype == self.dtype else self.masters_A_D.to(self.dtype)

    def _unpack(self, row_D: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        host_D = row_D.detach().to("cpu", copy=True)
        return {
            name: (
                host_D[a_at : a_at + self.rank * linear.inputs].view(self.rank, linear.inputs).clone(),
                host_D[b_at : b_at + linear.outputs * self.rank].view(linear.outputs, self.rank).clone(),
            )
            for name, (linear, a_at, b_at) in self._places.items()
        }

    def _pack(self, factors: Mapping[str, tuple[Tensor, Tensor]]) -> Tensor:
        missing, foreign = self._places.keys() - factors.keys(), factors.keys() - self._places.keys()
        if missing or foreign:
            odd = min(missing) if missing else min(foreign)
            what = "has no factors for" if missing else "adapts a module that this engine does not adapt,"
            raise InputError(f"the adapter {what} {odd}", "use one made for the same base and target modules")
        row_D = torch.zeros(self.width, dtype=self.masters_A_D.dtype)
        for name, (linear, a_at, b_at) in self._places.items():
            a_R_I, b_O_R = factors[name]
            if a_R_I.shape != (self.rank, linear.inputs) or b_O_R.shape != (linear.outputs, self.rank):
                raise InputError(
                    f"the adapter's factors for {name} are {tuple(a_R_I.shape)} and {tuple(b_O_R.shape)}, "
                    f"not {(self.rank, linear.inputs)} and {(linear.outputs, self.rank)}",
                    "use one made for the same base and rank",
                )
            row_D[a_at : a_at + a_R_I.numel()] = a_R_I.reshape(-1)
            row_D[b_at : b_at + b_O_R.numel()] = b_O_R.reshape(-1)
        return row_D.to(self.device)


def _places(group: Group, rank: int) -> list[tuple[Linear, int, int]]:
    places, a_at, b_at = [], group.a_at, group.b_at
    for linear in group.linears:
        places.append((linear, a_at, b_at))
        a_at += rank * linear.inputs
        b_at += rank * linear.outputs
    return places


def aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN


def master_dtype(compute: torch.dtype) -> torch.dtype:
    """What weights and optimiser states are kept in: float32, because bfloat16 swallows small steps."""
    return torch.float64 if compute == torch.float64 else torch.float32
