"""Copies between host and device that wait for nothing."""

import numpy as np
import torch
from torch import Tensor

RING = 16
"""More than a scheduler has launches on their way."""


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class HostRing:
    """Places on the host for one small tensor after the other. A place is used again `RING` tensors later."""

    def __init__(self, size: int, dtype: torch.dtype, device: torch.device) -> None:
        self._places = torch.zeros(RING, size, dtype=dtype, pin_memory=device.type == "cuda")
        self._at = 0

    def next(self) -> Tensor:
        self._at = (self._at + 1) % RING
        return self._places[self._at]
