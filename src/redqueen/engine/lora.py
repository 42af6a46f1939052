"""A linear layer of the base with every row's own adapter on top, for sampling and for training.

A block's factors are looked up by its member: one batched product serves all members, and a block's gradient is added
to its member's row alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.bank import BARE, Bank, LinearGroup
from redqueen.engine.frozen import Dense, Frozen
from redqueen.engine.routing import Gradients, Routing, Tiles

SINGLE_THREAD = 3 << 17
"""Multiplications that BLAS does on one thread. For more it wakes other threads, which takes many times as long as the
product where another process has their cores."""

MOST_RANK = 64
"""That a product with the base's weights can take along: with more its kernels are too large for small GPUs."""
FEW_ROWS = 256
"""Up to here a product does not fill the chip: what else can be done is done beside it, or within."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Which of a group's inputs and outputs are in this process, where its base is split over several."""

    inputs: slice
    output_P: Tensor
    """Among those of all linears of the group."""

    @classmethod
    def of(cls, group: LinearGroup, cuts: Mapping[str, tuple[slice, slice]], device: torch.device) -> "Cut":
        at, here = 0, []
        for linear in group.linears:
            outputs, _ = cuts[linear.name]
            here.append(torch.arange(at + outputs.start, at + outputs.stop, device=device))
            at += linear.outputs
        _, inputs = cuts[group.linears[0].name]
        return cls(inputs, torch.cat(here))


