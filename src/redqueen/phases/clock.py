"""The clock of a step: the seconds of each phase, said as it begins. A race that shall stop does so by it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redqueen.phases.view import View


class Stopped(Exception):
    """Somebody wants the race to stop; the step under way is given up, and nothing of it has happened."""


class Clock:
    """One for every step."""

    def __init__(self, step: int, view: View, stopping: Callable[[], bool]) -> None:
        self.step = step
        self.seconds: dict[str, float] = {}
        self._view, self._stopping = view, stopping

    @contextmanager
    def __call__(self, phase: str, *, may_stop: bool = False) -> Iterator[None]:
        if may_stop and self._stopping():
            raise Stopped
        self._view.phase(self.step, phase)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start
