"""What the driver sees of workers, wherever they run."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMachine:
    """One of a cluster's."""

    address: str
    cpus: int
    """Ray's: places for workers."""
    gpus: float
    memory_gib: float
    workers: int
    """That it has room for."""
    versions: Mapping[str, str]
    worker: "WorkerMemory | None"
    """Of each worker, if there were as many as there is room for; None where its GPUs are all taken."""


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    device: str
    """cpu or cuda."""
    dtype: str
    size: int
    """In bytes."""
    host: int
    """Of the machine's memory, where it is shared by all its workers."""


def sharing(gpus: float, workers: int) -> int:
    """How many workers share a device, where each of them has so many GPUs."""
    return workers if gpus == 0 else max(1, int(1 / gpus + 1e-9))


class Lost(Exception):
    """A worker is gone, or cut off: what it was asked is asked of another."""

    def __init__(self, why: str, what: str = "died") -> None:
        """`what` is said of it in one or two words."""
        super().__init__(why)
        self.what = what


class Link(Protocol):
    """The way to one worker. Another process in its place has another link."""

    name: str

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        """What `Worker` answers. Fails with `Lost` where nobody does."""
        ...

    def end(self) -> None:
        """Have nothing left of the worker, whatever it does."""
        ...


class Workers(Protocol):
    def start(self) -> Link:
        """A new worker, which may take its time until it answers."""
        ...

    def close(self) -> None:
        """End all workers, and what was started for them."""
        ...
