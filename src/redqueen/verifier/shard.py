"""A shard: a process with a supervisor and its zygotes, which takes jobs from its verifier and sends back outcomes.

It is executed, never forked, and has one thread. All that guests write is read and judged here; plain data goes on to
the host. It ends when the host's end of the link closes, and its zygotes with it.
"""

import selectors
import socket
import sys
import time
from collections.abc import Sequence

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import machine, parcels
from redqueen.verifier.jobs import Outcome
from redqueen.verifier.link import Link
from redqueen.verifier.parcels import Report
from redqueen.verifier.runs import Ticket
from redqueen.verifier.supervisor import Supervisor
from redqueen.verifier.tiers import Tier

_REPORT_EVERY_S = 0.005
"""While runs are under way: each report takes the host's interpreter away from whatever else it does."""
_LAST_WORDS_S = 5.0


class Shard:
    """The recipient of its supervisor's outcomes, each known by the number under which the host sent the job."""

    def __init__(self, end: socket.socket, tier: Tier, workers: int, shards: int, preload: Sequence[str]) -> None:
        self._selector = selectors.DefaultSelector()
        self._link = Link(end, self._selector, self._take, self._host_gone)
        self._supervisor = Supervisor(tier, workers, preload, self._selector, shards)
        self._alone = False
        """The host is gone."""
        self._answers: list[tuple[int, parcels.Packed | None, parcels.Packed | None]] = []
        self._next_report = 0.0
        self._told: tuple[tuple[int, ...], int] | None = None
        """Of zygotes."""
        self._greeted = False

    def add(self, index: int, outcome: Outcome) -> None:
        self._answers.append((index, parcels.pack_outcome(outcome), None))

    def refuse(self, index: int, error: RedQueenError) -> None:
        self._answers.append((index, None, parcels.pack_error(error)))

    def run(self) -> None:
        """Until the host is gone, or nothing can be run."""
        supervisor = self._supervisor
        try:
            supervisor.begin()
            while not self._alone and supervisor.failure is None:
                supervisor.turn(self._until_report())
                self._report()
            if supervisor.failure is not None:
                self._fail(supervisor.failure, supervisor.refused)
        except OSError as error:
            self._fail(machine.exhausted(error))
        except Exception as error:
            self._fail(VerifierFault(f"{type(error).__name__}: {error}"))
            raise
        finally:
            supervisor.close()

    def _take(self, portion: list[tuple[int, parcels.Packed]]) -> None:
        for number, packed in portion:
            self._supervisor.take(Ticket.of(parcels.unpack_job(packed), number, self))

    def _host_gone(self) -> None:
        self._alone = True

    def _until_report(self) -> float | None:
        return max(0.0, self._next_report - time.monotonic()) if self._answers else None

    def _report(self) -> None:
        """Tell what is new: at once where nothing more is under way, and otherwise now and then."""
        now = time.monotonic()
        if self._alone or (self._supervisor.busy and now < self._next_report):
            return
        self._next_report = now + _REPORT_EVERY_S
        zygotes = tuple(self._supervisor.zygotes.ready_pids()), self._supervisor.zygotes.full_size()
        first = None if self._greeted else self._supervisor.first_zygote
        greeting = parcels.pack_greeting(first.greeting) if first is not None and first.greeting else None
        if self._answers or greeting or zygotes != self._told:
            report = Report(tuple(self._answers), zygotes if zygotes != self._told else None, greeting)
            self._link.send(tuple(report))
            self._answers, self._told, self._greeted = [], zygotes, self._greeted or greeting is not None

    def _fail(self, error: RedQueenError, refused: str | None = None) -> None:
        if not self._alone:
            report = Report(failure=parcels.pack_error(error), refused=refused)
            self._link.send_last(tuple(report), _LAST_WORDS_S)


def main() -> None:
    fd, tier, workers, shards, *preload = sys.argv[1:]
    Shard(socket.socket(fileno=int(fd)), Tier(tier), int(workers), int(shards), preload).run()
