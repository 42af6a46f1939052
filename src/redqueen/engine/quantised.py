"""Linear layers of the base in 4 or 8 bits, by bitsandbytes, which this file alone imports.

Weights are stored as `transformers` stores them with the same library: all linear layers but the head. They are
computed with in the dtype of the base: activations are never rounded to 8 bits, since how LLM.int8() does that depends
on the other rows of a batch, and members must not.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.engine.frozen import Dense, Frozen
from redqueen.engine.messages import one_line
from redqueen.errors import InputError

Quantisation = Literal["none", "nf4", "int8"]
BLOCK = 64
"""Weights of a row that share a scale in NF4; more than one row never does."""
OLDEST = (0, 50)
"""The first that chooses by the number of rows between its fused product and one with all weights written out."""
_INT8_MOST = 127.0


class _Packed(ABC):
    """Implements `Frozen`."""

    def norm(self) -> float:
        return float(torch.linalg.vector_norm(self.dense(torch.float32), dtype=torch.float64))

    def product(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor:
        return _Product.apply(x_N_I, self, bias_O)  # pyright: ignore[reportReturnType]

    def gradient(self, dy_N_O: Tensor) -> Tensor:
        return dy_N_O @ self.dense(dy_N_O.dtype)

    @abstractmethod
    def forward(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor: ...

    @abstractmethod
    def dense(self, dtype: torch.dtype) -> Tensor:
        """All weights, written out."""


@dataclass(frozen=True, kw_only=True)
class NF4(_Packed):
    """Four bits each: the nearest of sixteen numbers, times the scale of their block."""

    packed_P: Tensor
    """Two weights a byte, row after row."""
    scale_B: Tensor
    outputs: int
    inputs: int

    def __post_init__(self) -> None:
        if self.inputs % BLOCK:
            what = f"a layer of the base has {self.inputs} inputs, and NF4 takes them {BLOCK} at a time"
            raise InputError(what, 'set engine.quantise to "int8" or "none"')

    @classmethod
    def of(cls, weight_O_I: Tensor) -> "NF4":
        outputs, inputs = weight_O_I.shape
        packed_P, scale_B = _operations().quantize_4bit(weight_O_I.contiguous(), BLOCK, "nf4", torch.uint8)
        return cls(packed_P=packed_P.flatten(), scale_B=scale_B, outputs=outputs, inputs=inputs)

    @classmethod
    def outline(cls, outputs: int, inputs: int) -> "NF4":
        """Without memory."""
        size, meta = outputs * inputs, torch.device("meta")
        return cls(
            packed_P=torch.empty(size // 2, dtype=torch.uint8, device=meta),
            scale_B=torch.empty(size // BLOCK, device=meta),
            outputs=outputs,
            inputs=inputs,
        )

    @property
    def nbytes(self) -> int:
        return self.packed_P.nbytes + self.scale_B.nbytes

    def forward(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor:
        shape = (self.outputs, self.inputs)
        return _operations().gemm_4bit(x_N_I, self.packed_P, shape, self.scale_B, BLOCK, "nf4", bias=bias_O)

    def dense(self, dtype: torch.dtype) -> Tensor:
        shape = (self.outputs, self.inputs)
        return _operations().dequantize_4bit(self.packed_P, self.scale_B, BLOCK, "nf4", shape, dtype)

    def stack(self, others: Sequence["NF4"]) -> "NF4":
        all_of_them = [self, *others]
        return NF4(
            packed_P=torch.cat([each.packed_P for each in all_of_them]),
            scale_B=torch.cat([each.scale_B for each in all_of_them]),
            outputs=sum(each.outputs for each in all_of_them),
            inputs=self.inputs,
        )

    def part(self, start: int, outputs: int) -> "NF4":
        begin, end = start * self.inputs, (start + outputs) * self.inputs
        return NF4(
            packed_P=self.packed_P[begin // 2 : end // 2],
            scale_B=self.scale_B[begin // BLOCK : end // BLOCK],
            outputs=outputs,
            inputs=self.inputs,
        )


@dataclass(frozen=True)
class Int8(_Packed):
    """Eight bits each: whole numbers, times the scale of their row."""

    weight_O_I: Tensor
    scale_O: Tensor

    @classmethod
    def of(cls, weight_O_I: Tensor) -> "Int8":
        # The library knows float16 alone.
        weight_O_I, most_O, _ = _operations().int8_vectorwise_quant(weight_O_I.to(torch.float16).contiguous(), 0.0)
        return cls(weight_O_I, most_O / _INT8_MOST)

    @classmethod
    def outline(cls, outputs: int, inputs: int) -> "Int8":
        """Without memory."""
        meta = torch.device("meta")
        return cls(torch.empty(outputs, inputs, dtype=torch.int8, device=meta), torch.empty(outputs, device=meta))

    @property
    def outputs(self) -> int:
        return self.weight_O_I.shape[0]

    @property
    def inputs(self) -> int:
        return self.weight_O_I.shape[1]

    @property
    def nbytes(self) -> int:
        return self.weight_O_I.nbytes + self.scale_O.nbytes

    def forward(self, x_N_I: Tensor, bias_O: Tensor | None) -> Tensor:
        # Whole numbers up to 127 are exact in every dtype; to scale the results moves less than to scale the weights.
        y_N_O = F.linear(x_N_I, self.weight_O_I.to(x_N_I.dtype)).mul_(self.scale_O)
        return y_N_O if bias_O is None else y_N_O.add_(bias_O)

    def dense(self, dtype: torch.dtype) -> Tensor:
        return self.weight_O_I.to(dtype).mul_(self.scale_O.unsqueeze(1))

    def stack(self, others: Sequence["Int8"]) -> "Int8":
        all_of_them = [self, *others]
        return Int8(
            torch.cat([each.weight_O_I for each in all_of_them]), torch.cat([each.scale_O for each in all_of_them])
        )

    def part(self, start: int, outputs: int) -> "Int8":
        return Int8(self.weight_O_I[start : start + outputs], self.scale_O[start : start + outputs])


FORMATS: dict[str, type[NF4] | type[Int8]] = {"nf4": NF4, "int8": Int8}


class _Product(torch.autograd.Function):
    """The weights are frozen, so nothing is kept for the backward pass."""

    @staticmethod
    def forward(ctx, x_N_I: Tensor, weight: _Packed, bias_O: Tensor | None) -> Tensor:
        ctx.weight = weight
        return weight.forward(x_N_I, bias_O)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        return ctx.weight.gradient(grads[0]), None, None


class QuantisedLinear(nn.Module):
    """In the place of a linear layer of the base."""

    weight: NF4 | Int8

    def __init__(self, weight: NF4 | Int8, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias
        self.in_features, self.out_features = weight.inputs, weight.outputs

    def forward(self, x: Tensor) -> Tensor:
        return self.weight.product(x.reshape(-1, x.shape[-1]), self.bias).view(*x.shape[:-1], self.out_features)


def quantisable(model: PreTrainedModel) -> list[tuple[str, nn.Linear]]:
    """All linear layers but the head."""
    head = model.get_output_embeddings()
    return [
        (name, module) for name, module in model.named_modules() if type(module) is nn.Linear and module is not head
    ]


def quantise(model: PreTrainedModel, how: Quantisation, device: torch.device) -> None:
    """Move the model to a device, its linear layers as `how` says: one after the other, so that the device never holds
    more than one of them as it was."""
    names = [name for name, _ in quantisable(model)] if how != "none" else []
    for name in names:
        quantise_layer(model, name, how, device)
    moved: Any = model  # transformers types `to` as a plain function
    moved.to(device)


def quantise_layer(model: nn.Module, name: str, how: Quantisation, device: torch.device) -> None:
    linear: Any = model.get_submodule(name)
    _put(model, name, QuantisedLinear(FORMATS[how].of(linear.weight.data.to(device)), linear.bias))


def outline(model: PreTrainedModel, how: Quantisation) -> None:
    """The same of a model without weights."""
    for name, linear in quantisable(model) if how != "none" else ():
        weight = FORMATS[how].outline(linear.out_features, linear.in_features)
        _put(model, name, QuantisedLinear(weight, linear.bias))


def _put(model: nn.Module, name: str, module: nn.Module) -> None:
    """Have this module in the place of the one that is called so."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def frozen(module: Any) -> Frozen:
    """The weight of a linear layer, quantised or not."""
    return module.weight if isinstance(module, QuantisedLinear) else Dense(module.weight.data)


