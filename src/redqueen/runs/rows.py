"""What a run records: one frozen row for every table of `records.sqlite`, and all rows of a step together.

A row's fields are its table's columns, in the same order; what a rejection rests on is in a table of its own. A step
and a place name a proposal for ever, whether it became a task or a rejection. What a match came to is
`population.board.Meeting`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redqueen.population.board import Meeting
from redqueen.runs.metrics import METRICS, RACE, Metric

SOURCE = "source"
"""Stands for the teacher of tasks that nobody proposed: items of fixed sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A proposal that became a task."""

    step: int
    place: int
    """Its number among the step's proposals, from 0."""
    match: int
    teacher: str
    kind: str
    group_: int
    """The prompt it was sampled from: the proposals of one prompt share it."""
    id: str
    near_key: str
    descriptor: str
    record: Mapping[str, Any]
    """The task itself, as its family writes it down."""
    text: str
    """The teacher's completion."""
    solved: int
    attempts: int
    """By the whole panel."""
    reward: float
    depth: int
    cyclomatic: int
    lines: int
    variables: int
    answer_chars: int
    behaviour: str | None = None
    """What its program does on fixed inputs, as a hash; None where those say nothing about it."""
    trivial: str | None = None
    """Why its difficulty does not count; None when it does."""
    oversight: bool = False
    """Set aside for a person to look at."""

    @property
    def solve_rate(self) -> float | None:
        """None without an attempt."""
        return self.solved / self.attempts if self.attempts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionRow:
    """A proposal that did not become a task."""

    step: int
    place: int
    match: int
    teacher: str
    kind: str
    group_: int
    reason: str
    detail: str
    text: str
    """The teacher's completion."""
    reward: float
    program: str | None = None
    """As far as one was read; None where there was none, and in records that were begun before it was kept."""
    runs: tuple[str, ...] | None = None
    """What each call of the program gave, in each run that the rejection rests on; empty when it was not run, None
    where there is no program."""

    @property
    def evidence(self) -> "EvidenceRow | None":
        if self.program is None:
            return None
        return EvidenceRow(self.step, self.place, self.program, self.runs or ())


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """What a rejection rests on.

    A table of its own, since it alone holds what a refused program returned: of one that is not deterministic that may
    be something else in an equal run. Nothing else in the records depends on it.
    """

    step: int
    place: int
    program: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """A student's attempt at a task, and its verdict."""

    step: int
    place: int
    """The task's."""
    student: str
    number: int
    """Among this student's attempts at the task, from 0."""
    text: str
    grade: str
    reason: str | None
    """Why it is malformed, or its task void; None when neither."""
    status: str | None
    """How the program ended; None when nothing was run."""
    detail: str
    reward: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One replacement by evolution."""

    step: int
    role: str
    seat: str
    dead: str
    child: str
    operator: str | None
    """None for a fresh member."""
    parents: tuple[str, ...]
    seed: str
    """Where the operator's random numbers came from: 64 bits, more than an INTEGER column holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRow:
    """Something that a person should know of."""

    step: int
    number: int
    """Among the step's alarms, from 0."""
    subject: str
    measure: str
    value: float | None
    floor: float | None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One figure of one step."""

    step: int
    subject: str
    """`race`, a role, or a member's id."""
    kind: str
    """Empty: all kinds together."""
    name: str
    """Of a `Metric`."""
    value: float
    """May be infinite or no number at all, as the norm of a broken gradient is."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a phase of a step took, by the wall clock, which always differs between equal runs."""

    step: int
    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """When what of a step was done, by the wall clock too."""

    step: int
    timeline: Mapping[str, Any]
    """As `phases.timeline.Timeline` writes it down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker of a cluster at the end of a step. Which there are, and what they have, differs between equal runs."""

    step: int
    worker: str
    machine: str
    process: int
    members: tuple[str, ...]
    """That are at home there."""
    seconds: Mapping[str, float]
    """By the name of the call: what the last ones took for each text or member that they were about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEventRow:
    """What became of a worker. It has happened, whatever becomes of the step: no resumed run forgets it."""

    step: int
    """That was under way."""
    time: float
    """Seconds since 1970, UTC."""
    worker: str
    what: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """Everything that a step leaves in the records."""

    step: int
    """From 1."""
    matches: Sequence[Meeting] = ()
    tasks: Sequence[TaskRow] = ()
    rejections: Sequence[RejectionRow] = ()
    attempts: Sequence[AttemptRow] = ()
    events: Sequence[EventRow] = ()
    alarms: Sequence[AlarmRow] = ()
    metrics: Sequence[MetricRow] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase."""
    timeline: Mapping[str, Any] | None = None
    workers: Sequence[WorkerRow] = ()
    """None of a race in one process."""

    def figures(self, subject: str = RACE, kind: str = "") -> dict[Metric, float]:
        """All of one subject."""
        return {METRICS[row.name]: row.value for row in self.metrics if (row.subject, row.kind) == (subject, kind)}
