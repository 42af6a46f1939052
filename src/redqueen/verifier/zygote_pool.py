"""The zygotes of a verifier: as many of each flavour as are needed, replaced when they die, given up when none starts.

A zygote that says why it cannot start is believed after a few tries. One that just dies, or is slow, is a failure of
the machine, and is retried for as long as those are tolerated.
"""

import selectors
import time
from collections.abc import Sequence

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import jobs
from redqueen.verifier.machine import RETRY_S, Retries
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Flavour, Zygote

_MAX_REFUSALS = 4
"""In a row, before a flavour is given up."""


class ZygotePool:
    """All zygotes of one supervisor. Other threads may only ask for `ready_pids` and `full_size`."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str], selector: selectors.BaseSelector) -> None:
        self.all: list[Zygote] = []
        self.idle_deaths = 0
        """Of zygotes that served and had no program in them just then."""
        self._tier = tier
        self._workers = workers
        self._preload = preload
        self._selector = selector
        self._refusals: dict[Flavour, int] = {}
        self._retries: dict[Flavour, Retries] = {}
        self._not_before: dict[Flavour, float] = {}

    @property
    def settled(self) -> bool:
        """Whether every zygote is ready and none is to be retried."""
        return all(zygote.ready for zygote in self.all) and not self._not_before

    def ready_pids(self) -> list[int]:
        return [zygote.process.pid for zygote in list(self.all) if zygote.ready]

    def full_size(self) -> int:
        """How many zygotes there are when none is being replaced."""
        return sum(map(self._count, {zygote.flavour for zygote in self.all}))

    def ensure(self, flavour: Flavour) -> None:
        """Start what is missing of a flavour. Raises OSError where not even the first can be started."""
        if self._not_before.get(flavour, 0.0) > time.monotonic():
            return
        self._not_before.pop(flavour, None)
        started = sum(zygote.flavour == flavour for zygote in self.all)
        for number in range(started, self._count(flavour)):
            try:
                zygote = Zygote(flavour, self._tier, self._preload)
            except OSError:
                if number == 0:
                    raise
                return  # fewer give the same answers
            self.all.append(zygote)
            self._selector.register(zygote.control, selectors.EVENT_READ, zygote)

    def _count(self, flavour: Flavour) -> int:
        """The first two seeds serve every job; the others only a few."""
        return self._workers if flavour.seed in jobs.HASH_SEEDS[:2] else 1

    def due(self) -> list[Flavour]:
        now = time.monotonic()
        return [flavour for flavour, when in self._not_before.items() if when <= now]

    def forget_failures(self, flavour: Flavour) -> None:
        self._refusals.pop(flavour, None)
        self._retries.pop(flavour, None)

    def remove(self, zygote: Zygote) -> None:
        self.idle_deaths += zygote.ready and zygote.dead and not zygote.runs
        self.all.remove(zygote)
        self._selector.unregister(zygote.control)
        zygote.close()

    def failed(self, flavour: Flavour, why: str, refused: bool) -> RedQueenError | None:
        """Count a failed start; the error when it was the last try."""
        if refused:
            self._refusals[flavour] = self._refusals.get(flavour, 0) + 1
            if self._refusals[flavour] < _MAX_REFUSALS:
                return None
            error = VerifierFault(f"no zygote with {flavour} starts: {why}")
        else:
            retries = self._retries.setdefault(flavour, Retries.start())
            pause = retries.next_pause()
            if pause is not None:
                self._not_before[flavour] = time.monotonic() + pause
                return None
            error = retries.error(f"no zygote with {flavour} starts: {why}")
        # The next job that needs the flavour starts from zero.
        self.forget_failures(flavour)
        self._not_before.pop(flavour, None)
        return error

    def overdue(self) -> list[Zygote]:
        """Zygotes that are still not ready."""
        now = time.monotonic()
        return [zygote for zygote in self.all if not zygote.ready and now - zygote.started > RETRY_S]

    def close(self) -> None:
        for zygote in self.all:
            zygote.close()
