"""Sampling steps as captured CUDA graphs, with the kernels.

A few steps are captured together, once for each of a few numbers of rows, and replayed. What differs between replays
is on the device: the decoding state, and one small tensor (the layout) with the slot of each row, the member of each
tile of rows, and the runs of rows that have one prompt, to which they attend together where there are any. A sequence's
region of the KV cache holds prompt and completion, so every completion of a prompt gets a copy of it; what a prompt
shares with another of its member that is still there is copied too, and not computed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from redqueen.engine.backend import Launch, new_cache
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.captured import Captured, Pool
from redqueen.engine.decode_attention import KernelAttention
from redqueen.engine.decode_state import Completion, DecodeState
from redqueen.engine.kv_cache import KVCache, rounded
from redqueen.engine.packed_prefill import SIZES, PackedPrefill, Piece
from redqueen.engine.prefill import Prompts
from redqueen.engine.prompt_index import PromptIndex, Region, Start, starts, worth_keeping
from redqueen.engine.routing import BUNDLE, TILE, Routing, Tiles, cut_tiles
from redqueen.engine.transfer import HostRing, to_device

LEAST_ROWS = 8
"""Of a captured step."""
ALONE_ROWS = 64
"""Up to here rows attend to their prompts as bundles, even of one: their keys are split over the chip then."""
STRIDE = 4
"""Steps that are captured together, at most. The host is needed once for all of them: it competes with the threads that
judge texts for the interpreter."""
STRIDE_BYTES = 5 << 30
"""What they read together, at most: long steps need the host seldom, and rows that end among them wait for a refill."""
ROWS_LIKE_WEIGHTS = 256
"""So many rows take about as long as reading the weights, which is what a step of one row does."""
SPARE = 1.25
"""A KV cache is larger than what is in use at once by this: room for prompts that others may begin like."""
GROWTH = 1.5
"""A KV cache that must be larger becomes larger by this at least: every captured graph goes with the old one."""


@dataclass(frozen=True, slots=True)
class Form:
    """Of a captured step."""

    rows: int
    bundled: bool
    """Completions of one prompt attend to it together."""


class GraphBackend:
    """Implements `Backend`."""

    most_steps = STRIDE
    most_prefill: int | None = SIZES[-1]

    def __init__(self, body: Body, bank: Bank, rows: int) -> None:
        self.rows, self._body, self._bank = rows, body, bank
        self.cache: KVCache | None = None
        self.graphs: dict[Form, Captured] = {}
        self._pool = Pool()
        self._packed = PackedPrefill(body, bank, self._pool)
        self._index = PromptIndex()
        self._owned: dict[Completion, Region] = {}
        """Regions of the index whose completions are under way."""
        self._edits = -1
        """Of the bank, for which the index holds."""
        self._state = DecodeState(rows, body.positions, bank.device)
        self._layout = torch.zeros(0, dtype=torch.int64, device=bank.device)
        self._layouts = HostRing(0, torch.int64, bank.device)
        self._outputs = HostRing(2 * STRIDE * rows, torch.float64, bank.device)
        self._bank_version = -1
        self._arranged: Mapping[int, Sequence[Completion]] = {}
        self._form = Form(0, bundled=True)
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
        tokens = min(int(SPARE * self._most_in_use), max_tokens)
        if self.cache is None or self.cache.tokens < tokens:
            if self.cache is not None:
                tokens = min(max(tokens, int(GROWTH * self.cache.tokens)), max_tokens)
            self.drop()
            self.cache = new_cache(self._body, self._bank, tokens)
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
        for count, completion in enumerate(completions):
            capacity = _capacity(completion)
            start = self._room(capacity) if self._state.free else None
            if start is None:
                return count
            completion.start, completion.capacity, completion.slot = start, capacity, self._state.free.pop()
        return len(completions)

    def _room(self, capacity: int) -> int | None:
        """The start of a free region, if need be in place of one that was kept."""
        assert self.cache is not None
        while (start := self.cache.allocate(capacity)) is None:
            region = self._index.evict()
            if region is None:
                return None
            self.cache.release(region.start, region.capacity)
        return start

    def prefill(self, prompts: Prompts, max_tokens: int) -> None:
        assert self.cache is not None
        self._refresh()
        completions = [completion for group in prompts for completion in group]
        for completion in completions:
            completion.edits = self._edits
        self._state.fill(completions)
        first, second = starts(prompts, self._index)
        for wave in (first, second):
            self._copy([(start.source, start.region, start.shared) for start in wave if start.source is not None])
            self._packed.run(self.cache, [_piece(start) for start in wave], max_tokens)
        both = [*first, *second]
        self._copy(
            [
                (start.region, completion, len(start.region.tokens))
                for start in both
                for completion in start.completions[1:]
            ]
        )
        for start in worth_keeping(both):
            self._index.add(start.region)
            self._owned[start.completions[0]] = start.region

    def _copy(self, copies: Sequence[tuple[Region, Region | Completion, int]]) -> None:
        """The first tokens of regions to others."""
        assert self.cache is not None
        longest = max((count for _, _, count in copies), default=0)
        if not longest:
            return
        from redqueen.engine import kernels

        copy_S_5 = [(of.start, of.capacity, to.start, to.capacity, count) for of, to, count in copies]
        copy_5_S = to_device(np.array(copy_S_5).T, self._bank.device)
        kernels.copy_prefixes_(self.cache.k, self.cache.v, copy_5_S, longest=longest, kv_heads=self.cache.kv_heads)

    def _refresh(self) -> None:
        """What was made for other weights, or for a bank that has moved or has more members now, is forgotten."""
        if self._edits != self._bank.edits:
            self._edits = self._bank.edits
            self._forget()
        if self._bank_version != self._bank.version:
            self._bank_version = self._bank.version
            self._clear_graphs()
            size = 6 * self.rows + 3 * self._tiles(self.rows)
            self._layout = torch.zeros(size, dtype=torch.int64, device=self._bank.device)
            self._layouts = HostRing(size, torch.int64, self._bank.device)

    def _forget(self) -> None:
        for region in self._index.clear():
            if self.cache is not None:
                self.cache.release(region.start, region.capacity)
        self._owned.clear()

    def _clear_graphs(self) -> None:
        self.graphs.clear()
        self._packed.clear()
        self._pool.clear()

    def arrange(self, members: Mapping[int, Sequence[Completion]]) -> None:
        self._refresh()
        self._arranged = members
        slots = [completion.slot for rows in members.values() for completion in rows]
        tiles_K_3 = cut_tiles([(member, len(rows)) for member, rows in members.items()], TILE)
        host = self._layouts.next()
        layout = host.numpy()
        layout[:] = 0
        layout[: len(slots)] = slots
        groups = np.repeat(np.arange(len(members)), [len(rows) for rows in members.values()])
        layout[self.rows : 2 * self.rows] = len(members) - 1
        layout[self.rows :][: len(slots)] = groups
        layout[2 * self.rows :][: len(members)] = list(members)
        shared, bundles = _bundles([completion for rows in members.values() for completion in rows])
        bundled = len(slots) <= ALONE_ROWS or 2 * len(bundles) <= len(slots)
        self._form = Form(_bucket(len(slots), self.rows), bundled=bundled)
        layout[3 * self.rows :][: len(slots)] = shared
        layout[4 * self.rows : 6 * self.rows].reshape(2, -1)[:, : len(bundles)] = np.array(bundles).T
        layout[6 * self.rows :].reshape(3, -1)[:, : len(tiles_K_3)] = tiles_K_3.T
        self._layout.copy_(host, non_blocking=True)

    def launch(self, length: int) -> Launch:
        if self._bank_version != self._bank.version:
            self.arrange(self._arranged)
        if self._form not in self.graphs:
            self.graphs[self._form] = self._capture(self._form)
        captured = self.graphs[self._form]
        captured.graph.replay()
        [out_2_T_R] = captured.outputs
        host_2_T_R = self._outputs.next()[: out_2_T_R.numel()].view_as(out_2_T_R)
        host_2_T_R.copy_(out_2_T_R, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        return Launch(host_2_T_R[0], host_2_T_R[1], arrived)

    def release(self, completion: Completion, length: int) -> None:
        assert self.cache is not None
        self._state.release(completion)
        self._in_use -= completion.capacity
        region = self._owned.pop(completion, None)
        if region is None:
            self.cache.release(completion.start, completion.capacity)
        else:
            self._index.keep(region)

    def drop(self) -> None:
        self.cache = None
        self._forget()
        self._clear_graphs()

    def _tiles(self, rows: int) -> int:
        """At most, for this many rows: each member's last tile may be short."""
        return rows // TILE + min(rows, self._bank.masters_A_D.shape[0])

    def _stride(self, rows: int) -> int:
        """Steps that are captured together."""
        read = self._body.nbytes * (1 + rows / ROWS_LIKE_WEIGHTS)
        return max(1, min(STRIDE, int(STRIDE_BYTES / read)))

    def _steps(self, form: Form) -> tuple[Tensor]:
        """Some more tokens for each row of the layout, asynchronously; tokens and log-probabilities as one tensor."""
        steps = self._stride(form.rows)
        out_2_T_R = torch.empty(2, steps, form.rows, dtype=torch.float64, device=self._bank.device)
        for out_2_R in out_2_T_R.unbind(1):
            self._step(form, out_2_R)
        return (out_2_T_R,)

    def _step(self, form: Form, out_2_R: Tensor) -> None:
        assert self.cache is not None
        by_row = self._layout[: 6 * self.rows].view(6, -1)[:, : form.rows]
        slot_R, group_R, member_G, shared_R, first_Q, count_Q = by_row.unbind(0)
        member_K, start_K, count_K = self._layout[6 * self.rows :].view(3, -1)[:, : self._tiles(form.rows)].unbind(0)
        rows = self._state.rows(slot_R)
        attention = KernelAttention(
            cache=self.cache,
            position_N=rows.position_R,
            start_N=rows.start_R,
            capacity_N=rows.capacity_R,
            bundles=(shared_R, first_Q, count_Q) if form.bundled else None,
        )
        routing = Routing(member_K=member_K, tiles=Tiles(start_K, count_K), groups=(group_R, member_G))
        hidden_R_H = self._body.hidden(rows.token_R, routing, attention)
        token_R, logprob_R = self._state.advance(slot_R, rows, self._body.head(hidden_R_H))
        out_2_R[0] = token_R
        out_2_R[1] = logprob_R

    def _capture(self, form: Form) -> Captured:
        kept = self._layout.clone()
        # Rows without a sequence change nothing, so the warm-up and the capture can run on the real state.
        self._layout.zero_()
        captured = Captured.of(lambda: self._steps(form), self._pool)
        self._layout.copy_(kept)
        return captured


