"""How long the GPU worked, by torch's profiler."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from redqueen.phases.timeline import merged

GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
"""The categories of a trace's events that happen on the GPU."""


@contextmanager
def gpu_seconds() -> Iterator[Callable[[], float]]:
    """Watch all threads of this process; what it gives says, afterwards, how many seconds the GPU worked."""
    from torch.profiler import ProfilerActivity, profile

    profiler = profile(activities=[ProfilerActivity.CUDA])

    def worked() -> float:
        with TemporaryDirectory(prefix="redqueen-") as folder:
            trace = Path(folder, "trace.json")
            profiler.export_chrome_trace(str(trace))
            return busy_seconds(trace)

    with profiler:
        yield worked


def busy_seconds(trace: Path) -> float:
    """The seconds of a trace, as torch's profiler exports it, in which there was any work on a GPU."""
    with trace.open(encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    # Microseconds.
    spans = merged((event["ts"], event["ts"] + event["dur"]) for event in events if event.get("cat") in GPU_WORK)
    return math.fsum(ended - began for began, ended in spans) / 1e6
