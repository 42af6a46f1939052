"""Any architecture through `transformers`' own modules, with the adapted linear layers and the attention replaced."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from redqueen.engine.attention import Attention
from redqueen.engine.bank import Bank
from redqueen.engine.body import MAX_POSITIONS, Head, Heads
from redqueen.engine.lora import Layer
from redqueen.engine.quantised import frozen, quantised_layers
from redqueen.engine.routing import Routing
from redqueen.engine.split.part import Part
from redqueen.errors import InputError


@dataclass(slots=True)
class _Pass:
    """What the replaced modules need to know about the current forward pass."""

    routing: Routing
    attention: Attention
    attended: int = 0


class _Adapter(nn.Module):
    """Replaces a linear layer of the base."""

    def __init__(self, module: Any, layer: Layer, body: "GeneralBody") -> None:
        super().__init__()
        self._layer, self._body = layer, [body]
        self.weight, self.bias = module.weight, module.bias

    def forward(self, x: Tensor) -> Tensor:
        current = self._body[0].current
        y_N_O = self._layer(x.reshape(-1, x.shape[-1]), current.routing)
        return y_N_O.view(*x.shape[:-1], y_N_O.shape[-1])


class GeneralBody:
    """Implements `Body`."""

    path = "general"
    part: Part | None = None
    current: _Pass

    def __init__(self, model: PreTrainedModel, bank: Bank) -> None:
        text = model.config.get_text_config()
        self.inner: Any = model.get_decoder()
        self.head = Head.of(model, getattr(text, "final_logit_softcapping", None))
        heads = text.num_attention_heads
        kv_heads = getattr(text, "num_key_value_heads", None) or heads
        dim = getattr(text, "head_dim", None) or text.hidden_size // heads
        self.heads = Heads(heads, kv_heads, dim, dim**-0.5)
        self.layers = text.num_hidden_layers
        self.positions = getattr(text, "max_position_embeddings", MAX_POSITIONS)
        embedding = self.inner.get_input_embeddings().weight
        weights = {id(weight): weight for weight in (*self.inner.parameters(), self.head.weight_V_H)}
        tied = self.head.weight_V_H is embedding
        self.nbytes = sum(weight.nbytes for weight in weights.values()) - (0 if tied else embedding.nbytes)
        self.nbytes += sum(layer.weight.nbytes for layer in quantised_layers(self.inner))
        for group in bank.groups:
            [linear] = group.linears
            parent_name, _, name = linear.name.rpartition(".")
            module: Any = model.get_submodule(linear.name)
            layer = Layer(
                weight=frozen(module), bias_O=module.bias, bank=bank, group=group, places=((0, linear.outputs),)
            )
            setattr(model.get_submodule(parent_name), name, _Adapter(module, layer, self))
        for module in self.inner.modules():
            if hasattr(module, "layer_idx"):
                module.redqueen_body = self
        AttentionInterface.register("redqueen", _general_attention)
        model.set_attn_implementation("redqueen")

    def hidden(self, token_N: Tensor, routing: Routing, attention: Attention, *, checkpointing: bool = False) -> Tensor:
        token_B_T = token_N.view(attention.batch, -1)
        self.current = _Pass(routing, attention)
        training = routing.gradients is not None
        with torch.set_grad_enabled(training):
            embedded = self.inner.get_input_embeddings()(token_B_T)
            if training:
                embedded.requires_grad_()
            with self._checkpointing(checkpointing and training):
                out = self.inner(
                    inputs_embeds=embedded, position_ids=attention.position_N.view(attention.batch, -1), use_cache=False
                )
        if self.current.attended != self.layers:
            raise InputError(
                f"{self.inner.config.model_type} has layers that are not plain attention", "use another base"
            )
        return out.last_hidden_state.flatten(0, 1)

    @contextlib.contextmanager
    def _checkpointing(self, on: bool) -> Iterator[None]:
        """Have `transformers` keep only the inputs of its blocks. The modules inside stay in evaluation mode: the base
        must have no dropout."""
        if not on:
            yield
            return
        self.inner.gradient_checkpointing_enable({"use_reentrant": False})
        blocks = [module for module in self.inner.modules() if getattr(module, "gradient_checkpointing", False)]
        for block in blocks:
            block.training = True
        try:
            yield
        finally:
            self.inner.gradient_checkpointing_disable()
            for block in blocks:
                block.training = False


def _general_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """What `transformers`' attention modules call: [B, heads, T, dim] in, [B, T, heads, dim] out."""
    unsupported = [name for name in ("softcap", "s_aux") if options.get(name) is not None]
    if attention_mask is not None:
        unsupported.append("a mask of its own")
    if unsupported:
        raise InputError(f"the attention of {module.config.model_type} uses {unsupported[0]}", "use another base")
    current: _Pass = module.redqueen_body.current
    current.attended += 1
    scale = options.get("scaling") or query.shape[-1] ** -0.5
    out_B_T_H_D = current.attention.attend(
        module.layer_idx,
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        scale,
        options.get("sliding_window") or 0,
    )
    return out_B_T_H_D.contiguous(), None
