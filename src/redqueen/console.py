"""Writing to a terminal: text made safe for it, tables that fit it, durations, progress.

Tables wrap the columns of names. Columns of figures are printed whole or left out.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 1_000
"""The width where there is no terminal to fit into."""
NAME = 14
"""The least width of a column of names."""
GAP = 3
"""Between two columns."""
PROGRESS_SECONDS = 10.0
"""Between two lines of progress."""
Columns = dict[str, list[str]]
"""By their heads."""


def print_table(console: "Console", names: Columns, figures: Columns, spare: Sequence[str] = ()) -> list[str]:
    """Print a table. Where it is too wide, drop columns of `spare` in this order; those that were dropped."""
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
    return sum(_widths(names, figures).values()) + GAP * (len(names) + len(figures) - 1)


def _widths(names: Columns, figures: Columns) -> dict[str, int]:
    """The least width of each column: figures are whole, names wrap anywhere, heads between words."""
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
    columns, least = {**names, **figures}, _widths(names, figures)
    room = width - _width(names, figures)
    for head, cells in columns.items():
        more = max(0, min(room, _longest([head, *cells]) - least[head]))
        room -= more
        side = "left" if head in names else "right"
        table.add_column(Text(printable(head)), justify=side, overflow="fold", width=least[head] + more)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def say(line: str) -> None:
    print(f"redqueen: {printable(line)}", file=sys.stderr, flush=True)


class Report(Protocol):
    """The result of a command, and the two ways to show it."""

    def as_json(self) -> dict[str, Any]: ...

    def render(self, console: "Console") -> None: ...


@dataclass(frozen=True, slots=True)
class TextReport:
    """A report that is shown as lines of text, which must be printable."""

    values: Mapping[str, Any]
    lines: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return dict(self.values)

    def render(self, console: "Console") -> None:
        print(*self.lines, sep="\n")


class Progress:
    """A line of progress, every ten seconds at most."""

    def __init__(self, title: str, done: int, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._done, self._total, self._clock = title, done, total, clock
        self._start = self._said = clock()

    def more(self, answers: int = 1) -> None:
        self._done += answers
        now = self._clock()
        if now - self._said >= PROGRESS_SECONDS:
            self._said = now
            say(f"{self._title}: {self._done:,} of {self._total:,} answers, {span_text(now - self._start)}")


def span_text(seconds: float) -> str:
    """A duration in its two largest units: `40 s`, `9 min`, `3 h 20 min`, `2 d 4 h`."""
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


def size_text(count: int) -> str:
    """Bytes in GiB or MiB."""
    return f"{count / (1 << 30):,.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MiB"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int], width: int) -> list[str]:
    """A table as lines of at most `width` cells. Columns in `left` are aligned left, all others right."""
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
    """`text` in at most `width` cells of the terminal, ending in "..." where it was longer."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(width - 3, 0)).rstrip() + "..."[:width]


def printable(text: str, keep: str = "") -> str:
    """`text` with control characters escaped, so that it cannot steer a terminal."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json()))
    else:
        report.render(console())


def console() -> "Console":
    from rich.console import Console

    class Plain(Console):
        """A console that leaves a broken pipe to `main`."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)

    return Plain()
