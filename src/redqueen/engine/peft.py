"""Members as PEFT folders, written and read without PEFT.

A folder holds `adapter_config.json` and `adapter_model.safetensors`. Adapters that compute anything but
`alpha / rank * B @ A` are refused.
"""

import json
import math
import re
import secrets
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from redqueen.engine.known import BY_NAME
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError

CONFIG = "adapter_config.json"
CARD = "README.md"
WEIGHTS = "adapter_model.safetensors"
_KEY = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<factor>[AB])\.weight")
_PLAIN_INITS = (None, True, False, "gaussian", "eva", "orthogonal")
"""Values of `init_lora_weights` that only set the factors. The others also change the base's own weights."""
_UNSUPPORTED = {
    "use_dora": "is a DoRA",
    "modules_to_save": "brings modules of its own",
    "lora_bias": "has biases",
    "layer_replication": "repeats layers of the base",
    "target_parameters": "adapts parameters that are not modules",
    "trainable_token_indices": "trains embeddings of single tokens",
    "alora_invocation_tokens": "is an activated LoRA",
    "use_qalora": "is a QALoRA",
    "use_bdlora": "is a block-diagonal LoRA",
    "arrow_config": "is an Arrow router",
    "kasa_config": "is a KaSA adapter",
    "monteclora_config": "is a MonteCLoRA",
    "velora_config": "is a VeLoRA",
    "megatron_config": "is made for Megatron",
}
"""Fields of a LoRA's configuration that must be empty, and what the adapter is otherwise."""
_WHERE = ("base_model_name_or_path", "exclude_modules", "layers_pattern", "layers_to_transform", "target_modules")


def save(
    state: MemberState, folder: Path, *, base_name: str, modules: Iterable[str], dtype: torch.dtype | None = None
) -> None:
    """Write a member as a PEFT folder, which must not exist yet, whole or not at all. `modules` are the names of all
    modules of the base, adapted or not; `dtype` None keeps that of the masters."""
    where = {"base_model_name_or_path": base_name, "target_modules": _targets(state.factors, set(modules))}
    _write(state, folder, where, dtype)


def same_base(folders: Sequence[Path]) -> None:
    """Refuse adapters that say that they were made for different bases."""
    names = [base_of(Path(folder)) for folder in folders]
    for folder, name in zip(folders, names, strict=True):
        if name != names[0]:
            raise InputError(
                f"{folders[0]} was made for the base {names[0]}, {folder} for {name}",
                f"use adapters of one base, or correct base_model_name_or_path in {CONFIG} if they are the same",
            )


def save_like(
    state: MemberState,
    folder: Path,
    parent: Path,
    *,
    base_name: str | None = None,
    dtype: torch.dtype | None = None,
    card: str | None = None,
) -> None:
    """The same for a member that adapts the modules that the PEFT folder `parent` adapts, on the same base; `card` is
    its README.md."""
    config = _config(Path(parent))
    where = {field: config[field] for field in _WHERE if field in config}
    if base_name is not None:
        where["base_model_name_or_path"] = base_name
    _write(state, folder, where, dtype, card)


def base_of(folder: Path) -> str:
    """Of a base that is known by a name, this name, also where the folder says where it is on this machine."""
    base = str(_config(folder).get("base_model_name_or_path"))
    return next((name for name, known in BY_NAME.items() if base == str(known.folder)), base)