def become(module: Any, weight: Frozen) -> None:
    """Have the linear layer compute with this weight, stored as its own was."""
    if isinstance(weight, Dense):
        module.weight.data = weight.weight_O_I
    else:
        module.weight = weight


def quantised_layers(model: nn.Module) -> list[QuantisedLinear]:
    return [module for module in model.modules() if isinstance(module, QuantisedLinear)]


def check_library(device: torch.device) -> None:
    """Refuse to quantise where the library is missing, too old, or cannot compute on the device."""
    give_up = 'or set engine.quantise to "none"'
    try:
        found = version("bitsandbytes")
    except PackageNotFoundError:
        what = "bitsandbytes, which quantises bases, is not installed"
        raise InputError(what, f"run `pip install 'redqueen[quantise]'`, {give_up}") from None
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InputError(f"bitsandbytes {found} is too old", f"run `pip install 'bitsandbytes>={oldest}'`, {give_up}")
    try:
        one = torch.ones(1, BLOCK, device=device)
        NF4.of(one).product(one, None)
    except (RuntimeError, AttributeError, ImportError, OSError) as error:
        what = f"bitsandbytes {found} cannot compute on {device.type} here: {one_line(error)}"
        raise InputError(what, f"install a build that fits torch {torch.__version__}, {give_up}") from None


@cache
def _operations() -> Any:
    """Those of the library, which torch knows once it is imported."""
    # It would warn of a faster product for some CPUs, which is another package's and not used here.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    import bitsandbytes  # noqa: F401

    return torch.ops.bitsandbytes
