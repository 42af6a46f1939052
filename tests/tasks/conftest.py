"""A pool is costly to start: one serves all tests of the tasks."""

from collections.abc import Iterator

import pytest

from redqueen.verifier import LocalVerifier
from tasks.proposing import Recorder


@pytest.fixture(scope="session")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier() as pool:
        yield pool


@pytest.fixture
def recorder(verifier: LocalVerifier) -> Recorder:
    return Recorder(verifier)
