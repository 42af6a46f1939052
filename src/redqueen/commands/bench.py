"""`redqueen bench ...`: the benchmarks as commands. Whatever is heavy is imported when one runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import Configured, OfRace, counts, positive, span
from redqueen.console import show

if TYPE_CHECKING:
    from redqueen.bench.operators import OpenPeer, OperatorsReport
    from redqueen.bench.workload import Options


ON_BASE = ("engine.device", "engine.dtype", "engine.rank", "engine.alpha", "engine.target_modules")
"""The base itself is --base or --shape."""


@dataclass(frozen=True, kw_only=True)
class BenchVerifier(Configured):
    """Programs that the verifier runs in a second."""

    uses = ("verifier",)
    seconds: float = 5.0
    """How long each way runs."""
    soak: Annotated[int | None, tyro.conf.arg(metavar="RUNS")] = None
    """Instead: run this many programs, some of them hostile, and watch for what leaks."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.bench import soak, verifier

        if self.soak is None:
            report = verifier.compare(positive("--seconds", self.seconds), self.settings)
        else:
            report = soak.soak(positive("--soak", self.soak), self.settings)
        show(report, as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class _OnBase(Configured):
    """A benchmark of the engine."""

    uses = ON_BASE
    shape: Annotated[str, tyro.conf.arg(metavar="tiny|1m|135m|0.5b|7b")] = "tiny"
    """A base of this shape with random weights."""
    base: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Instead: a real base: a known name, a folder, a .gguf file or a hub id."""
    rank: int | None = None
    """The adapters' rank; --engine.rank when left out."""
    json: bool = False
    """Print one line of JSON."""

    def _rank(self) -> int:
        return self.settings.engine.rank if self.rank is None else positive("--rank", self.rank)


@dataclass(frozen=True, kw_only=True)
class _Comparison(_OnBase):
    members: Annotated[str, tyro.conf.arg(metavar="N,N")] = "1,8"
    """How many adapters share a batch: each number is measured by itself."""
    prompt: Annotated[str | None, tyro.conf.arg(metavar="LOW-HIGH")] = None
    """Tokens of a prompt, drawn between these two; what suits the base when left out."""
    output: Annotated[str | None, tyro.conf.arg(metavar="LOW-HIGH")] = None
    """Tokens of a completion, likewise."""
    repeats: int = 3
    """Turns of every number of adapters."""

    def _options(self, requests: int | None, rows: int | None = None, *, agreement: bool = False) -> "Options":
        members, rank, repeats = counts("--members", self.members), self._rank(), positive("--repeats", self.repeats)
        prompt = None if self.prompt is None else span("--prompt", self.prompt)
        output = None if self.output is None else span("--output", self.output)
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
            repeats=repeats,
            agreement=agreement,
        )


@dataclass(frozen=True, kw_only=True)
class BenchSample(_Comparison):
    """Sampling with many adapters in one batch."""

    rows: int | None = None
    """Completions that grow at the same time; what suits the base when left out."""
    requests: int | None = None
    """Completions; twice the rows when left out."""
    agreement: bool = False
    """Also say how many tokens are those that one-by-one sampling gives."""

    def options(self) -> "Options":
        rows = None if self.rows is None else positive("--rows", self.rows)
        requests = None if self.requests is None else positive("--requests", self.requests)
        return self._options(requests, rows, agreement=self.agreement)

    def run(self) -> None:
        options = self.options()
        from redqueen.bench import engine

        show(engine.sample(options, self.settings.engine), as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class BenchUpdate(_Comparison):
    """Training many adapters in one batch."""

    sequences: int | None = None
    """Sequences of one update; what suits the base when left out."""

    def options(self) -> "Options":
        return self._options(None if self.sequences is None else positive("--sequences", self.sequences))

    def run(self) -> None:
        options = self.options()
        from redqueen.bench import engine

        show(engine.update(options, self.settings.engine), as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class BenchMembers(_OnBase):
    """What members cost beside the base: memory, and the time to swap one in."""

    uses = (*ON_BASE, "engine.rows")
    members: int = 100
    """How many."""

    def run(self) -> None:
        base, rank = self.base or f"random:{self.shape}", self._rank()
        count = positive("--members", self.members)
        from redqueen.bench import members

        show(members.measure(base, count, rank, self.settings.engine), as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class BenchOperators(_OnBase):
    """What a child costs with every operator."""

    uses = ("engine.device", "engine.alpha", "engine.target_modules", "evolution.operators")
    shape: Annotated[str, tyro.conf.arg(metavar="tiny|1m|135m|0.5b|7b")] = "7b"
    """The slots of a base of this shape; no base is made."""
    rank: int = 32
    """The adapters' rank."""
    operators: Annotated[str | None, tyro.conf.arg(metavar="NAME,FILE.py:NAME")] = None
    """Only these; when left out all, and those of your own in --evolution.operators. FILE.py is code that you trust: it
    runs with all your rights."""
    repeats: int = 3
    """Turns of every operator."""

    def run(self) -> None:
        show(self.measure(), as_json=self.json)

    def measure(self, open_peer: "OpenPeer | None" = None) -> "OperatorsReport":
        base, rank, repeats = self.base or f"random:{self.shape}", self._rank(), positive("--repeats", self.repeats)
        from redqueen.bench import operators
        from redqueen.evolution.variation import OPERATORS

        if self.operators is None:
            names = list(dict.fromkeys([*OPERATORS, *self.settings.evolution.operators]))
        else:
            names = [name.strip() for name in self.operators.split(",")]
        return operators.measure(base, names, rank, repeats, self.settings.engine, open_peer)


@dataclass(frozen=True, kw_only=True)
class BenchStep(OfRace):
    """A step of a race, phase by phase, and the population beside its baselines."""

    arms: Annotated[str, tyro.conf.arg(metavar="ARM,ARM")] = "single-wide,population"
    """Which arms take turns, as in `redqueen train --arm`; the others are compared with the first."""
    steps: int = 20
    """Of each."""
    warmup: int = 2
    """Steps of each before that, which do not count."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.training import step_benchmark

        names = [name for name in self.arms.split(",") if name]
        report = step_benchmark.measure(self.settings, names, positive("--steps", self.steps), max(0, self.warmup))
        show(report, as_json=self.json)
