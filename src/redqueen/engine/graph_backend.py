"""Sampling steps as captured CUDA graphs, with the kernels.

A step is captured once for each of a few numbers of rows and replayed. What differs between steps is on the device: the
decoding state, and one small tensor (the layout) with the slot of each row and the member of each tile of rows. A
sequence's region of the KV cache holds prompt and completion, so every completion of a prompt gets a copy of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.backend import Launch, new_cache
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.decode_attention import KernelDecode
from redqueen.engine.decode_state import Completion, DecodeState
from redqueen.engine.kv_cache import KVCache, rounded
from redqueen.engine.prefill import Prompts, batches, prefill
from redqueen.engine.routing import TILE, Routing, Tiles, cut_tiles

LEAST_ROWS = 8
"""Of a captured step."""


@dataclass(frozen=True, slots=True)
class Captured:
    graph: Any
    token_R: Tensor
    logprob_R: Tensor


class GraphBackend:
    """Implements `Backend`."""

    def __init__(self, body: Body, bank: Bank, rows: int) -> None:
        self.rows, self._body, self._bank = rows, body, bank
        self.cache: KVCache | None = None
        self.graphs: dict[int, Captured] = {}
        self._state = DecodeState(rows, bank.device)
        self._layout = torch.zeros(0, dtype=torch.int64, device=bank.device)
        self._bank_version = -1
        self._arranged: Mapping[int, Sequence[Completion]] = {}
        self._bucket = 0
        self._in_use = self._most_in_use = 0
        """Tokens of the KV cache that completions have or wait for, and the most that were of use at once."""
        self._largest = 0
        """Of a completion of this turn."""

    def longest(self, prompts: Prompts) -> int:
        return max(_capacity(completion) for group in prompts for completion in group)

    def reserve(self, prompts: Prompts, max_tokens: int) -> None:
        capacities = sorted((_capacity(completion) for group in prompts for completion in group), reverse=True)
        self._in_use, self._largest = sum(capacities), capacities[0]
        self._remember()
        tokens = min(self._most_in_use, max_tokens)
        if self.cache is None or self.cache.tokens < tokens:
            self.drop()
            self.cache = new_cache(self._body, self._bank, tokens)
        self.cache.clear()
        self._state.clear()

    def extend(self, prompts: Prompts, max_tokens: int) -> bool:
        assert self.cache is not None
        if self.longest(prompts) > self.cache.tokens:
            return False
        self._in_use += sum(_capacity(completion) for group in prompts for completion in group)
        self._largest = max(self._largest, self.longest(prompts))
        self._remember()
        return True

    def _remember(self) -> None:
        """The next turn makes room for as much at once."""
        self._most_in_use = max(self._most_in_use, min(self._in_use, self._state.count * self._largest))

    def allocate(self, completions: Sequence[Completion]) -> int:
        assert self.cache is not None
        for count, completion in enumerate(completions):
            capacity = _capacity(completion)
            start = self.cache.allocate(capacity) if self._state.free else None
            if start is None:
                return count
            completion.start, completion.capacity, completion.slot = start, capacity, self._state.free.pop()
        return len(completions)

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        assert self.cache is not None
        self._state.fill([completion for group in prompts for completion in group])
        for batch in batches(prompts, max_tokens):
            copies = [(row, item.start, item.capacity) for row, group in enumerate(batch) for item in group]
            prefill(self._body, self.cache, batch, copies, by_span=False)

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        if self._bank_version != self._bank.version:
            # Its tensors have moved, and it may have more members: graphs and layout are stale.
            self._bank_version = self._bank.version
            self.graphs.clear()
            size = self.rows + 3 * self._tiles(self.rows)
            self._layout = torch.zeros(size, dtype=torch.int64, device=self._bank.device)
        self._arranged = members
        slots = [completion.slot for rows in members.values() for completion in rows]
        self._bucket = _bucket(len(slots), self.rows)
        tiles_K_3 = cut_tiles([(member, len(rows)) for member, rows in members.items()], TILE)
        layout = np.zeros(len(self._layout), np.int64)
        layout[: len(slots)] = slots
        layout[self.rows :].reshape(3, -1)[:, : len(tiles_K_3)] = tiles_K_3.T
        self._layout.copy_(torch.from_numpy(layout).pin_memory(), non_blocking=True)

    def launch(self, length: int) -> Launch:
        if self._bank_version != self._bank.version:
            self.arrange(self._arranged)
        if self._bucket not in self.graphs:
            self.graphs[self._bucket] = self._capture(self._bucket)
        captured = self.graphs[self._bucket]
        captured.graph.replay()
        return Launch.of(captured.token_R, captured.logprob_R)

    def release(self, completion: Completion, length: int) -> None:
        assert self.cache is not None
        self._state.release(completion)
        self._in_use -= completion.capacity
        self.cache.release(completion.start, completion.capacity)

    def drop(self) -> None:
        self.cache = None
        self.graphs.clear()

    def _tiles(self, rows: int) -> int:
        """At most, for this many rows: each member's last tile may be short."""
        return rows // TILE + min(rows, self._bank.masters_A_D.shape[0])

    def _step(self, bucket: int) -> tuple[Tensor, Tensor]:
        """One more token for each row of the layout, asynchronously."""
        assert self.cache is not None
        slot_R = self._layout[:bucket]
        member_K, start_K, count_K = self._layout[self.rows :].view(3, -1)[:, : self._tiles(bucket)].unbind(0)
        rows = self._state.rows(slot_R)
        attention = KernelDecode(
            cache=self.cache, position_N=rows.position_R, start_R=rows.start_R, capacity_R=rows.capacity_R
        )
        routing = Routing(member_K=member_K, tiles=Tiles(start_K, count_K))
        hidden_R_H = self._body.hidden(rows.token_R, routing, attention)
        return self._state.advance(slot_R, rows, self._body.head(hidden_R_H))

    def _capture(self, bucket: int) -> Captured:
        kept = self._layout.clone()
        # Rows without a sequence change nothing, so the warm-up and the capture can run on the real state.
        self._layout.zero_()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._step(bucket)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self.graphs.values())).graph.pool() if self.graphs else None
        # Another thread's use of the device must not end the capture.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            token_R, logprob_R = self._step(bucket)
        self._layout.copy_(kept)
        return Captured(graph, token_R, logprob_R)


def _capacity(completion: Completion) -> int:
    """One token more than can be sampled: a further step may run before the end is seen."""
    return rounded(len(completion.request.prompt) + completion.request.max_tokens + 1)


def _bucket(rows: int, most: int) -> int:
    """The rows of the captured step for this many: few enough shapes to capture them all."""
    size = LEAST_ROWS
    while size < rows:
        size = size * 2 if size < 64 else size + 64
    return min(size, most)
