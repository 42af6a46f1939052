"""Tables of figures that fit their terminal: names are folded, figures are whole or left out, and that is said.

`Progress` is what a long wait for such a table says meanwhile.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from redqueen.command import printable
from redqueen.terminal import span_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 1_000
"""Columns where there is no terminal to fit into: tables stay whole there."""
NAME = 14
"""The least that a name has of them: it is folded, and never left out."""
GAP = 3
"""Between two columns."""
BETWEEN_LINES = 10.0
Columns = dict[str, list[str]]
"""By their heads."""


def show(console: "Console", names: Columns, figures: Columns, spare: Sequence[str]) -> list[str]:
    """Print a table; of the figures that it can do without, in this order, those that found no room."""
    if not console.is_terminal:
        console.width = WIDE
    left_out = []
    for head in spare:
        if head in figures and _width(names, figures) > console.width:
            del figures[head]
            left_out.append(head)
    console.width = max(console.width, _width(names, figures))
    console.print(_table(names, figures, console.width))
    return left_out


def _width(names: Columns, figures: Columns) -> int:
    """The least that a table takes."""
    return sum(_least(names, figures).values()) + GAP * (len(names) + len(figures) - 1)


def _least(names: Columns, figures: Columns) -> dict[str, int]:
    """Figures are whole; names are folded, and heads between their words."""
    folded = {head: min(NAME, _longest([head, *cells])) for head, cells in names.items()}
    return folded | {
        head: max(_longest(cells), min(NAME, _longest(head.split(" ")))) for head, cells in figures.items()
    }


def _longest(cells: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(cell_len(printable(cell)) for cell in cells)


def _table(names: Columns, figures: Columns, width: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    columns, least = {**names, **figures}, _least(names, figures)
    left = width - _width(names, figures)
    for head, cells in columns.items():
        more = max(0, min(left, _longest([head, *cells]) - least[head]))
        left -= more
        side = "left" if head in names else "right"
        table.add_column(Text(printable(head)), justify=side, overflow="fold", width=least[head] + more)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def say(line: str) -> None:
    print(f"redqueen: {printable(line)}", file=sys.stderr, flush=True)


class Progress:
    """A line about how far it is, every ten seconds at most."""

    def __init__(self, title: str, known: int, whole: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._done, self._whole, self._clock = title, known, whole, clock
        self._start = self._said = clock()

    def more(self, answers: int = 1) -> None:
        self._done += answers
        now = self._clock()
        if now - self._said >= BETWEEN_LINES:
            self._said = now
            say(f"{self._title}: {self._done:,} of {self._whole:,} answers, {span_text(now - self._start)}")
