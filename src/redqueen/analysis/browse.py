"""Tasks and rejections for people: a listing, or one of them whole.

Most of what is shown here was written by models. It is escaped and indented, so that it can neither act on a terminal
nor pass for a line of ours.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from redqueen.console import printable
from redqueen.errors import InputError
from redqueen.runs.rows import AttemptRow, RejectionRow, TaskRow
from redqueen.runs.store import Store

if TYPE_CHECKING:
    from rich.console import Console

CELL_CHARS = 200
"""Of a program, before it is cut to the terminal."""
_OF_ALL = ("kind", "teacher", "since", "until", "text", "before")
"""The filters that tasks and rejections have."""
GAP = 2
"""Between columns: padding, and the one cell of the table's own lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which rows are wanted; None takes all."""

    kind: str | None = None
    teacher: str | None = None
    since: int | None = None
    until: int | None = None
    min_rate: float | None = None
    max_rate: float | None = None
    oversight: bool = False
    rejected: bool = False
    """Rejections, not tasks."""
    reason: str | None = None
    """Of a rejection."""
    text: str | None = None
    """What the teacher wrote has it somewhere, ASCII letters in either case."""
    before: tuple[int, int] | None = None
    """A step and a place."""

    @property
    def row_type(self) -> type[TaskRow] | type[RejectionRow]:
        return RejectionRow if self.rejected else TaskRow


def rows(
    store: Store, filters: Filters, limit: int | None, *, newest_first: bool
) -> Iterator[TaskRow] | Iterator[RejectionRow]:
    """One at a time, however many there are."""
    where: dict[str, Any] = {name: getattr(filters, name) for name in _OF_ALL}
    where |= {"newest_first": newest_first, "limit": limit}
    if filters.rejected:
        return store.rejections(**where, reason=filters.reason)
    # Asked for or not asked for: nobody wants only those that were not set aside.
    oversight = filters.oversight or None
    return store.tasks(**where, min_rate=filters.min_rate, max_rate=filters.max_rate, oversight=oversight)


@dataclass(frozen=True, slots=True)
class Listing:
    """What fits the filters, the newest first."""

    rows: Sequence[TaskRow | RejectionRow]
    more: bool
    """There are others that fit."""
    reasons: Mapping[str, int] | None
    """How often each occurs among all that fit; None for tasks."""

    def as_json(self) -> dict[str, Any]:
        name = "tasks" if self.reasons is None else "rejections"
        reasons = {} if self.reasons is None else {"reasons": dict(self.reasons)}
        return {name: [row_record(row) for row in self.rows], "more": self.more, **reasons}

    def render(self, console: "Console") -> None:
        from rich import box
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        from redqueen.console import cut

        if not self.rows:
            console.print("nothing fits these filters; `redqueen tasks RUN` without any lists the newest")
            return
        heads = ("solved", "lines", "program") if self.reasons is None else ("reason", "text")
        cells = [(f"{row.step}:{row.place}", row.kind, row.teacher, *_cells(row)) for row in self.rows]
        head = ("place", "kind", "teacher", *heads)
        shown = [tuple(map(printable, line)) for line in (head, *cells)]
        taken = sum(max(cell_len(line[at]) for line in shown) + GAP for at in range(len(head) - 1))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, GAP - 1, 0, 0))
        for name in head:
            table.add_column(name, no_wrap=True, justify="right" if name in ("solved", "lines") else "left")
        for *short, long in shown[1:]:
            table.add_row(*map(Text, short), Text(cut(long, max(console.width - taken - GAP, len(head[-1])))))
        console.print(table)
        if self.reasons is not None:
            counted = ", ".join(f"{reason} {count:,}" for reason, count in self.reasons.items())
            console.print(Text(printable(f"{sum(self.reasons.values()):,} rejected: {counted}")), soft_wrap=True)
        if self.more:
            console.print(f"the newest {len(self.rows)}; --limit N lists more, --to FILE writes all", soft_wrap=True)


