"""The zygotes of a pool: as many of each flavour as are wanted, replaced when they die, given up when none will start.

A zygote that says why it cannot be is believed after a few tries; one that just dies, or takes its time, is the
machine's doing, and is tried for as long as we bear with the machine.
"""

import selectors
import time
from collections.abc import Sequence

from redqueen.errors import RedQueenError, VerifierFault
from redqueen.verifier import jobs
from redqueen.verifier.machine import PATIENCE_S, Trouble
from redqueen.verifier.tiers import Tier
from redqueen.verifier.zygotes import Flavour, Zygote

_REFUSALS = 4
"""Zygotes in a row that may say that they cannot be."""


class Nursery:
    """All zygotes of one pool. Used by its thread alone."""

    def __init__(self, tier: Tier, workers: int, preload: Sequence[str], selector: selectors.BaseSelector) -> None:
        self.all: list[Zygote] = []
        self._tier = tier
        self._workers = workers
        self._preload = preload
        self._selector = selector
        self._refusals: dict[Flavour, int] = {}
        self._troubles: dict[Flavour, Trouble] = {}
        self._not_before: dict[Flavour, float] = {}

    @property
    def settled(self) -> bool:
        """Whether nothing is to be waited for."""
        return all(zygote.ready for zygote in self.all) and not self._not_before

    def wanted(self) -> int:
        """How many there are when none is being replaced."""
        return sum(map(self._count, {zygote.flavour for zygote in self.all}))

    def want(self, flavour: Flavour) -> None:
        """Have as many of a flavour as there are workers. Raises OSError where not even the first can be had."""
        if self._not_before.get(flavour, 0.0) > time.monotonic():
            return
        self._not_before.pop(flavour, None)
        have = sum(zygote.flavour == flavour for zygote in self.all)
        for number in range(have, self._count(flavour)):
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
        """The flavours whose next try has been put off until now."""
        now = time.monotonic()
        return [flavour for flavour, when in self._not_before.items() if when <= now]

    def serves(self, zygote: Zygote) -> None:
        """It has become ready: whatever was in the way is over."""
        self._refusals.pop(zygote.flavour, None)
        self._troubles.pop(zygote.flavour, None)

    def lose(self, zygote: Zygote) -> None:
        self.all.remove(zygote)
        self._selector.unregister(zygote.control)
        zygote.close()

    def failed(self, flavour: Flavour, why: str, refused: bool) -> RedQueenError | None:
        """One of a flavour could not be had: the error when that was the last try."""
        if refused:
            self._refusals[flavour] = self._refusals.get(flavour, 0) + 1
            if self._refusals[flavour] >= _REFUSALS:
                self._forget(flavour)
                return VerifierFault(f"no zygote with {flavour.modules} modules starts: {why}")
            return None
        trouble = self._troubles.setdefault(flavour, Trouble.begins())
        pause = trouble.again()
        if pause is None:
            self._forget(flavour)
            return trouble.error(f"no zygote starts: {why}")
        self._not_before[flavour] = time.monotonic() + pause
        return None

    def _forget(self, flavour: Flavour) -> None:
        """The next job that needs it tries anew."""
        for noted in (self._refusals, self._troubles, self._not_before):
            noted.pop(flavour, None)

    def late(self) -> list[Zygote]:
        """Those that are not ready after a long time."""
        now = time.monotonic()
        return [zygote for zygote in self.all if not zygote.ready and now - zygote.started > PATIENCE_S]

    def close(self) -> None:
        for zygote in self.all:
            zygote.close()
