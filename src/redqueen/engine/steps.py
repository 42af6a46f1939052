"""One sampling step on the device: the state of all sequences, and the step that adds a token to each.

A sequence has a seat: its newest token, its place in the cache, its random key. A step is told which seats are its
rows and which member each tile of rows belongs to, by one small tensor (the layout); all else stays on the device. On
CUDA the step is captured once for each of a few numbers of rows and replayed.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from redqueen.engine import ops
from redqueen.engine.attention import Newest, Slots
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.cache import SCRATCH, Cache
from redqueen.engine.lora import TILE, Routing, Tiles

NOBODY = 0
"""The seat of rows without a sequence."""
TOKEN, POSITION, START, CAPACITY, KEY, INDEX, TEMPERATURE = range(7)
"""What is known of a seat."""


@dataclass(slots=True)
class Plain:
    """What a step without the kernels needs to know beforehand."""

    routing: Routing
    slots: Slots


@dataclass(slots=True)
class Captured:
    graph: Any
    token_R: Tensor
    logprob_R: Tensor


@dataclass(slots=True)
class Steps:
    body: Body
    bank: Bank
    rows: int
    """Sequences that grow at the same time, at most."""
    cache: Cache | None = None
    prompts: Cache | None = None
    """Without the kernels the prompts are apart from what is sampled, which alone is in the cache then."""
    state_7_S: Tensor | None = None
    layout: Tensor | None = None
    """The rows' seats, then the tiles' members, first rows and numbers of rows."""
    graphs: dict[int, Captured] = field(default_factory=dict)
    _version: int = -1

    @property
    def fused(self) -> bool:
        """The kernels do the work, and steps are captured."""
        return ops.fused(self.bank.compute_A_D)

    def prepare(self, tokens: int, prompt_tokens: int, seats: int) -> tuple[Cache, Cache]:
        """The cache, that of the prompts and the seats' state, larger than before if this call needs it."""
        device, rows = self.bank.device, self.rows
        if self.cache is None or self.cache.tokens < tokens:
            self.graphs.clear()
            self.cache = None
            self.cache = self._cache(tokens)
        if self.prompts is None or self.prompts.tokens < prompt_tokens:
            self.prompts = None
            self.prompts = self._cache(prompt_tokens)
        self.cache.clear()
        self.prompts.clear()
        if self.state_7_S is None or self.state_7_S.shape[1] < seats:
            self.graphs.clear()
            self.state_7_S = torch.zeros(7, seats, dtype=torch.int64, device=device)
            self.state_7_S[CAPACITY] = SCRATCH
        size = rows + 3 * self.tiles(rows)
        if self.layout is None or self.layout.shape[0] != size:
            self.graphs.clear()
            self.layout = torch.zeros(size, dtype=torch.int64, device=device)
        return self.cache, self.prompts

    def _cache(self, tokens: int) -> Cache:
        heads = self.body.heads
        return Cache(
            tokens=tokens, layers=self.body.layers, kv_heads=heads.kv_heads, dim=heads.dim,
            device=self.bank.device, dtype=self.bank.dtype,
        )  # fmt: skip

    def drop(self) -> None:
        """Give the caches' memory back."""
        self.cache = self.prompts = None
        self.graphs.clear()

    def tiles(self, rows: int) -> int:
        """Tiles that this many rows need at most: each member may leave its last one short."""
        return rows // TILE + min(rows, self.bank.masters_A_D.shape[0])

    def step(self, bucket: int, plain: Plain | None) -> tuple[Tensor, Tensor]:
        """One more token for each row of the layout; on the device, nothing is waited for."""
        assert self.layout is not None and self.state_7_S is not None and self.cache is not None
        state_7_S = self.state_7_S
        seat_R = self.layout[:bucket]
        if plain is None:
            count = self.tiles(bucket)
            member_K, tile_start_K, tile_count_K = self.layout[self.rows :].view(3, -1)[:, :count].unbind(0)
            routing, slots = Routing(member_K, Tiles(tile_start_K, tile_count_K)), None
        else:
            routing, slots = plain.routing, plain.slots
        token_R, position_R, start_R, capacity_R, key_R, index_R, bits_R = state_7_S[:, seat_R].unbind(0)
        attention = Newest(self.cache, position_R, start_R, capacity_R, index_R=index_R, slots=slots)
        hidden_R_H = self.body.hidden(token_R, routing, attention)
        temperature_R = bits_R.view(torch.float64).float()
        token_R, logprob_R = ops.sample(self.body.head(hidden_R_H), temperature_R, key_R, index_R)
        advance_R = (seat_R != NOBODY).to(torch.int64)
        state_7_S[TOKEN, seat_R] = token_R
        state_7_S[POSITION, seat_R] = position_R + advance_R
        state_7_S[INDEX, seat_R] = index_R + advance_R
        return token_R, logprob_R

    def graph(self, bucket: int) -> Captured:
        """The captured step for this many rows."""
        if self._version != self.bank.version:
            self.graphs.clear()
            self._version = self.bank.version
        if bucket not in self.graphs:
            assert self.layout is not None
            kept = self.layout.clone()
            # Rows without a completion change nothing, so the warm-up and the capture can run on the real state.
            self.layout.zero_()
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self.step(bucket, None)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            pool = next(iter(self.graphs.values())).graph.pool() if self.graphs else None
            # Another thread's use of the device is its own affair, and must not end the capture.
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                token_R, logprob_R = self.step(bucket, None)
            self.graphs[bucket] = Captured(graph, token_R, logprob_R)
            self.layout.copy_(kept)
        return self.graphs[bucket]
