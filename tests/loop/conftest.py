"""One thread is the quickest for bases this small, and on one thread sums are the same every time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from runs.making import quick_folder

from loop.making import random_base
from redqueen.verifier import LocalVerifier


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package")
def place() -> Iterator[Path]:
    """A folder for the races of all tests."""
    with quick_folder() as folder:
        yield folder


@pytest.fixture(scope="package")
def blank(place: Path) -> str:
    """A base that knows nothing."""
    return str(random_base(place / "blank"))


@pytest.fixture(scope="package")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier(workers=2) as pool:
        yield pool
