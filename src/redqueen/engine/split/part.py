"""The part of a base that one of several processes has.

Queries, keys and values are split by heads, gate and up by columns, and what reads them by rows: there the sum over all
processes is what the whole layer gives. All else, embedding, head and adapters among it, every process has whole, and
sees the same numbers: so all of them sample the same tokens. What a process finds of an adapter's gradient is a part of
it, and the gradient is the sum.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.engine.adaptable import llama_family
from redqueen.errors import InputError

Sum = Callable[[Tensor], None]
"""Puts the sum over all processes in the place of what each has; all of them call it in the same order."""


@dataclass(slots=True, kw_only=True)
class Part:
    rank: int
    size: int
    device: torch.device
    """Where it is computed; the base is loaded on the CPU, since it may not fit there."""
    connect: Callable[[], Sum]
    """Called once, when this process has its weights."""
    cuts: dict[str, tuple[slice, slice]] = field(init=False, default_factory=dict)
    """Of the layers that are split: the outputs and the inputs that are here."""
    sum_: Sum = field(init=False)

    def take(self, model: Any) -> None:
        """Leave the model, one of `transformers`, this part of its weights, on the device."""
        refuse(model, self.size)
        inner = model.get_decoder()
        names = {id(module): name for name, module in model.named_modules()}
        for block in inner.layers:
            attention, mlp = block.self_attn, block.mlp
            heads = attention.q_proj.out_features // attention.head_dim
            kv_heads = attention.k_proj.out_features // attention.head_dim
            queries = self._share(heads, attention.head_dim)
            # Where there are fewer key heads than processes, some have the same one.
            keys = self._share(max(kv_heads, self.size), attention.head_dim)
            if kv_heads < self.size:
                at = self.rank * kv_heads // self.size * attention.head_dim
                keys = slice(at, at + attention.head_dim)
            columns = self._share(mlp.gate_proj.out_features, 1)
            for module, outputs in (
                (attention.q_proj, queries), (attention.k_proj, keys), (attention.v_proj, keys),
                (mlp.gate_proj, columns), (mlp.up_proj, columns),
            ):  # fmt: skip
                self._cut(names[id(module)], module, outputs=outputs)
            for module, inputs in ((attention.o_proj, queries), (mlp.down_proj, columns)):
                self._cut(names[id(module)], module, inputs=inputs)
        model.to(self.device)
        self.sum_ = self.connect()

    def entered(self, x_N_I: Tensor) -> Tensor:
        """What every process reads: what each finds of its gradient is summed."""
        return _Entered.apply(x_N_I, self.sum_)  # pyright: ignore[reportReturnType]

    def summed(self, y_N_O: Tensor) -> Tensor:
        """The sum of what every process has computed."""
        return _Summed.apply(y_N_O, self.sum_)  # pyright: ignore[reportReturnType]

    def _share(self, count: int, width: int) -> slice:
        each = count // self.size * width
        return slice(self.rank * each, (self.rank + 1) * each)

    def _cut(self, name: str, module: nn.Linear, *, outputs: slice | None = None, inputs: slice | None = None) -> None:
        outputs, inputs = outputs or slice(0, module.out_features), inputs or slice(0, module.in_features)
        self.cuts[name] = outputs, inputs
        whole = inputs.stop - inputs.start == module.in_features
        module.weight.data = module.weight.data[outputs, inputs].clone()
        if module.bias is not None:
            # What is summed must have it once.
            module.bias.data = module.bias.data[outputs].clone().mul_(1 if whole or self.rank == 0 else 0)
        module.out_features, module.in_features = module.weight.shape


def refuse(model: PreTrainedModel, size: int) -> None:
    """Refuse bases that cannot be split over so many processes."""
    config = model.config
    if (why := llama_family(model)) is not None:
        raise InputError(f"only bases of the Llama family can be split: {why}", "set engine.tensor_parallel to 1")
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    fits = heads % size == 0 and config.intermediate_size % size == 0
    if not fits or (kv_heads % size and size % kv_heads):
        what = f"{heads} heads, {kv_heads} of keys and values, and a width of {config.intermediate_size}"
        raise InputError(f"a base of {what} cannot be split into {size} equal parts", "use another number of processes")


class _Entered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_N_I: Tensor, sum_: Sum) -> Tensor:
        ctx.sum_ = sum_
        return x_N_I.view_as(x_N_I)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        grad_N_I = grads[0].clone()
        ctx.sum_(grad_N_I)
        return grad_N_I, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y_N_O: Tensor, sum_: Sum) -> Tensor:
        y_N_O = y_N_O.clone()
        sum_(y_N_O)
        return y_N_O

    @staticmethod
    def backward(ctx, *grads: Tensor):
        return grads[0], None
