"""How a run's members did in exams, step by step: a small file beside its records, for the page and for cards."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redqueen.runs import metrics, result_files

FILE = "exams.json"
BASE = metrics.BASE
"""The subject of the bare base's results."""
TITLES = {"sampled": "sampled", "greedy": "greedy", "pass_at_k": "pass@k"}
"""Of the figures of an exam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamResult:
    """What one subject made of an exam."""

    exam: str
    """Its name, or that of its file without the folder."""
    sha256: str
    """Of its tasks."""
    how: Mapping[str, Any]
    """The bands, the prompts' form, attempts, k of pass@k, temperature and the longest attempt."""
    step: int
    """Of the checkpoint; for the base, of the checkpoint that it was examined beside."""
    subject: str
    """A member, a role for the mean of its members, or the base."""
    tasks: int
    figures: Mapping[str, float]
    """By the names of `TITLES`."""
    gains: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Likewise, less the base on the same tasks, with both ends of the 95 % interval; nothing for the base."""

    @property
    def paper(self) -> tuple[str, ...]:
        """What results must have in common to be compared."""
        return self.exam, self.sha256, *(f"{name} {value}" for name, value in sorted(self.how.items()))

    @property
    def title(self) -> str:
        return f"{self.exam} ({self.tasks:,} tasks)"

    def measure(self, figure: str) -> str:
        """The name of a figure, with its k."""
        return f"pass@{self.how['k']}" if figure == "pass_at_k" else TITLES[figure]

    @property
    def asked(self) -> str:
        """How, for people."""
        count = self.how["attempts"]
        attempts = f"{count} attempt{'' if count == 1 else 's'} at temperature {self.how['temperature']:g}"
        return f"{self.how['form']} prompts, {attempts}"


def keep(run: Path, results: Sequence[ExamResult]) -> None:
    """Note results, in the place of earlier ones of the same subject and step; those of one exam are together."""
    both = {(result.paper, result.step, result.subject): result for result in (*read(run), *results)}
    newest = {result.paper for result in results}
    result_files.write(run / FILE, sorted(both.values(), key=lambda result: result.paper in newest))


def read(run: Path) -> list[ExamResult]:
    return result_files.read(run / FILE, ExamResult, "examine the run again")


def newest(run: Path, of: Collection[str]) -> list[ExamResult]:
    """Those of the exam that one of these subjects sat last, in the order of their steps."""
    results = read(run)
    last = next((result.paper for result in reversed(results) if result.subject in of), None)
    return sorted((one for one in results if one.paper == last), key=lambda result: result.step)
