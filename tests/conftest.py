"""Property tests draw new examples on every run; continuous integration repeats the same ones. No test passes or fails
by the clock: a busy machine is no fault of what it runs.

`make test` runs two files at a time (`-n 2`): a file's tests stay together and in order, as many share what is costly
to set up, and files that would see each other's traces in the system count as one.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("usual"), derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "usual")
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
    from redqueen.commands.main import main

    def run(*words: object) -> tuple[int, str, str]:
        status = main([*map(str, words)])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def within() -> Callable[[float], AbstractContextManager[None]]:
    """Fails what takes more CPU time than so many turns of a fixed piece of work, timed just before and after it."""

    def work() -> float:
        start = time.process_time()
        sum(len(str(number)) for number in range(40_000))
        return time.process_time() - start

    @contextmanager
    def within(turns: float) -> Iterator[None]:
        before, start = work(), time.process_time()
        yield
        took = time.process_time() - start
        assert took < turns * max(before, work())

    return within
