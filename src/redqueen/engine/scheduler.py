"""One call of `sample`: which completion is in which row, and when it ends.

Completions with the highest limits start first, so that few rows are busy at the end. Prompts enter the KV cache in
batches, a little ahead of the rows that will need them, once for all completions of a prompt. Rows of one member are
neighbours; a row is refilled as soon as its completion ends. On CUDA the host reads a step's tokens while the next step
runs.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from redqueen.engine.backend import Backend, Launch
from redqueen.engine.decode_state import NO_SLOT, Completion
from redqueen.engine.protocol import Stop
from redqueen.engine.stops import TokenBytes

LIMIT_BUCKET = 32
"""Limits within a bucket count as equal."""

OnEnd = Callable[[Completion, tuple[int, ...], tuple[float, ...], Stop], None]
"""Called with each completion that ends, its tokens, their log-probabilities, and why it ended."""


class Scheduler:
    def __init__(
        self,
        backend: Backend,
        completions: Sequence[Completion],
        *,
        lag: int,
        max_cache_tokens: int,
        prefill_tokens: int,
        eos_ids: frozenset[int],
        token_bytes: TokenBytes | None,
        on_end: OnEnd,
    ) -> None:
        """`lag` steps may be launched before the tokens of the first are read."""
        self._backend, self._completions, self._lag = backend, completions, lag
        self._prefill_tokens, self._token_bytes, self._on_end = prefill_tokens, token_bytes, on_end
        prompts = _by_prompt(completions, backend.rows)
        self.longest = backend.reserve(prompts, max_cache_tokens)
        """Tokens of the longest completion in the KV cache."""
        self._waiting = deque(prompts)
        self._ready: deque[Completion] = deque()
        """Their prompts are in the KV cache."""
        self._active: dict[int, list[Completion]] = {}
        """Completions that have a row, by member."""
        self._running = 0
        self._changed = True
        # What every step reads of every row is in arrays: a loop over the rows would take longer than a step of a small
        # base.
        count = len(completions)
        self._limit_C = np.array([completion.request.max_tokens for completion in completions], np.int64)
        self._launched_C = np.zeros(count, np.int64)
        self._length_C = np.zeros(count, np.int64)
        self._ended_C = np.zeros(count, bool)
        self._token_C_T = np.zeros((count, self._limit_C.max()), np.int64)
        self._logprob_C_T = np.zeros((count, self._limit_C.max()), np.float32)
        self._matching = any(completion.matcher is not None for completion in completions)
        self._eos = np.array(sorted(eos_ids), np.int64)
        self._index_R = np.zeros(0, np.int64)
        """The completion of each row."""

    def run(self) -> None:
        launched: deque[tuple[np.ndarray, Launch]] = deque()
        while True:
            self._refill()
            if self._changed:
                self._arrange()
            if len(self._index_R):
                launched.append((self._index_R, self._launch()))
            elif not launched:
                return
            while launched and (len(launched) > self._lag or not len(self._index_R)):
                self._collect(*launched.popleft())

    def _refill(self) -> None:
        while True:
            while self._ready and self._running < self._backend.rows:
                completion = self._ready.popleft()
                self._active.setdefault(completion.member, []).append(completion)
                self._running += 1
                self._changed = True
            free = self._backend.rows - self._running
            if not self._waiting or not free or not self._prefill(free):
                return

    def _prefill(self, free: int) -> bool:
        """Prefill prompts for the free rows, and some ahead; whether there was room for any."""
        wanted = max(free, self._backend.rows // 8)
        prompts: list[list[Completion]] = []
        while self._waiting and wanted > 0:
            group = self._waiting.popleft()
            count = self._backend.allocate(group)
            if count:
                prompts.append(group[:count])
                wanted -= count
            if count < len(group):
                self._waiting.appendleft(group[count:])
                break
        if not prompts:
            return False
        self._backend.prefill(prompts, self._prefill_tokens)
        self._ready += [completion for group in prompts for completion in group]
        return True

    def _arrange(self) -> None:
        self._index_R = np.array([row.index for rows in self._active.values() for row in rows], np.int64)
        self._changed = False
        if self._active:
            self._backend.arrange(self._active)

    def _launch(self) -> Launch:
        index_R = self._index_R
        launch = self._backend.launch(int(self._launched_C[index_R].max()) + 1)
        self._launched_C[index_R] += 1
        for index in index_R[self._launched_C[index_R] == self._limit_C[index_R]].tolist():
            self._leave(self._completions[index])
        return launch

    def _collect(self, index_R: np.ndarray, launch: Launch) -> None:
        token_R, logprob_R = launch.wait()
        running_R = ~self._ended_C[index_R]
        index_N = index_R[running_R]
        token_N = token_R[: len(running_R)][running_R]
        length_N = self._length_C[index_N]
        self._token_C_T[index_N, length_N] = token_N
        self._logprob_C_T[index_N, length_N] = logprob_R[: len(running_R)][running_R]
        self._length_C[index_N] = length_N + 1
        eos_N = np.isin(token_N, self._eos) if len(self._eos) else np.zeros(len(index_N), bool)
        string_N = self._matches(index_N, token_N) if self._matching else np.zeros(len(index_N), bool)
        full_N = length_N + 1 == self._limit_C[index_N]
        for at in np.flatnonzero(eos_N | string_N | full_N).tolist():
            completion, length = self._completions[index_N[at]], length_N[at] + 1
            self._ended_C[completion.index] = True
            if completion.slot != NO_SLOT:
                self._leave(completion)
            self._on_end(
                completion,
                tuple(self._token_C_T[completion.index, :length].tolist()),
                tuple(self._logprob_C_T[completion.index, :length].tolist()),
                Stop.EOS if eos_N[at] else Stop.STRING if string_N[at] else Stop.LENGTH,
            )

    def _matches(self, index_N: np.ndarray, token_N: np.ndarray) -> np.ndarray:
        """Which completions contain a stop string with their newest token."""
        assert self._token_bytes is not None
        match_N = np.zeros(len(index_N), bool)
        for at, (index, token) in enumerate(zip(index_N.tolist(), token_N.tolist(), strict=True)):
            matcher = self._completions[index].matcher
            if matcher is not None:
                match_N[at] = matcher.add(self._token_bytes[token])
        return match_N

    def _leave(self, completion: Completion) -> None:
        """Free its row, slot and region."""
        rows = self._active[completion.member]
        rows.remove(completion)
        if not rows:
            del self._active[completion.member]
        self._running -= 1
        self._changed = True
        self._backend.release(completion, int(self._launched_C[completion.index]))


def _by_prompt(completions: Sequence[Completion], rows: int) -> list[list[Completion]]:
    """Completions grouped by member and prompt, the highest limits first and among those the longest prompts, so that
    rows of one step are about equally long."""
    groups: dict[tuple[int, tuple[int, ...]], list[Completion]] = {}

    def order(completion: Completion) -> tuple[int, int, int, int]:
        limit = completion.request.max_tokens
        return (-(limit // LIMIT_BUCKET), -len(completion.request.prompt), -limit, completion.index)

    for completion in sorted(completions, key=order):
        groups.setdefault((completion.member, completion.request.prompt), []).append(completion)
    return [group[at : at + rows] for group in groups.values() for at in range(0, len(group), rows)]
