"""Sums over the processes that share a base, on one machine."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from redqueen.engine.split.part import Sum
from redqueen.errors import InputError

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others, which compute the same: one that has ended is noticed at once."""
_HERE = "127.0.0.1"


class Lost(InputError):
    """A process with another part is gone."""

    def __init__(
        self,
        what: str = "a process with a part of the base has ended; what it said, if anything, is above",
        mend: str = "start again: a run goes on from its last checkpoint",
    ) -> None:
        super().__init__(what, mend)


def connected(meeting: Path, rank: int, size: int, device: torch.device) -> Sum:
    """A connection to the others, who come to the same place; a file that nobody else uses."""
    # Any: groups of one's own are hardly typed, and the default one would be the only one of this process.
    torch_groups: Any = dist
    store = torch_groups.FileStore(str(meeting), size)
    if on_one_device(device, size) == 1:
        options = torch_groups.ProcessGroupNCCL.Options()
        options._timeout = PATIENCE
        group = torch_groups.ProcessGroupNCCL(store, rank, size, options)
    else:
        # Also for processes that share a GPU, which NCCL refuses: by way of the host's memory.
        options = torch_groups.ProcessGroupGloo._Options()
        options._timeout = PATIENCE
        options._devices = [torch_groups.ProcessGroupGloo.create_device(hostname=_HERE)]
        group = torch_groups.ProcessGroupGloo(store, rank, size, options)

    def sum_(x: Tensor) -> None:
        try:
            group.allreduce([x]).wait()
        except RuntimeError as error:
            raise Lost from error

    return sum_


def on_one_device(device: torch.device, size: int) -> int:
    """How many of so many processes share one device."""
    return 1 if device.type == "cuda" and torch.cuda.device_count() >= size else size


def device_of(rank: int, device: torch.device) -> torch.device:
    """Where the part of this rank is: on a GPU of its own, if there are enough."""
    return torch.device("cuda", rank % torch.cuda.device_count()) if device.type == "cuda" else device
