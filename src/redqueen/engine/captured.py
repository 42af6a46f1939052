"""Work on the GPU that is captured once and replayed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class Pool:
    """Memory that graphs share: they run one after the other."""

    def __init__(self) -> None:
        self.handle: Any = None

    def clear(self) -> None:
        """No graph uses it any more."""
        self.handle = None


@dataclass(frozen=True, slots=True)
class Captured:
    graph: Any
    outputs: tuple[Tensor, ...]

    @classmethod
    def of(cls, work: Callable[[], tuple[Tensor, ...]], pool: Pool) -> "Captured":
        """`work` is run once before, so it must not mind."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another thread's use of the device must not end the capture.
        with torch.cuda.graph(graph, pool=pool.handle, capture_error_mode="thread_local"):
            outputs = work()
        pool.handle = graph.pool()
        return cls(graph, outputs)
