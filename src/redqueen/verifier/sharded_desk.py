"""For many workers: their supervisors are processes of their own, and this one only passes jobs on and outcomes back.

One interpreter cannot hand out runs to more than a few cores, and what it does for them it does not do for the engine
in the same process. A job goes to the shard that has least to do for its workers, a few at a time, so that what is long
holds up nobody but itself. When a shard dies, what it had not answered goes to another under a new number.
"""

import errno
import itertools
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from redqueen.errors import RedQueenError
from redqueen.verifier import parcels
from redqueen.verifier.checkers import Checker
from redqueen.verifier.desk import Batch, Desk
from redqueen.verifier.jobs import Job
from redqueen.verifier.link import Link
from redqueen.verifier.machine import Retries
from redqueen.verifier.supervisor import slots
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Modules

_END_S = 20.0
"""How long a shard may take to end its zygotes and itself."""
_LONGEST_PAUSE_S = 5.0
"""Before another try to start a shard, where others do its work."""
Kind = Modules | Checker
_START = "from redqueen.verifier.shard import main; main()"


@dataclass(slots=True, eq=False)
class Errand:
    """A job on its way."""

    job: Job
    index: int
    batch: Batch
    retries: Retries | None = None
    """Of shards that died under it."""


def _kind(job: Job) -> Kind:
    """Which zygotes it waits for, as far as that shows without reading it: those without packages start fast."""
    return job.checker or (Modules.NUMPY if job.numpy else Modules.ALL)


class ShardProcess:
    """The host's end of a shard. It takes jobs from its greeting on."""

    def __init__(
        self,
        workers: int,
        arguments: Sequence[str],
        selector: selectors.BaseSelector,
        on_message: Callable[[parcels.Packed], None],
        on_end: Callable[[], None],
    ) -> None:
        self._slots = slots(workers)
        self.ready = False
        self.under_way: dict[int, Errand] = {}
        self.runs = 0
        """Of all jobs that are under way."""
        self.runs_of: Counter[Kind] = Counter()
        self.zygotes: tuple[tuple[int, ...], int] = ((), 0)
        end, child_end = socket.socketpair()
        with child_end:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(child_end.fileno()), *arguments],
                env={"PYTHONPATH": os.pathsep.join(map(str, sys.path)), "PYTHONUTF8": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[child_end.fileno()],
                start_new_session=True,
            )
        self.link = Link(end, selector, on_message, on_end)

    def has_room(self, kind: Kind) -> bool:
        """No more than its slots, so that what waits, waits where any shard may take it. A kind whose zygotes have yet
        to start does not keep out the others."""
        return self.ready and self.runs_of[kind] < self._slots

    def load(self) -> float:
        return self.runs / self._slots

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
        self.runs_of[_kind(errand.job)] += runs

    def wait(self) -> None:
        """Until it has ended, its link being closed."""
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(slots=True, eq=False)
class Place:
    """For one shard, whichever process that is just now."""

    workers: int
    shard: ShardProcess | None = None
    retries: Retries | None = None
    """Of a shard that is not ready yet."""
    due: float = 0.0
    """When the next try to start it is, while there is none."""


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


