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
from redqueen.population.ratings import MatchResult
from redqueen.runs.rows import (
    AlarmRow,
    AttemptRow,
    EventRow,
    MetricRow,
    RejectionRow,
    StepRecord,
    TaskRow,
    WorkerEventRow,
    WorkerRow,
)

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
    return TaskRow(step=step, place=place, **fields | changes)


def meeting(step: int, kind: str = "code_o", **changes) -> Meeting:
    """A draw of t0 and s0."""
    fields = {
        "match": 0,
        "teacher": "t0",
        "student": "s0",
        "tasks": 5,
        "unsolved": 0,
        "attempts": 100,
        "unsolved_attempts": 0,
        "solved": 20,
        "foretold": 0.5,
        "result": MatchResult.DRAW,
        "match_result": MatchResult.DRAW,
    }
    return Meeting(step=step, kind=kind, **fields | changes)


def rejection(step: int, place: int, **changes) -> RejectionRow:
    fields = {"match": 0, "teacher": "t0", "kind": "code_o", "group_": 1, "detail": "", "text": "def", "reward": -1.0}
    return RejectionRow(step=step, place=place, **fields | changes)


def attempt(step: int, place: int, student: str = "s0", **changes) -> AttemptRow:
    """A correct one."""
    fields = {"number": 0, "text": "5", "grade": "correct", "reason": None, "status": "ok", "detail": ""}
    return AttemptRow(step=step, place=place, student=student, **fields | {"reward": 1.0, "tokens": 7} | changes)


def record(step: int, tasks: int = 6) -> StepRecord:
    """A step with something in every table."""
    played = {"tasks": 3, "unsolved": 1, "attempts": 12, "unsolved_attempts": 4, "solved": 5, "foretold": 0.4}
    return StepRecord(
        step=step,
        matches=[meeting(step, **played, result=MatchResult.STUDENT, teacher_reward=0.25)],
        tasks=[task(step, place) for place in range(tasks)],
        rejections=[rejection(step, tasks, reason="syntax", detail="line 1", program="def", runs=())],
        attempts=[attempt(step, 0, number=number) for number in range(3)],
        events=[
            EventRow(
                step=step,
                role="teacher",
                seat="t0",
                dead="t0",
                child=f"t0.{step}",
                operator="linear",
                parents=("t1", "t0"),
                seed=str(2**64 - step),
            )
        ],
        alarms=[
            AlarmRow(
                step=step,
                number=0,
                subject="teacher",
                measure="effective_size",
                value=1.25,
                floor=None,
                says="too alike",
            )
        ],
        metrics=[
            MetricRow(step=step, subject="race", kind="", name="reward", value=0.5),
            MetricRow(step=step, subject="t0", kind="code_o", name="solve_rate", value=0.25),
        ],
        timings={"solve": 1.5, "record": 0.01},
        timeline={"ms": 1500 + step, "proposals": [1, 2], "attempts": [0, 3], "others": [["update", 20, 90]]},
    )


def workers(step: int) -> list[WorkerRow]:
    """Two of a cluster, the second three times as slow as the first."""
    return [
        WorkerRow(
            step=step,
            worker=f"worker {number}",
            machine=f"gpu-{number}",
            process=100 + number,
            members=(f"t{number}", f"s{number}"),
            seconds={"sample": 0.05 * (1 + 2 * number), "update": 0.2},
        )
        for number in range(2)
    ]


def lost(step: int, time: float = 1_800_000_000.0) -> WorkerEventRow:
    return WorkerEventRow(step=step, time=time, worker="worker 1", what="died", cause="exit code 137 <b>")


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