def listing(store: Store, filters: Filters, limit: int) -> Listing:
    newest = list(rows(store, filters, limit + 1, newest_first=True))
    reasons = None
    if filters.rejected:
        reasons = store.reasons(kind=filters.kind, teacher=filters.teacher, since=filters.since, until=filters.until)
    return Listing(newest[:limit], len(newest) > limit, reasons)


@dataclass(frozen=True, slots=True)
class Whole:
    """One proposal with everything that came of it."""

    row: TaskRow | RejectionRow
    attempts: Sequence[AttemptRow] = ()

    def as_json(self) -> dict[str, Any]:
        name = "task" if isinstance(self.row, TaskRow) else "rejection"
        return {name: row_record(self.row), "attempts": [_finite(asdict(attempt)) for attempt in self.attempts]}

    def render(self, console: "Console") -> None:
        from rich.text import Text

        for line in self._lines():
            console.print(Text(line), soft_wrap=True)

    def _lines(self) -> Iterator[str]:
        row = self.row
        yield printable(f"{row.kind} of step {row.step}, place {row.place}, by {row.teacher}")
        if isinstance(row, RejectionRow):
            yield printable(f"rejected: {row.reason}{f', {row.detail}' if row.detail else ''}; reward {row.reward:g}")
            if row.program is not None:
                yield from _block("program", row.program)
                yield from _block("runs", row.runs or "not run")
            yield from _block("proposal", row.text)
            return
        rate = "not attempted" if row.solve_rate is None else f"solved {row.solved} of {row.attempts}"
        notes = [rate, f"reward {row.reward:g}", *([f"does not count: {row.trivial}"] if row.trivial else [])]
        yield printable("; ".join([*notes, *(["flagged for human review"] if row.oversight else [])]))
        size = f"{row.lines} lines, depth {row.depth}, cyclomatic {row.cyclomatic}, {row.variables} variables; "
        yield printable(f"{size if row.depth else ''}{row.descriptor}; id {row.id[:16]}")
        for name, value in row.record.items():
            if name != "kind" and value not in ("", [], None):
                yield from _block(name, value)
        yield from _block("proposal", row.text)
        for student, attempts in groupby(self.attempts, key=lambda attempt: attempt.student):
            for attempt in attempts:
                facts = [attempt.reason, attempt.status, attempt.detail]
                why = ", ".join(fact for fact in facts if fact)
                verdict = f"{attempt.grade}{f' ({why})' if why else ''}"
                paid = f"reward {attempt.reward:g}, {attempt.tokens} tokens"
                yield from _block(f"{student} attempt {attempt.number}: {verdict}, {paid}", attempt.text)


def one(store: Store, step: int, place: int) -> Whole:
    task = store.task(step, place)
    if task is not None:
        return Whole(task, store.attempts(step, place))
    rejection = store.rejection(step, place)
    if rejection is not None:
        return Whole(rejection)
    last = store.last_step()
    raise InputError(f"there is no proposal {step}:{place}", f"the run has steps 1 to {last}, list it without --show")


def row_record(row: TaskRow | RejectionRow) -> dict[str, Any]:
    """A row as plain JSON values; a task with its solve rate."""
    record = _finite(asdict(row))
    return record | {"solve_rate": row.solve_rate} if isinstance(row, TaskRow) else record


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no other numbers."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def _cells(row: TaskRow | RejectionRow) -> tuple[str, ...]:
    if isinstance(row, RejectionRow):
        return row.reason, _first_line(row.detail or row.text)
    solved = "-" if row.solve_rate is None else f"{row.solve_rate:.2f}"
    program = str(row.record.get("program", row.text) or row.record.get("asked", ""))
    return solved, str(row.lines or "-"), " ".join(filter(None, map(str.strip, program.split("\n"))))[:CELL_CHARS]


def _first_line(text: str) -> str:
    return next((line for line in text.split("\n") if line.strip()), "").strip()[:CELL_CHARS]


def _block(name: str, value: object) -> Iterator[str]:
    """A name of ours, and under it, indented, what somebody else wrote."""
    yield ""
    yield printable(f"{name}:")
    for item in value if isinstance(value, list | tuple) else [value]:
        for line in str(item).expandtabs(4).strip("\n").split("\n"):
            yield f"  {printable(line)}"
