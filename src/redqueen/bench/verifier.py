"""What the verifier runs in a second, and beside it the peers that a caller brings: same programs, same workers, one
run.

Contestants take turns in short rounds, so that whatever else the machine does hits all of them, and the figures that
count are ratios within one round: their median over the rounds is reported.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.bench.programs import LOOP, PROGRAMS
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


@dataclass(frozen=True, slots=True)
class Peer:
    """What one would use instead."""

    isolation: str
    run: Callable[[float], float]
    """Run programs for so many seconds; how many a second."""


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str
    isolation: str
    per_s: float
    """Median over the rounds: programs a second (calls a second for ten inputs per fork)."""
    ours_to_it: float | None
    """For a peer: our runs a second, one fork per run, divided by its own; the median of the rounds' ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierReport:
    """What `redqueen bench verifier` found."""

    machine: str
    cores: int
    tier: str
    seconds: float
    rounds: int
    contestants: tuple[Contestant, ...]
    ten_inputs_to_one: float
    """Calls a second with ten inputs per fork, divided by those with one."""
    notes: tuple[str, ...]
    """About peers that this machine has not."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich.table import Table

        console.print(f"{self.machine}, {self.cores} cores, tier {self.tier}, median of {self.rounds} rounds")
        table = Table()
        for column in ("way", "isolation"):
            table.add_column(column)
        peers = any(contestant.ours_to_it is not None for contestant in self.contestants)
        for column in ("per second", *(["Red Queen is"] if peers else [])):
            table.add_column(column, justify="right")
        for contestant in self.contestants:
            ratio = "" if contestant.ours_to_it is None else f"{contestant.ours_to_it:.2f}x"
            cells = contestant.name, contestant.isolation, f"{contestant.per_s:,.0f}"
            table.add_row(*cells, *([ratio] if peers else []))
        console.print(table)
        console.print(f"ten inputs per fork make {self.ten_inputs_to_one:.2f}x the calls of one per fork")
        for line in self.notes:
            console.print(line)


def compare(
    seconds: float, config: Config, peers: Mapping[str, Peer] | None = None, notes: Sequence[str] = ()
) -> VerifierReport:
    """Let everyone run for `seconds`, spread over the rounds."""
    peers = peers or {}
    with open_verifier(config.verifier) as verifier:
        ours = _our_ways(verifier)
        ways = ours | {name: peer.run for name, peer in peers.items()}
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, run in ways.items():
                rates[name].append(run(seconds / ROUNDS))
        tier = verifier.tier
    contestants = [
        Contestant(
            name,
            peers[name].isolation if name in peers else str(tier),
            statistics.median(per_s),
            _ratio(rates[OURS], per_s) if name in peers else None,
        )
        for name, per_s in rates.items()
    ]
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    ten_to_one = _ratio(rates[TEN_INPUTS], rates[OURS])
    return VerifierReport(
        machine=machine,
        cores=os.cpu_count() or 1,
        tier=tier,
        seconds=seconds,
        rounds=ROUNDS,
        contestants=tuple(contestants),
        ten_inputs_to_one=ten_to_one,
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
