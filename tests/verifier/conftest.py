"""Pools are costly to start: one per tier serves all tests that do it no harm."""

from collections.abc import Iterator

import pytest

from redqueen.errors import IsolationError
from redqueen.verifier import LocalVerifier, Tier
from redqueen.verifier.pool import WORKERS_PER_SHARD
from redqueen.verifier.zygotes import available_cores

FEW = min(WORKERS_PER_SHARD, available_cores())
"""Workers that are supervised in this process, where tests can change what is done with them."""


def start(tier: Tier, **options) -> LocalVerifier:
    """A pool of this tier, or a skip that says why this machine has none."""
    try:
        return LocalVerifier(tier=tier, **{"workers": FEW, **options})
    except IsolationError as error:
        pytest.skip(f"tier {tier}: {error.what}")


@pytest.fixture(scope="session", params=[Tier.FULL, Tier.SECCOMP], ids=str)
def verifier(request) -> Iterator[LocalVerifier]:
    with start(request.param) as pool:
        yield pool


@pytest.fixture(scope="session")
def any_verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier(workers=FEW) as pool:
        yield pool
