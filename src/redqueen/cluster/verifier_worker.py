"""A verifier on a machine of the cluster: a pool of zygotes of that machine, which judges for the driver.

It has the driver's tier, and what programs can notice of a machine is the same: a verdict does not depend on where it
was made. It imports no torch.
"""

import asyncio
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.cluster.versions import checker_versions, refuse_versions, verifier_versions
from redqueen.errors import InputError, IsolationError
from redqueen.verifier import Checker, LocalVerifier, Tier
from redqueen.verifier.parcels import Packed, pack_outcome, unpack_job
from redqueen.verifier.pool import require


@dataclass(frozen=True, slots=True)
class VerifierGreeting:
    machine: str
    process: int
    workers: int
    """Programs that run at the same time."""


class VerifierWorker:
    """Its methods are called from one event loop."""

    def __init__(self) -> None:
        self._opened: LocalVerifier | None = None
        self._checkers: set[Checker] = set()
        """Those that are as the driver has them."""

    async def open(self, theirs: Mapping[str, str], tier: Tier, workers: int | None) -> VerifierGreeting:
        refuse_versions(theirs, verifier_versions())
        self._opened = pool = await asyncio.to_thread(_open, tier, workers)
        return VerifierGreeting(platform.node(), os.getpid(), pool.workers)

    async def beat(self) -> None:
        """It is there."""

    async def run(self, packed: Sequence[Packed], checkers: Mapping[Checker, Mapping[str, str]]) -> list[Packed]:
        """An outcome for each job; `checkers` says what their checkers are on the driver's machine."""
        assert self._opened is not None, "a verifier is opened first"
        jobs = [unpack_job(job) for job in packed]
        for checker in checkers.keys() - self._checkers:
            refuse_versions(checkers[checker], checker_versions(checker))
            self._checkers.add(checker)
        try:
            require(jobs)
        except InputError as error:
            raise InputError(f"on {platform.node()} {error.what}", error.mend) from None
        return [pack_outcome(outcome) for outcome in await self._opened.run(jobs)]


def _open(tier: Tier, workers: int | None) -> LocalVerifier:
    try:
        return LocalVerifier(tier=tier, minimum=tier, run_unprotected=tier is Tier.NONE, workers=workers)
    except IsolationError as error:
        raise IsolationError(
            f"{platform.node()} cannot isolate programs as the driver's machine does: {error.what}",
            "mend it there, set verifier.tier to what all machines have, or lower cluster.verifiers",
        ) from None
