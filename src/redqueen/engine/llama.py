"""Llama, Mistral, Qwen2 and Qwen3: the arithmetic of `transformers`' modules, with q, k and v (gate and up) as one
product and the small steps fused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from redqueen.engine import ops
from redqueen.engine.attention import Attention
from redqueen.engine.bank import Bank
from redqueen.engine.body import MAX_POSITIONS, Head, Heads
from redqueen.engine.decode_attention import KernelAttention
from redqueen.engine.frozen import Frozen
from redqueen.engine.kv_cache import rounded
from redqueen.engine.lora import FEW_ROWS, Cut, Layer
from redqueen.engine.quantised import become, frozen
from redqueen.engine.routing import Routing
from redqueen.engine.split.part import Part

CACHED_BYTES = 48 << 20
"""A block's weights of up to this size stay in a GPU's cache while one tile of rows after the other is multiplied by
them by the kernels of decoding."""
TILE_ROWS = 64
"""The smallest of their tiles: up to here they read larger weights, too, once for all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    norm_1_H: Tensor
    norm_2_H: Tensor
    qkv: Layer
    output: Layer
    gate_up: Layer
    down: Layer
    norms: tuple[Tensor, Tensor, float] | None
    """Of queries and keys (Qwen3)."""
    window: int

    @property
    def whole(self) -> bool:
        """The kernels of decoding can do it."""
        return all(layer.whole for layer in self._layers) and self.gate_up.bias_O is None

    @property
    def nbytes(self) -> int:
        return sum(layer.weight.nbytes for layer in self._layers)

    @property
    def _layers(self) -> tuple[Layer, ...]:
        return self.qkv, self.output, self.gate_up, self.down


