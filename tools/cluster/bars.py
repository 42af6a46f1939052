"""What a cluster costs, beside the same work without one, in turns: `python tools/cluster/bars.py` prints a table.

    python tools/cluster/bars.py --only verifier,memory

All of it runs on this machine, on local Ray clusters, with one torch thread for each process. Steps are those of a
race on `pico`; no step is saved. `two workers` has two shards, and beside it two processes have a race of one shard's
size each. What is compared are floating-point operations per second, of the steps alone.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import torch

from redqueen.cluster import connect
from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.verifier import ClusterVerifier
from redqueen.loop import one_step
from redqueen.phases.clock import Clock
from redqueen.phases.state import State
from redqueen.phases.view import Quiet
from redqueen.settings import Config, load
from redqueen.training.setup import Opened, Start, open_races
from redqueen.verifier import Job, LocalVerifier

GUESTS = 2
ROUND_S = 3.0
PATIENCE_S = 5.0
SOURCES = ("def f(x): return x * x + 3", "def f(x): return sorted(str(x) * 3)", "def f(x): return [x] * (x % 7)")
Finding = tuple[str, str, str]
"""What was measured, what came of it, and the bar."""


def settings(members: int = 2, base: str = "pico", **cluster: object) -> Config:
    """A step of a few seconds, for so many teachers and as many students, and a guest for every two of them."""
    race = load("demo", {"engine.base": base, "tasks.seeds": base, "tasks.prompts": "2"})
    parts: dict[str, Any] = race.model_dump()
    parts["population"] |= {"teachers": members, "students": members}
    parts["verifier"] |= {"workers": members // 2}
    parts["cluster"] |= cluster
    return Config.model_validate(parts)


def on_cluster(workers: int, members: int = 2, **changes: object) -> Config:
    given: dict[str, Any] = {"address": "local", "workers": workers, "shards": workers, **changes}
    return settings(members, **given)


class Steps:
    """A race, step by step."""

    def __init__(self, opened: Opened) -> None:
        self.race, self.state = opened.race, opened.state

    def step(self) -> tuple[float, int]:
        """Seconds and floating-point operations."""
        before = self.state.flops
        began = time.perf_counter()
        self.state = asyncio.run(self._step())
        return time.perf_counter() - began, self.state.flops - before

    async def _step(self) -> State:
        state, _ = await one_step(self.race, self.state, Clock(self.state.step + 1, Quiet(), lambda: False))
        return state

    @property
    def engine(self) -> ClusterEngine:
        assert isinstance(self.race.engine, ClusterEngine)
        return self.race.engine

    def checkpoint(self) -> None:
        """What one does to workers."""
        for member in self.state.population.members:
            self.engine.read(member.id, optimiser=True)


@contextmanager
def race(of: Config) -> Iterator[Steps]:
    with open_races([Start.new(of)], cluster=True) as stage:
        yield Steps(stage.only)


def spread(figures: list[float], form: str = ".3f") -> str:
    return f"{statistics.median(figures):{form}} ({min(figures):{form}}-{max(figures):{form}})"


def verifier(rounds: int) -> Iterator[Finding]:
    jobs = [Job.calls(SOURCES[at % len(SOURCES)], [str(at)]) for at in range(200)]

    def rate(run: LocalVerifier | ClusterVerifier) -> float:
        done, began = 0, time.perf_counter()
        while time.perf_counter() < began + ROUND_S:
            done += len(asyncio.run(run.run(jobs)))
        return done / (time.perf_counter() - began)

    asked = Config.model_validate(
        {"verifier": {"workers": GUESTS}, "cluster": {"address": "local", "workers": 1, "verifiers": 1}}
    )
    with connect.open_judges(asked) as there, LocalVerifier(workers=GUESTS) as here:
        assert isinstance(there, ClusterVerifier)
        there._desk._driver.ready = False  # all of it elsewhere
        rates = {name: [] for name in ("here", "there")}
        for number in range(rounds + 1):
            for name, of in (("here", here), ("there", there)) if number % 2 else (("there", there), ("here", here)):
                rates[name].append(rate(of))
        ours = guests()
    here_s, there_s = (each[1:] for each in rates.values())
    ratios = [one / other for one, other in zip(there_s, here_s, strict=True)]
    found = f"{spread(ratios)}; {statistics.median(there_s):.0f} and {statistics.median(here_s):.0f} programs/s"
    yield "verifier of another machine / the driver's, the same number of guests", found, ">= 0.95"
    time.sleep(2.0)
    yield "guests left behind, of so many", f"{len(set(ours) & set(guests()))} of {len(ours)}", "0"


def one_worker(rounds: int) -> Iterator[Finding]:
    with race(settings()) as plain, race(on_cluster(1)) as ray:
        for each in (plain, ray):
            each.step()
        pairs: list[tuple[float, float]] = []
        for number in range(rounds):
            first, second = (plain, ray) if number % 2 else (ray, plain)
            took = {first: first.step()[0], second: second.step()[0]}
            pairs.append((took[ray], took[plain]))
        daemons, count = memory()
    ratio = sum(one for one, _ in pairs) / sum(other for _, other in pairs)
    ratios = spread([one / other for one, other in pairs])
    yield f"one worker / in-process, seconds of {rounds} steps", f"{ratio:.3f}; by step {ratios}", "<= 1.05"
    yield f"memory of Ray's {count} processes, PSS", f"{daemons / 2**20:.0f} MiB", "<= 450 MB"


def two_workers(rounds: int) -> Iterator[Finding]:
    words = [sys.executable, __file__, "--plain"]
    plain = [subprocess.Popen([*words, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for seed in (1, 2)]
    try:
        with race(on_cluster(2, members=4)) as ray:
            ratios: list[float] = []
            for number in range(rounds + 1):
                for process in plain:
                    assert process.stdin is not None
                    process.stdin.write(b"step\n")
                    process.stdin.flush()
                alone = 0.0
                for process in plain:
                    assert process.stdout is not None
                    seconds, flops = process.stdout.readline().split()
                    alone += float(flops) / float(seconds)
                seconds, flops = ray.step()
                if number:
                    ratios.append(flops / seconds / alone)
    finally:
        for process in plain:
            process.communicate()
    yield f"two workers / two plain races at once, operations per second, {rounds} steps", spread(ratios), ">= 0.9"


def plain_steps(seed: int) -> None:
    """A step for each line."""
    of = settings()
    with race(of.model_copy(update={"run": of.run.model_copy(update={"seed": seed})})) as plain:
        for _ in sys.stdin:
            print(*plain.step(), flush=True)


def objects(steps: int) -> Iterator[Finding]:
    from ray import get_runtime_context
    from ray._private.internal_api import get_memory_info_reply, get_state_from_address

    counts: list[int] = []
    with race(settings(2, "chains", address="local", workers=1, shards=1)) as ray:
        state = get_state_from_address(get_runtime_context().gcs_address)
        for _ in range(steps):
            ray.step()
            ray.checkpoint()
            stats = get_memory_info_reply(state).store_stats
            counts.append(stats.num_local_objects)
    half = steps // 2
    found = (
        f"{max(counts[:half])} at most in the first {half}, {max(counts[half:])} in the others, {counts[-1]} at the end"
    )
    yield f"objects in Ray's store over {steps} steps", found, "flat"


def losses(rounds: int) -> Iterator[Finding]:
    with race(on_cluster(2, members=2, patience_s=PATIENCE_S)) as ray:
        ray.step()
        costs: list[float] = []
        usual = [ray.step()[0]]
        for _ in range(rounds):
            wait_for_both(ray)
            struck(statistics.median(usual) / 3, signal.SIGKILL)
            killed = ray.step()[0]
            ray.checkpoint()
            wait_for_both(ray)
            usual.append(ray.step()[0])
            costs.append(killed - (usual[-2] + usual[-1]) / 2)
        wait_for_both(ray)
        process = struck(0.0, signal.SIGSTOP)
        began = time.perf_counter()
        with ThreadPoolExecutor() as watching:
            noticed = watching.submit(until, lambda: len(set(ray.engine.homes)) < 2)
            ended = watching.submit(until, lambda: not title(process).startswith(b"ray::RayWorker"))
            ray.step()
    found = f"{spread(costs, '.1f')}; a step has {spread(usual, '.1f')}"
    yield "seconds that a killed worker costs, pico", found, "<= 10"
    found = f"{noticed.result() - began:.1f}; its process has ended after {ended.result() - began:.1f}"
    yield f"seconds until a stopped worker is noticed, patience {PATIENCE_S:g}", found, "<= patience"


def wait_for_both(ray: Steps) -> None:
    """A worker that comes late gets its part at a checkpoint."""
    while len(set(ray.engine.homes)) < 2:
        ray.step()
        ray.checkpoint()


def struck(after_s: float, number: int) -> int:
    """One of the workers gets a signal after so long; its process."""
    process = below(os.getpid(), b"ray::RayWorker")[0]
    threading.Timer(after_s, os.kill, (process, number)).start()
    return process


def until(true: Callable[[], bool]) -> float:
    """When it has come to that."""
    while not true():
        time.sleep(0.05)
    return time.perf_counter()


def descendants(process: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(child) for child in file.read_text().split()]
        except OSError:
            continue  # it has ended
        found += children + [further for child in children for further in descendants(child)]
    return found


def title(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""  # it has ended


def below(process: int, words: bytes) -> list[int]:
    return [each for each in descendants(process) if words in title(each)]


def guests() -> list[int]:
    return below(os.getpid(), b"guest/zygote.py")


def memory() -> tuple[int, int]:
    """Proportional set size of what Ray starts beside our workers and their children, and in how many processes."""
    workers = below(os.getpid(), b"ray::RayWorker")
    ours = {*workers, *(child for worker in workers for child in descendants(worker)), *guests()}
    sizes = [pss(each) for each in descendants(os.getpid()) if each not in ours]
    return sum(sizes), sum(size > 0 for size in sizes)


def pss(process: int) -> int:
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0  # it has ended
    return next((int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


PARTS: Mapping[str, tuple[Callable[[int], Iterator[Finding]], int]] = {
    "verifier": (verifier, 10),
    "one": (one_worker, 8),
    "two": (two_workers, 8),
    "objects": (objects, 50),
    "losses": (losses, 3),
}
"""By name, and in how many rounds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts of it, with commas between them")
    parser.add_argument("--plain", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.plain is not None:
        plain_steps(asked.plain)
        return
    print("| what | measured | bar |\n|---|---|---|", flush=True)
    for name in asked.only.split(","):
        measured, rounds = PARTS[name]
        for finding in measured(rounds):
            print("| " + " | ".join(finding) + " |", flush=True)


if __name__ == "__main__":
    main()
