"""Sampling steps in plain torch, on any device.

Attention in plain torch needs tensors of one shape, so there is a KV cache with slots of one capacity for completions,
and another for prompts, each of which is kept once for all of its completions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from redqueen.engine.backend import Launch, new_cache, refuse_longer
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.decode_attention import CacheSlots, SlotDecode
from redqueen.engine.decode_state import Completion, DecodeState
from redqueen.engine.kv_cache import SCRATCH, KVCache, rounded
from redqueen.engine.prefill import Prompts, batches, prefill
from redqueen.engine.routing import Routing

LONG_SPAN = 6
"""Mean rows per member from which a product for each member is faster than one product in tiles."""


class TorchBackend:
    """Implements `Backend`."""

    def __init__(self, body: Body, bank: Bank, rows: int) -> None:
        self.rows, self._body, self._bank = rows, body, bank
        self.cache: KVCache | None = None
        self.prompts: KVCache | None = None
        self._cuda = bank.device.type == "cuda"
        self._state = DecodeState(rows, bank.device)
        self._capacity = self._prompt_capacity = 16
        self._prompt_of: dict[int, int] = {}
        """Completion -> start of its prompt's region."""
        self._users: Counter[int] = Counter()
        """Completions of the prompt that starts there."""

    def reserve(self, prompts: Prompts, max_tokens: int) -> int:
        requests = [completion.request for group in prompts for completion in group]
        self._prompt_capacity = max(16, rounded(max(len(request.prompt) for request in requests) - 1))
        self._capacity = rounded(max(request.max_tokens for request in requests))
        longest = self._prompt_capacity + self._capacity
        refuse_longer(longest, max_tokens)
        tokens = self._capacity * min(self._state.count, len(requests))
        prompt_tokens = self._prompt_capacity * min(self._state.count, len(prompts))
        if tokens + prompt_tokens > max_tokens:
            prompt_tokens = max_tokens // longest * self._prompt_capacity
            tokens = min(tokens, max_tokens - prompt_tokens)
        if self.cache is None or self.cache.tokens < tokens:
            self.cache = None  # frees its memory first
            self.cache = new_cache(self._body, self._bank, tokens)
        if self.prompts is None or self.prompts.tokens < prompt_tokens:
            self.prompts = None
            self.prompts = new_cache(self._body, self._bank, prompt_tokens)
        self.cache.clear()
        self.prompts.clear()
        self._state.clear()
        self._prompt_of.clear()
        self._users.clear()
        return longest

    def allocate(self, completions: Sequence[Completion]) -> int:
        assert self.cache is not None and self.prompts is not None
        prompt_start = self.prompts.allocate(self._prompt_capacity)
        if prompt_start is None:
            return 0
        count = 0
        for completion in completions:
            start = self.cache.allocate(self._capacity) if self._state.free else None
            if start is None:
                break
            completion.start, completion.capacity, completion.slot = start, self._capacity, self._state.free.pop()
            self._prompt_of[completion.index] = prompt_start
            count += 1
        self._users[prompt_start] = count
        if not count:
            self.prompts.release(prompt_start, self._prompt_capacity)
        return count

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        assert self.prompts is not None
        self._state.fill([completion for group in prompts for completion in group])
        for batch in batches(prompts, max_tokens):
            starts = [self._prompt_of[group[0].index] for group in batch]
            copies = [(row, start, self._prompt_capacity) for row, start in enumerate(starts)]
            prefill(self._body, self.prompts, batch, copies, by_span=not self._cuda)

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        order = [completion for rows in members.values() for completion in rows]
        counts = [(member, len(rows)) for member, rows in members.items()]
        self._slot_R = self._tensor([completion.slot for completion in order])
        self._cache_slots = self._slots_of(order)
        if self._cuda or len(order) < LONG_SPAN * len(counts):
            self._routing = Routing.by_tile(counts, self._bank.device)
        else:
            self._routing = Routing.by_span(counts)

    def launch(self, length: int) -> Launch:
        rows = self._state.rows(self._slot_R)
        length = min(rounded(length), self._capacity)
        attention = SlotDecode(slots=self._cache_slots, length=length, position_N=rows.position_R, index_R=rows.index_R)
        hidden_R_H = self._body.hidden(rows.token_R, self._routing, attention)
        return Launch.of(*self._state.advance(self._slot_R, rows, self._body.head(hidden_R_H)))

    def release(self, completion: Completion, length: int) -> None:
        assert self.cache is not None and self.prompts is not None
        self._state.release(completion)
        self.cache.zero(completion.start, self._capacity, length)
        self.cache.release(completion.start, self._capacity)
        prompt_start = self._prompt_of.pop(completion.index)
        self._users[prompt_start] -= 1
        if not self._users[prompt_start]:
            self.prompts.zero(prompt_start, self._prompt_capacity, len(completion.request.prompt) - 1)
            self.prompts.release(prompt_start, self._prompt_capacity)

    def drop(self) -> None:
        self.cache = self.prompts = None

    def _slots_of(self, order: Sequence[Completion]) -> CacheSlots:
        assert self.cache is not None and self.prompts is not None
        slots = [(completion.start - SCRATCH) // self._capacity for completion in order]
        prompts = [(self._prompt_of[completion.index] - SCRATCH) // self._prompt_capacity for completion in order]
        lanes, used = [], Counter()
        for prompt in prompts:
            lanes.append(used[prompt])
            used[prompt] += 1
        return CacheSlots(
            completions=self.cache,
            prompts=self.prompts,
            capacity=self._capacity,
            prompt_capacity=self._prompt_capacity,
            slot_R=self._tensor(slots),
            prompt_R=self._tensor(prompts),
            lane_R=self._tensor(lanes),
            count=max(slots) + 1,
            prompt_count=max(prompts) + 1,
            lanes=max(lanes) + 1,
            prompt_length=rounded(max(len(completion.request.prompt) for completion in order) - 1),
        )

    def _tensor(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, device=self._bank.device)
