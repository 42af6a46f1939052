"""The command line in processes that can be killed, starved or held: forks of one that has imported torch already."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch
from rich.console import Console

from redqueen.commands.main import main
from redqueen.training.train import heeding_signals
from redqueen.ui.live import Plain

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["redqueen.training.train"])


@dataclass(frozen=True)
class Ended:
    status: int | None
    """Negative for a signal."""
    out: str
    err: str


class Child:
    """A process of `target`, whose streams go to files beside `at`."""

    def __init__(self, at: Path, target, *arguments: object) -> None:
        self.files = at.with_name(f"{at.name}.out"), at.with_name(f"{at.name}.err")
        for file in self.files:
            file.touch()
        how = self.files, dict(os.environ), target, *arguments
        self.process: ForkServerProcess = CONTEXT.Process(target=_within, args=how, daemon=True)
        self.process.start()

    def wait(self) -> Ended:
        self.process.join()
        return Ended(self.process.exitcode, *(file.read_text() for file in self.files))


def _within(files: tuple[Path, Path], environment: dict[str, str], target, *arguments: object) -> None:
    # The fork server has the environment of its own start, which may have been another test's.
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for stream, file in zip((sys.stdout, sys.stderr), files, strict=True):
        stream.flush()
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream.fileno())
    sys.exit(target(*arguments))


@contextmanager
def held_after_the_first_step(at: Path, words: list[str]) -> Iterator[Child]:
    """The command once it is done with its first step; it goes on at the end of the block."""
    reached, go_on = CONTEXT.Event(), CONTEXT.Event()
    child = Child(at, _held, words, reached, go_on)
    try:
        while not reached.wait(1):
            assert child.process.is_alive(), child.wait()
        yield child
    except BaseException:
        child.process.kill()
        raise
    finally:
        go_on.set()


def _held(words: list[str], reached, go_on) -> int:
    step_done = Plain.step_done

    def hold(self: Plain, summary) -> None:
        step_done(self, summary)
        if summary.step == 1:
            reached.set()
            while not go_on.wait(1):
                if not multiprocessing.parent_process().is_alive():  # pyright: ignore[reportOptionalMemberAccess]
                    os._exit(1)

    Plain.step_done = hold
    return main(words)


def with_small_files(most_bytes: int, words: list[str]) -> int:
    """The command where no file can be larger than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return main(words)


def signalled_twice() -> None:
    with heeding_signals(Plain(Console())) as stopping:
        assert not stopping()
        signal.raise_signal(signal.SIGTERM)
        assert stopping()
        signal.raise_signal(signal.SIGINT)
        print("still there", flush=True)
