"""The base with its members' adapters, from token ids to the last hidden state: two ways to the same numbers.

`GeneralBody` runs `transformers`' own modules with every adapted linear layer replaced and the attention taken over:
any architecture works that keeps to these two. `LlamaBody` is for Llama, Mistral, Qwen2 and Qwen3: the same arithmetic
with q, k and v (gate and up) as one product and the small steps fused, several times faster where many rows decode.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface, PreTrainedModel

from redqueen.engine import ops
from redqueen.engine.attention import Attention, Heads, Newest
from redqueen.engine.bank import Bank, Linear
from redqueen.engine.lora import Layer, Routing
from redqueen.errors import InputError

LLAMA_FAMILY = ("llama", "mistral", "qwen2", "qwen3")
MAX_POSITIONS = 32_768
"""Of the rotary tables, where the base itself allows more."""


def adaptable(model: PreTrainedModel, target_modules: Sequence[str] | None) -> list[Linear]:
    """The linear layers that members adapt: all of the base's blocks, or those whose name ends in one of the targets.

    Refuses what low-rank factors cannot be put on in this way: experts, quantised weights, other kinds of layers.
    """
    config = model.config
    text = config.get_text_config()
    experts = [getattr(text, name, None) for name in ("num_local_experts", "num_experts", "n_routed_experts")]
    if any(isinstance(count, int) and count > 1 for count in experts):
        raise InputError(
            f"{config.model_type} is a mixture of experts, whose experts are not linear layers of their own",
            "use a dense base",
        )
    if getattr(model, "hf_quantizer", None) is not None or getattr(config, "quantization_config", None) is not None:
        raise InputError("the base is quantised", "use its full-precision checkpoint, or a GGUF file")
    rope = (getattr(text, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        raise InputError(
            f"the rotary embedding of {config.model_type} ({rope}) depends on the longest text of a batch, "
            "so a member's neighbours would change what it says",
            "use a base without it",
        )
    head = model.get_output_embeddings()
    found, other = [], []
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if module is head or isinstance(module, nn.Embedding) or not isinstance(weight, Tensor) or weight.ndim < 2:
            continue
        (found if type(module) is nn.Linear else other).append((name, module))
    if target_modules is not None:
        chosen = [(name, module) for name, module in found if _matches(name, target_modules)]
        odd = [name for name, _ in other if _matches(name, target_modules)]
        missing = [t for t in target_modules if not any(_matches(name, [t]) for name, _ in [*found, *other])]
        if missing:
            names = sorted({name.rpartition(".")[2] for name, _ in found})
            raise InputError(
                f"no module of the base is called {missing[0]}", f"its linear layers are {', '.join(names)}"
            )
    else:
        chosen, odd = found, [name for name, _ in other]
    if odd or not chosen:
        kind = type(model.get_submodule(odd[0])).__name__ if odd else "no"
        raise InputError(
            f"{config.model_type} has {kind} layers where adapters need torch.nn.Linear",
            "use another base, or name the layers to adapt in target_modules",
        )
    return [Linear(name, module.in_features, module.out_features) for name, module in chosen]


def _matches(name: str, targets: Sequence[str]) -> bool:
    return any(name == target or name.endswith(f".{target}") for target in targets)


def llama_family(model: PreTrainedModel) -> str | None:
    """Why this base gets the general path, or None where the fast one serves it."""
    config = model.config
    if config.model_type not in LLAMA_FAMILY:
        return f"{config.model_type} is not of the Llama family"
    if config.hidden_act != "silu":
        return f"its activation is {config.hidden_act}, not silu"
    rope = getattr(config, "rope_parameters", None) or {}
    if float(rope.get("partial_rotary_factor", 1.0)) != 1.0:
        return "it rotates a part of each head only"
    return None


def groups(model: PreTrainedModel, linears: Sequence[Linear]) -> list[list[Linear]]:
    """The adapted linears in the groups that the body computes at once."""
    if llama_family(model) is not None:
        return [[linear] for linear in linears]
    found: dict[str, list[Linear]] = {}
    for linear in linears:
        prefix, _, last = linear.name.rpartition(".")
        together = {"q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv", "gate_proj": "gate_up", "up_proj": "gate_up"}
        found.setdefault(f"{prefix}.{together.get(last, last)}", []).append(linear)
    return list(found.values())


@dataclass(slots=True)
class Head:
    """From hidden states to logits."""

    weight_V_H: Tensor
    softcap: float | None = None

    def __call__(self, hidden_M_H: Tensor) -> Tensor:
        logits_M_V = ops.logits(hidden_M_H, self.weight_V_H)
        return logits_M_V if self.softcap is None else torch.tanh(logits_M_V / self.softcap) * self.softcap

    def backward(
        self, logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor, total_M: Tensor, weight_M: Tensor
    ) -> Tensor:
        """What the hidden states get when every target's log-probability gets `weight_M`."""
        dtype = self.weight_V_H.dtype
        grad_M_V = ops.head_backward(logits_M_V, target_M, temperature_M, total_M, weight_M, dtype)
        if self.softcap is not None:
            grad_M_V = grad_M_V * (1 - (logits_M_V / self.softcap) ** 2).to(dtype)
        return grad_M_V @ self.weight_V_H


