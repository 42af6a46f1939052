"""What all tests of benchmarks share: a verifier, the small benchmarks, and a cache of their own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.slices import write_slices
from redqueen.verifier import LocalVerifier


@pytest.fixture(scope="package", autouse=True)
def own_cache(tmp_path_factory) -> Iterator[Path]:
    """What is prepared here is kept nowhere else, and nothing that is kept elsewhere is used."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("REDQUEEN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="package", autouse=True)
def benchmarks_at_hand(own_cache) -> Iterator[str | None]:
    """Where the whole benchmarks are, if they are here; no other test may find them."""
    with pytest.MonkeyPatch.context() as patch:
        found = os.environ.get("REDQUEEN_BENCH")
        patch.delenv("REDQUEEN_BENCH", raising=False)
        yield found


@pytest.fixture(scope="package")
def slices(tmp_path_factory) -> Path:
    return write_slices(tmp_path_factory.mktemp("slices"))


@pytest.fixture(scope="package")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier(workers=2) as pool:
        yield pool
