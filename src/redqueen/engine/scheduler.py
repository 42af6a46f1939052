"""One turn of sampling: which completion is in which row, and when it ends.

Of completions that come together those with the highest limits start first, so that few rows are busy at the end.
Prompts enter the KV cache in batches, a little ahead of the rows that will need them, once for all completions of a
prompt that come together. Rows of one member are neighbours; a row is refilled as soon as its completion is seen to
have ended. On CUDA a launch is a few steps, and the host reads their tokens while the next ones run.
"""

import time
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
More = Callable[[int, int], Sequence[Completion]]
"""Called before each launch with the steps so far and how many completions are under way: those that join."""


class Scheduler:
    def __init__(
        self,
        backend: Backend,
        more: More,
        *,
        lag: int,
        max_cache_tokens: int,
        prefill_tokens: int,
        eos_ids: frozenset[int],
        token_bytes: TokenBytes | None,
        on_end: OnEnd,
    ) -> None:
        """`lag` launches may follow one before its tokens are there."""
        self._backend, self._more, self._lag = backend, more, lag
        self._max_cache_tokens, self._prefill_tokens = max_cache_tokens, prefill_tokens
        self._token_bytes, self._on_end = token_bytes, on_end
        self.step = 0
        """Decoding steps that were launched."""
        self._completions: list[Completion] = []
        self._held: list[list[Completion]] = []
        """They need a KV cache that is larger than the one in use."""
        self._waiting: deque[list[Completion]] = deque()
        self._ready: deque[Completion] = deque()
        """Their prompts are in the KV cache."""
        self._active: dict[int, list[Completion]] = {}
        """Completions that have a row, by member."""
        self._running = 0
        self._changed = True
        # What every step reads of every row is in arrays: a loop over the rows would take longer than a step of a small
        # base.
        self._limit_C = np.zeros(0, np.int64)
        self._launched_C = np.zeros(0, np.int64)
        self._length_C = np.zeros(0, np.int64)
        self._ended_C = np.zeros(0, bool)
        self._token_C_T = np.zeros((0, 0), np.int64)
        self._logprob_C_T = np.zeros((0, 0), np.float32)
        self._matching = False
        self._eos = np.array(sorted(eos_ids), np.int64)
        self._index_R = np.zeros(0, np.int64)
        """The completion of each row."""

    def run(self) -> None:
        """Until there is nothing to do and nothing joins."""
        launched: deque[tuple[np.ndarray, Launch]] = deque()
        while True:
            under_way = self._running + len(self._ready) + sum(map(len, self._waiting)) + len(launched)
            if not under_way and self._held:
                self._admit([], idle=True)
            elif more := self._more(self.step, under_way):
                self._admit(more, idle=not under_way)
            elif not under_way:
                return
            self._refill()
            if self._changed:
                self._arrange()
            if len(self._index_R):
                launched.append((self._index_R, self._launch()))
            while launched and (len(launched) > self._lag or not len(self._index_R) or launched[0][1].over):
                self._collect(*launched.popleft())

    def _admit(self, completions: Sequence[Completion], *, idle: bool) -> None:
        """Let completions in, and those that had to wait for all others. A step on its way may still use the KV cache
        of completions that have left."""
        self._number(completions)
        self._changed = True
        prompts = [*self._held, *_by_prompt(completions, self._backend.rows)]
        if not idle:
            self._held = []
            for group in prompts:
                fits = self._backend.extend([group], self._max_cache_tokens)
                (self._waiting if fits else self._held).append(group)
            return
        fit, self._held = (prompts, []) if self._fit(prompts) else self._parted(prompts)
        self._backend.reserve(fit, self._max_cache_tokens)
        self._waiting += fit

    def _fit(self, prompts: list[list[Completion]]) -> bool:
        """Each does by itself."""
        return self._backend.longest(prompts) <= self._max_cache_tokens

    def _parted(self, prompts: list[list[Completion]]) -> tuple[list[list[Completion]], list[list[Completion]]]:
        """Those that fit together, as many as come first, and the others."""
        fit: list[list[Completion]] = []
        held: list[list[Completion]] = []
        longest: list[list[Completion]] = []
        for group in prompts:
            if not self._fit([*longest, group]):
                held.append(group)
                continue
            fit.append(group)
            both = [*longest, group]
            longest = [
                max(both, key=lambda group: len(group[0].request.prompt)),
                max(both, key=lambda group: max(completion.request.max_tokens for completion in group)),
            ]
        return fit, held

    def _number(self, completions: Sequence[Completion]) -> None:
        first = len(self._completions)
        for completion in completions:
            completion.index = len(self._completions)
            self._completions.append(completion)
            self._matching |= completion.matcher is not None
        limits = [completion.request.max_tokens for completion in completions]
        (rows, width), count = self._token_C_T.shape, len(self._completions)
        # Some tokens come after a completion's last.
        widest = max([width, *(limit + self._backend.most_steps for limit in limits)])
        if count > rows or widest > width:
            # Twice as many, so that few of those that join have everything copied.
            rows = max(rows, min(2 * count, count + 4096)) if count > rows else rows
            self._limit_C, self._launched_C = _grown(self._limit_C, (rows,)), _grown(self._launched_C, (rows,))
            self._length_C, self._ended_C = _grown(self._length_C, (rows,)), _grown(self._ended_C, (rows,))
            self._token_C_T = _grown(self._token_C_T, (rows, widest))
            self._logprob_C_T = _grown(self._logprob_C_T, (rows, widest))
        self._limit_C[first:count] = limits

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
        began = time.perf_counter()
        self._backend.prefill(prompts, self._prefill_tokens)
        for group in prompts:
            for completion in group:
                completion.began = began
                self._ready.append(completion)
        return True

    def _arrange(self) -> None:
        self._index_R = np.array([row.index for rows in self._active.values() for row in rows], np.int64)
        self._changed = False
        if self._active:
            self._backend.arrange(self._active)

    def _launch(self) -> Launch:
        index_R = self._index_R
        launch = self._backend.launch(int(self._launched_C[index_R].max()) + 1)
        self._launched_C[index_R] += launch.steps
        self.step += launch.steps
        for index in index_R[self._launched_C[index_R] >= self._limit_C[index_R]].tolist():
            self._leave(self._completions[index])
        return launch

    def _collect(self, index_R: np.ndarray, launch: Launch) -> None:
        token_T_R, logprob_T_R = launch.wait()
        running_R = ~self._ended_C[index_R]
        index_N = index_R[running_R]
        token_N_T, logprob_N_T = (made_T_R[:, : len(index_R)].T[running_R] for made_T_R in (token_T_R, logprob_T_R))
        length_N = self._length_C[index_N]
        place_N_T = length_N[:, None] + np.arange(launch.steps)
        self._token_C_T[index_N[:, None], place_N_T] = token_N_T
        self._logprob_C_T[index_N[:, None], place_N_T] = logprob_N_T
        eos_N_T = (token_N_T[:, :, None] == self._eos).any(2)
        end_N_T = eos_N_T | (place_N_T + 1 == self._limit_C[index_N][:, None])
        string_N_T = self._matches(index_N, token_N_T, end_N_T) if self._matching else np.zeros_like(end_N_T)
        end_N_T |= string_N_T
        ended_N, last_N = end_N_T.any(1), end_N_T.argmax(1)
        self._length_C[index_N] = np.where(ended_N, length_N + last_N + 1, length_N + launch.steps)
        self._ended_C[index_N] = ended_N
        for at in np.flatnonzero(ended_N).tolist():
            completion, last = self._completions[index_N[at]], last_N[at]
            length = self._length_C[completion.index]
            if completion.slot != NO_SLOT:
                self._leave(completion)
            self._on_end(
                completion,
                tuple(self._token_C_T[completion.index, :length].tolist()),
                tuple(self._logprob_C_T[completion.index, :length].tolist()),
                Stop.EOS if eos_N_T[at, last] else Stop.STRING if string_N_T[at, last] else Stop.LENGTH,
            )

    def _matches(self, index_N: np.ndarray, token_N_T: np.ndarray, end_N_T: np.ndarray) -> np.ndarray:
        """With which of their newest tokens completions first contain a stop string, unless they end before."""
        assert self._token_bytes is not None
        match_N_T = np.zeros_like(end_N_T)
        for at, (index, tokens) in enumerate(zip(index_N.tolist(), token_N_T.tolist(), strict=True)):
            matcher = self._completions[index].matcher
            for step, token in enumerate(tokens if matcher is not None else ()):
                match_N_T[at, step] = matcher is not None and matcher.add(self._token_bytes[token])
                if match_N_T[at, step] or end_N_T[at, step]:
                    break
        return match_N_T

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


def _grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger
