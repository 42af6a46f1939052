"""The decoding state of all sequences, on the device, where each sequence has a seat.

A step is told which seats its rows are. It reads their newest tokens, positions and random keys here and writes the
sampled tokens back, so that nothing but the tokens has to leave the device between steps.
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

NO_SEAT = 0
"""The seat of rows without a sequence."""
TOKEN, POSITION, START, CAPACITY, KEY, INDEX, TEMPERATURE = range(7)


@dataclass(slots=True, eq=False, kw_only=True)
class Completion:
    """A request on its way to a sample."""

    index: int
    """Its place among the requests."""
    request: SampleRequest
    member: int
    """The bank's row."""
    matcher: StopMatcher | None
    seat: int = NO_SEAT
    start: int = 0
    """Its region of the KV cache, which the backend finds for it, as it does the seat."""
    capacity: int = 0


class Rows(NamedTuple):
    """The state of a step's rows."""

    token_R: Tensor
    position_R: Tensor
    start_R: Tensor
    capacity_R: Tensor
    key_R: Tensor
    index_R: Tensor
    """Tokens sampled so far."""
    temperature_R: Tensor
    """The bits of a float64."""


class Seats:
    def __init__(self, rows: int, device: torch.device) -> None:
        """For `rows` sequences that grow at the same time and some that wait with their prompts in the KV cache."""
        self.count = rows + max(1, rows // 8)
        self._state_7_S = torch.zeros(7, self.count + 1, dtype=torch.int64, device=device)
        self._state_7_S[CAPACITY] = SCRATCH
        self.clear()

    def clear(self) -> None:
        self._free = list(range(self.count, NO_SEAT, -1))

    def free(self) -> bool:
        return bool(self._free)

    def take(self) -> int:
        return self._free.pop()

    def give(self, completion: Completion) -> None:
        self._free.append(completion.seat)
        completion.seat = NO_SEAT

    def fill(self, completions: Sequence[Completion]) -> None:
        """The state of sequences that begin. A prompt's last token is the first step's."""
        state_7_n = np.empty((7, len(completions)), np.int64)
        for at, completion in enumerate(completions):
            request = completion.request
            state_7_n[:, at] = (
                request.prompt[-1], len(request.prompt) - 1, completion.start, completion.capacity,
                ops.signed(request.key), 0, np.float64(request.temperature).view(np.int64),
            )  # fmt: skip
        device = self._state_7_S.device
        seats = torch.tensor([completion.seat for completion in completions], device=device)
        self._state_7_S[:, seats] = torch.from_numpy(state_7_n).to(device)

    def rows(self, seat_R: Tensor) -> Rows:
        return Rows(*self._state_7_S[:, seat_R].unbind(0))

    def advance(self, seat_R: Tensor, rows: Rows, logits_R_V: Tensor) -> tuple[Tensor, Tensor]:
        """Sample a token for each row and note it; the tokens and their log-probabilities."""
        temperature_R = rows.temperature_R.view(torch.float64).float()
        token_R, logprob_R = ops.sample(logits_R_V, temperature_R, rows.key_R, rows.index_R)
        advance_R = (seat_R != NO_SEAT).to(torch.int64)
        self._state_7_S[TOKEN, seat_R] = token_R
        self._state_7_S[POSITION, seat_R] = rows.position_R + advance_R
        self._state_7_S[INDEX, seat_R] = rows.index_R + advance_R
        return token_R, logprob_R
