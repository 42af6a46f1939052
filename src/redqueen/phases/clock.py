"""The clock of a step: the seconds of each phase, said as it begins. A race that shall stop does so by it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from redqueen.phases.view import View

Span = tuple[float, float]
"""From when to when, by `time.perf_counter`."""
STREAM = "propose and solve"
"""The phase in which texts are sampled and judged."""


class Stopped(Exception):
    """Somebody wants the race to stop; the step under way is given up, and nothing of it has happened."""


class Clock:
    """One for every step."""

    def __init__(self, step: int, view: View, stopping: Callable[[], bool]) -> None:
        self.step = step
        self.seconds: dict[str, float] = {}
        self.spans: list[tuple[str, Span]] = []
        """Of all phases, in the order in which they ended."""
        self._view, self._stopping = view, stopping

    @contextmanager
    def __call__(self, phase: str, *, may_stop: bool = False) -> Iterator[None]:
        if may_stop:
            self.check_stop()
        self._view.phase(self.step, phase)
        start = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + end - start
            self.spans.append((phase, (start, end)))

    def check_stop(self) -> None:
        if self._stopping():
            raise Stopped

    def split(self, phase: str, into: Mapping[str, Sequence[Span]], rest: str) -> None:
        """Share out what a phase took: to those whose rows were at work, by their number at each time, and to `rest`
        while there were none."""
        parts = shared_seconds(into)
        parts[rest] = parts.get(rest, 0.0) + max(0.0, self.seconds[phase] - sum(parts.values()))
        # In the place of the whole: phases are shown in their order.
        self.seconds = {
            name: seconds
            for whole, own in self.seconds.items()
            for name, seconds in (parts.items() if whole == phase else [(whole, own)])
        }


def shared_seconds(spans: Mapping[str, Sequence[Span]]) -> dict[str, float]:
    """The seconds in which anybody was at work; where several were, by their number."""
    changes = sorted(
        (when, change, name)
        for name, own in spans.items()
        for began, ended in own
        for when, change in ((began, 1), (ended, -1))
    )
    seconds = dict.fromkeys(spans, 0.0)
    at_work = dict.fromkeys(spans, 0)
    before = 0.0
    for when, change, name in changes:
        if total := sum(at_work.values()):
            for each, count in at_work.items():
                seconds[each] += (when - before) * count / total
        at_work[name] += change
        before = when
    return seconds
