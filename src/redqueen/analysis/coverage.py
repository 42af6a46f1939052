"""How much of the space of problems tasks have ever reached: the cells of a fixed grid, as MAP-Elites keeps them.

Which cell a task falls into is its family's to say (`Family.cell`). Coverage only grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was ever reached: cells of the grid here, or behaviours."""

    cells: frozenset[str] = frozenset()

    @classmethod
    def of(cls, cells: Iterable[str]) -> Self:
        return cls(frozenset(cells))

    def add(self, cells: Iterable[str]) -> tuple["Coverage", frozenset[str]]:
        """The coverage with these, and which of them are new."""
        new = frozenset(cells) - self.cells
        return Coverage(self.cells | new), new

    def __len__(self) -> int:
        return len(self.cells)
