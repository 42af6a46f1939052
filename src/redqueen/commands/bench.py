"""`redqueen bench ...`: the benchmarks as commands. Whatever is heavy is imported when one runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import (
    Configured,
    OfRace,
    Reporting,
    check_output,
    counts,
    optional_positive,
    positive,
    span,
    write_output,
)
from redqueen.console import Report
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.bench.operators import OpenPeer, OperatorsReport
    from redqueen.bench.workload import Options


ADAPTER_OPTIONS = (
    "engine.device", "engine.dtype", "engine.quantise", "engine.memory", "engine.rank", "engine.alpha",
    "engine.target_modules",
)  # fmt: skip
"""The base itself is --base or --shape."""
Shape = Annotated[str, tyro.conf.arg(metavar="tiny|1m|135m|0.5b|1.5b|7b")]


@dataclass(frozen=True, kw_only=True)
class BenchVerifierCommand(Reporting, Configured):
    """Measure how many programs the verifier runs in a second."""

    uses = ("verifier",)
    seconds: float = 5.0
    """How long each way of running them is measured."""
    soak: Annotated[int | None, tyro.conf.arg(metavar="RUNS")] = None
    """Instead: run this many programs, some of them hostile, and watch for leaks."""

    def report(self) -> Report:
        from redqueen.bench import soak, verifier

        if self.soak is None:
            return verifier.compare(positive("--seconds", self.seconds), self.settings)
        return soak.soak(positive("--soak", self.soak), self.settings)


@dataclass(frozen=True, kw_only=True)
class _OnBase(Reporting, Configured):
    uses = ADAPTER_OPTIONS
    shape: Shape = "tiny"
    """A base of this shape with random weights."""
    base: Annotated[str | None, tyro.conf.arg(metavar="BASE")] = None
    """Instead: a real base, as a known name, a folder, a .gguf file or a hub id."""
    rank: int | None = None
    """The adapters' rank; --engine.rank when left out."""

    def _rank(self) -> int:
        return self.settings.engine.rank if self.rank is None else positive("--rank", self.rank)


@dataclass(frozen=True, kw_only=True)
class _Throughput(_OnBase):
    members: Annotated[str, tyro.conf.arg(metavar="N,N")] = "1,8"
    """How many adapters share a batch; each number is measured by itself."""
    prompt: Annotated[str | None, tyro.conf.arg(metavar="LOW-HIGH")] = None
    """Tokens of a prompt, drawn from this range; by default chosen for the base."""
    output: Annotated[str | None, tyro.conf.arg(metavar="LOW-HIGH")] = None
    """Tokens of a completion, likewise."""
    repeats: int = 3
    """How often each number of adapters is measured."""

    def _options(
        self,
        requests: int | None,
        rows: int | None = None,
        *,
        head: float = 0.0,
        agreement: bool = False,
        sampled: bool = False,
    ) -> "Options":
        members, rank, repeats = counts("--members", self.members), self._rank(), positive("--repeats", self.repeats)
        prompt, output = span("--prompt", self.prompt), span("--output", self.output)
        # Only here, so that a mistake comes back before torch is imported.
        from redqueen.bench.workload import Options

        return Options(
            shape=self.shape,
            base=self.base,
            members=members,
            rank=rank,
            rows=rows,
            requests=requests,
            prompt=prompt,
            output=output,
            head=head,
            repeats=repeats,
            agreement=agreement,
            sampled=sampled,
        )


@dataclass(frozen=True, kw_only=True)
class BenchSampleCommand(_Throughput):
    """Measure sampling with many adapters in one batch."""

    rows: int | None = None
    """Sequences decoded in parallel; by default chosen for the base."""
    requests: int | None = None
    """Completions in all; by default twice the rows."""
    head: float = 0.0
    """The share of each prompt, from its first token on, in which it is like the others: 0 to 1."""
    agreement: bool = False
    """Also report how many tokens agree with one-by-one sampling."""

    def options(self) -> "Options":
        requests, rows = optional_positive("--requests", self.requests), optional_positive("--rows", self.rows)
        if not 0 <= self.head <= 1:
            raise InputError(f"--head cannot be {self.head}", "use a share from 0 to 1")
        return self._options(requests, rows, head=self.head, agreement=self.agreement)

    def report(self) -> Report:
        options = self.options()
        from redqueen.bench import engine

        return engine.sample(options, self.settings.engine)


