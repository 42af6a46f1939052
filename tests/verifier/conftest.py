"""Pools are costly to start: one per tier serves all tests that do it no harm."""

from collections.abc import Iterator

import pytest

from redqueen.errors import IsolationError
from redqueen.verifier import LocalVerifier, Tier


def start(tier: Tier, **options) -> LocalVerifier:
    """A pool of this tier, or a skip that says why this machine has none."""
    try:
        return LocalVerifier(tier=tier, **options)
    except IsolationError as error:
        pytest.skip(f"tier {tier}: {error.what}")


@pytest.fixture(scope="session", params=[Tier.FULL, Tier.SECCOMP], ids=str)
def verifier(request) -> Iterator[LocalVerifier]:
    with start(request.param) as pool:
        yield pool


@pytest.fixture(scope="session")
def any_verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier() as pool:
        yield pool
