"""Where a step's seconds went: how many rows were in flight when, and what was done while there were none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redqueen.phases.clock import STREAM, Span

BINS = 60
"""Equal parts of a step."""
WAITING = "verify"
"""What is done in the stream while no row is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One step, from its first phase to its last: before it is recorded."""

    seconds: float
    proposals: tuple[float, ...]
    """Rows in flight: the mean over each of equal parts of the step."""
    attempts: tuple[float, ...]
    others: tuple[tuple[str, float, float], ...]
    """What is neither, in order: a phase, when it began and when it ended, in seconds from the step's beginning."""
    checks: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """By kind: how many texts were checked, and the seconds in which any of them was."""

    @classmethod
    def of(
        cls,
        phases: Sequence[tuple[str, Span]],
        proposals: Sequence[Span],
        attempts: Sequence[Span],
        checks: Mapping[str, tuple[int, float]],
    ) -> "Timeline":
        """From the phases of a step, from when each of its texts was sampled, and from how long checking them took."""
        began, ended = min(span[0] for _, span in phases), max(span[1] for _, span in phases)
        others = []
        for phase, span in phases:
            if phase == STREAM:
                others += [(WAITING, *gap) for gap in gaps((*proposals, *attempts), span)]
            else:
                others.append((phase, *span))
        return cls(
            seconds=ended - began,
            proposals=rows_in_flight(proposals, (began, ended), BINS),
            attempts=rows_in_flight(attempts, (began, ended), BINS),
            others=tuple((phase, start - began, end - began) for phase, start, end in others),
            checks=checks,
        )

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "Timeline":
        """Whatever `as_record` has written down."""
        each_ms = max(1, record["ms"]) / BINS
        return cls(
            seconds=record["ms"] / 1000,
            proposals=tuple(ms / each_ms for ms in record["proposals"]),
            attempts=tuple(ms / each_ms for ms in record["attempts"]),
            others=tuple((phase, start / 1000, end / 1000) for phase, start, end in record["others"]),
            # Steps that were recorded before checks were timed have none.
            checks={kind: (texts, ms / 1000) for kind, (texts, ms) in record.get("checks", {}).items()},
        )

    @property
    def rows(self) -> tuple[float, ...]:
        """Proposals and attempts."""
        return tuple(map(sum, zip(self.proposals, self.attempts, strict=True)))

    def as_record(self) -> dict[str, Any]:
        """In whole numbers: milliseconds, and for each part of the step the milliseconds of all its rows together."""
        each_ms = 1000 * self.seconds / BINS
        others = [(phase, round(1000 * start), round(1000 * end)) for phase, start, end in self.others]
        return {
            "ms": round(1000 * self.seconds),
            "proposals": [round(rows * each_ms) for rows in self.proposals],
            "attempts": [round(rows * each_ms) for rows in self.attempts],
            "others": [[phase, start, end] for phase, start, end in others if start < end],
            "checks": {kind: [texts, round(1000 * seconds)] for kind, (texts, seconds) in self.checks.items()},
        }


def rows_in_flight(spans: Iterable[Span], within: Span, bins: int) -> tuple[float, ...]:
    """How many of these are under way in each of equal parts of a span, in the mean; what is outside it does not
    count."""
    start, end = within
    width = (end - start) / bins
    rows = [0.0] * bins
    for began, ended in spans:
        began, ended = max(began, start), min(ended, end)
        if ended <= began:
            continue
        for place in range(int((began - start) / width), bins):
            left = start + place * width
            if left >= ended:
                break
            rows[place] += max(0.0, min(ended, left + width) - max(began, left)) / width
    return tuple(rows)


def merged(spans: Iterable[Span]) -> list[Span]:
    """When any of these was under way, in order."""
    joined: list[Span] = []
    for began, ended in sorted(spans):
        if joined and began <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], ended)
        else:
            joined.append((began, ended))
    return joined


def gaps(spans: Iterable[Span], within: Span) -> list[Span]:
    """When none of these was under way, of a span."""
    start, end = within
    left, found = start, []
    for began, ended in merged(spans):
        if began > left:
            found.append((left, min(began, end)))
        left = max(left, ended)
        if left >= end:
            break
    else:
        found.append((left, end))
    return [(began, ended) for began, ended in found if began < ended]
