"""One call of `sample`: which completion grows in which row, and when it ends.

Completions that may grow long start first, so that few rows are busy at the end. Prompts enter the KV cache in batches,
a little ahead of the rows that will need them, once for all completions that go on from the same prompt. Rows of one
member stand together; a row is refilled as soon as its completion ends. On CUDA the host looks at a step's tokens while
the next one runs.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from redqueen.engine.backend import Backend, Launch
from redqueen.engine.protocol import Stop
from redqueen.engine.seats import NO_SEAT, Completion
from redqueen.engine.stops import Pieces

SIMILAR = 32
"""Limits that differ by fewer tokens are about the same."""

Ended = Callable[[Completion, tuple[int, ...], tuple[float, ...], Stop], None]
"""Told of each completion that ends: its tokens, their log-probabilities, and why it ended."""


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
        pieces: Pieces | None,
        ended: Ended,
    ) -> None:
        """`lag` steps may be on their way before the tokens of the first are looked at."""
        self._backend, self._completions, self._lag = backend, completions, lag
        self._prefill_tokens, self._pieces, self._ended = prefill_tokens, pieces, ended
        prompts = _by_prompt(completions, backend.rows)
        self.longest = backend.reserve(prompts, max_cache_tokens)
        """Tokens in the KV cache of the longest completion."""
        self._waiting = deque(prompts)
        self._ready: deque[Completion] = deque()
        """Their prompts are in the KV cache."""
        self._active: dict[int, list[Completion]] = {}
        """Those that have a row, by member."""
        self._running = 0
        self._changed = True
        # Whatever every step asks of every row is in arrays by completion: a loop over the rows would take longer
        # than a step of a small base.
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
        """The rows' completions."""

    def run(self) -> None:
        flying: deque[tuple[np.ndarray, Launch]] = deque()
        while True:
            self._refill()
            if self._changed:
                self._arrange()
            if len(self._index_R):
                flying.append((self._index_R, self._launch()))
            elif not flying:
                return
            while flying and (len(flying) > self._lag or not len(self._index_R)):
                self._collect(*flying.popleft())

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
        """Take prompts into the KV cache: as many as there are free rows, and some ahead. Whether there was room for
        any."""
        count = max(free, self._backend.rows // 8)
        taken: list[list[Completion]] = []
        while self._waiting and count > 0:
            same = self._waiting.popleft()
            housed = self._backend.house(same)
            if housed:
                taken.append(same[:housed])
                count -= housed
            if housed < len(same):
                self._waiting.appendleft(same[housed:])
                break
        if not taken:
            return False
        self._backend.prefill(taken, self._prefill_tokens)
        self._ready += [completion for same in taken for completion in same]
        return True

    def _arrange(self) -> None:
        self._index_R = np.array([each.index for rows in self._active.values() for each in rows], np.int64)
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
            if completion.seat != NO_SEAT:
                self._leave(completion)
            self._ended(
                completion,
                tuple(self._token_C_T[completion.index, :length].tolist()),
                tuple(self._logprob_C_T[completion.index, :length].tolist()),
                Stop.EOS if eos_N[at] else Stop.STRING if string_N[at] else Stop.LENGTH,
            )

    def _matches(self, index_N: np.ndarray, token_N: np.ndarray) -> np.ndarray:
        """Which completions hold a stop string with their newest token."""
        assert self._pieces is not None
        match_N = np.zeros(len(index_N), bool)
        for at, (index, token) in enumerate(zip(index_N.tolist(), token_N.tolist(), strict=True)):
            matcher = self._completions[index].matcher
            if matcher is not None:
                match_N[at] = matcher.add(self._pieces[token])
        return match_N

    def _leave(self, completion: Completion) -> None:
        """Give its row, seat and region back."""
        rows = self._active[completion.member]
        rows.remove(completion)
        if not rows:
            del self._active[completion.member]
        self._running -= 1
        self._changed = True
        self._backend.release(completion, int(self._launched_C[completion.index]))


def _by_prompt(completions: Sequence[Completion], rows: int) -> list[list[Completion]]:
    """Completions that go on from the same prompt of the same member, those that may grow longest first; of about as
    long ones the longest prompts, so that rows that grow at the same time are about as long."""
    groups: dict[tuple[int, tuple[int, ...]], list[Completion]] = {}

    def order(completion: Completion) -> tuple[int, int, int, int]:
        limit = completion.request.max_tokens
        return (-(limit // SIMILAR), -len(completion.request.prompt), -limit, completion.index)

    for completion in sorted(completions, key=order):
        groups.setdefault((completion.member, completion.request.prompt), []).append(completion)
    return [same[at : at + rows] for same in groups.values() for at in range(0, len(same), rows)]
