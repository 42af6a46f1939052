"""How long the texts of a step take to be checked, by kind: what `timelines` has of families."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redqueen.phases.clock import Span
from redqueen.phases.timeline import merged


class Checks:
    """Of the step under way. Texts whose verdicts are known from the journal are not checked again."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._texts = Counter[str]()
        self._spans: dict[str, list[Span]] = defaultdict(list)

    @contextmanager
    def of(self, kind: str, texts: int) -> Iterator[None]:
        """While so many texts of a kind are checked."""
        start = self._clock()
        yield
        self._texts[kind] += texts
        self._spans[kind].append((start, self._clock()))

    def take(self) -> dict[str, tuple[int, float]]:
        """How many texts of each kind were checked, and the seconds in which any of them was; the next step begins."""
        taken = {
            kind: (self._texts[kind], sum(ended - began for began, ended in merged(spans)))
            for kind, spans in self._spans.items()
        }
        self._texts.clear()
        self._spans.clear()
        return taken
