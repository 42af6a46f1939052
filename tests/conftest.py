"""Property tests draw new examples on every run; continuous integration repeats the same ones. No test passes or fails
by the clock: a busy machine is no fault of what it runs.

`make test` runs three files at a time (`-n 3`, because many tests wait), the slow ones first: a file's tests stay
together and in order, as many share what is costly to set up, and files that would see each other's traces in the
system count as one. `make quick` leaves the slow files out (`--quick`).
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
    "test_bench.py", "test_hostile.py", "test_kill.py", "test_mutation.py", "test_pool.py", "test_shards.py",
    "test_stress.py", "test_train.py",
)  # fmt: skip
"""They make files of one name, or leave or count processes without a parent."""
SLOW = (
    "engine/test_bases.py", "engine/test_bench_engine.py", "engine/test_graph_backend.py", "engine/test_logits.py",
    "engine/test_prompts.py", "engine/test_sample.py", "engine/test_update.py", "evals/test_benchmarks.py",
    "evals/test_crossplay.py", "evals/test_eval.py", "evals/test_evaluate.py", "evals/test_exam.py",
    "evals/test_extraction.py", "evals/test_hostile.py", "evals/test_maths.py", "evals/test_reference.py",
    "evolution/test_commands.py", "evolution/test_dense.py", "evolution/test_retention.py",
    "evolution/test_variation.py", "loop/test_ending.py", "loop/test_kill.py", "loop/test_pico_race.py",
    "loop/test_plan.py", "loop/test_race.py", "loop/test_ruler.py", "loop/test_shared.py", "loop/test_sources.py",
    "loop/test_stopping.py", "measure/test_folders.py", "plugins/test_plugins.py", "population/test_matchmaking.py",
    "report/test_page.py", "runs/test_commands.py", "runs/test_disks.py", "runs/test_run.py", "tasks/test_guards.py",
    "tasks/test_math.py", "tasks/test_order.py", "tasks/test_proof.py", "tasks/test_reward_hacks.py",
    "tasks/test_soundness.py", "tasks/test_sources.py", "tasks/test_truth.py", "verifier/test_checkers.py",
    "verifier/test_filters.py", "verifier/test_hostile.py", "verifier/test_literals.py", "verifier/test_machine.py",
    "verifier/test_mutation.py", "verifier/test_pool.py", "verifier/test_replies.py", "verifier/test_shards.py",
    "workers/test_connect.py", "workers/test_engine.py", "workers/test_failures.py", "workers/test_losses.py",
    "workers/test_ray.py", "workers/test_train.py", "workers/test_verifier.py", "workers/test_watched.py",
    "test_bench.py", "test_chains.py", "test_cli.py", "test_completion.py", "test_doctor.py", "test_examples.py",
    "test_pico.py",
    "test_readme.py", "test_simulate.py", "test_stress.py", "test_study.py", "test_trackers.py",
)  # fmt: skip
"""They take five seconds or more: races, whole corpora, programs that are waited for."""


def is_slow(file: Path) -> bool:
    return str(file.relative_to(Path(__file__).parent)) in SLOW


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the files that take five seconds or more")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("quick") and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (item.path.name not in TRACES, not is_slow(item.path)))


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
