"""Sampling steps in plain torch, on any device.

Attention in plain torch wants tensors of one shape, so the KV cache has slots of one capacity for what is sampled, and
others for the prompts, each of which is kept once for all completions that go on from it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from redqueen.engine.backend import Launch, new_cache, refuse_longer
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.decode_attention import SlotDecode, Slots
from redqueen.engine.kv_cache import SCRATCH, KVCache, rounded
from redqueen.engine.prefill import Prompts, batches, prefill
from redqueen.engine.routing import Routing
from redqueen.engine.seats import Completion, Seats

LONG_SPAN = 6
"""Rows of a member, on average, from which a product for each member is quicker than one for all in tiles."""


class TorchBackend:
    """Implements `Backend`."""

    def __init__(self, body: Body, bank: Bank, rows: int) -> None:
        self.rows, self._body, self._bank = rows, body, bank
        self.cache: KVCache | None = None
        self.prompts: KVCache | None = None
        self._cuda = bank.device.type == "cuda"
        self._seats = Seats(rows, bank.device)
        self._capacity = self._prompt_capacity = 16
        self._prompt_of: dict[int, int] = {}
        """The start of each housed completion's prompt."""
        self._users: Counter[int] = Counter()
        """Completions that go on from the prompt that starts there."""

    def reserve(self, prompts: Prompts, max_tokens: int) -> int:
        requests = [completion.request for same in prompts for completion in same]
        self._prompt_capacity = max(16, rounded(max(len(request.prompt) for request in requests) - 1))
        self._capacity = rounded(max(request.max_tokens for request in requests))
        longest = self._prompt_capacity + self._capacity
        refuse_longer(longest, max_tokens)
        tokens = self._capacity * min(self._seats.count, len(requests))
        prompt_tokens = self._prompt_capacity * min(self._seats.count, len(prompts))
        if tokens + prompt_tokens > max_tokens:
            prompt_tokens = max_tokens // longest * self._prompt_capacity
            tokens = min(tokens, max_tokens - prompt_tokens)
        if self.cache is None or self.cache.tokens < tokens:
            self.cache = None  # before there is another
            self.cache = new_cache(self._body, self._bank, tokens)
        if self.prompts is None or self.prompts.tokens < prompt_tokens:
            self.prompts = None
            self.prompts = new_cache(self._body, self._bank, prompt_tokens)
        self.cache.clear()
        self.prompts.clear()
        self._seats.clear()
        self._prompt_of.clear()
        self._users.clear()
        return longest

    def house(self, completions: Sequence[Completion]) -> int:
        assert self.cache is not None and self.prompts is not None
        prompt_start = self.prompts.take(self._prompt_capacity)
        if prompt_start is None:
            return 0
        housed = 0
        for completion in completions:
            start = self.cache.take(self._capacity) if self._seats.free() else None
            if start is None:
                break
            completion.start, completion.capacity, completion.seat = start, self._capacity, self._seats.take()
            self._prompt_of[completion.index] = prompt_start
            housed += 1
        self._users[prompt_start] = housed
        if not housed:
            self.prompts.give(prompt_start, self._prompt_capacity)
        return housed

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        assert self.prompts is not None
        self._seats.fill([completion for same in prompts for completion in same])
        for batch in batches(prompts, max_tokens):
            starts = [self._prompt_of[same[0].index] for same in batch]
            copies = [(row, start, self._prompt_capacity) for row, start in enumerate(starts)]
            prefill(self._body, self.prompts, batch, copies, by_span=not self._cuda)

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        order = [completion for rows in members.values() for completion in rows]
        counts = [(member, len(rows)) for member, rows in members.items()]
        self._seat_R = self._tensor([completion.seat for completion in order])
        self._slots = self._slots_of(order)
        if self._cuda or len(order) < LONG_SPAN * len(counts):
            self._routing = Routing.by_tile(counts, self._bank.device)
        else:
            self._routing = Routing.by_span(counts)

    def launch(self, length: int) -> Launch:
        rows = self._seats.rows(self._seat_R)
        length = min(rounded(length), self._capacity)
        attention = SlotDecode(slots=self._slots, length=length, position_N=rows.position_R, index_R=rows.index_R)
        hidden_R_H = self._body.hidden(rows.token_R, self._routing, attention)
        return Launch.of(*self._seats.advance(self._seat_R, rows, self._body.head(hidden_R_H)))

    def release(self, completion: Completion, length: int) -> None:
        assert self.cache is not None and self.prompts is not None
        self._seats.give(completion)
        self.cache.wipe(completion.start, self._capacity, length)
        self.cache.give(completion.start, self._capacity)
        prompt_start = self._prompt_of.pop(completion.index)
        self._users[prompt_start] -= 1
        if not self._users[prompt_start]:
            self.prompts.wipe(prompt_start, self._prompt_capacity, len(completion.request.prompt) - 1)
            self.prompts.give(prompt_start, self._prompt_capacity)

    def drop(self) -> None:
        self.cache = self.prompts = None

    def _slots_of(self, order: Sequence[Completion]) -> Slots:
        assert self.cache is not None and self.prompts is not None
        slots = [(completion.start - SCRATCH) // self._capacity for completion in order]
        prompts = [(self._prompt_of[each.index] - SCRATCH) // self._prompt_capacity for each in order]
        lanes, used = [], Counter()
        for prompt in prompts:
            lanes.append(used[prompt])
            used[prompt] += 1
        return Slots(
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
            prompt_length=rounded(max(len(each.request.prompt) for each in order) - 1),
        )

    def _tensor(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, device=self._bank.device)
