"""Property tests draw new examples on every run; continuous integration repeats the same ones.

`make test` runs two files at a time (`-n 2`): a file's tests stay together and in order, as many share what is costly
to set up, and files that would see each other's traces in the system count as one.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Threads that wait for each other stand still as soon as they have to share their cores.
    os.environ["OMP_NUM_THREADS"] = "1"

TRACES = (
    "test_bench.py", "test_hostile.py", "test_kill.py", "test_mutation.py", "test_pool.py", "test_stress.py",
)  # fmt: skip
"""They make files of one name, or leave or count processes without a parent."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "traces" if Path(file).name in TRACES else file

    return Files(config, log)


@pytest.fixture
def redqueen(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: its exit status, and what it wrote to both streams."""
    from redqueen.cli import main

    def run(*words: object) -> tuple[int, str, str]:
        status = main([*map(str, words)])
        out, err = capsys.readouterr()
        return status, out, err

    return run
