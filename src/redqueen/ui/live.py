"""What a race shows of itself while it runs: a live view on a terminal, one line a step for pipes, or nothing.

The loop says what happened and knows nothing of screens. Whatever a model wrote is shown with every control character
escaped and is never read as markup, so no program can paint over our lines or reach the terminal behind them.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from redqueen.analysis.slowness import beside_others
from redqueen.console import cut, printable, span_text
from redqueen.phases.view import HardTask, MemberLine, Quiet, StepSummary, View, end_text
from redqueen.runs.metrics import MEMBER_COLUMNS, MU, REWARD, SIGMA
from redqueen.runs.rows import WorkerEventRow, WorkerRow

RECENT = 20
"""Steps that the ETA goes by: its median forgets a slow one, and follows programs as they grow longer."""
PROGRAM_LINES = 8
MOST_WORKERS = 8
"""Lines of workers, the slowest of more."""
MOST_WORKER_EVENTS = 3
"""The newest."""
LEAST_MEMBERS = 4
"""Shown even where the terminal is too low for them."""
FRAMES_PER_SECOND = 4
MEMBER_HEADS = ("member", "role", "rating", *MEMBER_COLUMNS, "born")
"""The page has the same."""


def open_view(quiet: bool, console: Console) -> View:
    """The view that suits where the output goes."""
    if quiet:
        return Quiet()
    # Not what rich calls a terminal alone: FORCE_COLOR makes one of every pipe.
    return Live(console) if console.is_interactive and console.file.isatty() else Plain(console)


class Plain:
    """One line a step, and one for each alarm and each event."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pace = Pace()

    def started(self, facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> None:
        for line in opening(facts, step, end, notes):
            self.say(line)

    def phase(self, step: int, phase: str) -> None:
        return

    def step_done(self, summary: StepSummary) -> None:
        self._pace.add(summary.seconds)
        self.say(step_line(summary, self._pace.eta(summary.steps_left)))
        for line in happenings(summary):
            self.say(line)

    def say(self, line: str) -> None:
        self._console.print(Text(printable(line)), soft_wrap=True)

    def finished(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.say(line)

    def close(self) -> None:
        return


class Live:
    """One view that is drawn again and again; notes, alarms and events scroll away above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pace = Pace()
        self._summary: StepSummary | None = None
        self._step, self._end = 0, ""
        self._phase: tuple[str, float] | None = None
        self._hard: tuple[int, HardTask] | None = None
        self._alarms: tuple[int, str] = (0, "")
        """How many, and the last one."""
        self._worker_events: tuple[WorkerEventRow, ...] = ()
        self._screen = Screen(console=console, get_renderable=self._draw, refresh_per_second=FRAMES_PER_SECOND)

    def started(self, facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> None:
        for line in opening(facts, step, end, notes):
            self.say(line)
        self._step, self._end = step, end
        self._screen.start(refresh=True)

    def phase(self, step: int, phase: str) -> None:
        self._step, self._phase = step, (phase, time.monotonic())

    def step_done(self, summary: StepSummary) -> None:
        self._pace.add(summary.seconds)
        self._step, self._phase = summary.step, None
        if summary.hard_task is not None:
            self._hard = summary.step, summary.hard_task
        if summary.alarms:
            self._alarms = self._alarms[0] + len(summary.alarms), f"step {summary.step}: {summary.alarms[-1]}"
        self._worker_events = (*self._worker_events, *summary.worker_events)[-MOST_WORKER_EVENTS:]
        self._summary = summary
        for line in happenings(summary):
            self.say(line)

    def say(self, line: str) -> None:
        self._console.print(Text(printable(line)), soft_wrap=True)

    def finished(self, lines: Sequence[str]) -> None:
        self.close()
        for line in lines:
            self.say(line)

    def close(self) -> None:
        self._phase = None
        self._screen.stop()

    def _draw(self) -> RenderableType:
        """From another thread, at any moment: it only reads values that are replaced whole."""
        width, height = self._console.size
        parts: list[RenderableType] = [self._head(width)]
        below: list[RenderableType] = []
        summary, hard, (alarms, last) = self._summary, self._hard, self._alarms
        if summary is not None:
            parts += [_line(counts_line(summary), width), _line(_split(summary.phases), width, "dim")]
        if hard is not None:
            below += _hard_task(*hard, width)
        if summary is not None:
            below += [_line(line, width) for line in worker_lines(summary.workers)]
        below += [_line(worker_event_line(event), width, "dim") for event in self._worker_events]
        if alarms:
            more = f"{alarms} alarms, the last: " if alarms > 1 else ""
            below.append(_line(f"{more}{last}", width, "bold red"))
        if summary is not None and summary.members:
            # A view that is higher than the terminal would lose its end; two lines are the table's own.
            room = max(height - len(parts) - len(below) - 3, LEAST_MEMBERS)
            parts += _members(summary.members, room)
        return Group(*parts, *below)

    def _head(self, width: int) -> Text:
        summary = self._summary
        words = [f"step {self._step}/{self._end if summary is None else _end(summary)}"]
        if (phase := self._phase) is not None:
            words.append(f"{phase[0]} {time.monotonic() - phase[1]:.0f} s")
        if summary is not None:
            words += [f"{_rate(summary)} tok/s", f"{summary.seconds:.1f} s a step"]
            if eta := self._pace.eta(summary.steps_left):
                words.append(f"eta {eta}")
        return _line("  ".join(words), width, "bold")


class Pace:
    """How long the rest will take, by the median of the recent steps."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)

    def eta(self, steps_left: int) -> str:
        """Empty before the first step and after the last one."""
        return span_text(steps_left * statistics.median(self._seconds)) if self._seconds and steps_left > 0 else ""


def opening(facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> list[str]:
    """What is said before the first step."""
    lines = [", ".join(f"{name} {value}" for name, value in facts.items())] if facts else []
    if step:
        lines.append(f"going on after step {step} of {end}")
    return [*lines, *notes]


def counts_line(summary: StepSummary) -> str:
    """`31 of 48 tasks  solved code_o 0.42 code_i 0.30  reward t -0.12 s 0.08`"""
    words = [f"{summary.tasks} of {summary.proposals} tasks"]
    if summary.solve_rates:
        words.append("solved " + " ".join(f"{kind} {_two(rate)}" for kind, rate in summary.solve_rates.items()))
    rewards: dict[str, list[float]] = {}
    for member in summary.members:
        if REWARD in member.figures:
            rewards.setdefault(member.role, []).append(member.figures[REWARD])
    if rewards:
        words.append("reward " + " ".join(f"{role[:1]} {_two(statistics.fmean(r))}" for role, r in rewards.items()))
    return "  ".join(words)


def step_line(summary: StepSummary, eta: str) -> str:
    """A whole step in one line."""
    words = [f"step {summary.step}/{_end(summary)}", counts_line(summary), f"{_rate(summary)} tok/s"]
    return "  ".join([*words, f"{summary.seconds:.1f} s", *([f"eta {eta}"] if eta else [])])


def happenings(summary: StepSummary) -> list[str]:
    """A line for each event and each alarm of a step."""
    events = [f"step {summary.step}: {event}" for event in summary.events]
    return [*events, *(f"step {summary.step}: alarm: {alarm}" for alarm in summary.alarms)]


def worker_lines(workers: Sequence[WorkerRow]) -> list[str]:
    """`worker 0 on gpu-3: t0, s1  update 0.31 s  sample 0.04 s  1.2 times the others`; of more than fit the slowest."""
    beside = beside_others(workers)
    shown = sorted(workers, key=lambda row: -beside.get(row.worker, 0.0))[:MOST_WORKERS]
    lines = []
    for row in workers:
        if row in shown:
            seconds = [f"{method} {took:.2g} s" for method, took in row.seconds.items()]
            times = [f"{beside[row.worker]:.1f} times the others"] if row.worker in beside else []
            members = ", ".join(row.members) or "no members"
            lines.append("  ".join([f"{row.worker} on {row.machine}: {members}", *times, *seconds]))
    return lines + ([f"{len(workers) - len(lines)} workers more"] if len(lines) < len(workers) else [])


def worker_event_line(event: WorkerEventRow) -> str:
    """`14:03:27 worker 1 died: ...`"""
    return f"{time.strftime('%H:%M:%S', time.localtime(event.time))} {event.worker} {event.what}: {event.cause}"


def _end(summary: StepSummary) -> str:
    return end_text(summary.step, summary.steps_left, summary.steps)


def _rate(summary: StepSummary) -> str:
    return f"{summary.sampled_tokens / summary.seconds:,.0f}" if summary.seconds > 0 else "-"


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _split(phases: Mapping[str, float]) -> str:
    whole = sum(phases.values())
    shares = ((name, seconds / whole) for name, seconds in phases.items()) if whole > 0 else ()
    return "time " + "  ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005)


def _line(text: str, width: int, style: str = "") -> Text:
    """One line that stays one, whatever is in it."""
    return Text(cut(printable(text), width), style=style, no_wrap=True, overflow="crop")


def _members(members: Sequence[MemberLine], room: int) -> list[RenderableType]:
    """The ratings, best first; of more than fit, the best and the worst."""
    ranked = sorted(members, key=lambda member: (-member.figures.get(MU, -math.inf), member.id))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in MEMBER_HEADS:
        table.add_column(name, justify="left" if name in ("member", "role") else "right", no_wrap=True)
    left_out = 0 if len(ranked) <= room else len(ranked) - room + 1
    split = len(ranked) - left_out - (len(ranked) - left_out) // 2
    for place, member in enumerate(ranked):
        if left_out and place == split:
            table.add_row(f"{left_out} more", style="dim")
        if split <= place < split + left_out:
            continue
        figures = member.figures
        rating = f"{figures[MU]:.1f} ±{figures[SIGMA]:.1f}" if MU in figures else "-"
        cells = (_two(figures.get(metric)) for metric in MEMBER_COLUMNS.values())
        row = (cut(printable(member.id), 12), member.role, rating, *cells, str(member.born))
        table.add_row(*(Text(cell) for cell in row))
    return [table]


def _hard_task(step: int, task: HardTask, width: int) -> list[RenderableType]:
    lines = task.text.expandtabs(4).strip("\n").split("\n")
    rate = f"solved {task.solve_rate:.2f}"
    shown = [_line(f"hard task of step {step}: {task.kind} by {task.teacher}, {rate}", width, "bold")]
    shown += [_line(f"  {line}", width) for line in lines[:PROGRAM_LINES]]
    if len(lines) > PROGRAM_LINES:
        shown.append(_line(f"  ... {len(lines) - PROGRAM_LINES} more lines", width, "dim"))
    if task.asked:
        shown.append(_line(f"  asked: {task.asked}", width))
    return [*shown]
