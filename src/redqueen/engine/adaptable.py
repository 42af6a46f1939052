"""Which linear layers of a base members adapt, and which bases cannot carry adapters."""

from collections.abc import Sequence

from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.engine.bank import Linear
from redqueen.engine.quantised import QuantisedLinear
from redqueen.errors import InputError

LLAMA_FAMILY = ("llama", "mistral", "qwen2", "qwen3")


def adaptable(model: PreTrainedModel, target_modules: Sequence[str] | None) -> list[Linear]:
    """All linear layers of the base's blocks, or those whose name ends in a target. Refuses bases that cannot carry
    adapters: mixtures of experts, quantised weights, other kinds of layers."""
    config = model.config
    text = config.get_text_config()
    experts = [getattr(text, name, None) for name in ("num_local_experts", "num_experts", "n_routed_experts")]
    if any(isinstance(count, int) and count > 1 for count in experts):
        raise InputError(
            f"{config.model_type} is a mixture of experts, whose experts are not linear layers of their own",
            "use a dense base",
        )
    if getattr(model, "hf_quantizer", None) is not None or getattr(config, "quantization_config", None) is not None:
        raise InputError("the base is quantised already", "use its full-precision checkpoint, or a GGUF file")
    rope = (getattr(text, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        raise InputError(
            f"the rotary embedding of {config.model_type} ({rope}) depends on the longest text of a batch, "
            "so a member's samples would depend on its neighbours",
            "use a base without it",
        )
    head = model.get_output_embeddings()
    linears, unsupported = [], []
    for name, module in model.named_modules():
        if isinstance(module, QuantisedLinear):
            linears.append((name, module))
            continue
        weight = getattr(module, "weight", None)
        if module is head or isinstance(module, nn.Embedding) or not isinstance(weight, Tensor) or weight.ndim < 2:
            continue
        (linears if type(module) is nn.Linear else unsupported).append((name, module))
    if target_modules is not None:
        chosen = [(name, module) for name, module in linears if _matches(name, target_modules)]
        modules = [name for name, _ in [*linears, *unsupported]]
        unsupported = [(name, module) for name, module in unsupported if _matches(name, target_modules)]
        missing = [target for target in target_modules if not any(_matches(name, [target]) for name in modules)]
        if missing:
            names = sorted({name.rpartition(".")[2] for name, _ in linears})
            raise InputError(
                f"no module of the base is called {missing[0]}", f"its linear layers are {', '.join(names)}"
            )
    else:
        chosen = linears
    if unsupported or not chosen:
        kind = type(unsupported[0][1]).__name__ if unsupported else "no"
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


def fused_groups(model: PreTrainedModel, linears: Sequence[Linear]) -> list[list[Linear]]:
    """The adapted linears, grouped as the body computes them: those with the same input at once."""
    if llama_family(model) is not None:
        return [[linear] for linear in linears]
    groups: dict[str, list[Linear]] = {}
    for linear in linears:
        prefix, _, last = linear.name.rpartition(".")
        together = {"q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv", "gate_proj": "gate_up", "up_proj": "gate_up"}
        groups.setdefault(f"{prefix}.{together.get(last, last)}", []).append(linear)
    return list(groups.values())
