"""How busy a GPU is, by its driver's counter: what nvidia-smi shows as utilisation."""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from statistics import fmean

import torch

from redqueen.phases.clock import Span

READ_EVERY_S = 0.02
"""The driver has a new figure every fifth of a second or so, on some GPUs every second."""
Counter = Callable[[], float | None]
"""The share of the last while in which any work was under way on the GPU; None where the driver fails to say."""


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def counter(device: torch.device) -> Counter | None:
    """Of a CUDA device; None where there is none, or where its driver does not say."""
    if device.type != "cuda":
        return None
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    handle, rates = ctypes.c_void_p(), _Rates()
    name = f"GPU-{torch.cuda.get_device_properties(device).uuid}".encode()
    if driver.nvmlInit_v2() or driver.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)):
        return None
    if driver.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)):
        return None

    def read() -> float | None:
        failed = driver.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates))
        return None if failed else rates.gpu / 100

    return read


class Meter:
    """Reads a counter all the time that it is open, on a thread of its own."""

    def __init__(self, read: Counter) -> None:
        self._read = read
        self._readings: list[tuple[float, float]] = []
        """With the time of each, by `time.perf_counter`."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu meter", daemon=True)

    def __enter__(self) -> "Meter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(READ_EVERY_S):
            if (share := self._read()) is not None:
                self._readings.append((time.perf_counter(), share))

    def share(self, spans: Sequence[Span]) -> float | None:
        """The mean within these spans; None where nothing was read."""
        readings = [share for at, share in self._readings if any(began <= at < ended for began, ended in spans)]
        return fmean(readings) if readings else None
