"""What a step of a large race costs its driver: the driver is real, its workers answer at once.

    python tools/cluster/driver_load.py --members 8,100,1000

Every call and every answer is pickled and read again, as on their way to another machine, and counted; what a worker
would compute is made up, and the time that this takes is left out. Half of the members are teachers, each with some
proposals; of every valid one a student makes some attempts. All learn from all their texts, a step's records are
written, and at a checkpoint every member is read with its optimiser. The verifier is not part of it: how long it takes
is known (docs/performance.md).
"""

import argparse
import asyncio
import gc
import pickle
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.links import Link
from redqueen.cluster.packed import Packed
from redqueen.cluster.placement import shard_of
from redqueen.cluster.worker import Brief, Greeting
from redqueen.engine.base import Base
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import Recipe, Sample, SampleRequest, Stop, Trajectory, UpdateStats
from redqueen.engine.shapes import RANDOM, outline
from redqueen.runs.rows import AttemptRow, StepRecord, TaskRow
from redqueen.runs.store import Store
from redqueen.settings.models import EngineConfig

SHAPE, RANK = "1m", 8
VALID = 0.6
"""Of the proposals."""
CHARS = 4
"""Of a text, for each token."""
NUMBERS = Random(0)


class Load:
    """What was on its way, and the time that making answers up took."""

    def __init__(self) -> None:
        self.out = self.back = self.calls = 0
        self.made_up_s = self.pickle_s = 0.0

    def travelled(self, thing: Any) -> tuple[Any, int]:
        start = time.perf_counter()
        data = pickle.dumps(thing, protocol=5)
        copy = pickle.loads(data)
        self.pickle_s += time.perf_counter() - start
        return copy, len(data)


class Instant:
    """Implements `Workers`, with answers that come at once."""

    def __init__(self, load: Load) -> None:
        self.load, self.width, self._started = load, 0, 0
        """`width`: numbers of a member."""

    def start(self) -> Link:
        self._started += 1
        return InstantLink(f"worker {self._started}", self)

    def close(self) -> None:
        """Nothing was started."""


class InstantLink:
    """Implements `Link`."""

    def __init__(self, name: str, workers: Instant) -> None:
        self.name, self._workers = name, workers

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        load, answer = self._workers.load, Future[Any]()
        heard, size = load.travelled((method, arguments))
        load.calls, load.out = load.calls + 1, load.out + size
        start = time.perf_counter()
        said = self._answer(*heard)
        load.made_up_s += time.perf_counter() - start
        told, size = load.travelled(said)
        load.back += size
        answer.set_result(told)
        return answer

    def end(self) -> None:
        """There is nobody."""

    def _answer(self, method: str, arguments: Sequence[Any]) -> Any:
        match method, arguments:
            case "open", _:
                limits = Limits(4096, 4096, 1 << 20)
                return Greeting(
                    machine="here", process=0, device="cpu", exact=True, computes_on="nothing", dtype=torch.float32,
                    limits=limits, norms={},
                )  # fmt: skip
            case "sample", (Brief(), calls):
                return [[_sample(request) for request in requests] for requests in calls], time.perf_counter()
            case "update", (Brief(), update):
                return {trajectory.member: _stats() for trajectory in update.batch}
            case "take", (Brief(), members, optimiser):
                values = (3 if optimiser else 1) * self._workers.width
                return [Packed(np.zeros(values, np.float32), 1 if optimiser else None) for _ in members]


def _sample(request: SampleRequest) -> Sample:
    tokens = tuple(NUMBERS.randrange(150_000) for _ in range(request.max_tokens))
    logprobs = tuple(-NUMBERS.random() for _ in tokens)
    return Sample(tokens, logprobs, Stop.LENGTH, "x" * CHARS * len(tokens), seconds=(0.0, 1.0))


def _stats() -> UpdateStats:
    return UpdateStats(
        sequences=1, tokens=1, trained_tokens=1, loss=0.0, grad_norm=1.0, entropy=1.0, ratio_mean=1.0, ratio_max=1.0,
        kl=0.0,
    )  # fmt: skip


def requests(members: Sequence[str], each: int, prompt: int, text: int) -> list[SampleRequest]:
    """For each member, so many completions of one prompt."""
    found = []
    for member in members:
        tokens = tuple(NUMBERS.randrange(150_000) for _ in range(prompt))
        found += [SampleRequest(prompt=tokens, member=member, key=key, max_tokens=text) for key in range(each)]
    return found


