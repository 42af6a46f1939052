"""The report of an evaluation, as a table and as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from redqueen.analysis.resampling import DRAWS
from redqueen.console import Columns, print_table, printable
from redqueen.errors import InputError
from redqueen.evals.data import LoadedBenchmark
from redqueen.evals.figures import Accuracy, Sheet, Vector, accuracy, majority, measures
from redqueen.evals.subjects import BARE, Group, Subjects

if TYPE_CHECKING:
    from rich.console import Console

SPARE = ("tokens", "seconds", "weakest", "best*", "vote", "tasks", "95 %")
"""The columns that a narrow terminal drops, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A group on one measure of a benchmark, beside the bare base."""

    benchmark: str
    title: str
    measure: str
    """"greedy", "avg@k", "pass@k", or a part such as "base"."""
    subset: str | None
    """The tasks that it is about; None for all."""
    tasks: int
    base: Accuracy
    what: str | None = None
    """The group as the user named it; None for the base alone, which has nothing of what follows."""
    role: str | None = None
    step: int | None = None
    members: Mapping[str, Accuracy] = field(default_factory=dict)
    mean: Accuracy | None = None
    vote: Accuracy | None = None
    """Of the majority vote of the greedy answers, with two members or more."""

    @property
    def name(self) -> str:
        """The measure, and the tasks that it is about."""
        return self.measure if self.subset is None else f"{self.measure}, {self.subset}"

    @property
    def sampled(self) -> bool:
        """Whether it depends on the temperature."""
        return "@" in self.measure

    @property
    def weakest(self) -> tuple[str, Accuracy]:
        return min(self.members.items(), key=lambda member: member[1].value)

    @property
    def best(self) -> tuple[str, Accuracy]:
        return max(self.members.items(), key=lambda member: member[1].value)

    def as_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            name: getattr(self, name) for name in ("measure", "subset", "tasks", "what", "role", "step")
        }
        values["base"] = self.base.as_json()
        if self.mean is None:
            return values
        (weakest, lowest), (best, highest) = self.weakest, self.best
        return values | {
            "mean": self.mean.as_json(),
            "weakest": {"name": weakest, **lowest.as_json()},
            "best": {"name": best, "selected_on_the_test_set": True, **highest.as_json()},
            "vote": None if self.vote is None else self.vote.as_json(),
            "members": {name: member.as_json() for name, member in self.members.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkReport:
    loaded: LoadedBenchmark
    sheets: Mapping[str, Sheet]
    lines: tuple[Line, ...]
    seconds: float
    """Of the last call: answers that were known took none."""
    max_tokens: int

    @property
    def tokens(self) -> int:
        return sum(sheet.tokens for sheet in self.sheets.values())

    def as_json(self) -> dict[str, Any]:
        benchmark, loaded = self.loaded.benchmark, self.loaded
        return {
            "name": benchmark.name,
            "title": benchmark.title,
            "graded": loaded.graded,
            "tasks": len(loaded.items),
            "file": loaded.origin,
            "sha256": loaded.sha256,
            "beside_sha256": loaded.beside_sha256,
            "max_tokens": self.max_tokens,
            "seconds": round(self.seconds, 3),
            **{
                name: {subject or "base": getattr(sheet, name) for subject, sheet in self.sheets.items()}
                for name in ("tokens", "cut", "unanswered", "too_long")
            },
            "scores": [line.as_json() for line in self.lines],
        }


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The report of `redqueen eval`."""

    base: str
    how: Mapping[str, Any]
    """Prompts, attempts, k, temperature, device and dtype, how the base is quantised if it is, and what gains are
    against."""
    benchmarks: tuple[BenchmarkReport, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            **self.how,
            "draws": DRAWS,
            "seconds": round(sum(report.seconds for report in self.benchmarks), 3),
            "benchmarks": [report.as_json() for report in self.benchmarks],
            "notes": list(self.notes),
        }

    def render(self, console: "Console") -> None:
        from rich.text import Text

        names, figures = self._columns()
        left_out = print_table(console, names, figures, SPARE)
        if left_out:
            console.print(Text(f"no room here for {', '.join(left_out)}: results.json has all"), soft_wrap=True)
        for text in (*self._below(voted="vote" in figures, interval="95 %" in figures), *self.notes):
            console.print(Text(printable(text)), soft_wrap=True)

    def _columns(self) -> tuple[Columns, Columns]:
        lines = [line for report in self.benchmarks for line in report.lines]
        names = {f"%, {self.how['prompts']} prompts": [f"{line.title}, {line.name}" for line in lines]}
        if len({(line.what, line.role) for line in lines}) > 1:
            names["of"] = [" ".join(filter(None, (line.what, _plural(line.role)))) for line in lines]
        means, votes = any(line.mean for line in lines), any(line.vote for line in lines)
        heads = ["base ±se"]
        heads += ["mean ±se", f"less {self.how['against'] or 'the base'}", "95 %"] if means else []
        heads += ["weakest", "best*", "vote"] if votes else []
        heads += ["tasks", "tokens", "seconds"]
        rows = []
        for report in self.benchmarks:
            totals, counted = [f"{report.tokens:,}", f"{report.seconds:,.1f}"], set()
            for line in report.lines:
                gain, spread = _gain(line.mean) if means else [], _spread(line) if votes else []
                tasks = "" if line.subset in counted else f"{line.tasks:,}"
                rows.append([_plus_minus(line.base), *gain, *spread, tasks, *totals])
                totals, counted = ["", ""], {*counted, line.subset}
        return names, {head: list(cells) for head, cells in zip(heads, zip(*rows, strict=True), strict=True)}

    def _below(self, *, voted: bool, interval: bool) -> list[str]:
        how = self.how
        lines = [f"{report.loaded.benchmark.title}: {report.loaded.graded}" for report in self.benchmarks]
        sampled = f", {how['attempts']} attempts at temperature {how['temperature']:g}" if how["attempts"] else ""
        stored = f", the base in {how['quantise']}" if how["quantise"] != "none" else ""
        computed = f"{how['dtype']} on {how['device']}{stored}"
        lines.append(f"one greedy attempt{sampled}; {computed}; tokens are of all answers")
        if interval:
            lines.append("95 %: by resampling tasks, the same ones for both sides; it says nothing of other runs")
        if voted:
            lines.append(
                "* the best is selected on the test set itself and reads too high; vote: what most members answer "
                "(code: return on the first tests)"
            )
        for report in self.benchmarks:
            too_long = max(sheet.too_long for sheet in report.sheets.values())
            if too_long:
                tasks = f"{too_long:,} of {len(report.loaded.items):,} tasks"
                lines.append(
                    f"{report.loaded.benchmark.title}: the prompts of {tasks} are too long for the base, which counts "
                    "as wrong"
                )
            cut = fmean(sheet.cut for sheet in report.sheets.values())
            # Of a choice the letter alone counts, and what follows it does not matter.
            if cut > 0.05 and report.loaded.benchmark.suite != "knowledge":
                title = report.loaded.benchmark.title
                lines.append(f"{title}: {100 * cut:.0f} % of the answers were cut off; raise --max-tokens")
        return lines