@dataclass(slots=True)
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


class LlamaBody:
    """Llama, Mistral, Qwen2 and Qwen3."""

    path = "llama"

    def __init__(self, model: PreTrainedModel, bank: Bank) -> None:
        # Typed as what it is by its name: `transformers` types a decoder as any module.
        inner: Any = model.get_decoder()
        config = model.config
        first = inner.layers[0].self_attn
        self.heads = Heads(config.num_attention_heads, config.num_key_value_heads, first.head_dim, first.scaling)
        self.eps = config.rms_norm_eps
        self.embedding_V_H = inner.embed_tokens.weight
        self.norm_H = inner.norm.weight
        self.head = Head(_head_weight(model))
        self.layers = config.num_hidden_layers
        self.positions = min(config.max_position_embeddings, MAX_POSITIONS)
        device, dtype = self.norm_H.device, self.norm_H.dtype
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        # Batches are padded to steps of 16, beyond the last position too.
        at_1_T = torch.arange(-(-self.positions // 16) * 16, device=device).unsqueeze(0)
        cos, sin = inner.rotary_emb(torch.zeros(1, dtype=exact, device=device), position_ids=at_1_T)
        self.cos_T_D, self.sin_T_D = cos[0].contiguous(), sin[0].contiguous()
        of = {linear.name: group for group in bank.groups for linear in group.linears}
        self.blocks = [
            self._block(f"{_name(model, inner)}layers.{i}", block, bank, of, config)
            for i, block in enumerate(inner.layers)
        ]

    def _block(self, prefix: str, block: Any, bank: Bank, of: dict, config: Any) -> _Block:
        attention, mlp = block.self_attn, block.mlp

        def layer(parent: nn.Module, path: str, *names: str) -> Layer:
            modules = [getattr(parent, name) for name in names]
            weight_O_I, bias_O = _stacked(modules)
            group = next((of[f"{path}.{name}"] for name in names if f"{path}.{name}" in of), None)
            places, at = [], 0
            for name, module in zip(names, modules, strict=True):
                if f"{path}.{name}" in of:
                    places.append((at, module.out_features))
                at += module.out_features
            return Layer(weight_O_I, bias_O, bank, group, tuple(places))

        norms = None
        if hasattr(attention, "q_norm"):
            norms = attention.q_norm.weight, attention.k_norm.weight, self.eps
        window = getattr(attention, "sliding_window", None)
        if config.model_type == "mistral":
            window = config.sliding_window
        return _Block(
            block.input_layernorm.weight,
            block.post_attention_layernorm.weight,
            layer(attention, f"{prefix}.self_attn", "q_proj", "k_proj", "v_proj"),
            layer(attention, f"{prefix}.self_attn", "o_proj"),
            layer(mlp, f"{prefix}.mlp", "gate_proj", "up_proj"),
            layer(mlp, f"{prefix}.mlp", "down_proj"),
            norms,
            window or 0,
        )

    def hidden(self, token_N: Tensor, routing: Routing, attention: Attention, *, checkpointing: bool = False) -> Tensor:
        """The last hidden state of every token, normed. Differentiable where `routing` asks for gradients."""
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
        seen_N_O = self._attend(index, block, block.qkv(x_N_H, routing), attention)
        h_N_H = h_N_H + block.output(seen_N_O, routing)
        x_N_H = F.rms_norm(h_N_H, block.norm_2_H.shape, block.norm_2_H, self.eps)
        return h_N_H + block.down(ops.swiglu(block.gate_up(x_N_H, routing)), routing)

    def _infer(self, h_N_H: Tensor, routing: Routing, attention: Attention) -> Tensor:
        delta_N_H = None
        for index, block in enumerate(self.blocks):
            x_N_H = ops.add_rms_norm_(h_N_H, delta_N_H, block.norm_1_H, self.eps)
            seen_N_O = self._attend(index, block, block.qkv(x_N_H, routing), attention)
            delta_N_H = block.output(seen_N_O, routing)
            x_N_H = ops.add_rms_norm_(h_N_H, delta_N_H, block.norm_2_H, self.eps)
            delta_N_H = block.down(ops.swiglu(block.gate_up(x_N_H, routing)), routing)
        return ops.add_rms_norm_(h_N_H, delta_N_H, self.norm_H, self.eps)

    def _attend(self, index: int, block: _Block, qkv_N_O: Tensor, attention: Attention) -> Tensor:
        heads, kv_heads, dim = self.heads.heads, self.heads.kv_heads, self.heads.dim
        if isinstance(attention, Newest) and ops.fused(qkv_N_O):
            from redqueen.engine import kernels

            cache, where = attention.cache, (attention.position_N, attention.start_R, attention.capacity_R)
            k_cache, v_cache = cache.k[index], cache.v[index]
            kernels.rope_write_(
                qkv_N_O, block.norms, *where, self.cos_T_D, self.sin_T_D, k_cache, v_cache, heads, kv_heads
            )
            return kernels.attend(
                qkv_N_O, k_cache, v_cache, *where,
                heads=heads, kv_heads=kv_heads, dim=dim, scale=self.heads.scale, window=block.window,
            )  # fmt: skip
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


@dataclass(slots=True)
class _Pass:
    """What the replaced modules of a base need to know about the pass that is under way."""

    routing: Routing
    attention: Attention
    attended: int = 0


class _Adapter(nn.Module):
    """Stands where a linear layer of the base stood."""

    def __init__(self, layer: Layer, body: "GeneralBody") -> None:
        super().__init__()
        self._layer, self._body = layer, [body]
        self.weight, self.bias = layer.weight_O_I, layer.bias_O

    def forward(self, x: Tensor) -> Tensor:
        current = self._body[0].current
        y_N_O = self._layer(x.reshape(-1, x.shape[-1]), current.routing)
        return y_N_O.view(*x.shape[:-1], y_N_O.shape[-1])


class GeneralBody:
    """Any architecture, through its own modules."""

    path = "general"
    current: _Pass

    def __init__(self, model: PreTrainedModel, bank: Bank) -> None:
        text = model.config.get_text_config()
        self.inner: Any = model.get_decoder()
        self.head = Head(_head_weight(model), getattr(text, "final_logit_softcapping", None))
        heads = text.num_attention_heads
        kv_heads = getattr(text, "num_key_value_heads", None) or heads
        dim = getattr(text, "head_dim", None) or text.hidden_size // heads
        self.heads = Heads(heads, kv_heads, dim, dim**-0.5)
        self.layers = text.num_hidden_layers
        self.positions = getattr(text, "max_position_embeddings", MAX_POSITIONS)
        for group in bank.groups:
            [linear] = group.linears
            parent_name, _, name = linear.name.rpartition(".")
            module: Any = model.get_submodule(linear.name)
            layer = Layer(module.weight, module.bias, bank, group, ((0, linear.outputs),))
            setattr(model.get_submodule(parent_name), name, _Adapter(layer, self))
        for module in self.inner.modules():
            if hasattr(module, "layer_idx"):
                object.__setattr__(module, "redqueen_body", self)
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
        """Have `transformers` keep the inputs of its blocks only. The blocks alone are set to training, not what is
        in them: a base's dropout would change what is trained."""
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
    odd = [name for name in ("softcap", "s_aux") if options.get(name) is not None]
    if odd or attention_mask is not None:
        raise InputError(
            f"the attention of {module.config.model_type} uses {odd[0] if odd else 'a mask of its own'}",
            "use another base",
        )
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


Body = LlamaBody | GeneralBody


def open_body(model: PreTrainedModel, bank: Bank) -> Body:
    return LlamaBody(model, bank) if llama_family(model) is None else GeneralBody(model, bank)


def _head_weight(model: PreTrainedModel) -> Tensor:
    head: Any = model.get_output_embeddings()
    return head.weight


def _name(model: PreTrainedModel, inner: nn.Module) -> str:
    return next(f"{name}." if name else "" for name, module in model.named_modules() if module is inner)


def _stacked(modules: Sequence[Any]) -> tuple[Tensor, Tensor | None]:
    """One weight for all; each module's own becomes a view of it, so that nothing is kept twice."""
    if len(modules) == 1:
        return modules[0].weight.data, None if modules[0].bias is None else modules[0].bias.data
    weight_O_I = torch.cat([module.weight.data for module in modules])
    bias_O = None
    if any(module.bias is not None for module in modules):
        bias_O = torch.cat([weight_O_I.new_zeros(m.out_features) if m.bias is None else m.bias.data for m in modules])
    at = 0
    for module in modules:
        module.weight.data = weight_O_I[at : at + module.out_features]
        if module.bias is not None and bias_O is not None:
            module.bias.data = bias_O[at : at + module.out_features]
        at += module.out_features
    return weight_O_I, bias_O
