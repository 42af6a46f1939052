"""For many workers: their supervisors are processes of their own, and this one only passes jobs on and outcomes back.

One interpreter cannot hand out runs to more than a few cores, and what it does for them it does not do for the engine
in the same process. When a shard dies, what it had not answered goes to another under a new number.
"""

import errno
import itertools
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from redqueen.errors import RedQueenError
from redqueen.verifier import parcels
from redqueen.verifier.desk import Batch, ZygoteDesk
from redqueen.verifier.errands import Errand, Taker, Waiting
from redqueen.verifier.link import Link
from redqueen.verifier.machine import Retries
from redqueen.verifier.tiers import Tier

_END_S = 20.0
"""How long a shard may take to end its zygotes and itself."""
_LONGEST_PAUSE_S = 5.0
"""Before another try to start a shard, where others do its work."""
_START = "from redqueen.verifier.shard import main; main()"


class ShardProcess(Taker):
    """The host's end of a shard. It takes jobs from its greeting on."""

    def __init__(
        self,
        workers: int,
        arguments: Sequence[str],
        selector: selectors.BaseSelector,
        on_message: Callable[[parcels.Packed], None],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(workers)
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


class ShardedDesk(ZygoteDesk):
    """Hands jobs to shards, and restarts those that die."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str], shards: int) -> None:
        super().__init__(tier)
        self._preload = preload
        self._places = [Place(workers * (at + 1) // shards - workers * at // shards) for at in range(shards)]
        self._waiting = Waiting()
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
        self._waiting.put([Errand(job, index, batch) for index, job in enumerate(batch.jobs)])

    def _hand_out(self) -> None:
        """Give every shard what it has room for, one message each."""
        portions: dict[ShardProcess, list[tuple[int, parcels.Packed]]] = {}
        for shard, errand in self._waiting.dealt(self._shards()):
            number = next(self._numbers)
            shard.give(number, errand)
            portions.setdefault(shard, []).append((number, parcels.pack_job(errand.job)))
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
        self._waiting.put_back([shard.take_back(number) for number in list(shard.under_way)], why)
        self._retry(place, why)

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
