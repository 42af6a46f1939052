"""Seeded random numbers for operators, in the amounts that adapters of large bases need.

On a CPU numpy draws them in blocks of a fixed size, each from a seed of its own, on as many threads as torch uses: the
numbers do not depend on how many those are. On CUDA they are torch's, so the same seed gives another child there.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.random import SFC64, Generator, SeedSequence
from torch import Tensor

_BLOCK = 1 << 20
_CHANCES = 1 << 16


class Draws:
    """The random numbers of one child."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        self._seed, self._calls = seed, 0
        self._torch = torch.Generator(device).manual_seed(seed) if device.type == "cuda" else None

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        if self._torch is not None:
            return torch.randn(shape, generator=self._torch, device=self.device)
        return self._filled(shape, np.float32, lambda numbers, out: numbers.standard_normal(dtype=np.float32, out=out))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        if self._torch is not None:
            drawn = torch.rand(shape, generator=self._torch, device=self.device)
        else:
            drawn = self._filled(shape, np.float32, lambda numbers, out: numbers.random(dtype=np.float32, out=out))
        return drawn.mul_(high - low).add_(low)

    @staticmethod
    def coin(chance: float) -> float:
        """The exact probability of `coins` with this chance: a multiple of 1 / 65536."""
        return round(chance * _CHANCES) / _CHANCES

    def coins(self, chance: float, *shape: int) -> Tensor:
        """True with this chance, rounded by `coin`."""
        below = self.coin(chance) * _CHANCES
        if self._torch is not None:
            return torch.rand(shape, generator=self._torch, device=self.device) * _CHANCES < below

        def toss(numbers: Generator, out: np.ndarray) -> None:
            words = numbers.bit_generator.random_raw(-(-len(out) // 4)).view(np.uint16)
            np.less(words[: len(out)], below, out=out)

        return self._filled(shape, np.bool_, toss)

    def number(self, low: float, high: float) -> float:
        """One number, uniform."""
        return self._next().uniform(low, high)

    def integer(self, low: int, high: int) -> int:
        """One of low, ..., high."""
        return int(self._next().integers(low, high, endpoint=True))

    def subset(self, size: int, of: int, rows: int = 1) -> Tensor:
        """Masks [rows, of], each with exactly `size` chosen at random."""
        order = self.uniform(rows, of).argsort(dim=1)
        return order.argsort(dim=1) < size

    def _next(self) -> Generator:
        self._calls += 1
        return Generator(SFC64(SeedSequence([self._seed, self._calls])))

    def _filled(
        self, shape: tuple[int, ...], dtype: type[np.generic], fill: Callable[[Generator, np.ndarray], object]
    ) -> Tensor:
        flat = np.empty(math.prod(shape), dtype)
        self._calls += 1

        def one(block: int) -> None:
            numbers = Generator(SFC64(SeedSequence([self._seed, self._calls, block])))
            fill(numbers, flat[block * _BLOCK : (block + 1) * _BLOCK])

        blocks = range(-(-len(flat) // _BLOCK))
        if len(blocks) == 1:
            one(0)
        else:
            with ThreadPoolExecutor(torch.get_num_threads()) as pool:
                list(pool.map(one, blocks))
        return torch.from_numpy(flat).view(shape)
