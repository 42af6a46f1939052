"""Calls of an engine from several coroutines, which share its batches.

Calls that arrive while the engine is busy are answered in one batch where possible; streams join the turn of sampling
that is under way, unless somebody waits for a turn of another kind. The work runs on one thread of its own.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from redqueen.engine.protocol import Chain, Recipe
from redqueen.engine.streams import Between, Stream, Streams
from redqueen.errors import InputError

R = TypeVar("R")
T = TypeVar("T")
Kind = Literal["sample", "score", "update"]
Run = Callable[[Kind, Any, Recipe | None], Any]
"""Does the work of one turn, on the engine's thread; that of sampling gets its `Streams`."""
SHARE_WAIT_S, POLL_S = 0.3, 0.002
"""How long a turn waits for sharers of the engine that have not called yet, and how often it checks."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Call:
    kind: Kind
    items: Sequence[Any]
    recipe: Recipe | None
    answer: asyncio.Future

    @property
    def members(self) -> set[Any]:
        return {getattr(item, "member", None) for item in self.items}

    def settle(self, answer: Any = None, *, error: BaseException | None = None) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):  # the caller has been cancelled
            if error is None:
                self.answer.set_result(answer)
            else:
                self.answer.set_exception(error)


class CallQueue:
    def __init__(self, run: Run, *, exact: bool) -> None:
        """`exact`: the batches of a stream do not depend on the time."""
        self._run, self._exact = run, exact
        self._streams: Streams | None = None
        """Of the turn of sampling that is under way."""
        self._changed = threading.Condition()
        self._between = Between(self._changed)
        self._sharers = 0
        self._own: set[int] = set()
        """The engine's thread, once it has begun."""
        self._thread = ThreadPoolExecutor(1, "engine", initializer=lambda: self._own.add(threading.get_ident()))
        self._waiting: list[_Call] = []
        self._server: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._closed = False

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        if not chains:
            return []
        stream = Stream(len(chains), self._changed)
        if not self._joins(stream):
            turn = self._enter("sample", [stream])
            turn.add_done_callback(lambda turn: turn.cancelled() or _tell(stream, turn.exception()))
        return await stream.run(chains)

    def _joins(self, stream: Stream) -> bool:
        """The turn that is under way, if it can."""
        self._check_open()
        with self._lock:
            if self._streams is None or self._server is None or self._server.get_loop() is not stream.loop:
                return False
            others = any(call.kind != "sample" and not call.answer.done() for call in self._waiting)
            return not others and self._streams.join(stream)

    async def call(self, kind: Kind, items: Sequence[Any], recipe: Recipe | None = None) -> Any:
        return await self._enter(kind, items, recipe)

    def _enter(self, kind: Kind, items: Sequence[Any], recipe: Recipe | None = None) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        self._check_open()
        call = _Call(kind=kind, items=list(items), recipe=recipe, answer=loop.create_future())
        with self._lock:
            if self._server is not None and (self._server.done() or self._server.get_loop().is_closed()):
                # Nobody waits for the answers of a loop that has ended.
                self._server, self._waiting = None, []
            if self._server is not None and self._server.get_loop() is not loop:
                raise InputError("this engine is in use in another event loop", "use one loop, or an engine for each")
            self._waiting.append(call)
            if self._server is None:
                self._server = loop.create_task(self._serve())
        return call.answer

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        self._sharers += 1
        try:
            yield
        finally:
            self._sharers -= 1

    def on_thread(self, work: Callable[..., R], *args: Any, **options: Any) -> R:
        """Run it between two turns, or two launches of sampling: a turn may be waiting for whoever calls this."""
        self._check_open()
        if threading.get_ident() in self._own:
            return work(*args, **options)
        answer = self._between.add(lambda: work(*args, **options))
        self._thread.submit(self._between.run)
        return answer.result()

    def close(self) -> None:
        self._closed = True
        if (streams := self._streams) is not None:
            streams.fail(_closed())
        self._thread.shutdown()

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    async def _serve(self) -> None:
        while True:
            await self._wait_for_sharers()
            with self._lock:
                turn = self._turn()
                if not turn:
                    self._server = None
                    return
            await self._answer(turn)

    async def _wait_for_sharers(self) -> None:
        await asyncio.sleep(0)
        end = time.monotonic() + SHARE_WAIT_S
        while time.monotonic() < end:
            waiting = sum(not call.answer.done() for call in self._waiting)
            if not 0 < waiting < self._sharers:
                return
            await asyncio.sleep(POLL_S)

    def _turn(self) -> list[_Call]:
        """The oldest call and those that can share its batch. Drops calls that were cancelled."""
        self._waiting = [call for call in self._waiting if not call.answer.done()]
        if not self._waiting:
            return []
        first, *rest = self._waiting
        turn, taken = [first], first.members
        for call in rest:
            if (call.kind, call.recipe) != (first.kind, first.recipe):
                continue
            if first.kind == "update":
                # A member takes one step per update.
                if call.members & taken:
                    continue
                taken |= call.members
            turn.append(call)
        self._waiting = [call for call in self._waiting if call not in turn]
        return turn

    async def _answer(self, turn: list[_Call]) -> None:
        loop = asyncio.get_running_loop()
        kind, items = turn[0].kind, [item for call in turn for item in call.items]
        if kind == "sample":
            await self._sample(turn)
            return
        try:
            result = await loop.run_in_executor(self._thread, self._run, kind, items, turn[0].recipe)
        except Exception as error:
            # One caller's mistake must not fail the others: each call is tried by itself. An update is checked before
            # it changes any member, so after a user's mistake it can be; any other error goes to all.
            if len(turn) > 1 and (kind != "update" or isinstance(error, InputError)):
                for call in turn:
                    await self._answer([call])
                return
            for call in turn:
                call.settle(error=error)
            return
        at = 0
        for call in turn:
            if kind == "update":
                call.settle({member: result[member] for member in dict.fromkeys(t.member for t in call.items)})
            else:
                call.settle(result[at : at + len(call.items)])
            at += len(call.items)

    async def _sample(self, turn: list[_Call]) -> None:
        """Streams tell their callers themselves."""
        loop = asyncio.get_running_loop()
        begun = [stream for call in turn for stream in call.items]
        streams = Streams(begun, self._changed, self._between, exact=self._exact)
        with self._lock:
            self._streams = streams
        try:
            await loop.run_in_executor(self._thread, self._run, "sample", streams, None)
        except Exception as error:
            for call in turn:
                call.settle(error=error)
        else:
            for call in turn:
                call.settle()
        finally:
            # Where its loop has ended this may come late.
            if self._streams is streams:
                self._streams = None


def _closed() -> InputError:
    return InputError("this engine is closed", "open another")


def _tell(stream: Stream, error: BaseException | None) -> None:
    if error is not None:
        stream.fail(error)