@dataclass(slots=True, kw_only=True)
class Layer:
    """One linear layer of the base, or several that read the same input, their weights stacked."""

    weight: Frozen
    bias_O: Tensor | None
    bank: Bank
    group: LinearGroup | None
    """None where no member adapts any of them."""
    places: tuple[tuple[int, int], ...]
    """The first output and the number of outputs of each linear of the group."""
    cut: Cut | None = None
    table: Tensor | None = None
    """The kernels' tiles of outputs, where the kernels do the work."""
    _dense: tuple[tuple[int, tuple[int, ...] | None], Tensor, Tensor] | None = None
    _by_member: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """A, transposed, and B, scaled, of the members of spans, valid for `_edits` of the bank."""
    _edits: int = -1

    def __post_init__(self) -> None:
        if self.group is not None and self.cut is None and ops.fused(self.bank.compute_A_D):
            from redqueen.engine import kernels

            self.table = kernels.expand_table(list(self.places), self.bank.rank, self.bank.device)

    def __call__(self, x_N_I: Tensor, routing: Routing) -> Tensor:
        if self.group is None:
            return self.weight.product(x_N_I, self.bias_O)
        if torch.is_grad_enabled() and x_N_I.requires_grad:
            return _Adapted.apply(x_N_I, self, routing)  # pyright: ignore[reportReturnType]
        tiles = routing.tiles
        if tiles is not None and self.table is not None:
            from redqueen.engine import kernels

            y_N_O, u_P_N_L, where = self._shrunk(x_N_I, routing.member_K, tiles)
            kernels.expand_(y_N_O, u_P_N_L, self.bank.b(self.group), where, self.table, tiles.size)
            return y_N_O
        y_N_O = self.weight.product(x_N_I, self.bias_O)
        if routing.spans is not None:
            self._add_spans_(y_N_O, x_N_I, routing.spans)
        elif x_N_I.is_cuda and tiles is None:
            self.add_(y_N_O, x_N_I, routing)
        else:
            self._add_dense_(y_N_O, x_N_I, routing)
        return y_N_O

    def gated(self, x_N_I: Tensor, routing: Routing) -> Tensor:
        """silu(gate) * up of a layer that is gate and up."""
        tiles = routing.tiles
        if tiles is None or self.table is None or self.group is None or len(self.places) < 2:
            return ops.swiglu(self(x_N_I, routing))
        from redqueen.engine import kernels

        y_N_2F, u_P_N_L, where = self._shrunk(x_N_I, routing.member_K, tiles)
        return kernels.expand_gated(y_N_2F, u_P_N_L, self.bank.b(self.group), where, tiles.size)

    @property
    def whole(self) -> bool:
        """Every linear of it is adapted, by the kernels, with weights that those of decoding read and a rank that they
        have room for."""
        if self.table is None or not isinstance(self.weight, Dense) or self.bank.rank > MOST_RANK:
            return False
        return sum(size for _, size in self.places) == self.weight.outputs

    @property
    def dense_O_I(self) -> Tensor:
        """The weights of a layer that is whole."""
        assert isinstance(self.weight, Dense)
        return self.weight.weight_O_I

    def in_parts(self, x_N_I: Tensor, routing: Routing) -> tuple[Tensor, Tensor, Tensor]:
        """The base's product and every row times its member's A factors, each in parts that are to be summed, and the
        members' B factors."""
        from redqueen.engine import kernels

        assert self.group is not None and routing.tiles is not None
        tiles, b_A_O_R = routing.tiles, self.factor_b()
        if self.bias_O is None and len(x_N_I) <= kernels.MOST_ROWS:
            where = (routing.member_K, tiles.start_K, tiles.count_K)
            a_A_L_I = self.bank.a(self.group)
            return *kernels.linear_parts(x_N_I, self.dense_O_I, a_A_L_I, where, self.bank.scale, tiles.size), b_A_O_R
        y_N_O, u_P_N_L, _ = self._shrunk(x_N_I, routing.member_K, tiles)
        return y_N_O[None], u_P_N_L, b_A_O_R

    def factor_b(self) -> Tensor:
        """The members' B factors."""
        assert self.group is not None
        return self.bank.b(self.group)

    def factor_a(self) -> tuple[Tensor, float]:
        """The members' A factors, and what the product with them is multiplied by."""
        assert self.group is not None
        return self.bank.a(self.group), self.bank.scale

    def _shrunk(
        self, x_N_I: Tensor, member_K: Tensor, tiles: Tiles
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The base's product, every row times its member's A factors, and the kernels' tiles."""
        from redqueen.engine import kernels

        assert self.group is not None
        where = (member_K, tiles.start_K, tiles.count_K)
        # Few rows leave most of the chip idle: A times the rows is computed beside the base's product.
        side = _side_stream(x_N_I.device) if x_N_I.is_cuda and len(x_N_I) <= FEW_ROWS else None
        if side is not None:
            side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                u_P_N_L = kernels.shrink(x_N_I, self.bank.a(self.group), where, self.bank.scale, tiles.size)
            y_N_O = self.weight.product(x_N_I, self.bias_O)
        finally:
            # Also where memory has run out: a capture cannot end while a part of it runs elsewhere.
            if side is not None:
                torch.cuda.current_stream().wait_stream(side)
        return y_N_O, u_P_N_L, where

    def _add_spans_(self, y_N_O: Tensor, x_N_I: Tensor, spans: tuple[tuple[int, int], ...]) -> None:
        if self._edits != self.bank.edits:
            self._by_member, self._edits = {}, self.bank.edits
        sizes = [rows for _, rows in spans]
        for (member, _), x_S_I, y_S_O in zip(spans, x_N_I.split(sizes), y_N_O.split(sizes), strict=True):
            if member == BARE:
                continue
            factors = self._by_member.get(member)
            if factors is None:
                member_1 = torch.tensor([member], device=x_N_I.device)
                a_1_I_L, b_1_L_O = self._factors_dense(Routing(member_K=member_1))
                factors = self._by_member[member] = a_1_I_L[0], b_1_L_O[0]
            y_S_O.addmm_(torch.mm(x_S_I, factors[0]), factors[1])

    def _add_dense_(self, y_N_O: Tensor, x_N_I: Tensor, routing: Routing) -> None:
        """As `add_`, in two products: on a CPU another operation on a few rows costs as much as a product."""
        a_K_I_L, b_K_L_O = self._factors_dense(routing)
        blocks, tiles = len(routing.member_K), routing.tiles
        if tiles is None or tiles.gather_K_S is None:
            u_K_S_L = torch.bmm(x_N_I.view(blocks, -1, x_N_I.shape[1]), a_K_I_L)
            y_N_O.view(blocks, -1, y_N_O.shape[1]).baddbmm_(u_K_S_L, b_K_L_O)
        else:
            assert tiles.back_N is not None
            x_K_S_I = x_N_I.index_select(0, tiles.gather_K_S.flatten()).view(*tiles.gather_K_S.shape, -1)
            u_K_S_L = torch.bmm(x_K_S_I, a_K_I_L)
            y_N_O += torch.bmm(u_K_S_L, b_K_L_O).flatten(0, 1).index_select(0, tiles.back_N)

    def _factors_dense(self, routing: Routing) -> tuple[Tensor, Tensor]:
        """The blocks' A, transposed, and B, scaled, as one block-diagonal matrix over the group's linears."""
        stamp = (self.bank.edits, routing.key)
        if self._dense is not None and routing.key is not None and self._dense[0] == stamp:
            return self._dense[1], self._dense[2]
        a_K_L_I, b_K_O_R = self.factors(routing)
        a_K_I_L = a_K_L_I.transpose(1, 2).contiguous()
        b_K_L_O = b_K_O_R.new_zeros(len(b_K_O_R), a_K_I_L.shape[2], self.weight.outputs)
        rank, b_at = self.bank.rank, 0
        for index, (y_at, size) in enumerate(self.places):
            part_K_R_P = b_K_O_R[:, b_at : b_at + size].transpose(1, 2) * self.bank.scale
            b_K_L_O[:, index * rank : (index + 1) * rank, y_at : y_at + size] = part_K_R_P
            b_at += size
        if routing.key is not None:
            self._dense = stamp, a_K_I_L, b_K_L_O
        return a_K_I_L, b_K_L_O

    def add_(self, y_N_O: Tensor, x_N_I: Tensor, routing: Routing) -> Tensor:
        """Add the adapters' output to `y`; returns `x` times their A factors, scaled."""
        assert self.group is not None
        blocks = routing.member_K.shape[0]
        a_K_L_I, b_K_O_R = self.factors(routing)
        u_K_S_L = _bmm(x_N_I.view(blocks, -1, x_N_I.shape[1]), a_K_L_I.transpose(1, 2)).mul_(self.bank.scale)
        y_K_S_O = y_N_O.view(blocks, -1, y_N_O.shape[1])
        for y_K_S_P, u_K_S_R, b_K_P_R in self.parts(y_K_S_O, u_K_S_L, b_K_O_R):
            if y_N_O.is_cuda:
                y_K_S_P.baddbmm_(u_K_S_R, b_K_P_R.transpose(1, 2))
            else:
                # On the CPU a batched product into a part of a tensor is done one block after the other.
                y_K_S_P.add_(_bmm(u_K_S_R, b_K_P_R.transpose(1, 2)))
        return u_K_S_L

    def factors(self, routing: Routing) -> tuple[Tensor, Tensor]:
        assert self.group is not None
        rows = routing.member_K
        a_K_L_I, b_K_O_R = (of(self.group).index_select(0, rows) for of in (self.bank.a, self.bank.b))
        if self.cut is None:
            return a_K_L_I, b_K_O_R
        return a_K_L_I[..., self.cut.inputs], b_K_O_R.index_select(1, self.cut.output_P)

    def add_gradients_(self, gradients: Gradients, belongs_T_K: Tensor, da_K_L_I: Tensor, db_K_O_R: Tensor) -> None:
        """To those of the blocks' members."""
        assert self.group is not None
        found = [(self.group.a_at, da_K_L_I), (self.group.b_at, db_K_O_R)]
        for at, d in found if gradients.isolate else ():
            d_K_E = d.flatten(1)
            broken_K = ~d_K_E.sum(1).isfinite()
            d_K_E.masked_fill_(broken_K.unsqueeze(1), 0)
            gradients.sum_T_D[:, at].masked_fill_((belongs_T_K * broken_K).any(1), torch.nan)
        if self.cut is None:
            for at, d in found:
                d_K_E = d.flatten(1)
                gradients.sum_T_D[:, at : at + d_K_E.shape[1]].addmm_(belongs_T_K, d_K_E)
            return
        da_T_L_I, db_T_O_R = ((belongs_T_K @ d.flatten(1)).unflatten(1, d.shape[1:]) for _, d in found)
        self.bank.a(self.group, gradients.sum_T_D)[..., self.cut.inputs] += da_T_L_I
        self.bank.b(self.group, gradients.sum_T_D).index_add_(1, self.cut.output_P, db_T_O_R)

    def parts(self, y_K_S_O: Tensor, u_K_S_L: Tensor, b_K_O_R: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Outputs, lanes and B factors of each linear of the group, as views."""
        rank, b_at, views = self.bank.rank, 0, []
        for index, (y_at, size) in enumerate(self.places):
            views.append(
                (
                    y_K_S_O[..., y_at : y_at + size],
                    u_K_S_L[..., index * rank : (index + 1) * rank],
                    b_K_O_R[:, b_at : b_at + size],
                )
            )
            b_at += size
        return views


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


class _Adapted(torch.autograd.Function):
    """The base's weights are frozen, so only `x` and the few lanes behind A are kept for the backward pass."""

    @staticmethod
    def forward(ctx, x_N_I: Tensor, layer: Layer, routing: Routing) -> Tensor:
        y_N_O = layer.weight.product(x_N_I, layer.bias_O)
        u_K_S_L = layer.add_(y_N_O, x_N_I, routing)
        ctx.save_for_backward(x_N_I, u_K_S_L)
        ctx.layer, ctx.routing = layer, routing
        return y_N_O

    @staticmethod
    def backward(ctx, *grads: Tensor):
        layer: Layer = ctx.layer
        routing: Routing = ctx.routing
        gradients, group, bank = routing.gradients, layer.group, layer.bank
        assert group is not None
        x_N_I, u_K_S_L = ctx.saved_tensors
        dy_N_O = grads[0].contiguous()
        blocks = routing.member_K.shape[0]
        dy_K_S_O = dy_N_O.view(blocks, -1, dy_N_O.shape[1])
        a_K_L_I, b_K_O_R = layer.factors(routing)
        du_K_S_L = torch.empty_like(u_K_S_L)
        db = []
        for index, (dy_K_S_P, u_K_S_R, b_K_P_R) in enumerate(layer.parts(dy_K_S_O, u_K_S_L, b_K_O_R)):
            du_K_S_L[..., index * bank.rank : (index + 1) * bank.rank] = _bmm(dy_K_S_P, b_K_P_R)
            if gradients is not None:
                db.append(_product(dy_K_S_P.transpose(1, 2), u_K_S_R, gradients))
        du_K_S_L.mul_(bank.scale)
        dx_N_I = layer.weight.gradient(dy_N_O)
        dx_K_S_I = dx_N_I.view(blocks, -1, dx_N_I.shape[1])
        if dx_N_I.is_cuda:
            dx_K_S_I.baddbmm_(du_K_S_L, a_K_L_I)
        else:
            dx_K_S_I.add_(_bmm(du_K_S_L, a_K_L_I))
        if gradients is not None:
            da_K_L_I = _product(du_K_S_L.transpose(1, 2), x_N_I.view(blocks, -1, x_N_I.shape[1]), gradients)
            assert routing.belongs_T_K is not None
            db_K_O_R = torch.cat(db, 1) if len(db) > 1 else db[0]
            layer.add_gradients_(gradients, routing.belongs_T_K, da_K_L_I, db_K_O_R)
        return dx_N_I, None, None


def _bmm(left_K_S_X: Tensor, right_K_X_Y: Tensor) -> Tensor:
    """A batched product whose right side may be a transposed view, for which oneDNN takes ten times as long."""
    if left_K_S_X.is_cuda:
        return torch.bmm(left_K_S_X, right_K_X_Y)
    right_K_X_Y = right_K_X_Y.contiguous()
    pieces = left_K_S_X.split(_piece(right_K_X_Y[0].numel()) or left_K_S_X.shape[1], 1)
    products = [torch.bmm(piece, right_K_X_Y) for piece in pieces]
    return products[0] if len(products) == 1 else torch.cat(products, 1)


def _product(left_K_X_S: Tensor, right_K_S_Y: Tensor, gradients: Gradients) -> Tensor:
    """A batched product in the precision of the gradients, which are sums of many small ones."""
    exact = gradients.sum_T_D.dtype
    if left_K_X_S.is_cuda:
        if left_K_X_S.dtype == exact:
            return torch.bmm(left_K_X_S, right_K_S_Y)
        return torch.bmm(left_K_X_S, right_K_S_Y, out_dtype=exact)
    size = _piece(left_K_X_S.shape[1] * right_K_S_Y.shape[2]) or left_K_X_S.shape[2]
    pieces = zip(left_K_X_S.to(exact).split(size, 2), right_K_S_Y.to(exact).split(size, 1), strict=True)
    total, *products = [torch.bmm(left, right) for left, right in pieces]
    for product in products:
        total += product
    return total


def _piece(multiplications: int) -> int | None:
    """Tokens in one product on a CPU, given the multiplications of one token; None is all. Independent of the number of
    tokens, so that the neighbours' lengths do not change the order of a member's sums."""
    size = SINGLE_THREAD // multiplications // 16 * 16
    return size if size >= 32 else None
