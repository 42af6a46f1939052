"""Sampling: many completions at once, each row refilled as soon as its completion ends.

Completions that may grow long start first, so that few rows are busy at the end. Prompts enter the cache in batches,
a little ahead of the rows that will need them, once for all completions that go on from the same prompt. Rows of one
member stand together; the order of the rows is made anew whenever one is refilled, and only the order moves.

On CUDA the host looks at a step's tokens while the next one runs (`steps.py` has the step itself).
"""

import sys
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.attention import Prefill, Slots
from redqueen.engine.base import Base
from redqueen.engine.cache import SCRATCH, Cache
from redqueen.engine.lora import TILE, Routing, Tiles
from redqueen.engine.protocol import Done, Sample, SampleRequest, Stop
from redqueen.engine.steps import NOBODY, Plain, Steps
from redqueen.engine.stops import Pieces, StopMatcher, cut
from redqueen.engine.trainer import out_of_memory
from redqueen.errors import InputError

LEAST_ROWS = 8
"""Of a captured step."""
LONG_SPAN = 6
"""Rows of a member, on average, from which a product for each member is quicker than one for all in tiles."""
SIMILAR = 32
"""Limits that differ by fewer tokens are about the same."""
LEAST_TEMPERATURE = 1e-4
"""Above 0: with less, logits divided by it are beyond float32."""


@dataclass(slots=True, eq=False)
class _Completion:
    at: int
    """Its place among the requests."""
    request: SampleRequest
    member: int
    """The bank's row."""
    matcher: StopMatcher | None
    seat: int = NOBODY
    prompt_start: int = 0
    """Its prompt's region, where prompts have their own."""
    start: int = 0
    capacity: int = 0
    stop: Stop | None = None


@dataclass(slots=True)
class _Launch:
    """A step on its way."""

    at_R: np.ndarray
    """The rows' completions, by their places among the requests."""
    token_R: Tensor
    logprob_R: Tensor
    done: Any


