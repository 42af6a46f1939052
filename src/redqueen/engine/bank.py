"""All members' adapters, stacked: one row of numbers per member, one view per adapted linear layer.

A member is one row of `masters_A_D`: its low-rank factors for every adapted layer, end to end. An optimiser step or a
copy is then one operation on one row, which cannot reach a neighbour. Row 0 stays zero: it is the bare base.

Masters and optimiser states may be hosted: in the host's memory, from where a row passes through the device around its
optimiser step. What members compute with is on the device.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.engine.pinned import host_zeros
from redqueen.engine.protocol import MemberId, MemberState, OptimiserState
from redqueen.errors import InputError

ALIGN = 64
"""Every factor starts at a multiple of this many numbers, so that kernels can use wide loads."""
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
class LinearGroup:
    """Linear layers with the same input, computed at once: q, k and v; gate and up; or a single one."""

    linears: tuple[Linear, ...]
    a_at: int
    """Where the A factors start in a member's row, one after the other."""
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
        trains: bool = True,
        hosted: bool = False,
    ) -> None:
        """A bank that does not train keeps no optimiser states, also none that it is given."""
        self.trains, self.hosted = trains, hosted
        self.rank, self.alpha, self.scale = rank, alpha, alpha / rank
        self.device, self.dtype = device, dtype
        self.groups: list[LinearGroup] = []
        self._places: dict[str, tuple[Linear, int, int]] = {}
        """Module -> its layer, and where its A and B factors start in a row."""
        end = 0
        for linears in groups:
            a_at, b_at = end, aligned(end + len(linears) * rank * linears[0].inputs)
            self.groups.append(LinearGroup(tuple(linears), a_at, b_at))
            for linear in linears:
                self._places[linear.name] = linear, a_at, b_at
                a_at += rank * linear.inputs
                b_at += rank * linear.outputs
            end = aligned(b_at)
        self.width = end
        self.rows: dict[MemberId, int] = {}
        self._free: list[int] = []
        self._fresh_D = self._drawn(seed)
        self.masters_A_D = self._zeros(1, self.width)
        self.compute_A_D = self._compute()
        self._exp_avg_D: dict[int, Tensor] = {}
        self._exp_avg_sq_D: dict[int, Tensor] = {}
        self._steps: dict[int, int] = {}
        self.edits = 0
        """Counts changes of the members' weights."""
        self.version = 0
        """Counts moves of the tensors, after which their addresses are stale."""
        self.add(members)

    @property
    def parameters_per_member(self) -> int:
        return sum(self.rank * (linear.inputs + linear.outputs) for linear, *_ in self._places.values())

    def add(self, members: Sequence[MemberId]) -> None:
        """New members: the shared A factors and B = 0, so that they compute what the base computes."""
        new = [member for member in dict.fromkeys(members) if member not in self.rows]
        self._grow(len(new) - len(self._free))
        for member in new:
            row = self.rows[member] = self._free.pop()
            self.masters_A_D[row] = self._fresh_D
            self.refresh(row)

    def reserve(self, members: int) -> None:
        """Have room for so many more: a bank that grows is copied."""
        self._grow(members - len(self._free))

    def remove(self, member: MemberId) -> None:
        row = self.own_row(member)
        del self.rows[member]
        self.drop_optimiser(row)
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
        """The row of a member, which can change as the bare base cannot."""
        if member is None:
            raise InputError("the bare base is not a member", "name one")
        return self.row(member)

    def a(self, group: LinearGroup, rows_A_D: Tensor | None = None) -> Tensor:
        """The A factors of a group, of all rows or of such as these: [A, linears * rank, inputs]."""
        store = self.compute_A_D if rows_A_D is None else rows_A_D
        size = len(group.linears) * self.rank
        return store[:, group.a_at : group.a_at + size * group.inputs].unflatten(1, (size, group.inputs))

    def b(self, group: LinearGroup, rows_A_D: Tensor | None = None) -> Tensor:
        """The B factors of a group, of all rows or of such as these: [A, outputs, rank]."""
        store = self.compute_A_D if rows_A_D is None else rows_A_D
        return store[:, group.b_at : group.b_at + group.outputs * self.rank].unflatten(1, (group.outputs, self.rank))

    def refresh(self, row: int, master_D: Tensor | None = None) -> None:
        """Bring a row's compute copy, and whatever is cached by `edits`, up to date with its masters, or with a copy of
        them that is nearer."""
        self.edits += 1
        if self.compute_A_D is not self.masters_A_D:
            self.compute_A_D[row].copy_(self.masters_A_D[row] if master_D is None else master_D)

    def lent(self, row: int) -> tuple[Tensor, Tensor, Tensor]:
        """Masters and both moments of a row, on the device: to be changed in place, and then handed to `take_back`."""
        states = self.masters_A_D[row], *self.adam(row)
        if not self.hosted:
            return states
        master_D, first_D, second_D = (state_D.to(self.device, non_blocking=True, copy=True) for state_D in states)
        return master_D, first_D, second_D

    def take_back(self, row: int, lent: tuple[Tensor, Tensor, Tensor]) -> None:
        """What is hosted is in its place after `settle`."""
        if self.hosted:
            for kept_D, state_D in zip((self.masters_A_D[row], *self.adam(row)), lent, strict=True):
                kept_D.copy_(state_D, non_blocking=True)
        self.refresh(row, lent[0])

    def settle(self) -> None:
        """Wait for copies to the host."""
        if self.hosted and self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def adam(self, row: int) -> tuple[Tensor, Tensor]:
        """First and second moment of a row, allocated on first use: members that only sample need none."""
        if row not in self._exp_avg_D:
            self._exp_avg_D[row] = self._zeros(self.width)
            self._exp_avg_sq_D[row] = self._zeros(self.width)
            self._steps.setdefault(row, 0)
        return self._exp_avg_D[row], self._exp_avg_sq_D[row]

    def advance(self, row: int) -> int:
        """Count one optimiser step of a row; its number, from 1."""
        self._steps[row] = self._steps.get(row, 0) + 1
        return self._steps[row]

    def drop_optimiser(self, row: int) -> None:
        for store in (self._exp_avg_D, self._exp_avg_sq_D, self._steps):
            store.pop(row, None)

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        row = self.own_row(member)
        if optimiser and row in self._exp_avg_D:
            return self.unpack([self.masters_A_D[row], *self.adam(row)], self._steps[row])
        return self.unpack([self.masters_A_D[row]], None)

    def views(self, members: Sequence[MemberId]) -> list[MemberState]:
        """As `read`, without optimisers, in the bank's own memory."""
        rows_D = [self.masters_A_D[self.own_row(member)].detach() for member in members]
        return [MemberState(self.rank, self.alpha, self._parts(row_D)) for row_D in rows_D]

    def fresh(self) -> MemberState:
        return MemberState(self.rank, self.alpha, self._unpack(self._fresh_D))

    def write(self, member: MemberId, state: MemberState) -> None:
        weights_D, *moments_D = self.pack(member, state)
        self.add([member])
        row = self.row(member)
        self.masters_A_D[row].copy_(weights_D)
        self.refresh(row)
        self.drop_optimiser(row)
        if (optimiser := self.kept(state)) is not None:
            for moment_D, new_D in zip(self.adam(row), moments_D, strict=True):
                moment_D.copy_(new_D)
            self._steps[row] = optimiser.step

    def pack(self, member: MemberId, state: MemberState) -> list[Tensor]:
        """The state as rows on the CPU: the weights, then both moments where it has an optimiser. Refuses what is no
        member of this engine."""
        if member is None:
            self.own_row(member)
        if (state.rank, state.alpha) != (self.rank, self.alpha):
            raise InputError(
                f"member {member!r} has rank {state.rank} and alpha {state.alpha:g}, "
                f"this engine's are {self.rank} and {self.alpha:g}",
                "open the engine with the rank and alpha of its members",
            )
        optimiser = self.kept(state)
        moments = [] if optimiser is None else [optimiser.exp_avg, optimiser.exp_avg_sq]
        return [self._pack(factors) for factors in (state.factors, *moments)]

    def kept(self, state: MemberState) -> OptimiserState | None:
        """What the bank keeps of a state's optimiser."""
        return state.optimiser if self.trains else None

    def unpack(self, rows: Sequence[Tensor], step: int | None) -> MemberState:
        """What `pack` was given, with tensors of its own; `step` is its optimiser's."""
        weights_D, *moments_D = rows
        optimiser = None if step is None else OptimiserState(step, *map(self._unpack, moments_D))
        return MemberState(self.rank, self.alpha, self._unpack(weights_D), optimiser)

    def _drawn(self, seed: int) -> Tensor:
        """The row of a new member. Drawn on the CPU in the order of the names: the same on every device."""
        fresh_D = torch.zeros(self.width, dtype=master_dtype(self.dtype))
        generator = torch.Generator().manual_seed(seed)
        for name in sorted(self._places):
            linear, a_at, _ = self._places[name]
            bound = 1 / math.sqrt(linear.inputs)
            drawn = torch.rand(self.rank * linear.inputs, generator=generator, dtype=torch.float32)
            fresh_D[a_at : a_at + drawn.numel()] = (2 * drawn - 1) * bound
        return fresh_D if self.hosted else fresh_D.to(self.device)

    def _grow(self, count: int) -> None:
        if count <= 0:
            return
        size = self.masters_A_D.shape[0]
        masters_A_D, compute_A_D = self._zeros(size + count, self.width), self.compute_A_D
        masters_A_D[:size] = self.masters_A_D
        self.masters_A_D = masters_A_D
        self.compute_A_D = self._compute()
        if self.compute_A_D is not masters_A_D:
            self.compute_A_D[:size] = compute_A_D
        self._free = sorted([*self._free, *range(size, size + count)], reverse=True)
        self.version += 1

    def _zeros(self, *sizes: int) -> Tensor:
        """For masters or moments."""
        dtype = master_dtype(self.dtype)
        if self.hosted:
            return host_zeros(*sizes, dtype=dtype, beside=self.device)
        return torch.zeros(*sizes, dtype=dtype, device=self.device)

    def _compute(self) -> Tensor:
        """Room for what is computed with: the masters themselves, where they are what it takes."""
        masters_A_D = self.masters_A_D
        if masters_A_D.dtype == self.dtype and not self.hosted:
            return masters_A_D
        return torch.zeros(masters_A_D.shape, dtype=self.dtype, device=self.device)

    def _unpack(self, row_D: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        host_D = row_D.detach().to("cpu", copy=True)
        return {name: (a_R_I.clone(), b_O_R.clone()) for name, (a_R_I, b_O_R) in self._parts(host_D).items()}

    def _parts(self, row_D: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        return {
            name: (
                row_D[a_at : a_at + self.rank * linear.inputs].view(self.rank, linear.inputs),
                row_D[b_at : b_at + linear.outputs * self.rank].view(linear.outputs, self.rank),
            )
            for name, (linear, a_at, b_at) in self._places.items()
        }

    def _pack(self, factors: Mapping[str, tuple[Tensor, Tensor]]) -> Tensor:
        missing, foreign = self._places.keys() - factors.keys(), factors.keys() - self._places.keys()
        if missing or foreign:
            what = "has no factors for" if missing else "adapts a module that this engine does not adapt,"
            raise InputError(
                f"the adapter {what} {min(missing or foreign)}", "use one made for the same base and target modules"
            )
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
        return row_D


def aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN


def master_dtype(compute: torch.dtype) -> torch.dtype:
    """What weights and optimiser states are kept in: float32, because bfloat16 swallows small steps."""
    return torch.float64 if compute == torch.float64 else torch.float32
