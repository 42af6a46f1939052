"""Sampling: many completions at once, from requests to samples.

Requests are checked here; the scheduler and its backend do the rest. When memory runs out, what is under way starts
again with less at once: random numbers are keyed, so what was sampled already is sampled again.
"""

import time

import torch

from redqueen.engine import ops
from redqueen.engine.backend import Backend
from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.body import Body
from redqueen.engine.decode_state import Completion
from redqueen.engine.graph_backend import GraphBackend
from redqueen.engine.memory import out_of_memory
from redqueen.engine.messages import say
from redqueen.engine.protocol import Sample, SampleRequest, Stop
from redqueen.engine.scheduler import Scheduler
from redqueen.engine.stops import StopMatcher, TokenBytes, cut
from redqueen.engine.streams import Call, Streams
from redqueen.engine.torch_backend import TorchBackend
from redqueen.errors import InputError

MIN_TEMPERATURE = 1e-4
"""Above 0: divided by less, logits overflow float32."""
LAG = 2
"""Launches that a GPU has before it while the host prepares prompts, or lets another thread have the interpreter. A
text that has ended is sampled on for as many, unseen, and one that joins waits for them; few rows more cost a step
nothing, and a GPU without work costs more than the wait."""


class Sampler:
    def __init__(
        self, base: Base, body: Body, bank: Bank, *, rows: int, max_cache_tokens: int, prefill_tokens: int
    ) -> None:
        """`rows` completions are sampled at once; `prefill_tokens` prompt tokens, padding included, go through the base
        at once."""
        self.max_cache_tokens, self.prefill_tokens = max_cache_tokens, prefill_tokens
        self._base, self._body, self._bank = base, body, bank
        graphs = body.part is None and ops.fused(bank.compute_A_D)
        self.backend: Backend = (GraphBackend if graphs else TorchBackend)(body, bank, rows)
        if self.backend.most_prefill is not None:
            self.prefill_tokens = min(prefill_tokens, self.backend.most_prefill)
        self._token_bytes = None if base.tokenizer is None else TokenBytes(base.tokenizer)

    def run(self, streams: Streams) -> None:
        """One turn: until all streams are over. What goes wrong is told to whoever asked."""
        try:
            self._run(streams)
        except BaseException as error:
            streams.fail(error)
            raise

    def _run(self, streams: Streams) -> None:
        calls: dict[Completion, tuple[Call, int]] = {}
        """What is under way: for which call, and which of its requests."""

        again: list[Completion] = []
        """What was under way when memory ran out."""

        def more(step: int, rows: int) -> list[Completion]:
            completions, again[:] = list(again), []
            while not completions and (taken := streams.take(step, rows)):
                for call in taken:
                    try:
                        own = self._completions(call)
                    except Exception as error:
                        streams.answer(call, error)
                        continue
                    calls.update({completion: (call, number) for number, completion in enumerate(own)})
                    completions += own
                if rows:
                    break
            return completions

        def on_end(completion: Completion, tokens: tuple[int, ...], logprobs: tuple[float, ...], stop: Stop) -> None:
            text = "" if self._base.tokenizer is None else self._base.decode(tokens)
            seconds = completion.began, time.perf_counter()
            call, number = calls.pop(completion)
            sample = Sample(tokens, logprobs, stop, cut(text, completion.request.stop), seconds=seconds)
            streams.done(call, number, sample)

        while True:
            scheduler = Scheduler(
                self.backend,
                more,
                lag=LAG if self._bank.device.type == "cuda" else 0,
                max_cache_tokens=self.max_cache_tokens,
                prefill_tokens=self.prefill_tokens,
                eos_ids=self._base.eos_ids,
                token_bytes=self._token_bytes,
                on_end=on_end,
            )
            try:
                with torch.no_grad():
                    scheduler.run()
                return
            except BaseException as error:
                # A turn must not inherit what another one left half done.
                self.backend.drop()
                # Other processes with parts of the base have room, and cannot know.
                alone = self._body.part is None
                if not out_of_memory(error) or self.prefill_tokens <= 64 or not alone:
                    raise
            # Outside the handler: the exception keeps the tensors that filled the memory alive.
            calls = {self._completion(item.request): whose for item, whose in calls.items()}
            again[:] = calls
            self.prefill_tokens //= 2
            longest = max(self.backend.longest([[completion]]) for completion in again)
            self.max_cache_tokens = max(longest, self.max_cache_tokens * 3 // 4)
            say(f"out of memory; sampling again with {self.prefill_tokens} prompt tokens at once")
            if self._bank.device.type == "cuda":
                torch.cuda.empty_cache()

    def _completions(self, call: Call) -> list[Completion]:
        for prompt in {id(request.prompt): request.prompt for request in call.requests}.values():
            self._check_prompt(prompt)
        completions = [self._completion(request) for request in call.requests]
        longest = max(self.backend.longest([[completion]]) for completion in completions)
        if longest > self.max_cache_tokens:
            raise InputError(
                f"a request of {longest} tokens (prompt and limit) does not fit into the KV cache of "
                f"{self.max_cache_tokens}",
                "lower max_tokens, or the number of members",
            )
        return completions

    def _check_prompt(self, prompt: tuple[int, ...]) -> None:
        if not isinstance(prompt, tuple):
            raise InputError("a prompt is not a tuple of token ids", "use tuple(ids), or Base.encode for text")
        head = self._body.head
        if prompt and not head.knows(prompt):
            raise InputError("a prompt holds a token that the base does not know", f"use ids below {head.vocabulary}")

    def _completion(self, request: SampleRequest) -> Completion:
        if not isinstance(request.stop, tuple):
            raise InputError("a request's stop is not a tuple of strings", "write stop=(text,)")
        if not request.prompt or request.max_tokens < 1:
            raise InputError("a request has an empty prompt or max_tokens below 1", "give at least one token of each")
        if not (request.temperature == 0 or MIN_TEMPERATURE <= request.temperature < float("inf")):
            raise InputError(f"a temperature cannot be {request.temperature}", f"use 0, or {MIN_TEMPERATURE:g} or more")
        total, positions = len(request.prompt) + request.max_tokens, self._body.positions
        if total > positions:
            raise InputError(
                f"a request of {total} tokens (prompt and limit) is longer than the base's {positions}",
                "lower max_tokens or shorten the prompt",
            )
        matcher = None
        if request.stop:
            if self._token_bytes is None:
                raise InputError("stop strings need a tokenizer, which this base lacks", "leave them out")
            if "" in request.stop:
                raise InputError("a stop string is empty", "leave it out")
            matcher = StopMatcher(request.stop)
        return Completion(request=request, member=self._bank.row(request.member), matcher=matcher)