class LlamaBody:
    """Implements `Body`."""

    path = "llama"

    def __init__(self, model: PreTrainedModel, bank: Bank, part: Part | None = None) -> None:
        # Any: `transformers` types a decoder as a module.
        inner: Any = model.get_decoder()
        config = model.config
        self.part = part
        first, dim = inner.layers[0].self_attn, inner.layers[0].self_attn.head_dim
        heads, kv_heads = first.q_proj.out_features // dim, first.k_proj.out_features // dim
        self.heads = Heads(heads, kv_heads, dim, first.scaling)
        self.eps = config.rms_norm_eps
        self.embedding_V_H = inner.embed_tokens.weight
        self.norm_H = inner.norm.weight
        self.head = Head.of(model)
        self.layers = config.num_hidden_layers
        self.positions = min(config.max_position_embeddings, MAX_POSITIONS)
        device, dtype = self.norm_H.device, self.norm_H.dtype
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        # Batches are padded to multiples of 16, beyond the last position too.
        at_1_T = torch.arange(rounded(self.positions), device=device).unsqueeze(0)
        cos, sin = inner.rotary_emb(torch.zeros(1, dtype=exact, device=device), position_ids=at_1_T)
        self.cos_T_D, self.sin_T_D = cos[0].contiguous(), sin[0].contiguous()
        of = {linear.name: group for group in bank.groups for linear in group.linears}
        name = next(name for name, module in model.named_modules() if module is inner)
        prefix = f"{name}." if name else ""
        self.blocks = [
            self._block(f"{prefix}layers.{i}", block, bank, of, config) for i, block in enumerate(inner.layers)
        ]
        self.nbytes = sum(block.nbytes for block in self.blocks) + self.head.weight_V_H.nbytes

    def _block(self, prefix: str, block: Any, bank: Bank, of: dict, config: Any) -> _Block:
        attention, mlp = block.self_attn, block.mlp

        def layer(parent: nn.Module, path: str, *names: str) -> Layer:
            modules = [getattr(parent, name) for name in names]
            weight, bias_O = _stacked(modules)
            group = next((of[f"{path}.{name}"] for name in names if f"{path}.{name}" in of), None)
            places, at = [], 0
            for name, module in zip(names, modules, strict=True):
                if f"{path}.{name}" in of:
                    places.append((at, module.out_features))
                at += module.out_features
            cut = None
            if self.part is not None and group is not None:
                cut = Cut.of(group, self.part.cuts, bank.device)
            return Layer(weight=weight, bias_O=bias_O, bank=bank, group=group, places=tuple(places), cut=cut)

        norms = None
        if hasattr(attention, "q_norm"):
            norms = attention.q_norm.weight, attention.k_norm.weight, self.eps
        window = getattr(attention, "sliding_window", None)
        if config.model_type == "mistral":
            window = config.sliding_window
        return _Block(
            norm_1_H=block.input_layernorm.weight,
            norm_2_H=block.post_attention_layernorm.weight,
            qkv=layer(attention, f"{prefix}.self_attn", "q_proj", "k_proj", "v_proj"),
            output=layer(attention, f"{prefix}.self_attn", "o_proj"),
            gate_up=layer(mlp, f"{prefix}.mlp", "gate_proj", "up_proj"),
            down=layer(mlp, f"{prefix}.mlp", "down_proj"),
            norms=norms,
            window=window or 0,
        )

    def hidden(self, token_N: Tensor, routing: Routing, attention: Attention, *, checkpointing: bool = False) -> Tensor:
        h_N_H = F.embedding(token_N, self.embedding_V_H)
        if routing.gradients is None:
            with torch.no_grad():
                return self._infer(h_N_H, routing, attention)
        h_N_H.requires_grad_()
        for index, block in enumerate(self.blocks):
            if checkpointing:
                h_N_H = checkpoint(self._train, index, block, h_N_H, routing, attention, use_reentrant=False)
            else:
                h_N_H = self._train(index, block, h_N_H, routing, attention)
        return F.rms_norm(h_N_H, self.norm_H.shape, self.norm_H, self.eps)

    def _train(self, index: int, block: _Block, h_N_H: Tensor, routing: Routing, attention: Attention) -> Tensor:
        x_N_H = F.rms_norm(h_N_H, block.norm_1_H.shape, block.norm_1_H, self.eps)
        seen_N_O = self._attend(index, block, block.qkv(self._entered(x_N_H), routing), attention)
        h_N_H = h_N_H + self._summed(block.output(seen_N_O, routing))
        x_N_H = F.rms_norm(h_N_H, block.norm_2_H.shape, block.norm_2_H, self.eps)
        gated_N_F = ops.swiglu(block.gate_up(self._entered(x_N_H), routing))
        return h_N_H + self._summed(block.down(gated_N_F, routing))

    def _entered(self, x_N_H: Tensor) -> Tensor:
        return x_N_H if self.part is None else self.part.entered(x_N_H)

    def _summed(self, y_N_H: Tensor) -> Tensor:
        return y_N_H if self.part is None else self.part.summed(y_N_H)

    def _infer(self, h_N_H: Tensor, routing: Routing, attention: Attention) -> Tensor:
        groups, most = routing.groups, FEW_ROWS if self.blocks[0].nbytes <= CACHED_BYTES else TILE_ROWS
        few = len(h_N_H) <= most and all(block.whole for block in self.blocks)
        if few and groups is not None and isinstance(attention, KernelAttention):
            return self._decode(h_N_H, routing, groups, attention)
        x_N_H = ops.add_rms_norm_(h_N_H, None, self.blocks[0].norm_1_H, self.eps)
        norms = [*(block.norm_1_H for block in self.blocks[1:]), self.norm_H]
        for index, (block, norm_H) in enumerate(zip(self.blocks, norms, strict=True)):
            seen_N_O = self._attend(index, block, block.qkv(x_N_H, routing), attention)
            added_N_H = self._summed(block.output(seen_N_O, routing))
            x_N_H = ops.add_rms_norm_(h_N_H, added_N_H, block.norm_2_H, self.eps)
            added_N_H = self._summed(block.down(block.gate_up.gated(x_N_H, routing), routing))
            x_N_H = ops.add_rms_norm_(h_N_H, added_N_H, norm_H, self.eps)
        return x_N_H

    def _decode(self, h_R_H: Tensor, routing: Routing, groups: tuple[Tensor, Tensor], at: KernelAttention) -> Tensor:
        """As `_infer`, for few rows of one token each: in few kernels."""
        from redqueen.engine import kernels

        heads, kv_heads = self.heads.heads, self.heads.kv_heads
        norms = [*(block.norm_1_H for block in self.blocks[1:]), self.norm_H]
        following = [*(block.qkv.factor_a() for block in self.blocks[1:]), None]
        first = self.blocks[0]
        x_R_H, u_R_L = kernels.add_norm_shrink_(h_R_H, None, groups, first.norm_1_H, self.eps, first.qkv.factor_a())
        for index, (block, norm_H, factor) in enumerate(zip(self.blocks, norms, following, strict=True)):
            qkv, gate_up, cache = block.qkv, block.gate_up, (at.cache.k[index], at.cache.v[index])
            q_R_O = kernels.linear_rope(
                x_R_H, u_R_L, qkv.dense_O_I, qkv.bias_O, qkv.factor_b(), groups, block.norms,
                (at.position_N, at.start_N, at.capacity_N), (self.cos_T_D, self.sin_T_D), cache, heads, kv_heads,
            )  # fmt: skip
            added = block.output.in_parts(at.seen(index, q_R_O, heads, self.heads.scale, block.window), routing)
            x_R_H, u_R_L = kernels.add_norm_shrink_(h_R_H, added, groups, block.norm_2_H, self.eps, gate_up.factor_a())
            gated_R_F = kernels.linear_gated(x_R_H, u_R_L, gate_up.dense_O_I, gate_up.factor_b(), groups)
            added = block.down.in_parts(gated_R_F, routing)
            x_R_H, u_R_L = kernels.add_norm_shrink_(h_R_H, added, groups, norm_H, self.eps, factor)
        return x_R_H

    def _attend(self, index: int, block: _Block, qkv_N_O: Tensor, attention: Attention) -> Tensor:
        heads, kv_heads, dim = self.heads.heads, self.heads.kv_heads, self.heads.dim
        if isinstance(attention, KernelAttention):
            from redqueen.engine import kernels

            cache = attention.cache
            kernels.rope_write_(
                qkv_N_O, block.norms, attention.position_N, attention.start_N, attention.capacity_N,
                self.cos_T_D, self.sin_T_D, cache.k[index], cache.v[index], heads, kv_heads,
            )  # fmt: skip
            return attention.seen(index, qkv_N_O, heads, self.heads.scale, block.window)
        sizes = [heads * dim, kv_heads * dim, kv_heads * dim]
        if block.norms is not None:
            q_norm_D, k_norm_D, eps = block.norms
            q, k, v = qkv_N_O.split(sizes, -1)
            q = F.rms_norm(q.unflatten(-1, (heads, dim)), q_norm_D.shape, q_norm_D, eps)
            k = F.rms_norm(k.unflatten(-1, (kv_heads, dim)), k_norm_D.shape, k_norm_D, eps)
            qkv_N_O = torch.cat([q.flatten(1), k.flatten(1), v], -1)
        qkv_N_O = ops.rope(qkv_N_O, attention.position_N, self.cos_T_D, self.sin_T_D, heads + kv_heads)
        q, k, v = qkv_N_O.unflatten(0, (attention.batch, -1)).split(sizes, -1)
        seen_B_T_H_D = attention.attend(
            index,
            q.unflatten(-1, (heads, dim)),
            k.unflatten(-1, (kv_heads, dim)),
            v.unflatten(-1, (kv_heads, dim)),
            self.heads.scale,
            block.window,
        )
        return seen_B_T_H_D.reshape(qkv_N_O.shape[0], heads * dim)


def _stacked(modules: Sequence[Any]) -> tuple[Frozen, Tensor | None]:
    """One weight for all; each module's own becomes a view of it, so that nothing is stored twice."""
    first, *others = map(frozen, modules)
    if not others:
        return first, None if modules[0].bias is None else modules[0].bias.data
    weight = first.stack(others)
    bias_O = None
    if any(module.bias is not None for module in modules):
        plain = next(module.bias.data for module in modules if module.bias is not None)
        bias_O = torch.cat([plain.new_zeros(m.out_features) if m.bias is None else m.bias.data for m in modules])
    at = 0
    for module in modules:
        become(module, weight.part(at, module.out_features))
        if module.bias is not None and bias_O is not None:
            module.bias.data = bias_O[at : at + module.out_features]
        at += module.out_features
    return weight, bias_O
