"""How a run did on benchmarks: a small file beside its records, for whoever compares runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.runs import result_files

FILE = "benchmarks.json"
TEMPERATURE = 0.6
"""Of sampled attempts, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The mean of a role, or one member, on one measure of a benchmark."""

    benchmark: str
    title: str
    measure: str
    prompts: str
    role: str | None
    step: int
    tasks: int
    sha256: str
    """Of the benchmark's file."""
    value: float
    error: float | None
    tokens: int
    """Of its members' answers."""
    temperature: float | None = None
    """Of sampled attempts, where it is another than usual."""
    max_tokens: int | None = None
    """The longest answer, where it is another than the benchmark's own."""
    quantise: str | None = None
    """How the base was stored, where it was quantised."""
    member: str | None = None
    """None for the mean of a role, or for the only adapter of a run."""
    base: float | None = None
    """The bare base's value."""
    gain: Sequence[float | None] | None = None
    """Less the base on the same tasks, with both ends of the 95 % interval."""

    @property
    def name(self) -> str:
        """As tables have it."""
        return self._named(f", {self.role}s" if self.role else "")

    @property
    def asked(self) -> str:
        """The same, whoever was asked."""
        return self._named("")

    def _named(self, who: str) -> str:
        hot = "" if self.temperature is None else f", temperature {self.temperature:g}"
        cut = "" if self.max_tokens is None else f", at most {self.max_tokens:,} tokens"
        stored = "" if self.quantise is None else f", the base in {self.quantise}"
        return f"{self.title} ({self.tasks:,} tasks), {self.prompts}, {self.measure}{who}{hot}{cut}{stored}"


def keep(run: Path, results: Sequence[Result]) -> None:
    """Note results, in the place of earlier ones of the same measure and step."""

    both = {(_asked(result), result.step): result for result in (*read(run), *results)}
    result_files.write(run / FILE, list(both.values()))


def _asked(result: Result) -> tuple[object, ...]:
    """Who was asked what, and how."""
    return (
        result.benchmark, result.measure, result.prompts, result.member or result.role, result.tasks,
        result.temperature, result.max_tokens, result.quantise,
    )  # fmt: skip


def read(run: Path) -> list[Result]:
    return result_files.read(run / FILE, Result, "evaluate the run again")


def of_roles(run: Path) -> list[Result]:
    """Those of whole roles and of single adapters at the newest step, for whoever compares runs."""
    by_step = sorted((result for result in read(run) if result.member is None), key=lambda result: result.step)
    return list({_asked(result): result for result in by_step}.values())
