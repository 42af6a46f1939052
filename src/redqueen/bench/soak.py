"""A long run with attacks and killed zygotes that looks for leaks of descriptors, processes, memory and jobs."""

import os
import random
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from redqueen.bench import BenchReport
from redqueen.errors import Fault
from redqueen.resources import open_verifier
from redqueen.settings import Config
from redqueen.verifier import Job, Limits, LocalVerifier

if TYPE_CHECKING:
    from rich.console import Console

BATCH = 1000
HOSTILE_SHARE = 0.1
TWICE_SHARE = 0.5
MEMORY_SLACK_MB = 16
"""Growth between the first and the last quarter that counts as flat: Python's arenas come and go."""

HONEST = "def f(n):\n    return n * 7 + 1"
HOSTILE = (
    ("import os\ndef f(n):\n    return os.fork()", {"exc:PermissionError"}),
    ("import os\ndef f(n):\n    os.kill(os.getppid(), 9)", {"exc:PermissionError"}),
    ("def f(n):\n    return open('/etc/passwd').read()", {"exc:PermissionError"}),
    ("import os\ndef f(n):\n    os.memfd_create('x')", {"violation"}),
    ("def f(n):\n    while True: pass", {"timeout"}),
    ("def f(n):\n    return bytes(1 << 40)", {"memory"}),
    ("def f(n):\n    return f(n)", {"exc:RecursionError"}),
    ("import os\ndef f(n):\n    os.closerange(0, 64)\n    return n", {"noresult"}),
    ("import os\ndef f(n):\n    os.write(3, b'forged')\n    os._exit(0)", {"noresult"}),
    ("def f(n):\n    while True: print('y' * 1000)", {"toolong"}),
    ("class E:\n    def __eq__(self, other): return True\ndef f(n):\n    return E()", {"opaque"}),
    ("import os\ndef f(n):\n    os.abort()", {"crash", "violation"}),
    ("def f(n):\n    return 'x' * 10**6", {"toolong"}),
    ("def f(n):\n    raise type('ok\\n1', (Exception,), {})", {"exc:badname"}),
)
"""Attacks, and their allowed verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Of the host and its zygotes, between two batches."""

    runs: int
    descriptors: int
    processes: int
    host_mb: float
    zygotes_mb: float


@dataclass(slots=True)
class SoakCounts:
    runs: int = 0
    hostile: int = 0
    zygotes_killed: int = 0
    wrong: int = 0
    """Answers with another verdict than allowed; a lost or doubled job would be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakReport(BenchReport):
    tier: str
    tally: SoakCounts
    seconds: float
    first: Footprint
    last: Footprint
    flat: bool

    def render(self, console: "Console") -> None:
        console.print(
            f"{self.tally.runs:,} runs in {self.seconds:,.0f} s in tier {self.tier}: {self.tally.hostile:,} hostile, "
            f"{self.tally.zygotes_killed} zygotes killed, {self.tally.wrong} wrong answers"
        )
        for name in ("descriptors", "processes", "host_mb", "zygotes_mb"):
            console.print(f"  {name:<12} {getattr(self.first, name):>8g} -> {getattr(self.last, name):>8g}")
        console.print("flat" if self.flat else "NOT flat")


def soak(runs: int, config: Config) -> SoakReport:
    """Run `runs` programs; raises Fault when an answer is wrong or something leaks."""
    rng = random.Random(0)
    tally = SoakCounts()
    started = time.monotonic()
    with open_verifier(config.verifier) as verifier:
        _run_batch(verifier, rng, BATCH, SoakCounts())
        footprints = [_footprint(verifier, 0)]
        while tally.runs < runs:
            _run_batch(verifier, rng, min(BATCH, runs - tally.runs), tally)
            footprints.append(_footprint(verifier, tally.runs))
        tier = verifier.tier
    seconds = round(time.monotonic() - started, 1)
    report = SoakReport(
        tier=tier, tally=tally, seconds=seconds, first=footprints[0], last=footprints[-1], flat=_flat(footprints)
    )
    if tally.wrong or not report.flat:
        first, last = asdict(report.first), asdict(report.last)
        changes = ", ".join(f"{name} {first[name]:g} -> {last[name]:g}" for name in first)
        raise Fault(f"the soak failed: {tally.wrong} wrong answers; {changes}")
    return report


def _run_batch(verifier: LocalVerifier, rng: random.Random, runs: int, tally: SoakCounts) -> None:
    """One batch, during which a zygote is killed. A job with two seeds counts as two runs."""
    limits = Limits(cpu_s=0.1, value_chars=1000, stdout_bytes=1000)
    jobs: list[Job] = []
    expected: list[set[str]] = []
    while runs > 0:
        number = len(jobs)
        attack = rng.random() < HOSTILE_SHARE
        source, verdicts = rng.choice(HOSTILE) if attack else (HONEST, {f"ok:{number * 7 + 1}"})
        job = Job.calls(source, [str(number)], seeds=1 + (runs > 1 and rng.random() < TWICE_SHARE), limits=limits)
        jobs.append(job)
        expected.append(verdicts)
        runs -= job.seeds
        tally.runs += job.seeds
        tally.hostile += attack * job.seeds
    answer = verifier.submit(jobs)
    time.sleep(rng.random() * 0.3)
    pids = verifier.zygote_pids()
    if pids:
        os.kill(rng.choice(pids), signal.SIGKILL)
        tally.zygotes_killed += 1
    outcomes = answer.result()
    tally.wrong += sum(o.results[0].verdict not in right for o, right in zip(outcomes, expected, strict=True))


def _footprint(verifier: LocalVerifier, runs: int) -> Footprint:
    """Measured when every zygote has been replaced."""
    count, deadline = verifier.zygote_count(), time.monotonic() + 30
    while len(verifier.zygote_pids()) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    descendants = _descendants(os.getpid())
    return Footprint(
        runs=runs,
        descriptors=len(os.listdir("/proc/self/fd")),
        processes=len(descendants),
        host_mb=round(_resident_mb(os.getpid()), 1),
        zygotes_mb=round(sum(map(_resident_mb, descendants)), 1),
    )


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += [int(child) for child in task.read_text().split()]
        except OSError:
            continue  # it ended while we looked
    return children + [descendant for child in children for descendant in _descendants(child)]


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0  # it ended while we looked


def _flat(footprints: list[Footprint]) -> bool:
    quarter = max(1, len(footprints) // 4)
    early, late = footprints[:quarter], footprints[-quarter:]
    return (
        late[-1].descriptors <= early[0].descriptors
        and late[-1].processes <= early[0].processes
        and min(s.host_mb for s in late) <= max(s.host_mb for s in early) + MEMORY_SLACK_MB
        and min(s.zygotes_mb for s in late) <= max(s.zygotes_mb for s in early) + MEMORY_SLACK_MB
    )
