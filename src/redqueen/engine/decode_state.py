"""The decoding state of all sequences, on the device, where each sequence has a slot.

A step gets the slots of its rows. It reads their newest tokens, positions and random keys here and writes the sampled
tokens back, so that nothing but the tokens has to leave the device between steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.kv_cache import SCRATCH
from redqueen.engine.protocol import SampleRequest
from redqueen.engine.stops import StopMatcher
from redqueen.engine.transfer import to_device

NO_SLOT = 0
"""The slot of rows without a sequence."""
TOKEN, POSITION, START, CAPACITY, KEY, INDEX, TEMPERATURE = range(7)


@dataclass(slots=True, eq=False, kw_only=True)
class Completion:
    """A request that is being sampled."""

    request: SampleRequest
    member: int
    """The bank's row."""
    matcher: StopMatcher | None
    index: int = -1
    """Its number among the scheduler's."""
    slot: int = NO_SLOT
    start: int = 0
    """Of its region of the KV cache. The backend allocates region and slot."""
    capacity: int = 0
    edits: int = -1
    """Of the bank, when its prompt went into the KV cache."""
    began: float = 0.0
    """When its prompt went into the KV cache, by `time.perf_counter`."""


class Rows(NamedTuple):
    token_R: Tensor
    position_R: Tensor
    start_R: Tensor
    capacity_R: Tensor
    key_R: Tensor
    index_R: Tensor
    """Tokens sampled so far."""
    temperature_R: Tensor
    """The bits of a float64."""


class DecodeState:
    def __init__(self, rows: int, positions: int, device: torch.device) -> None:
        """For `rows` sequences in a step, and some that wait with their prompts in the KV cache, of a base with so many
        positions."""
        self._last = positions - 1
        self.count = rows + max(1, rows // 8)
        self._state_7_S = torch.zeros(7, self.count + 1, dtype=torch.int64, device=device)
        self._state_7_S[CAPACITY] = SCRATCH
        self.clear()

    def clear(self) -> None:
        self.free = list(range(self.count, NO_SLOT, -1))

    def release(self, completion: Completion) -> None:
        self.free.append(completion.slot)
        completion.slot = NO_SLOT

    def fill(self, completions: Sequence[Completion]) -> None:
        """Initialise the slots of new sequences. The first step takes the last token of the prompt."""
        state_7_n = np.empty((7, len(completions)), np.int64)
        for at, completion in enumerate(completions):
            request = completion.request
            state_7_n[:, at] = (
                request.prompt[-1], len(request.prompt) - 1, completion.start, completion.capacity,
                ops.signed(request.key), 0, np.float64(request.temperature).view(np.int64),
            )  # fmt: skip
        device = self._state_7_S.device
        slot_n = to_device(np.array([completion.slot for completion in completions]), device)
        self._state_7_S[:, slot_n] = to_device(state_7_n, device)

    def rows(self, slot_R: Tensor) -> Rows:
        return Rows(*self._state_7_S[:, slot_R].unbind(0))

    def advance(self, slot_R: Tensor, rows: Rows, logits_R_V: Tensor) -> tuple[Tensor, Tensor]:
        """Sample and store a token for each row; the tokens and their log-probabilities. A row that is sampled on after
        its end stays within the base's positions."""
        temperature_R = rows.temperature_R.view(torch.float64).float()
        token_R, logprob_R = ops.sample(logits_R_V, temperature_R, rows.key_R, rows.index_R)
        if ops.fused(logits_R_V):
            from redqueen.engine import kernels

            kernels.advance_(self._state_7_S, slot_R, token_R, self._last, token=TOKEN, position=POSITION, index=INDEX)
            return token_R, logprob_R
        advance_R = (slot_R != NO_SLOT).to(torch.int64)
        self._state_7_S[TOKEN, slot_R] = token_R
        self._state_7_S[POSITION, slot_R] = (rows.position_R + advance_R).clamp(max=self._last)
        self._state_7_S[INDEX, slot_R] = rows.index_R + advance_R
        return token_R, logprob_R
