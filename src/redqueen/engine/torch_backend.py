"""Sampling steps in plain torch, on any device.

Attention in plain torch needs tensors of one shape, so there is a KV cache with slots of one capacity for completions,
and another for prompts, each of which is kept once for all of its completions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from redqueen.engine.backend import Launch, new_cache
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

    most_steps = 1
    most_prefill: int | None = None

    def __init__(self, body: Body, bank: Bank, rows: int) -> None:
        self.rows, self._body, self._bank = rows, body, bank
        self.cache: KVCache | None = None
        self.prompts: KVCache | None = None
        self._cuda = bank.device.type == "cuda"
        self._state = DecodeState(rows, body.positions, bank.device)
        self._capacity = self._prompt_capacity = 16
        self._prompt_of: dict[int, int] = {}
        """Completion -> start of its prompt's region."""
        self._users: Counter[int] = Counter()
        """Completions of the prompt that starts there."""
        self._live: dict[int, Completion] = {}
        """Completions that have a region."""
        self._wanted = self._wanted_prompts = 0
        """Completions and prompts that have a region or wait for one."""

    def longest(self, prompts: Prompts) -> int:
        return sum(_capacities(prompts))

    def reserve(self, prompts: Prompts, max_tokens: int) -> None:
        self._state.clear()
        self._prompt_of.clear()
        self._users.clear()
        self._live.clear()
        self._wanted, self._wanted_prompts = sum(map(len, prompts)), len(prompts)
        self._prompt_capacity, self._capacity = _capacities(prompts)
        tokens = self._capacity * min(self._state.count, self._wanted)
        prompt_tokens = self._prompt_capacity * min(self._state.count, self._wanted_prompts)
        if tokens + prompt_tokens > max_tokens:
            prompt_tokens = max_tokens // (self._prompt_capacity + self._capacity) * self._prompt_capacity
            tokens = min(tokens, max_tokens - prompt_tokens)
        if self.cache is None or self.cache.tokens < tokens:
            self.cache = None  # frees its memory first
            self.cache = new_cache(self._body, self._bank, tokens)
        if self.prompts is None or self.prompts.tokens < prompt_tokens:
            self.prompts = None
            self.prompts = new_cache(self._body, self._bank, prompt_tokens)
        self.cache.clear()
        self.prompts.clear()

    def extend(self, prompts: Prompts, max_tokens: int) -> bool:
        """Where slots are too small or too few, whatever is in use moves to a larger KV cache."""
        assert self.cache is not None and self.prompts is not None
        prompt_capacity, capacity = _capacities(prompts)
        prompt_capacity, capacity = max(prompt_capacity, self._prompt_capacity), max(capacity, self._capacity)
        wanted, wanted_prompts = self._wanted + sum(map(len, prompts)), self._wanted_prompts + len(prompts)
        tokens = self._tokens_for(self.cache, self._capacity, capacity, wanted)
        prompt_tokens = self._tokens_for(self.prompts, self._prompt_capacity, prompt_capacity, wanted_prompts)
        if tokens + prompt_tokens > max_tokens:
            # What is there is used in turn, if it is large enough for one.
            if (prompt_capacity, capacity) != (self._prompt_capacity, self._capacity):
                return False
            tokens, prompt_tokens = self.cache.tokens, self.prompts.tokens
        self._wanted, self._wanted_prompts = wanted, wanted_prompts
        if tokens > self.cache.tokens or capacity > self._capacity:
            starts = [completion.start for completion in self._live.values()]
            self.cache, moved = self._moved(self.cache, starts, self._capacity, capacity, tokens)
            for completion in self._live.values():
                completion.start, completion.capacity = moved[completion.start], capacity
        if prompt_tokens > self.prompts.tokens or prompt_capacity > self._prompt_capacity:
            starts = [start for start, users in self._users.items() if users]
            self.prompts, moved = self._moved(
                self.prompts, starts, self._prompt_capacity, prompt_capacity, prompt_tokens
            )
            self._prompt_of = {index: moved[start] for index, start in self._prompt_of.items()}
            self._users = Counter({moved[start]: self._users[start] for start in starts})
        self._prompt_capacity, self._capacity = prompt_capacity, capacity
        return True

    def _tokens_for(self, cache: KVCache, old: int, capacity: int, wanted: int) -> int:
        """What a cache with slots of this capacity must hold; some to spare where it has to be a larger one."""
        slots = min(wanted, self._state.count)
        if capacity == old and slots * capacity <= cache.tokens:
            return cache.tokens
        return capacity * min(max(slots, 2 * cache.tokens // old), self._state.count)

    def _moved(
        self, cache: KVCache, starts: Sequence[int], old: int, capacity: int, tokens: int
    ) -> tuple[KVCache, dict[int, int]]:
        """A cache of so many tokens with the regions that start there, and where they start now."""
        larger, moved = new_cache(self._body, self._bank, tokens), dict[int, int]()
        for start in sorted(starts):
            place = larger.allocate(capacity)
            assert place is not None
            moved[start] = place
            for to, of in ((larger.k, cache.k), (larger.v, cache.v)):
                region_L_G_T_D, old_L_G_T_D = larger.region(to, place, capacity), cache.region(of, start, old)
                region_L_G_T_D[:, :, :old] = old_L_G_T_D
        return larger, moved

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
            self._live[completion.index] = completion
            count += 1
        self._users[prompt_start] = count
        # The others of its completions get another copy of the prompt.
        self._wanted_prompts += 0 < count < len(completions)
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
        token_R, logprob_R = self._state.advance(self._slot_R, rows, self._body.head(hidden_R_H))
        return Launch(token_R.cpu().unsqueeze(0), logprob_R.cpu().unsqueeze(0))

    def release(self, completion: Completion, length: int) -> None:
        assert self.cache is not None and self.prompts is not None
        self._state.release(completion)
        del self._live[completion.index]
        self._wanted -= 1
        self.cache.zero(completion.start, self._capacity, length)
        self.cache.release(completion.start, self._capacity)
        prompt_start = self._prompt_of.pop(completion.index)
        self._users[prompt_start] -= 1
        if not self._users[prompt_start]:
            self.prompts.zero(prompt_start, self._prompt_capacity, len(completion.request.prompt) - 1)
            self.prompts.release(prompt_start, self._prompt_capacity)
            self._wanted_prompts -= 1

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


def _capacities(prompts: Prompts) -> tuple[int, int]:
    """Of a slot for the longest of these prompts, and of one for the longest completion."""
    requests = [completion.request for group in prompts for completion in group]
    prompt = max(16, rounded(max(len(request.prompt) for request in requests) - 1))
    return prompt, rounded(max(request.max_tokens for request in requests))
