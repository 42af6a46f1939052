"""Tensors in the host's memory that a GPU reads and writes by itself.

torch's own pinned memory comes in sizes that are powers of two, nearly twice what members need: here the pages of an
ordinary tensor are registered with CUDA, and given back when it goes.
"""

import mmap
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redqueen.errors import MachineError

PORTABLE = 1
"""CUDA's flag for memory that is pinned for all GPUs."""


def host_zeros(*sizes: int, dtype: torch.dtype, beside: torch.device) -> Tensor:
    """Zeros in the host's memory, pinned where `beside` is a GPU."""
    if beside.type != "cuda":
        return torch.zeros(*sizes, dtype=dtype)
    count = torch.Size(sizes).numel() * dtype.itemsize
    pages = max(1, -(-count // mmap.PAGESIZE))
    memory = np.zeros((pages + 1) * mmap.PAGESIZE, np.uint8)
    start = -memory.ctypes.data % mmap.PAGESIZE
    _register(memory, memory.ctypes.data + start, pages * mmap.PAGESIZE)
    return torch.from_numpy(memory[start : start + count]).view(dtype).view(sizes)


def _register(memory: np.ndarray, address: int, size: int) -> None:
    """Whole pages that nothing else is in, until the array goes: a tensor made of it keeps it."""
    runtime: Any = torch.cuda.cudart()
    if code := int(runtime.cudaHostRegister(address, size, PORTABLE)):
        why = runtime.cudaGetErrorString(runtime.cudaError(code))
        raise MachineError(
            f"{size:,} bytes of the host's memory cannot be pinned for the GPU ({why})",
            "use fewer members or a lower rank, or end what else holds the host's memory",
        )
    # At the end of the process the pages go with it, and CUDA may be gone before.
    weakref.finalize(memory, _unregister, address).atexit = False


def _unregister(address: int) -> None:
    runtime: Any = torch.cuda.cudart()
    torch.cuda.check_error(int(runtime.cudaHostUnregister(address)))
