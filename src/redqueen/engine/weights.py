"""The files of a base's weights, checked before transformers reads them.

Only safetensors: a pickled `.bin` file can run code when it is read. An index of shards is untrusted and may name any
file of this machine.
"""

import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from redqueen.errors import InputError

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
_MAX_SIZES = {"num_hidden_layers": 10_000} | dict.fromkeys(
    ("hidden_size", "intermediate_size", "vocab_size", "head_dim", "num_attention_heads", "num_key_value_heads"),
    10_000_000,
)
"""Far beyond any model; transformers would take hours to build one."""


def refuse_sizes(name: str, config: PreTrainedConfig) -> None:
    for field, limit in _MAX_SIZES.items():
        size = getattr(config, field, None)
        if isinstance(size, int) and not 0 < size <= limit:
            raise InputError(f"{name} has {field} = {size} in its config.json", f"use 1 to {limit}, or another base")


def refuse_files(name: str, folder: Path) -> None:
    if (what := missing(folder)) is not None:
        raise InputError(f"{name} has no weights that can be read: {what}", "give a complete model in safetensors")


def missing(folder: Path) -> str | None:
    """What is missing or wrong; None when all files of the weights are there."""
    if (folder / WEIGHTS).is_file():
        return None
    if not (folder / INDEX).is_file():
        pickled = ", and its .bin files are pickles, which can run code" if any(folder.glob("*.bin")) else ""
        return f"there is no {WEIGHTS}{pickled}"
    shards = _shards(folder / INDEX)
    if shards is None:
        return f"{INDEX} is not JSON that names files by weights"
    for shard in sorted(shards):
        if Path(shard).name != shard or not shard.endswith(".safetensors"):
            return f"{INDEX} names {shard}, which is not a .safetensors file of the folder"
        if not (folder / shard).is_file():
            return f"there is no {shard}, which {INDEX} names"
    return None


def _shards(path: Path) -> set[str] | None:
    try:
        index: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict) or not shards or not all(isinstance(shard, str) for shard in shards.values()):
        return None
    return set(shards.values())