def _write(
    state: MemberState, folder: Path, where: Mapping[str, Any], dtype: torch.dtype | None, card: str | None = None
) -> None:
    folder = Path(folder).absolute()
    tensors = {}
    for module, (a_R_I, b_O_R) in state.factors.items():
        for factor, tensor in (("A", a_R_I), ("B", b_O_R)):
            tensors[f"base_model.model.{module}.lora_{factor}.weight"] = tensor.detach().to(
                "cpu", dtype, copy=True, memory_format=torch.contiguous_format
            )
    config = {
        "alpha_pattern": {},
        "auto_mapping": None,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "layers_pattern": None,
        "layers_to_transform": None,
        # PEFT and vLLM declare an integer, but only divide by the rank: a fraction works too.
        "lora_alpha": int(state.alpha) if float(state.alpha).is_integer() else state.alpha,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": state.rank,
        "rank_pattern": {},
        "revision": None,
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
        **where,
    }
    aside = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.partial")
    try:
        if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
            raise InputError(f"{folder} is there already", "name another folder, or remove it")
        aside.mkdir(parents=True)
        save_file(tensors, aside / WEIGHTS, {"format": "pt"})
        (aside / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
        if card is not None:
            (aside / CARD).write_text(card, encoding="utf-8")
        # safetensors makes its files unreadable for others.
        shutil.copymode(aside / CONFIG, aside / WEIGHTS)
        aside.rename(folder)
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise InputError(f"{folder} cannot be written: {why}", "fix that, or name another folder") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def load(folder: Path | str) -> MemberState:
    """The member in a PEFT folder. Whether it fits a base is checked when it is written to an engine."""
    folder = Path(folder)
    config, tensors = _config(folder), _tensors(folder)
    rank: Any = config.get("r")
    alpha: Any = config.get("lora_alpha")
    if type(rank) is not int or type(alpha) not in (int, float) or rank < 1 or not 0 < alpha <= sys.float_info.max:
        raise InputError(f"{folder / CONFIG} has no usable r and lora_alpha", "use an adapter that PEFT has saved")
    if config.get("use_rslora"):
        # PEFT multiplies by alpha / sqrt(rank), we by alpha / rank.
        alpha = alpha * math.sqrt(rank)
    factors = _factors(folder, tensors)
    for module, (a_R_I, b_O_R) in factors.items():
        if a_R_I.ndim != 2 or b_O_R.ndim != 2 or not rank == a_R_I.shape[0] == b_O_R.shape[1]:
            raise InputError(
                f"the adapter in {folder} says rank {rank}, but its factors for {module} are "
                f"{tuple(a_R_I.shape)} and {tuple(b_O_R.shape)}",
                "use one that has the same rank everywhere",
            )
    return MemberState(rank, float(alpha), factors)


def _targets(adapted: Collection[str], modules: set[str]) -> list[str]:
    """The shortest endings of names by which PEFT, which adapts every module whose name ends in a target, finds exactly
    the adapted modules: `q_proj`, or as many parts as it takes."""
    unadapted = modules - set(adapted)

    def target(name: str) -> str:
        parts = name.split(".")
        for at in range(len(parts) - 1, 0, -1):
            end = ".".join(parts[at:])
            if not any(module == end or module.endswith(f".{end}") for module in unadapted):
                return end
        return name

    return sorted({target(name) for name in adapted})


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text())
    except OSError as error:
        raise InputError(f"{folder / CONFIG} cannot be read: {error.strerror}", "give a PEFT folder") from None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise InputError(f"{folder / CONFIG} is not a JSON object", "give a PEFT folder")
    if config.get("peft_type") != "LORA":
        wrong = f"is {config.get('peft_type')}, not LORA"
    elif config.get("bias", "none") != "none":
        wrong = f"trains biases of the base ({config['bias']})"
    elif config.get("init_lora_weights") not in _PLAIN_INITS:
        wrong = f"changes the base's own weights ({config['init_lora_weights']})"
    else:
        wrong = next((what for field, what in _UNSUPPORTED.items() if config.get(field)), None)
        for field, default in (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha")):
            pattern = config.get(field) or {}
            if not isinstance(pattern, dict) or any(value != config.get(default) for value in pattern.values()):
                wrong = f"has another {default} for some modules"
    if wrong is not None:
        raise InputError(f"the adapter in {folder} {wrong}", "use a plain LoRA with one rank and alpha")
    return config


def _tensors(folder: Path) -> dict[str, Tensor]:
    if not (folder / WEIGHTS).is_file():
        mend = "save it as safetensors" if (folder / "adapter_model.bin").exists() else "give a complete PEFT folder"
        raise InputError(f"there is no {folder / WEIGHTS}", mend)
    try:
        return load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"{folder / WEIGHTS} cannot be read: {why}", "it may be truncated: copy it again") from None


def _factors(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    halves: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise InputError(f"{folder} holds the unknown tensor {key}", "use a LoRA on linear layers alone")
        if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise InputError(f"{key} in {folder} holds what is not a finite number", "use another adapter")
        # A copy: the file is memory-mapped, and may change.
        exact = tensor.to(torch.promote_types(tensor.dtype, torch.float32), copy=True)
        halves.setdefault(match["module"], {})[match["factor"]] = exact
    single = [module for module, factors in halves.items() if len(factors) == 1]
    if single or not halves:
        what = f"has one factor only for {single[0]}" if single else "holds nothing"
        raise InputError(f"the adapter in {folder} {what}", "use a complete one")
    return {module: (factors["A"], factors["B"]) for module, factors in halves.items()}
