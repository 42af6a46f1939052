"""How much of the space of problems tasks have ever reached: the cells of a fixed grid, as MAP-Elites keeps them.

A task falls into one cell, by its kind, its type of problem and three figures of its program in bands. The grid never
changes, so coverage can be compared between runs, and it only grows. Each kind has 64 cells for every type of problem:
the 114 types of the code family make 7,296 cells for a kind, many of which no program can fill (a class in two lines).
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from redqueen.analysis.complexity import Complexity
from redqueen.tasks.protocol import Task

DEPTH_BANDS = (7, 10, 13)
CYCLOMATIC_BANDS = (2, 5, 10)
LINES_BANDS = (4, 9, 19)
"""The highest value of each band but the last, which has no end. Of the solutions of HumanEval and MBPP nearly all are
in the first two bands: there is room above for a race to climb."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was ever reached: cells of the grid here, behaviours in `measure.semantics`."""

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


def cell(task: Task, complexity: Complexity | None) -> str:
    """The cell of a task with these figures, None where it has no program."""
    return place(task.kind, task.descriptor, complexity)


def place(kind: str, descriptor: str, complexity: Complexity | None) -> str:
    """The cell of what a record says of a task: `code_o/list+loop/d1c0l2`, with the bands from 0."""
    if complexity is None:
        return f"{kind}/{descriptor}"
    depth = bisect_left(DEPTH_BANDS, complexity.depth)
    cyclomatic = bisect_left(CYCLOMATIC_BANDS, complexity.cyclomatic)
    lines = bisect_left(LINES_BANDS, complexity.lines)
    return f"{kind}/{descriptor}/d{depth}c{cyclomatic}l{lines}"
