"""Whatever is written to a terminal: text made safe for it, tables that fit it, spans of time, progress.

Tables of figures fold their names; figures are whole or left out, and that is said.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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


def print_table(console: "Console", names: Columns, figures: Columns, spare: Sequence[str]) -> list[str]:
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


class Result(Protocol):
    """What a command found out, and the two ways to show it."""

    def as_json(self) -> dict[str, Any]: ...

    def render(self, console: "Console") -> None: ...


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


def span_text(seconds: float) -> str:
    """A span of time in its two largest units at most: `40 s`, `9 min`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int], width: int) -> list[str]:
    """A table in lines of at most so many cells; columns in `left` begin at the left, all others end at the right."""
    from rich.cells import cell_len

    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = []
        for place, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            space = " " * (wide - cell_len(cell))
            padded.append(cell + space if place in left else space + cell)
        lines.append(cut("  ".join(padded).rstrip(), width))
    rule = "-" * min(sum(widths) + 2 * (len(widths) - 1), width)
    return [lines[0], rule, *lines[1:]]


def cut(text: str, width: int) -> str:
    """`text` in at most so many cells of the terminal, ending in "..." where it was longer."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(width - 3, 0)).rstrip() + "..."[:width]


def printable(text: str, keep: str = "") -> str:
    """`text` with every character that a terminal might obey written as an escape."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer))


def show(result: Result, *, as_json: bool) -> None:
    if as_json:
        print_json(result.as_json())
    else:
        result.render(console())


def console() -> "Console":
    from rich.console import Console

    class Plain(Console):
        """A console that leaves a broken pipe to `main`."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)

    return Plain()