class ShardedDesk(Desk):
    """Hands jobs to shards, and restarts those that die."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str], shards: int) -> None:
        super().__init__(tier)
        self._preload = preload
        self._places = [Place(workers * (at + 1) // shards - workers * at // shards) for at in range(shards)]
        self._queues: defaultdict[Kind, Queue] = defaultdict(Queue)
        self._numbers = itertools.count(1)

    # From any thread.

    def zygote_pids(self) -> list[int]:
        return [pid for shard in self._shards() for pid in shard.zygotes[0]]

    def zygote_count(self) -> int:
        return sum(shard.zygotes[1] for shard in self._shards())

    def shard_pids(self) -> list[int]:
        return [shard.process.pid for shard in self._shards()]

    def _shards(self) -> list[ShardProcess]:
        return [shard for place in self._places if (shard := place.shard) is not None]

    def _abandon(self) -> None:
        for shard in self._shards():
            shard.link.drop()
            shard.process.returncode = 0  # not ours to wait for

    # In the thread.

    def _begin(self) -> None:
        for place in self._places:
            self._start(place)

    def _start(self, place: Place) -> None:
        """Our own limit of open files does not change by waiting."""
        arguments = [self.tier, str(place.workers), str(len(self._places)), *self._preload]
        on_message, on_end = partial(self._read, place), partial(self._lost, place, "a shard died")
        try:
            place.shard = ShardProcess(place.workers, arguments, self._selector, on_message, on_end)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            self._retry(place, error.strerror or str(error))

    def _turn(self) -> None:
        now = time.monotonic()
        dues = [place.due for place in self._places if place.shard is None]
        for key, events in self._selector.select(max(0.0, min(dues) - now) if dues else None):
            key.data(events)
        for place in self._places:
            if place.shard is None and place.due <= time.monotonic():
                self._start(place)
        self._hand_out()

    def _take(self, batch: Batch) -> None:
        errands: dict[Kind, list[Errand]] = {}
        for index, job in enumerate(batch.jobs):
            errands.setdefault(_kind(job), []).append(Errand(job, index, batch))
        for kind, some in errands.items():
            self._queues[kind].put(some)

    def _hand_out(self) -> None:
        """Give every shard what it has room for, one message each."""
        portions: dict[ShardProcess, list[tuple[int, parcels.Packed]]] = {}
        for kind, queue in self._queues.items():
            free = [shard for shard in self._shards() if shard.has_room(kind)]
            while free and (errand := queue.get()) is not None:
                shard = min(free, key=ShardProcess.load)
                number = next(self._numbers)
                shard.give(number, errand)
                portions.setdefault(shard, []).append((number, parcels.pack_job(errand.job)))
                if not shard.has_room(kind):
                    free.remove(shard)
        for shard, portion in portions.items():
            shard.link.send(portion)

    def _read(self, place: Place, message: parcels.Packed) -> None:
        report, shard = parcels.Report(*message), place.shard
        assert shard is not None
        for number, outcome, error in report.answers:
            errand = shard.take_back(number)
            if outcome is not None:
                errand.batch.add(errand.index, parcels.unpack_outcome(outcome, self.tier))
            elif error is not None:
                errand.batch.fail(parcels.unpack_error(error))
        if report.zygotes is not None:
            shard.zygotes = report.zygotes
        if report.greeting is not None:
            shard.ready, place.retries = True, None
            self._greeted(parcels.unpack_greeting(report.greeting))
        if report.failure is not None:
            self._failed(shard, parcels.unpack_error(report.failure), report.refused)

    def _failed(self, shard: ShardProcess, error: RedQueenError, refused: str | None) -> None:
        """A shard that could not begin while others work is tried again when it has ended."""
        if not self.first_ready.is_set():
            self.refused = refused
        if shard.ready or not any(other.ready for other in self._shards()):
            self.failure = error

    def _lost(self, place: Place, why: str) -> None:
        """A shard is gone, and its zygotes with it. Whatever it had not answered is handed out again."""
        shard, place.shard = place.shard, None
        assert shard is not None
        shard.process.kill()  # where only its link has ended
        shard.process.wait()
        left = [shard.take_back(number) for number in list(shard.under_way)]
        for kind, queue in self._queues.items():
            again = [errand for errand in left if _kind(errand.job) == kind and self._goes_on(errand, why)]
            if again:
                queue.put(again, first=True)
        self._retry(place, why)

    def _goes_on(self, errand: Errand, why: str) -> bool:
        """Whether it is tried once more. No program ends a shard: a job under which they die and die has no verdict."""
        errand.retries = errand.retries or Retries.start()
        if errand.retries.next_pause() is None:
            errand.batch.fail(errand.retries.error(why))
            return False
        return True

    def _retry(self, place: Place, why: str) -> None:
        """Start another after a pause; the pool fails where there is no shard left and none starts."""
        place.retries = place.retries or Retries.start()
        pause = place.retries.next_pause()
        if pause is None and not any(shard.ready for shard in self._shards()):
            self.failure = place.retries.error(why)
        place.due = time.monotonic() + (_LONGEST_PAUSE_S if pause is None else pause)

    def _end(self) -> None:
        shards = self._shards()
        for shard in shards:
            shard.link.close()
        for shard in shards:
            shard.wait()
