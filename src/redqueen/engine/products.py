"""Matrix products on a CPU by the fastest library."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def quick_products(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """On an ARM CPU torch uses oneDNN, which takes several times as long as BLAS for narrow matrices."""
    arm = device.type == "cpu" and torch.backends.mkldnn.is_acl_available()
    if not arm or dtype not in (torch.float32, torch.float64):
        yield
        return
    before = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=before[0])
