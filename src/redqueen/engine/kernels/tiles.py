"""What all kernels share."""

import torch
import triton
from torch import Tensor

Groups = tuple[Tensor, Tensor]
"""The group of each row, and the bank's row of each group. Rows without a sequence are in the last group."""


def power(n: int, least: int = 16) -> int:
    """The power of two that a tile needs to hold `n`; the matrix units take no less than 16."""
    return max(least, triton.next_power_of_2(n))


def precision(tensor: Tensor) -> str:
    """float32 stays float32 in the matrix units."""
    return "ieee" if tensor.dtype == torch.float32 else "tf32"
