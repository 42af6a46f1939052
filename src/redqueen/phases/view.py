"""What a race tells whoever watches it: a step in summary, and the protocol of a view. Screens are in `ui/live.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from redqueen.runs.metrics import Metric
from redqueen.runs.rows import WorkerEventRow, WorkerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLine:
    """One member after a step."""

    id: str
    role: str
    born: int
    """The step."""
    figures: Mapping[Metric, float]
    """Of this step; without what there was nothing to measure of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardTask:
    """The latest task that was hard, as a person wants to see it."""

    kind: str
    teacher: str
    solve_rate: float
    text: str
    """What it is about: a program, or the whole question."""
    asked: str
    """What is asked about it: an output, an input, a program; empty where the text says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """One step that is done."""

    step: int
    steps: int
    """As many as the settings allow."""
    steps_left: int
    """As far as that can be told: fewer than up to `steps` where the operations will be spent before."""
    seconds: float
    phases: Mapping[str, float]
    """Seconds of each, in their order."""
    sampled_tokens: int
    members: Sequence[MemberLine]
    solve_rates: Mapping[str, float | None]
    """By kind."""
    proposals: int
    tasks: int
    hard_task: HardTask | None
    alarms: Sequence[str]
    events: Sequence[str]
    workers: Sequence[WorkerRow] = ()
    """None of a race in one process."""
    worker_events: Sequence[WorkerEventRow] = ()
    """Of this step; they were said when they happened."""


def end_text(step: int, steps_left: int, steps: int) -> str:
    """The last step of a race that has done `step` of at most `steps`, or about which one it will be: `~40`."""
    end = step + steps_left
    return f"~{end}" if step < end < steps else str(end)


class View(Protocol):
    """Whoever shows a race. Call `close` whatever happens: it gives the terminal back."""

    def started(self, facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> None:
        """`step` is the last that is done, 0 at the beginning; `end` is as `end_text` has it."""
        ...

    def phase(self, step: int, phase: str) -> None: ...

    def step_done(self, summary: StepSummary) -> None: ...

    def say(self, line: str) -> None:
        """Something that must be read, whenever it happens."""
        ...

    def finished(self, lines: Sequence[str]) -> None: ...

    def close(self) -> None: ...


class Quiet:
    """Nothing at all."""

    def started(self, facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> None:
        return

    def phase(self, step: int, phase: str) -> None:
        return

    def step_done(self, summary: StepSummary) -> None:
        return

    def say(self, line: str) -> None:
        return

    def finished(self, lines: Sequence[str]) -> None:
        return

    def close(self) -> None:
        return
