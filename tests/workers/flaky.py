"""Workers of this process that are lost at a chosen call: real workers, on a way that breaks."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from redqueen.cluster.inside import Inside
from redqueen.cluster.links import Link, Lost
from redqueen.errors import MachineError

How = Literal["before", "after", "silent", "stuck", "device", "full"]
"""It ends before it gets the call, or after it has done what it was asked and before its answer is heard; or it gets
nothing any more and says nothing, and is not even known to be gone; or it never answers this call and all others; or
its device fails in it; or its machine has no room for the call, this once."""
CALLS = ("sample", "score", "update", "take")


@dataclass
class Flaky:
    """Implements `Workers`: `loses` says how a worker is lost at a call, by the call's number and method."""

    loses: Callable[[int, str], How | None] = lambda number, method: None
    starts: int = 1_000
    """Workers that can be started, the first ones included; of later ones nothing is ever heard."""
    calls: list[str] = field(default_factory=list)
    lost: int = 0
    inside: Inside = field(default_factory=Inside)

    def start(self) -> Link:
        self.starts -= 1
        return FlakyLink(self, self.inside.start(), silent=self.starts < 0)

    def close(self) -> None:
        self.inside.close()


class FlakyLink:
    """Implements `Link`."""

    def __init__(self, workers: Flaky, link: Link, *, silent: bool) -> None:
        self.name = link.name
        self._workers, self._link, self._silent = workers, link, silent

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        how = None
        if method in CALLS and not self._silent:
            how = self._workers.loses(len(self._workers.calls), method)
            self._workers.calls.append(method)
            self._workers.lost += how is not None
            self._silent = how == "silent"
        if self._silent or how == "stuck":
            return Future()
        if how == "device":
            failed: Future[Any] = Future()
            failed.set_exception(torch.AcceleratorError("CUDA error: an illegal memory access was encountered"))
            return failed
        if how == "full":
            refused: Future[Any] = Future()
            refused.set_exception(MachineError("the store is full", "make room"))
            return refused
        if how == "before":
            self._link.end()
        answer = self._link.call(method, *arguments)
        if how != "after":
            return answer
        unheard: Future[Any] = Future()
        answer.add_done_callback(lambda _: unheard.set_exception(Lost("the network is down")))
        return unheard

    def end(self) -> None:
        self._link.end()
