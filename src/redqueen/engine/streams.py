"""Chains of calls that depend on each other, and join the batch that runs.

A chain asks for samples, thinks about them and asks for more, until it ends; a stream is a number of chains. What they
ask for is taken into the batch every so many decoding steps. On a CPU batches must not depend on how long somebody
thinks, since the rounding of products depends on the batch, and rows that wait for nobody are as well sampled among
their like: there a batch takes in more when it is empty, and first waits for all that think.

Between two calls a chain must not wait for a turn of another kind: the turn may be waiting for it.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from redqueen.engine.protocol import Chain, Sample, SampleRequest

R = TypeVar("R")
T = TypeVar("T")
EVERY = 8
"""Decoding steps, at least, from one time at which a batch takes in more to the next."""
_LOOK_S = 1.0
"""How often a waiting engine looks whether anybody is still there."""


@dataclass(slots=True, eq=False)
class Call:
    """What a chain asks for."""

    chain: "_Chain"
    requests: Sequence[SampleRequest]
    answer: "asyncio.Future[list[Sample]]"
    samples: dict[int, Sample] = field(default_factory=dict)

    def settle(self, error: BaseException | None = None) -> None:
        """From any thread."""

        def tell() -> None:
            if self.answer.done():
                return  # the caller has been cancelled
            if error is None:
                self.answer.set_result([self.samples[index] for index in range(len(self.requests))])
            else:
                self.answer.set_exception(error)

        with contextlib.suppress(RuntimeError):  # its loop has ended
            self.answer.get_loop().call_soon_threadsafe(tell)


@dataclass(slots=True, eq=False)
class _Chain:
    call: Call | None = None
    """What it waits for."""
    taken: bool = False
    """Whether that is in the batch."""
    over: bool = False

    @property
    def thinks(self) -> bool:
        return self.call is None and not self.over

    @property
    def asks(self) -> bool:
        return self.call is not None and not self.taken and not self.over


class Stream:
    """The chains of one caller, in its event loop."""

    def __init__(self, count: int, changed: threading.Condition) -> None:
        """`changed` guards all streams of an engine."""
        self.chains = [_Chain() for _ in range(count)]
        self.loop = asyncio.get_running_loop()
        self._changed = changed
        self._error: BaseException | None = None

    async def run(self, chains: Sequence[Chain[T]]) -> list[T]:
        """The chains' results, in their order. The first that fails ends the others."""
        tasks = [asyncio.create_task(self._run(own, chain)) for own, chain in zip(self.chains, chains, strict=True)]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            if not self.loop.is_closed():
                for task in tasks:
                    task.cancel()
            with self._changed:
                for chain in self.chains:
                    chain.over = True
                self._changed.notify_all()

    async def _run(self, own: _Chain, chain: Chain[T]) -> T:
        async def ask(requests: Sequence[SampleRequest]) -> list[Sample]:
            if not requests:
                return []
            call = Call(own, list(requests), self.loop.create_future())
            with self._changed:
                if self._error is not None:
                    raise self._error
                if own.call is not None or own.over:
                    raise RuntimeError("a chain asks for one thing at a time, and for nothing after its end")
                own.call, own.taken = call, False
                self._changed.notify_all()
            return await call.answer

        try:
            return await chain(ask)
        finally:
            with self._changed:
                own.over = True
                self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Whoever waits for an answer, and whoever asks from now on, gets this error."""
        with self._changed:
            self._error = error
            for chain in self.chains:
                call, chain.call, chain.over = chain.call, None, True
                if call is not None:
                    call.settle(error)


class Between:
    """What other threads want done on the engine's thread, between two turns or two launches of one."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._wanted: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def add(self, work: Callable[[], R]) -> "Future[R]":
        answer: Future[R] = Future()
        with self._changed:
            self._wanted.append((answer, work))
            self._changed.notify_all()
        return answer

    def run(self) -> None:
        while self._wanted:
            answer, work = self._wanted.popleft()
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)


class Streams:
    """The streams of one turn of the engine, on its thread."""

    def __init__(
        self, streams: Sequence[Stream], changed: threading.Condition, between: "Between", *, exact: bool
    ) -> None:
        """`exact`: batches do not depend on the time."""
        self._all, self._changed, self._between, self._exact = list(streams), changed, between, exact
        self._begun = self._over = False
        self._took = 0
        """The step before which the batch took in more, or could."""

    def join(self, stream: Stream) -> bool:
        """Take in another stream, from any thread; False where the turn is over."""
        with self._changed:
            if not self._over:
                self._all.append(stream)
                self._changed.notify_all()
            return not self._over

    def take(self, step: int, rows: int) -> list[Call]:
        """What joins the batch before this step, when it has so many completions. The turn is over when it has none
        and nothing joins."""
        idle = rows == 0
        self._between.run()
        # A turn that starts again counts its steps anew.
        if not idle and (self._exact or 0 <= step - self._took < EVERY):
            return []
        self._took = step
        with self._changed:
            while True:
                # Whoever wants this done may be who all others wait for.
                self._between.run()
                chains = self._chains()
                asking = [chain for chain in chains if chain.asks]
                # All begin together; after that only an exact batch waits for the last that thinks.
                waits = self._exact or (idle and not (asking and self._begun))
                if not (waits and any(chain.thinks for chain in chains)):
                    break
                self._changed.wait(_LOOK_S)
            self._begun = True
            self._over = idle and not asking
            for chain in asking:
                chain.taken = True
            return [chain.call for chain in asking if chain.call is not None]

    def done(self, call: Call, index: int, sample: Sample) -> None:
        """One of a call's samples is there."""
        call.samples[index] = sample
        if len(call.samples) == len(call.requests):
            self.answer(call)

    def answer(self, call: Call, error: BaseException | None = None) -> None:
        with self._changed:
            call.chain.call = None
        call.settle(error)

    def fail(self, error: BaseException) -> None:
        """Nothing more is answered, and nobody is waited for."""
        with self._changed:
            self._over = True
            for stream in self._all:
                stream.fail(error)
            self._changed.notify_all()

    def _chains(self) -> list[_Chain]:
        for stream in self._all:
            if stream.loop.is_closed():
                for chain in stream.chains:
                    chain.over = True
        return [chain for stream in self._all for chain in stream.chains]