def _piece(start: Start) -> Piece:
    region = start.region
    return Piece(
        member=region.member,
        start=region.start,
        capacity=region.capacity,
        first=start.shared,
        tokens=region.tokens[start.shared :],
    )


def _bundles(completions: Sequence[Completion]) -> tuple[list[int], list[tuple[int, int]]]:
    """How many tokens of its prompt each of these has in the KV cache from the beginning, and the first and the number
    of each run of neighbours with one member and prompt, which went through the same weights."""
    shared: list[int] = []
    bundles: list[tuple[int, int]] = []
    for at, completion in enumerate(completions):
        prompt = completion.request.prompt
        shared.append(len(prompt) - 1)
        first, count = bundles[-1] if bundles else (0, BUNDLE)
        leader = completions[first]
        alike = leader.request.prompt is prompt and leader.member == completion.member
        if count < BUNDLE and alike and leader.edits == completion.edits:
            bundles[-1] = first, count + 1
        else:
            bundles.append((at, 1))
    return shared, bundles


def _capacity(completion: Completion) -> int:
    """With the tokens that are sampled on after the last."""
    return rounded(len(completion.request.prompt) + completion.request.max_tokens + STRIDE)


def _bucket(rows: int, most: int) -> int:
    """The rows of the captured step for this many: few enough shapes to capture them all."""
    size = LEAST_ROWS
    while size < rows:
        size = size * 2 if size < 64 else size + 64
    return min(size, most)
