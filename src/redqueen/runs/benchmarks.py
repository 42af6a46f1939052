"""How a run did on benchmarks: a small file beside its records, for whoever compares runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from redqueen.errors import InputError
from redqueen.runs.atomic import write_text

FILE = "benchmarks.json"
TEMPERATURE = 0.6
"""Of sampled attempts, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The mean of a role, or of a single adapter, on one measure of a benchmark."""

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
    """That its members sampled for it."""
    temperature: float | None = None
    """Of sampled attempts, where it is another than usual."""
    max_tokens: int | None = None
    """The longest answer, where it is another than the benchmark's own."""

    @property
    def name(self) -> str:
        """As tables have it."""
        who = f", {self.role}s" if self.role else ""
        hot = "" if self.temperature is None else f", temperature {self.temperature:g}"
        cut = "" if self.max_tokens is None else f", at most {self.max_tokens:,} tokens"
        return f"{self.title} ({self.tasks:,} tasks), {self.prompts}, {self.measure}{who}{hot}{cut}"


def keep(run: Path, results: Sequence[Result]) -> None:
    """Note results, in the place of earlier ones of the same measure."""

    def key(result: Result) -> tuple[object, ...]:
        return (
            result.benchmark, result.measure, result.prompts, result.role, result.tasks, result.temperature,
            result.max_tokens,
        )  # fmt: skip

    both = {key(result): result for result in (*read(run), *results)}
    write_text(run / FILE, json.dumps([asdict(result) for result in both.values()], indent=1) + "\n")


def read(run: Path) -> list[Result]:
    path = run / FILE
    if not path.is_file():
        return []
    try:
        return [Result(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise InputError(f"{path} cannot be read", "remove it, and evaluate the run again") from None
