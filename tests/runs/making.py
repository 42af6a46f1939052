"""Small members, rows and steps; ways to die at a given moment."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from redqueen.engine.protocol import MemberState, OptimiserState
from redqueen.population.board import Meeting
from redqueen.population.ratings import Result
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, MetricRow, RejectionRow, StepRecord, TaskRow

SHAPES = {"model.layers.0.self_attn.q_proj": (5, 7), "model.layers.0.mlp.down_proj": (9, 4)}
MODULES = [*SHAPES, "model.layers.0.self_attn", "lm_head"]
BASE = {"base_name": "some/base", "modules": MODULES}


def member(seed: int, *, optimiser: bool = True, rank: int = 3, dtype: torch.dtype = torch.float32) -> MemberState:
    numbers = torch.Generator().manual_seed(seed)

    def factors() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        return {
            name: (
                torch.randn(rank, inputs, generator=numbers, dtype=dtype),
                torch.randn(outputs, rank, generator=numbers, dtype=dtype),
            )
            for name, (outputs, inputs) in SHAPES.items()
        }

    adam = OptimiserState(seed % 100, factors(), factors()) if optimiser else None
    return MemberState(rank, 6.5, factors(), adam)


def members(seed: int) -> dict[str, MemberState]:
    return {"t0.3": member(seed), "s0": member(seed + 1, optimiser=False)}


def same(ours: MemberState, theirs: MemberState) -> bool:
    """Bit for bit."""

    def pairs(state: MemberState):
        yield state.factors
        if state.optimiser is not None:
            yield from (state.optimiser.exp_avg, state.optimiser.exp_avg_sq)

    if (ours.rank, ours.alpha) != (theirs.rank, theirs.alpha) or (ours.optimiser is None) != (theirs.optimiser is None):
        return False
    if ours.optimiser and theirs.optimiser and ours.optimiser.step != theirs.optimiser.step:
        return False
    return all(
        list(a) == list(b)
        and all(
            x.dtype == y.dtype and torch.equal(x.view(torch.uint8), y.view(torch.uint8))
            for k in a
            for x, y in zip(a[k], b[k], strict=True)
        )
        for a, b in zip(pairs(ours), pairs(theirs), strict=True)
    )


def all_same(ours: dict[str, MemberState], theirs: dict[str, MemberState]) -> bool:
    return list(ours) == list(theirs) and all(same(ours[id], theirs[id]) for id in ours)


def task(step: int, place: int, **changes) -> TaskRow:
    fields = {
        "match": 0,
        "teacher": f"t{place % 2}",
        "kind": ("code_o", "code_i", "code_f")[place % 3],
        "group_": place // 2,
        "id": f"{step}-{place}",
        "near_key": f"near {place}",
        "descriptor": "loops",
        "record": {"kind": "code_o", "program": "def f(x):\n    return x", "inputs": ["1"]},
        "text": "```python\n...",
        "solved": place % 5,
        "attempts": 4,
        "reward": 0.1,
        "depth": 5,
        "cyclomatic": 1,
        "lines": 2,
        "variables": 1,
        "answer_chars": 1,
    }
    return TaskRow(step, place, **fields | changes)


def record(step: int, tasks: int = 6) -> StepRecord:
    """A step with something in every table."""
    meeting = Meeting(step, 0, "t0", "s0", "code_o", 3, 1, 12, 4, 5, 0.4, Result.STUDENT, Result.DRAW, 0.25, None)
    return StepRecord(
        step,
        [meeting],
        [task(step, place) for place in range(tasks)],
        [RejectionRow(step, tasks, 0, "t0", "code_o", 1, "syntax", "line 1", "def", -1.0, "def", ())],
        [AttemptRow(step, 0, "s0", number, "5", "correct", None, "ok", "", 1.0, 7) for number in range(3)],
        [EventRow(step, "teacher", "t0", "t0", f"t0.{step}", "linear", ("t1", "t0"), str(2**64 - step))],
        [AlarmRow(step, 0, "teacher", "effective_size", 1.25, None, "too alike")],
        [MetricRow(step, "race", "", "reward", 0.5), MetricRow(step, "t0", "code_o", "solve_rate", 0.25)],
        {"solve": 1.5, "record": 0.01},
    )


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: a disk takes its time over every flush."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="redqueen-", dir=memory) as folder:
        yield Path(folder)


class Crash(BaseException):
    """The process ends here: nobody clears up."""


@contextmanager
def dying(at: int, *, after: bool = False, error: Callable[[], BaseException] = Crash) -> Iterator[list[str]]:
    """Fail at the n-th flush or rename of a file, before it is done or after it. Gives the calls so far."""
    calls: list[str] = []

    def failing(real):
        def call(*args, **options):
            calls.append(real.__name__)
            dies = len(calls) == at + 1
            if dies and not after:
                raise error()
            result = real(*args, **options)
            if dies:
                raise error()
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "rename", "replace"):
            patch.setattr(os, name, failing(getattr(os, name)))
        yield calls


def content(folder: Path) -> dict[str, bytes]:
    """All files but those that SQLite keeps for readers."""
    return {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.name.endswith(("-shm", "-wal"))
    }
