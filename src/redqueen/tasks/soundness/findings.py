"""What a check found of one kind: its verdict, a short figure and, where it failed, an example and how to mend it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from redqueen.tasks import sources
from redqueen.tasks.protocol import Attempt, Kind, Task
from redqueen.tasks.verdicts import Verdict
from redqueen.verifier import Verifier


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNTRIED = "not tried"
    """The kind lacks what the check needs; that it does is a failure of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found of a kind."""

    outcome: Outcome
    figure: str
    """In a few words, for the table."""
    what: str = ""
    """What is wrong, as a sentence without its end."""
    example: str = ""
    mend: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """The figures that were measured, by name."""


class Unsound(Exception):
    """A family gave back what no caller can use."""


def ok(figure: str, values: Mapping[str, float]) -> Finding:
    return Finding(outcome=Outcome.OK, figure=figure, values=values)


def failed(
    figure: str, what: str, *, example: str = "", mend: str, values: Mapping[str, float] | None = None
) -> Finding:
    return Finding(outcome=Outcome.FAILED, figure=figure, what=what, example=example, mend=mend, values=values or {})


def untried(why: str, values: Mapping[str, float] | None = None) -> Finding:
    return Finding(outcome=Outcome.UNTRIED, figure=why, values=values or {})


def excerpt(value: object, most: int = 160) -> str:
    """A text as Python writes it, in ASCII, cut where it is long."""
    text = ascii(value)
    return text if len(text) <= most else f"{text[: most - 3]}... ({len(text):,} characters)"


def named(task: Task) -> str:
    """A task, for a person to find it again."""
    record = {name: value for name, value in task.record().items() if name != "kind"}
    return f"task {task.id[:12]} {excerpt(record)}"


def said(verdict: Verdict) -> str:
    return f"{verdict.grade} ({verdict.reason})" if verdict.reason else str(verdict.grade)


async def graded(kind: Kind[Any, Any], attempts: Sequence[Attempt[Any]], verifier: Verifier) -> list[Verdict]:
    """The verdicts, one for each attempt, as a race has them."""
    verdicts = await sources.graded(kind, attempts, verifier)
    if len(verdicts) != len(attempts) or not all(isinstance(verdict, Verdict) for verdict in verdicts):
        raise Unsound(f"grade gave {excerpt(verdicts)} for {len(attempts)} attempts, not a Verdict for each")
    return verdicts
