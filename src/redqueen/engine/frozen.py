"""A weight of the frozen base, as it is stored: what rows times it give, and what their gradient is.

Whoever computes with the base's linear layers asks here, so none of them knows how their weights are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Frozen(Protocol):
    @property
    def outputs(self) -> int: ...

    @property
    def inputs(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def norm(self) -> float:
        """Of all its numbers, as they are computed with."""
        ...

    def product(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor:
        """What a linear layer gives. Differentiable with respect to `x`."""
        ...

    def gradient(self, dy_N_O: Tensor) -> Tensor:
        """That of `x`, from that of the product."""
        ...

    def stack(self, others: Sequence[Any]) -> "Frozen":
        """This and others of its kind, which have the same inputs, as one."""
        ...

    def part(self, start: int, outputs: int) -> "Frozen":
        """So many outputs, as a view."""
        ...


@dataclass(frozen=True, slots=True)
class Dense:
    """As numbers of the dtype that is computed in."""

    weight_O_I: Tensor

    @property
    def outputs(self) -> int:
        return self.weight_O_I.shape[0]

    @property
    def inputs(self) -> int:
        return self.weight_O_I.shape[1]

    @property
    def nbytes(self) -> int:
        return self.weight_O_I.nbytes

    def norm(self) -> float:
        return float(torch.linalg.vector_norm(self.weight_O_I, dtype=torch.float64))

    def product(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor:
        return F.linear(x_N_I, self.weight_O_I, bias_O)

    def gradient(self, dy_N_O: Tensor) -> Tensor:
        return dy_N_O @ self.weight_O_I

    def stack(self, others: Sequence["Dense"]) -> "Dense":
        return Dense(torch.cat([self.weight_O_I, *(other.weight_O_I for other in others)]))

    def part(self, start: int, outputs: int) -> "Dense":
        return Dense(self.weight_O_I[start : start + outputs])
