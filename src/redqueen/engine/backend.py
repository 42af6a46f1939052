"""What the scheduler needs of a device: memory for sequences, prompts into the KV cache, one more token for each row.

Two backends implement it: captured CUDA graphs with the kernels (`graph_backend.py`), and plain torch on any device
(`torch_backend.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.decode_state import Completion
from redqueen.engine.kv_cache import KVCache
from redqueen.engine.prefill import Prompts


@dataclass(frozen=True, slots=True)
class Launch:
    """Steps that may still be running; `wait` returns their tokens and log-probabilities."""

    token_T_R: Tensor
    """On the host, once they have arrived."""
    logprob_T_R: Tensor
    arrived: torch.cuda.Event | None = None

    @property
    def steps(self) -> int:
        return len(self.token_T_R)

    @property
    def over(self) -> bool:
        """Whether they are known to be: then nobody waits for them."""
        return self.arrived is not None and self.arrived.query()

    def wait(self) -> tuple[np.ndarray, np.ndarray]:
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.token_T_R.numpy().astype(np.int64, copy=False), self.logprob_T_R.numpy()


class Backend(Protocol):
    rows: int
    """Sequences in a step, at most."""
    most_steps: int
    """Of a launch."""
    most_prefill: int | None
    """Prompt tokens that it takes at once, at most."""
    cache: KVCache | None
    """None before the first call and after `drop`."""

    def longest(self, prompts: Prompts) -> int:
        """The tokens that a KV cache must have to take these, be it one after the other."""
        ...

    def reserve(self, prompts: Prompts, max_tokens: int) -> None:
        """Prepare a KV cache of at most `max_tokens`. Frees whatever was allocated before."""
        ...

    def extend(self, prompts: Prompts, max_tokens: int) -> bool:
        """Let further completions use the KV cache that is in use; False where it cannot take them."""
        ...

    def allocate(self, completions: Sequence[Completion]) -> int:
        """A slot and a region for completions of one prompt; for how many of them, from the first, there was room."""
        ...

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        """Run the prompts of allocated completions into the KV cache, `max_tokens` at once, padding included."""
        ...

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        """Make these completions, by member, the rows of the next steps."""
        ...

    def launch(self, length: int) -> Launch:
        """Start a step or some: so many more tokens for each row; `length` is what the longest has after the first.
        Those that a row gets beyond its limit are nobody's."""
        ...

    def release(self, completion: Completion, length: int) -> None:
        """Free the slot and region of a completion of this length. Steps that still run were launched before either is
        used again."""
        ...

    def drop(self) -> None:
        """Free the KV cache's memory."""
        ...


def new_cache(body: Body, bank: Bank, tokens: int) -> KVCache:
    heads = body.heads
    return KVCache(
        tokens=tokens, layers=body.layers, kv_heads=heads.kv_heads, dim=heads.dim, device=bank.device, dtype=bank.dtype
    )
