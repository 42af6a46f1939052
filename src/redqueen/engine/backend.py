"""What the scheduler asks of the device: room for sequences, prompts into the KV cache, one more token for each row.

Two backends keep to this protocol: captured CUDA graphs with the kernels (`graph_backend.py`), and plain torch on any
device (`torch_backend.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.kv_cache import KVCache
from redqueen.engine.prefill import Prompts
from redqueen.engine.seats import Completion
from redqueen.errors import InputError


@dataclass(frozen=True, slots=True)
class Launch:
    """A step on its way: its tokens are here once `wait` has returned."""

    token_R: Tensor
    logprob_R: Tensor
    arrived: torch.cuda.Event | None

    @classmethod
    def of(cls, token_R: Tensor, logprob_R: Tensor) -> "Launch":
        """On CUDA the tokens are copied to the host behind the step, and nothing is waited for."""
        if not token_R.is_cuda:
            return cls(token_R, logprob_R, None)
        token_R, logprob_R = _to_host(token_R), _to_host(logprob_R)
        arrived = torch.cuda.Event()
        arrived.record()
        return cls(token_R, logprob_R, arrived)

    def wait(self) -> tuple[np.ndarray, np.ndarray]:
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.token_R.numpy(), self.logprob_R.numpy()


class Backend(Protocol):
    rows: int
    """Sequences that grow at the same time, at most."""
    cache: KVCache | None
    """Of the sequences that grow; None before the first call and after `drop`."""

    def reserve(self, prompts: Prompts, max_tokens: int) -> int:
        """Make room for a call, whose completions come grouped by prompt, in a KV cache of `max_tokens` at most; the
        tokens of the longest. Whatever was housed before is gone."""
        ...

    def house(self, completions: Sequence[Completion]) -> int:
        """Find a seat and a region for completions of one prompt: for how many of them, from the first, there was
        room."""
        ...

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        """Take the prompts of housed completions into the KV cache, `max_tokens` at once, padding included."""
        ...

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        """From now on these completions, by their members, are the rows of a step."""
        ...

    def launch(self, length: int) -> Launch:
        """One more token for each row; `length` is what the longest has then."""
        ...

    def release(self, completion: Completion, length: int) -> None:
        """Take back seat and region, in which a completion of this length was. Steps that are on their way were
        launched before either is used again."""
        ...

    def drop(self) -> None:
        """Give the KV cache's memory back."""
        ...


def new_cache(body: Body, bank: Bank, tokens: int) -> KVCache:
    heads = body.heads
    return KVCache(
        tokens=tokens, layers=body.layers, kv_heads=heads.kv_heads, dim=heads.dim, device=bank.device, dtype=bank.dtype
    )


def refuse_longer(longest: int, max_tokens: int) -> None:
    if longest > max_tokens:
        raise InputError(
            f"a request of {longest} tokens (prompt and limit) does not fit into the memory for keys and values, "
            f"which holds {max_tokens}",
            "lower max_tokens, or the number of members",
        )


def _to_host(tensor: Tensor) -> Tensor:
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)