def rows(attempts: Sequence[tuple[SampleRequest, Sample]], each: int) -> StepRecord:
    tasks, tried = [], []
    for at, (request, sample) in enumerate(attempts):
        place, number = divmod(at, each)
        tried.append(
            AttemptRow(
                step=1, place=place, student=str(request.member), number=number, text=sample.text, grade="correct",
                reason=None, status="ok", detail="", reward=1.0, tokens=len(sample.tokens),
            )
        )  # fmt: skip
        if number:
            continue
        record = {"kind": "code_o", "program": sample.text, "inputs": ["1"]}
        tasks.append(
            TaskRow(
                step=1, place=place, match=place // each, teacher="t0", kind="code_o", group_=0, id=f"{place}",
                near_key=f"{place}", descriptor="loops", record=record, text=sample.text, solved=4, attempts=each,
                reward=0.1, depth=5, cyclomatic=1, lines=8, variables=2, answer_chars=8,
            )
        )  # fmt: skip
    return StepRecord(step=1, tasks=tasks, attempts=tried)


async def step(engine: ClusterEngine, names: Sequence[str], asked: argparse.Namespace) -> StepRecord:
    teachers, students = names[: len(names) // 2], names[len(names) // 2 :]
    proposing = requests(teachers, asked.proposals, asked.prompt, asked.text)
    proposals = await engine.sample(proposing)
    tasks = [students[at % len(students)] for at in range(int(VALID * len(proposals)))]
    solving = requests(tasks, asked.attempts, asked.prompt, asked.text)
    attempts = await engine.sample(solving)
    both = [*zip(proposing, proposals, strict=True), *zip(solving, attempts, strict=True)]
    batch = [
        Trajectory(
            member=str(request.member), prompt=request.prompt, completion=sample.tokens, logprobs=sample.logprobs,
            advantages=1.0,
        )
        for request, sample in both
    ]  # fmt: skip
    await engine.update(batch, Recipe(lr=1e-4))
    return rows(both[len(proposals) :], asked.attempts)


def measure(count: int, asked: argparse.Namespace) -> str:
    load, workers = Load(), max(1, count // asked.per_worker)
    model = outline(RANDOM + SHAPE)
    names = [f"{role}{seat}" for role in "ts" for seat in range(count // 2)]
    base = Base(RANDOM + SHAPE, model, None, frozenset())
    instant = Instant(Load())
    settings = EngineConfig(base=RANDOM + SHAPE, rank=RANK)
    options: dict[str, Any] = {"members": names, "shards": workers, "count": workers, "patience_s": 600.0}
    with ClusterEngine(base, instant, settings, **options) as engine:
        instant.width = engine.bank.width
        asyncio.run(step(engine, names, asked))  # founders travel with the first call to their shard
        instant.load = load
        gc.collect()
        start = time.perf_counter()
        record = asyncio.run(step(engine, names, asked))
        took, sent, came, calls = time.perf_counter() - start - load.made_up_s, load.out, load.back, load.calls
        pickled = load.pickle_s
        with tempfile.TemporaryDirectory() as folder, Store.create(Path(folder)) as store:
            start = time.perf_counter()
            store.write(record)
            writing = time.perf_counter() - start
        instant.load = load = Load()
        start = time.perf_counter()
        for name in names:
            engine.read(name, optimiser=True)
        reading = time.perf_counter() - start - load.made_up_s
        member = 3 * 4 * engine.bank.width
    most = max(sum(shard_of(name, workers) == shard for name in names) for shard in range(workers))
    texts = len(record.attempts) + count // 2 * asked.proposals
    written = len(record.attempts) + len(record.tasks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {count:,} | {workers:,} | {most} | {texts:,} | {calls:,} | {sent / 2**20:,.1f} | {came / 2**20:,.1f} "
        f"| {took:,.2f} | {pickled:,.2f} | {writing:,.2f} ({written / writing:,.0f}/s) "
        f"| {reading:,.2f} ({count * member / 2**20:,.0f} MiB) | {peak:,.1f} |"
    )


def main() -> None:
    options = argparse.ArgumentParser(description="What a step of a large race costs its driver.")
    options.add_argument("--members", default="8,100,1000", help="half of them teachers")
    options.add_argument("--per-worker", type=int, default=10, help="members of a worker")
    options.add_argument("--proposals", type=int, default=8, help="of a teacher")
    options.add_argument("--attempts", type=int, default=8, help="at a valid proposal")
    options.add_argument("--prompt", type=int, default=300, help="tokens")
    options.add_argument("--text", type=int, default=200, help="tokens")
    asked = options.parse_args()
    print(
        "| members | workers | members of a shard | texts | calls | MiB out | MiB back | driver's seconds | of which "
        "pickling | records, s | checkpoint, s | peak GiB |"
    )
    print("|" + "---|" * 12)
    for count in map(int, asked.members.split(",")):
        print(measure(count, asked), flush=True)


if __name__ == "__main__":
    main()
