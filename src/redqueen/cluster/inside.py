"""Workers of this process, each with an engine and a thread of its own: a race with shards and without a cluster."""

import asyncio
import threading
from concurrent.futures import Future
from itertools import count
from typing import Any

from redqueen.cluster.links import Link, Lost
from redqueen.cluster.worker import Opening, Worker
from redqueen.engine.local import LocalEngine

_LOADING = threading.Lock()
"""transformers loads one model at a time in a process."""


class Inside:
    """Implements `Workers`."""

    def __init__(self) -> None:
        self._numbers = count()
        self._links: list[InsideLink] = []

    def start(self) -> Link:
        link = InsideLink(f"worker {next(self._numbers)}")
        self._links.append(link)
        return link

    def close(self) -> None:
        for link in self._links:
            link.end()


class InsideLink:
    """Implements `Link`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._worker, self._loop = _InsideWorker(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._unanswered: set[Future[Any]] = set()
        self._ended = False

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        with self._lock:
            if self._ended:
                answer.set_exception(Lost("it has ended"))
                return answer
            self._unanswered.add(answer)
            work = asyncio.run_coroutine_threadsafe(getattr(self._worker, method)(*arguments), self._loop)
        work.add_done_callback(lambda work: self._settle(answer, work))
        return answer

    def end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            unanswered, self._unanswered = self._unanswered, set()
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for answer in unanswered:
            answer.set_exception(Lost("it has ended"))

    async def _finish(self) -> None:
        """A turn that is under way ends first."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._worker.close()

    def _settle(self, answer: "Future[Any]", work: "Future[Any]") -> None:
        with self._lock:
            if answer not in self._unanswered:
                return
            self._unanswered.discard(answer)
        if (error := work.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(work.result())


class _InsideWorker(Worker):
    def load(self, opening: Opening) -> LocalEngine:
        with _LOADING:
            return super().load(opening)