def benchmark_report(
    loaded: LoadedBenchmark,
    sheets: Mapping[str, Sheet],
    subjects: Subjects,
    against: str | None,
    k: int,
    seconds: float,
    max_tokens: int,
    subsets: Sequence[str] = (),
) -> BenchmarkReport:
    """`subsets` has the subset of each item, or nothing."""
    measured = {name: measures(sheet, k) for name, sheet in sheets.items()}
    places: dict[str | None, list[int]] = {None: list(range(len(loaded.items)))}
    for place, subset in enumerate(subsets):
        places.setdefault(subset, []).append(place)
    lines: list[Line] = []
    for subset, measure in product(sorted(places, key=lambda name: name or ""), measured[BARE]):
        own = places[subset]
        values_N = {name: of_subject[measure][own] for name, of_subject in measured.items()}
        base_N = values_N[BARE]
        line = Line(
            benchmark=loaded.benchmark.name,
            title=loaded.benchmark.title,
            measure=measure,
            subset=subset,
            tasks=len(own),
            base=accuracy(base_N),
        )
        for group in subjects.groups:
            other_N = base_N if against is None else _mean(values_N, rival(subjects, group, against))
            vote = None
            if measure == "greedy" and len(group.members) > 1:
                vote = accuracy(majority([sheets[name] for name in group.members])[own], other_N)
            lines.append(
                replace(
                    line,
                    what=group.what,
                    role=None if group.role is None else str(group.role),
                    step=group.step,
                    members={name: accuracy(values_N[name], other_N) for name in group.members},
                    mean=accuracy(_mean(values_N, group), other_N),
                    vote=vote,
                )
            )
        if not subjects.groups:
            lines.append(line)
    return BenchmarkReport(loaded=loaded, sheets=sheets, lines=tuple(lines), seconds=seconds, max_tokens=max_tokens)


def rival(subjects: Subjects, group: Group, against: str) -> Group:
    """The group that gains are against: the same role of what is named."""
    rivals = [other for other in subjects.groups if other.what == against]
    for other in rivals:
        if other.role == group.role:
            return other
    roles = " and ".join(f"{other.role}s" if other.role else "a single adapter" for other in rivals)
    mine = f"the {group.role}s of {group.what}" if group.role else f"the single adapter {group.what}"
    raise InputError(
        f"{mine} cannot be compared with {against}, which has {roles}",
        "evaluate the same role of both (--role), or leave --against out",
    )


def _mean(values_N: Mapping[str, Vector], group: Group) -> Vector:
    return np.mean([values_N[name] for name in group.members], axis=0)


def _plural(role: str | None) -> str:
    return f"{role}s" if role else ""


def _plus_minus(score: Accuracy) -> str:
    return f"{100 * score.value:.1f}" + ("" if score.error is None else f" ±{100 * score.error:.1f}")


def _gain(score: Accuracy | None) -> Sequence[str]:
    if score is None or score.gain is None:
        return "", "", ""
    value, low, high = score.gain.value, score.gain.low, score.gain.high
    interval = "" if low is None or high is None else f"[{100 * low:+.1f}, {100 * high:+.1f}]"
    return _plus_minus(score), f"{100 * value:+.1f}", interval


def _spread(line: Line) -> Sequence[str]:
    if len(line.members) < 2:
        return "", "", ""
    ends = [f"{100 * score.value:.1f} {name}" for name, score in (line.weakest, line.best)]
    return *ends, "" if line.vote is None else f"{100 * line.vote.value:.1f}"