@dataclass(frozen=True, kw_only=True)
class BenchUpdateCommand(_Throughput):
    """Measure training many adapters in one batch."""

    sequences: int | None = None
    """Sequences in one update; by default chosen for the base."""
    sampled: bool = False
    """Sample as much before it, as a step of a race does: the peak is then that of both, with the KV cache."""

    def options(self) -> "Options":
        return self._options(optional_positive("--sequences", self.sequences), sampled=self.sampled)

    def report(self) -> Report:
        options = self.options()
        from redqueen.bench import engine

        return engine.update(options, self.settings.engine)


@dataclass(frozen=True, kw_only=True)
class BenchMembersCommand(_OnBase):
    """Measure what members cost beside the base: memory, and the time to swap one in."""

    uses = (*ADAPTER_OPTIONS, "engine.rows")
    members: int = 100
    """How many members."""

    def report(self) -> Report:
        rank, count = self._rank(), positive("--members", self.members)
        from redqueen.bench import members

        return members.measure(self.base or f"random:{self.shape}", count, rank, self.settings.engine)


@dataclass(frozen=True, kw_only=True)
class BenchOperatorsCommand(_OnBase):
    """Measure how long each operator takes to make a child."""

    uses = ("engine.device", "engine.alpha", "engine.target_modules", "evolution.operators")
    shape: Shape = "7b"
    """The adapted layers of a base of this shape; no base is built."""
    rank: int = 32
    """The adapters' rank."""
    operators: Annotated[str | None, tyro.conf.arg(metavar="NAME,FILE.py:NAME")] = None
    """Only these; all and --evolution.operators when left out. FILE.py is code that you trust: it has your rights."""
    repeats: int = 3
    """How often each operator is measured."""

    def report(self) -> Report:
        return self.measure()

    def measure(self, open_peer: "OpenPeer | None" = None) -> "OperatorsReport":
        base, rank, repeats = self.base or f"random:{self.shape}", self._rank(), positive("--repeats", self.repeats)
        from redqueen.bench import operators
        from redqueen.plugins import OPERATORS

        if self.operators is None:
            names = list(dict.fromkeys([*OPERATORS.builtins, *self.settings.evolution.operators]))
        else:
            names = [name.strip() for name in self.operators.split(",")]
        return operators.measure(base, names, rank, repeats, self.settings.engine, open_peer)


@dataclass(frozen=True, kw_only=True)
class BenchStepCommand(Reporting, OfRace):
    """Measure a step of a race, phase by phase, and the population beside its baselines."""

    arms: Annotated[str, tyro.conf.arg(metavar="ARM,ARM")] = "single-wide,population"
    """Which arms take turns, as in `redqueen train --arm`. The others are compared with the first."""
    steps: int = 6
    """Steps of each arm."""
    warmup: int = 2
    """Steps of each arm before that, which do not count."""
    picture: Annotated[Path | None, tyro.conf.arg(metavar="FILE.svg")] = None
    """Also draw where the seconds of a step of each arm go, the one next to the median."""

    def report(self) -> Report:
        steps = positive("--steps", self.steps)
        if self.warmup < 0:
            raise InputError(f"--warmup cannot be {self.warmup}", "use 0 or more")
        if self.picture is not None and self.picture.suffix != ".svg":
            raise InputError(f"--picture cannot be {self.picture}", "name a file that ends in .svg")
        if self.picture is not None:
            check_output(self.picture)
        from redqueen.training import step_benchmark

        names = [name for name in self.arms.split(",") if name]
        report = step_benchmark.measure(self.settings, names, steps, self.warmup)
        if self.picture is not None:
            write_output(self.picture, report.picture())
        return report
