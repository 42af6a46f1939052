"""Programs per second of the verifier, and of peers that a caller passes: same programs, same workers, one run.

Contestants take turns in short rounds, so that other load hits all of them. Ratios are medians of the ratios within one
round.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.bench import BenchReport
from redqueen.console import print_table
from redqueen.resources import open_verifier
from redqueen.settings import Config
from redqueen.verifier import Job, Limits, LocalVerifier

if TYPE_CHECKING:
    from rich.console import Console

ROUNDS = 5
OURS = "Red Queen, one fork per run"
TEN_INPUTS = "Red Queen, ten inputs per fork"
LOOPS = "Red Queen, 5 % infinite loops"
LOOPS_100_MS = "Red Queen, the same, 100 ms limit"
PROGRAMS = (
    ("def f(x):\n    return x + 1\n", "41"),
    ("def f(s):\n    return s[::-1].upper()\n", "'abc def'"),
    ("def f(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n", "30"),
    ("def f(xs):\n    return sorted(set(xs), reverse=True)\n", "[3, 1, 2, 3, 1]"),
    ("def f(xs):\n    return [x * x for x in xs if x % 2]\n", "[1, 2, 3, 4, 5]"),
    (
        "def f(s):\n    counts = {}\n    for c in s:\n        counts[c] = counts.get(c, 0) + 1\n    return counts\n",
        "'mississippi'",
    ),
    ("def g(n):\n    return n if n < 2 else g(n - 1) + g(n - 2)\ndef f(n):\n    return g(n)\n", "8"),
    ("import math\ndef f(a, b):\n    return math.gcd(a, b), a * b // math.gcd(a, b)\n", "84, 36"),
)
"""Small programs like those of teachers, each with the arguments of a call. All contestants run them."""
LOOP = "def f(x):\n    while True:\n        x += 1\n"


@dataclass(frozen=True, slots=True)
class VerifierPeer:
    """An alternative to the verifier."""

    isolation: str
    run: Callable[[float], float]
    """Run programs for this many seconds; returns programs per second."""


@dataclass(frozen=True, slots=True)
class VerifierContestant:
    name: str
    isolation: str
    per_s: float
    """Programs per second (calls for ten inputs per fork), median over the rounds."""
    ours_to_it: float | None
    """For a peer: our programs per second, one fork per run, divided by its own; median over the rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierReport(BenchReport):
    machine: str
    cores: int
    tier: str
    seconds: float
    rounds: int
    contestants: tuple[VerifierContestant, ...]
    ten_inputs_to_one: float
    """Calls per second with ten inputs per fork, divided by those with one; median over the rounds."""
    notes: tuple[str, ...]

    def render(self, console: "Console") -> None:
        console.print(f"{self.machine}, {self.cores} cores, tier {self.tier}, median of {self.rounds} rounds")
        rows = self.contestants
        names = {"way": [row.name for row in rows], "isolation": [row.isolation for row in rows]}
        figures = {"per second": [f"{row.per_s:,.0f}" for row in rows]}
        if any(row.ours_to_it is not None for row in rows):
            figures["Red Queen is"] = ["" if row.ours_to_it is None else f"{row.ours_to_it:.2f}x" for row in rows]
        print_table(console, names, figures)
        console.print(
            f"ten inputs per fork make {self.ten_inputs_to_one:.2f}x the calls of one per fork, round by round"
        )
        for line in self.notes:
            console.print(line)


def compare(
    seconds: float, config: Config, peers: Mapping[str, VerifierPeer] | None = None, notes: Sequence[str] = ()
) -> VerifierReport:
    """Every contestant runs for `seconds`, spread over the rounds."""
    peers = peers or {}
    with open_verifier(config.verifier) as verifier:
        ways = _our_ways(verifier) | {name: peer.run for name, peer in peers.items()}
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, run in ways.items():
                rates[name].append(run(seconds / ROUNDS))
        tier = verifier.tier
    contestants = [
        VerifierContestant(
            name,
            peers[name].isolation if name in peers else str(tier),
            statistics.median(per_s),
            _ratio(rates[OURS], per_s) if name in peers else None,
        )
        for name, per_s in rates.items()
    ]
    return VerifierReport(
        machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        cores=os.cpu_count() or 1,
        tier=tier,
        seconds=seconds,
        rounds=ROUNDS,
        contestants=tuple(contestants),
        ten_inputs_to_one=_ratio(rates[TEN_INPUTS], rates[OURS]),
        notes=tuple(notes),
    )


def _ratio(ours: list[float], others: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, others, strict=True))


def _our_ways(verifier: LocalVerifier) -> dict[str, Callable[[float], float]]:
    plain = [Job.calls(source, [arguments], seeds=1) for source, arguments in PROGRAMS] * 50
    tens = [Job.calls(source, [arguments] * 10, seeds=1) for source, arguments in PROGRAMS] * 25

    def with_loops(limits: Limits) -> list[Job]:
        jobs = [Job.calls(source, [arguments], seeds=1, limits=limits) for source, arguments in PROGRAMS] * 25
        jobs[::20] = [Job.calls(LOOP, ["0"], seeds=1, limits=limits)] * len(jobs[::20])
        return jobs

    ways = {
        OURS: (plain, 1),
        TEN_INPUTS: (tens, 10),
        LOOPS: (with_loops(Limits()), 1),
        LOOPS_100_MS: (with_loops(Limits(cpu_s=0.1)), 1),
    }
    return {name: _our_way(verifier, jobs, calls) for name, (jobs, calls) in ways.items()}


def _our_way(verifier: LocalVerifier, jobs: list[Job], calls_per_job: int) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        done, started = 0, time.perf_counter()
        while time.perf_counter() < started + seconds:
            done += len(verifier.run_sync(jobs))
        return done * calls_per_job / (time.perf_counter() - started)

    return run