@dataclass(slots=True)
class Sampler:
    base: Base
    steps: Steps
    max_cache_tokens: int
    """What the plan leaves for keys and values."""
    prefill_tokens: int
    """Prompt tokens, padding included, that go through the base at once."""
    _pieces: Pieces | None = None

    @property
    def cache(self) -> Cache | None:
        return self.steps.cache

    def run(self, requests: Sequence[SampleRequest], done: Done | None = None) -> list[Sample]:
        """`done` is called on this thread; after a lack of memory once more for the same places."""
        while True:
            call = _Call(self, requests, done)
            try:
                with torch.no_grad():
                    return call.run()
            except BaseException as error:
                # What a call leaves half done must not be the next one's past.
                self.steps.drop()
                if not out_of_memory(error) or self.prefill_tokens <= 64:
                    raise
            # Outside the handler: the exception holds on to the tensors that filled the memory. Random numbers are
            # keyed, so whatever was sampled already comes again.
            self.prefill_tokens //= 2
            self.max_cache_tokens = max(call.longest, self.max_cache_tokens * 3 // 4)
            print(
                f"redqueen: out of memory; sampling again with {self.prefill_tokens} prompt tokens at once",
                file=sys.stderr,
            )
            if self.steps.bank.device.type == "cuda":
                torch.cuda.empty_cache()

    def pieces(self) -> Pieces | None:
        if self._pieces is None and self.base.tokenizer is not None:
            self._pieces = Pieces(self.base.tokenizer)
        return self._pieces


class _Call:
    """One call of `sample`, from its requests to its samples."""

    def __init__(self, sampler: Sampler, requests: Sequence[SampleRequest], done: Done | None) -> None:
        self.done = done
        self.samples: dict[int, Sample] = {}
        self.sampler, self.steps, self.bank, self.base = sampler, sampler.steps, sampler.steps.bank, sampler.base
        self.cuda = self.bank.device.type == "cuda"
        self.captured = self.steps.fused
        self.pieces = sampler.pieces()
        self.completions = [self._completion(at, request) for at, request in enumerate(requests)]
        self.waiting = deque(self._prompts())
        self.prompt_capacity = 0
        if not self.captured:
            self.prompt_capacity = _rounded(max((len(r.prompt) - 1 for r in requests), default=0))
            capacity = _rounded(max((r.max_tokens for r in requests), default=0))
            for completion in self.completions:
                completion.capacity = capacity
        self.longest = longest = max((self.prompt_capacity + c.capacity for c in self.completions), default=0)
        limit = self.steps.rows + max(1, self.steps.rows // 8)
        wanted = sum(sorted((c.capacity for c in self.completions), reverse=True)[:limit])
        if longest > sampler.max_cache_tokens:
            raise InputError(
                f"a request of {longest} tokens (prompt and limit) does not fit into the memory for keys and values, "
                f"which holds {sampler.max_cache_tokens}",
                "lower max_tokens, or the number of members",
            )
        prompts = self.prompt_capacity * min(limit, len(self.waiting))
        if wanted + prompts > sampler.max_cache_tokens:
            share = sampler.max_cache_tokens // max(1, longest) if self.prompt_capacity else 0
            prompts = share * self.prompt_capacity
            wanted = min(wanted, sampler.max_cache_tokens - prompts)
        self.cache, self.prompts = self.steps.prepare(wanted, prompts, limit + 1)
        self.prompt_users: Counter[int] = Counter()
        assert self.steps.state_7_S is not None and self.steps.layout is not None
        self.state_7_S, self.layout = self.steps.state_7_S, self.steps.layout
        self.free_seats = list(range(limit, NOBODY, -1))
        most = max((r.max_tokens for r in requests), default=0)
        # Whatever every step asks of every row is in arrays by completion: a loop over the rows would take longer
        # than a step of a small base.
        self.prompt_C = np.array([len(r.prompt) for r in requests], np.int64)
        self.limit_C = np.array([r.max_tokens for r in requests], np.int64)
        self.launched_C = np.zeros(len(requests), np.int64)
        self.length_C = np.zeros(len(requests), np.int64)
        self.ended_C = np.zeros(len(requests), bool)
        self.matching = any(c.matcher is not None for c in self.completions)
        self.token_C_T = np.zeros((len(requests), most), np.int64)
        self.logprob_C_T = np.zeros((len(requests), most), np.float32)
        self.ready: deque[_Completion] = deque()
        self.active: dict[int, list[_Completion]] = {}
        self.running = 0
        self.changed = True
        self.eos = np.array(sorted(self.base.eos_ids), np.int64)
        self.at_R = np.zeros(0, np.int64)
        self.routing: Routing | None = None

    def _completion(self, at: int, request: SampleRequest) -> _Completion:
        if not isinstance(request.prompt, tuple):
            raise InputError("a prompt is not a tuple of token ids", "use tuple(ids), or Base.encode for text")
        if not isinstance(request.stop, tuple):
            raise InputError("a request's stop is not a tuple of strings", "write stop=(text,)")
        if not request.prompt or request.max_tokens < 1:
            raise InputError("a request has an empty prompt or asks for no token", "give both at least one token")
        if not (request.temperature == 0 or LEAST_TEMPERATURE <= request.temperature < float("inf")):
            raise InputError(
                f"a temperature cannot be {request.temperature}", f"use 0, or {LEAST_TEMPERATURE:g} or more"
            )
        total = len(request.prompt) + request.max_tokens
        most = self.steps.body.positions
        if total > most:
            raise InputError(
                f"a request of {total} tokens (prompt and limit) is longer than the base's {most}",
                "lower max_tokens or shorten the prompt",
            )
        vocabulary = self.steps.body.head.weight_V_H.shape[0]
        if not 0 <= min(request.prompt) <= max(request.prompt) < vocabulary:
            raise InputError("a prompt holds a token that the base does not know", f"use ids below {vocabulary}")
        matcher = None
        if request.stop:
            if self.pieces is None:
                raise InputError("stop strings need a tokenizer, which this base lacks", "leave them out")
            if "" in request.stop:
                raise InputError("a stop string is empty", "leave it out")
            matcher = StopMatcher(request.stop)
        # One token more than can be sampled: a step may be on its way when the end is seen.
        completion = _Completion(at, request, self.bank.row(request.member), matcher)
        completion.capacity = _rounded(total + 1)
        return completion

    def _prompts(self) -> list[list[_Completion]]:
        """Completions that go on from the same prompt of the same member, those that may grow longest first; of about
        as long ones the longest prompts, so that rows that grow at the same time are about as long."""
        found: dict[tuple[int, tuple[int, ...]], list[_Completion]] = {}

        def order(c: _Completion) -> tuple[int, int, int, int]:
            limit = c.request.max_tokens
            return (-(limit // SIMILAR), -len(c.request.prompt), -limit, c.at)

        for completion in sorted(self.completions, key=order):
            found.setdefault((completion.member, completion.request.prompt), []).append(completion)
        most = self.steps.rows
        return [same[at : at + most] for same in found.values() for at in range(0, len(same), most)]

    def run(self) -> list[Sample]:
        flying: deque[_Launch] = deque()
        lag = 1 if self.cuda else 0
        while True:
            self._refill()
            launch = self._launch()
            if launch is not None:
                flying.append(launch)
            elif not flying:
                break
            while flying and (len(flying) > lag or launch is None):
                self._collect(flying.popleft())
        return [self.samples[at] for at in range(len(self.completions))]

    # Filling rows.

    def _refill(self) -> None:
        while True:
            while self.ready and self.running < self.steps.rows:
                completion = self.ready.popleft()
                self.active.setdefault(completion.member, []).append(completion)
                self.running += 1
                self.changed = True
            free = self.steps.rows - self.running
            if not self.waiting or not free or not self._prefill(free):
                return

    def _prefill(self, free: int) -> bool:
        """Take prompts into the cache: as many as there are free rows, and some ahead. Whether any found room."""
        count = max(free, self.steps.rows // 8)
        taken: list[list[_Completion]] = []
        self.reserved = 0
        while self.waiting and count > 0:
            same = self.waiting.popleft()
            housed = self._house(same)
            if housed:
                taken.append(same[:housed])
                count -= housed
            if housed < len(same):
                self.waiting.appendleft(same[housed:])
                break
        if not taken:
            return False
        self._seat([completion for same in taken for completion in same])
        taken.sort(key=lambda same: -len(same[0].request.prompt))
        while taken:
            length = self._length(taken[0])
            size = max(1, self.sampler.prefill_tokens // max(1, length))
            self._prefill_batch(sorted(taken[:size], key=lambda same: same[0].member), length)
            taken = taken[size:]
        return True

    def _length(self, same: list[_Completion]) -> int:
        """Tokens of a prompt but for its last, which the first step takes, in steps of 16."""
        return _rounded(len(same[0].request.prompt) - 1)

    def _house(self, same: list[_Completion]) -> int:
        """Find a region of the cache for each completion; for how many there was one, and a seat."""
        prompt_start = self.prompts.take(self.prompt_capacity) if self.prompt_capacity else 0
        if prompt_start is None:
            return 0
        housed = 0
        for completion in same:
            start = self.cache.take(completion.capacity) if len(self.free_seats) > self.reserved else None
            if start is None:
                break
            completion.start, completion.prompt_start = start, prompt_start
            self.reserved += 1
            housed += 1
        if self.prompt_capacity:
            self.prompt_users[prompt_start] = housed
            if not housed:
                self.prompts.give(prompt_start, self.prompt_capacity)
        return housed

    def _seat(self, completions: list[_Completion]) -> None:
        state_7_n = np.empty((7, len(completions)), np.int64)
        for at, completion in enumerate(completions):
            completion.seat = self.free_seats.pop()
            request = completion.request
            state_7_n[:, at] = (
                request.prompt[-1], len(request.prompt) - 1, completion.start, completion.capacity,
                ops.signed(request.key), 0, np.float64(request.temperature).view(np.int64),
            )  # fmt: skip
            self.ready.append(completion)
        seats = torch.tensor([completion.seat for completion in completions], device=self.bank.device)
        self.state_7_S[:, seats] = torch.from_numpy(state_7_n).to(self.bank.device)

    def _prefill_batch(self, prompts: list[list[_Completion]], length: int) -> None:
        if length == 0:
            return
        device = self.bank.device
        token_B_T = np.zeros((len(prompts), length), np.int64)
        known_B = np.array([len(same[0].request.prompt) - 1 for same in prompts])
        for row, same in enumerate(prompts):
            token_B_T[row, : known_B[row]] = same[0].request.prompt[:-1]
        if self.captured:
            row_S = np.repeat(np.arange(len(prompts)), [len(same) for same in prompts])
            completions = [completion for same in prompts for completion in same]
            where = np.array([(c.start, c.capacity, known_B[row]) for c, row in zip(completions, row_S, strict=True)])
            cache = self.cache
        else:
            row_S = np.arange(len(prompts))
            where = np.array(
                [(same[0].prompt_start, self.prompt_capacity, known_B[row]) for row, same in enumerate(prompts)]
            )
            cache = self.prompts
        start_S, capacity_S, known_S = torch.from_numpy(where).to(device).unbind(1)
        at_T = torch.arange(length, device=device)
        place_S_T_G = cache.places(start_S, capacity_S, at_T.unsqueeze(0))
        scratch_G = torch.arange(cache.kv_heads, device=device) * SCRATCH
        inside_S_T = at_T < known_S.unsqueeze(1)
        place_S_T_G = torch.where(inside_S_T.unsqueeze(2), place_S_T_G, scratch_G)
        attention = Prefill(
            len(prompts),
            at_T.clamp(max=self.steps.body.positions - 1).repeat(len(prompts)),
            cache,
            torch.from_numpy(row_S).to(device),
            place_S_T_G,
        )
        members = [same[0].member for same in prompts]
        routing = Routing(torch.tensor(members, device=device))
        if not self.cuda:
            routing.spans = _spans([(member, length) for member in members])
        self.steps.body.hidden(torch.from_numpy(token_B_T).to(device).flatten(), routing, attention)

    # Steps.

    def _launch(self) -> _Launch | None:
        if self.changed:
            self._arrange()
        if not len(self.at_R):
            return None
        bucket = self.bucket
        if self.captured:
            graph = self.steps.graph(bucket)
            graph.graph.replay()
            token_R, logprob_R = graph.token_R, graph.logprob_R
        else:
            token_R, logprob_R = self.steps.step(bucket, self._plain())
        done = None
        if self.cuda:
            token_R = _to_host(token_R)
            logprob_R = _to_host(logprob_R)
            done = torch.cuda.Event()
            done.record()
        launch = _Launch(self.at_R, token_R, logprob_R, done)
        self.launched_C[self.at_R] += 1
        for at in self.at_R[self.launched_C[self.at_R] == self.limit_C[self.at_R]].tolist():
            self._leave(self.completions[at])
        return launch

    def _arrange(self) -> None:
        """The order of the rows, by member, and their tiles."""
        order = [completion for rows in self.active.values() for completion in rows]
        self.at_R = np.array([completion.at for completion in order], np.int64)
        self.changed = False
        if not order:
            return
        self.bucket = _bucket(len(order), self.steps.rows) if self.captured else len(order)
        rows, room = self.steps.rows, self.steps.tiles(self.steps.rows)
        layout = np.zeros(rows + 3 * room, np.int64)
        layout[: len(order)] = [completion.seat for completion in order]
        counts = [(member, len(rows)) for member, rows in self.active.items()]
        if self.captured:
            tiles = _tiles(counts, TILE)
            layout[rows:].reshape(3, room)[:, : len(tiles)] = tiles.T
        else:
            self.slots = self._slots(order)
            if self.cuda or len(order) < LONG_SPAN * len(counts):
                size = _plain_size([count for _, count in counts])
                self.routing = _plain_tiles(_tiles(counts, size), size, self.bank.device)
            else:
                self.routing = Routing(self.layout[:0], spans=_spans(counts))
        if self.cuda:
            self.layout.copy_(torch.from_numpy(layout).pin_memory(), non_blocking=True)
        else:
            self.layout.copy_(torch.from_numpy(layout))

    def _plain(self) -> Plain:
        assert self.routing is not None
        most = int(self.launched_C[self.at_R].max()) + 1
        return Plain(self.routing, replace(self.slots, length=min(_rounded(most), self.slots.capacity)))

    def _slots(self, order: list[_Completion]) -> Slots:
        lane: Counter[int] = Counter()
        lanes = []
        for completion in order:
            lanes.append(lane[completion.prompt_start])
            lane[completion.prompt_start] += 1
        prompts = [(c.prompt_start - SCRATCH) // self.prompt_capacity if self.prompt_capacity else 0 for c in order]
        capacity, device = order[0].capacity, self.bank.device
        return Slots(
            prompts=self.prompts,
            prompt_capacity=self.prompt_capacity,
            prompt_R=torch.tensor(prompts, device=device),
            lane_R=torch.tensor(lanes, device=device),
            lanes=max(lanes) + 1,
            prompt_count=max(prompts) + 1,
            count=(max(c.start for c in order) - SCRATCH) // capacity + 1,
            capacity=capacity,
            prompt_length=_rounded(int(self.prompt_C[self.at_R].max()) - 1),
            length=0,
        )

    def _collect(self, launch: _Launch) -> None:
        if launch.done is not None:
            launch.done.synchronize()
        running_R = ~self.ended_C[launch.at_R]
        at_N = launch.at_R[running_R]
        token_N = launch.token_R.numpy()[: len(running_R)][running_R]
        length_N = self.length_C[at_N]
        self.token_C_T[at_N, length_N] = token_N
        self.logprob_C_T[at_N, length_N] = launch.logprob_R.numpy()[: len(running_R)][running_R]
        self.length_C[at_N] = length_N + 1
        end_N = np.isin(token_N, self.eos) if len(self.eos) else np.zeros(len(at_N), bool)
        string_N = self._matches(at_N, token_N) if self.matching else np.zeros(len(at_N), bool)
        full_N = length_N + 1 == self.limit_C[at_N]
        for index in np.flatnonzero(end_N | string_N | full_N).tolist():
            completion = self.completions[at_N[index]]
            completion.stop = Stop.EOS if end_N[index] else Stop.STRING if string_N[index] else Stop.LENGTH
            self.ended_C[completion.at] = True
            if completion.seat != NOBODY:
                self._leave(completion)
            self._finish(completion)

    def _matches(self, at_N: np.ndarray, token_N: np.ndarray) -> np.ndarray:
        """Which completions hold a stop string with their newest token."""
        assert self.pieces is not None
        found_N = np.zeros(len(at_N), bool)
        for index, (at, token) in enumerate(zip(at_N.tolist(), token_N.tolist(), strict=True)):
            matcher = self.completions[at].matcher
            if matcher is not None:
                found_N[index] = matcher.add(self.pieces[token])
        return found_N

    def _leave(self, completion: _Completion) -> None:
        """Give row, seat and region back. Whatever is still on its way was launched before they are used again."""
        rows = self.active[completion.member]
        rows.remove(completion)
        if not rows:
            del self.active[completion.member]
        self.running -= 1
        self.free_seats.append(completion.seat)
        completion.seat = NOBODY
        if not self.captured:
            self.cache.wipe(completion.start, completion.capacity, int(self.launched_C[completion.at]))
            self._leave_prompt(completion)
        self.cache.give(completion.start, completion.capacity)
        self.changed = True

    def _leave_prompt(self, completion: _Completion) -> None:
        """The last to leave gives the prompt's region back."""
        start = completion.prompt_start
        self.prompt_users[start] -= 1
        if self.prompt_capacity and not self.prompt_users[start]:
            self.prompts.wipe(start, self.prompt_capacity, len(completion.request.prompt) - 1)
            self.prompts.give(start, self.prompt_capacity)

    def _finish(self, completion: _Completion) -> None:
        assert completion.stop is not None
        length = self.length_C[completion.at]
        tokens = tuple(self.token_C_T[completion.at, :length].tolist())
        logprobs = tuple(self.logprob_C_T[completion.at, :length].tolist())
        text = "" if self.base.tokenizer is None else self.base.decode(tokens)
        sample = Sample(tokens, logprobs, completion.stop, cut(text, completion.request.stop))
        self.samples[completion.at] = sample
        if self.done is not None:
            self.done(completion.at, sample)


def _bucket(rows: int, most: int) -> int:
    """The number of rows of the captured step that serves this many: few enough shapes to capture them all."""
    size = LEAST_ROWS
    while size < rows:
        size = size * 2 if size < 64 else size + 64
    return min(size, most)


def _rounded(tokens: int) -> int:
    return -(-tokens // 16) * 16


def _tiles(counts: list[tuple[int, int]], size: int) -> np.ndarray:
    """Member, first row and number of rows of each tile, for members in turn with this many rows."""
    tiles, at = [], 0
    for member, rows in counts:
        tiles += [(member, at + start, min(size, rows - start)) for start in range(0, rows, size)]
        at += rows
    return np.array(tiles)


def _spans(counts: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Neighbours of one member as one."""
    spans: list[tuple[int, int]] = []
    for member, rows in counts:
        if spans and spans[-1][0] == member:
            rows += spans.pop()[1]
        spans.append((member, rows))
    return tuple(spans)


def _plain_size(counts: list[int]) -> int:
    """Rows of a tile in plain torch, which fills short tiles up. That a tile costs as much as six
    rows beside its own is a rough guess: few tiles and little filling are both wanted."""
    sizes = range(min(counts), max(counts) + 1)
    return min(sizes, key=lambda size: (sum(-(-count // size) for count in counts) * (size + 6), size))


def _plain_tiles(tiles_K_3: np.ndarray, size: int, device: torch.device) -> Routing:
    member_K, start_K, count_K = torch.from_numpy(tiles_K_3).to(device).unbind(1)
    tiles = Tiles(start_K, count_K)
    if (tiles_K_3[:, 2] != size).any():
        lane_S = np.arange(size)
        inside_K_S = lane_S < tiles_K_3[:, 2:]
        gather_K_S = np.where(inside_K_S, tiles_K_3[:, 1:2] + lane_S, 0)
        tiles.gather_K_S = torch.from_numpy(gather_K_S).to(device)
        tiles.back_N = torch.from_numpy(np.flatnonzero(inside_K_S)).to(device)
    return Routing(member_K, tiles, key=tuple(tiles_K_3[:, 0].tolist()))


def _to_host(tensor: Tensor) -> Tensor:
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)
