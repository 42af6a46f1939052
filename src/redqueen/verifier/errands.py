"""Jobs on their way to those who run them: what waits, who has room, and who gets what.

A job goes to whoever has least to do for its workers, a few at a time, so that what is long holds up nobody but itself.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from redqueen.verifier.checkers import Checker
from redqueen.verifier.desk import Batch
from redqueen.verifier.jobs import Job
from redqueen.verifier.machine import Retries
from redqueen.verifier.supervisor import slots
from redqueen.verifier.zygotes import Modules

Kind = Modules | Checker


@dataclass(slots=True, eq=False)
class Errand:
    """A job on its way."""

    job: Job
    index: int
    batch: Batch
    retries: Retries | None = None
    """Of those that were lost under it."""

    @property
    def kind(self) -> Kind:
        """Which zygotes it waits for, as far as that shows without reading it: those without packages start fast."""
        return self.job.checker or (Modules.NUMPY if self.job.numpy else Modules.ALL)

    def goes_on(self, why: str) -> bool:
        """Whether it is tried once more. No program ends who runs it: a job under which they are lost time and again
        has no verdict."""
        self.retries = self.retries or Retries.start()
        if self.retries.next_pause() is None:
            self.batch.fail(self.retries.error(why))
            return False
        return True


class Taker:
    """Somebody who runs jobs with so many workers, and what it has to do."""

    def __init__(self, workers: int) -> None:
        self.slots = slots(workers)
        """Runs that it takes at once."""
        self.ready = False
        """It takes jobs."""
        self.under_way: dict[int, Errand] = {}
        self.runs = 0
        """Of all jobs that are under way."""
        self._runs_of: Counter[Kind] = Counter()

    def has_room(self, kind: Kind) -> bool:
        """No more than its slots, so that what waits, waits where anybody may take it. A kind whose zygotes have yet
        to start does not keep out the others."""
        return self.ready and self._runs_of[kind] < self.slots

    def load(self) -> float:
        return self.runs / self.slots

    def give(self, number: int, errand: Errand) -> None:
        self.under_way[number] = errand
        self._count(errand, 1)

    def take_back(self, number: int) -> Errand:
        errand = self.under_way.pop(number)
        self._count(errand, -1)
        return errand

    def _count(self, errand: Errand, sign: int) -> None:
        runs = sign * errand.job.seeds
        self.runs += runs
        self._runs_of[errand.kind] += runs


T = TypeVar("T", bound=Taker)


@dataclass(slots=True)
class Queue:
    """What waits for zygotes of one kind: the batches take turns, so that a long one does not hold up the others."""

    lines: deque[deque[Errand]] = field(default_factory=deque)

    def put(self, errands: Sequence[Errand], first: bool = False) -> None:
        line = deque(errands)
        self.lines.appendleft(line) if first else self.lines.append(line)

    def get(self) -> Errand | None:
        """The next whose batch still waits for it."""
        while self.lines:
            line = self.lines.popleft()
            errand = line.popleft()
            if line:
                self.lines.append(line)
            if not errand.batch.failed:
                return errand
        return None


class Waiting:
    """What waits, by kind."""

    def __init__(self) -> None:
        self._queues: defaultdict[Kind, Queue] = defaultdict(Queue)

    def put(self, errands: Sequence[Errand], first: bool = False) -> None:
        by_kind: dict[Kind, list[Errand]] = {}
        for errand in errands:
            by_kind.setdefault(errand.kind, []).append(errand)
        for kind, some in by_kind.items():
            self._queues[kind].put(some, first)

    def put_back(self, errands: Sequence[Errand], why: str) -> None:
        """What somebody had who is lost, as the next to be done."""
        self.put([errand for errand in errands if errand.goes_on(why)], first=True)

    def dealt(self, takers: Sequence[T]) -> Iterator[tuple[T, Errand]]:
        """As much as they have room for, once each pair has been given."""
        for kind, queue in self._queues.items():
            free = [taker for taker in takers if taker.has_room(kind)]
            while free and (errand := queue.get()) is not None:
                taker = min(free, key=Taker.load)
                yield taker, errand
                if not taker.has_room(kind):
                    free.remove(taker)
