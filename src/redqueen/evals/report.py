"""What an evaluation found, as a table and as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from redqueen.analysis.resampling import DRAWS
from redqueen.console import Columns, print_table, printable
from redqueen.errors import InputError
from redqueen.evals.data import Loaded
from redqueen.evals.figures import Score, Sheet, Vector, majority, measures, score
from redqueen.evals.subjects import BARE, Group, Subjects

if TYPE_CHECKING:
    from rich.console import Console

SPARE = ("tokens", "seconds", "weakest", "best*", "vote", "tasks", "95 %")
"""What a narrow terminal does without, in this order."""


@dataclass(frozen=True, slots=True)
class MemberScore:
    """One member on one measure."""

    name: str
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A group on one measure of a benchmark, beside the bare base."""

    benchmark: str
    title: str
    measure: str
    """"greedy", "avg@k", "pass@k", or a part such as "base"."""
    tasks: int
    what: str | None = None
    """As the user named it; None for the base alone."""
    role: str | None = None
    step: int | None = None
    base: Score
    members: tuple[MemberScore, ...] = ()
    mean: Score | None = None
    """None for the base alone."""
    vote: Score | None = None
    """By majority, of the greedy answers of two members or more."""

    @property
    def sampled(self) -> bool:
        """Whether the temperature has a say in it."""
        return "@" in self.measure

    @property
    def weakest(self) -> MemberScore:
        return min(self.members, key=lambda each: each.score.value)

    @property
    def best(self) -> MemberScore:
        return max(self.members, key=lambda each: each.score.value)

    def as_json(self) -> dict[str, Any]:
        about = {"measure": self.measure, "what": self.what, "role": self.role, "step": self.step}
        if self.mean is None:
            return about | {"base": self.base.as_json()}
        return about | {
            "base": self.base.as_json(),
            "mean": self.mean.as_json(),
            "weakest": {"name": self.weakest.name, **self.weakest.score.as_json()},
            "best": {"name": self.best.name, "selected_on_the_test_set": True, **self.best.score.as_json()},
            "vote": None if self.vote is None else self.vote.as_json(),
            "members": {each.name: each.score.as_json() for each in self.members},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkReport:
    """What was found on one benchmark."""

    loaded: Loaded
    sheets: Mapping[str, Sheet]
    lines: tuple[Line, ...]
    seconds: float
    """Of the last call: what was known already took none."""
    max_tokens: int
    """The longest answer that was allowed."""

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.sheets.values())

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
            "tokens": {who or "base": each.tokens for who, each in self.sheets.items()},
            "cut": {who or "base": each.cut for who, each in self.sheets.items()},
            "unanswered": {who or "base": each.unanswered for who, each in self.sheets.items()},
            "scores": [line.as_json() for line in self.lines],
        }


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """What `redqueen eval` found."""

    base: str
    how: Mapping[str, Any]
    """Prompts, attempts, k, temperature, what it was computed on, what gains are on."""
    benchmarks: tuple[BenchmarkReport, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            **self.how,
            "draws": DRAWS,
            "seconds": round(sum(each.seconds for each in self.benchmarks), 3),
            "benchmarks": [each.as_json() for each in self.benchmarks],
            "notes": list(self.notes),
        }

    def render(self, console: "Console") -> None:
        from rich.text import Text

        members = any(line.mean is not None for each in self.benchmarks for line in each.lines)
        voted = any(line.vote is not None for each in self.benchmarks for line in each.lines)
        names, figures = self._columns(members, voted)
        left_out = print_table(console, names, figures, SPARE)
        if left_out:
            console.print(Text(f"no room here for {', '.join(left_out)}: results.json has all"), soft_wrap=True)
        for text in (*self._below("vote" in figures, "95 %" in figures), *self.notes):
            console.print(Text(printable(text)), soft_wrap=True)

    def _columns(self, members: bool, voted: bool) -> tuple[Columns, Columns]:
        """By their heads: names, and figures."""
        heads = ["base ±se"]
        if members:
            heads += ["mean ±se", f"less {self.how['against'] or 'the base'}", "95 %"]
        if voted:
            heads += ["weakest", "best*", "vote"]
        heads += ["tasks", "tokens", "seconds"]
        lines = [(each, number == 0, line) for each in self.benchmarks for number, line in enumerate(each.lines)]
        rows = []
        for each, first, line in lines:
            cells = [_plus_minus(line.base)]
            if members:
                cells += _gained(line.mean)
            if voted:
                cells += _spread(line)
            cells += [f"{line.tasks:,}", f"{each.tokens:,}", f"{each.seconds:,.1f}"] if first else ["", "", ""]
            rows.append(cells)
        names = {f"%, {self.how['prompts']} prompts": [f"{line.title}, {line.measure}" for *_, line in lines]}
        if len({(line.what, line.role) for *_, line in lines}) > 1:
            names["of"] = [" ".join(filter(None, (line.what, _plural(line.role)))) for *_, line in lines]
        return names, {head: list(cells) for head, cells in zip(heads, zip(*rows, strict=True), strict=True)}

    def _below(self, voted: bool, between: bool) -> list[str]:
        how = self.how
        lines = [f"{each.loaded.benchmark.title}: {each.loaded.graded}" for each in self.benchmarks]
        asked = f", {how['attempts']} attempts at temperature {how['temperature']:g}" if how["attempts"] else ""
        lines.append(f"one greedy attempt{asked}; {how['dtype']} on {how['device']}; tokens are all that was sampled")
        if between:
            lines.append("95 %: by resampling tasks, the same ones for both sides; it says nothing of other runs")
        if voted:
            lines.append(
                "* the best is selected on the test set itself and reads too high; vote: what most members answer "
                "(code: return on the first tests)"
            )
        for each in self.benchmarks:
            cut = fmean(sheet.cut for sheet in each.sheets.values())
            # Of a choice the letter alone counts, and what follows it does not matter.
            if cut > 0.05 and each.loaded.benchmark.suite != "knowledge":
                lines.append(
                    f"{each.loaded.benchmark.title}: {100 * cut:.0f} % of the answers were cut at their longest; "
                    "raise it with --max-tokens"
                )
        return lines


def benchmark_report(
    loaded: Loaded,
    sheets: Mapping[str, Sheet],
    subjects: Subjects,
    against: str | None,
    k: int,
    seconds: float,
    max_tokens: int,
) -> BenchmarkReport:
    """A benchmark's answers in figures, line by line."""
    measured = {who: measures(each, k) for who, each in sheets.items()}
    groups: list[Group | None] = list(subjects.groups) or [None]
    lines = [
        _line(loaded, measure, {who: each[measure] for who, each in measured.items()}, sheets, subjects, group, against)
        for measure in measured[BARE]
        for group in groups
    ]
    return BenchmarkReport(loaded=loaded, sheets=sheets, lines=tuple(lines), seconds=seconds, max_tokens=max_tokens)


def _line(
    loaded: Loaded,
    measure: str,
    values_N: Mapping[str, Vector],
    sheets: Mapping[str, Sheet],
    subjects: Subjects,
    group: Group | None,
    against: str | None,
) -> Line:
    benchmark, base_N = loaded.benchmark, values_N[BARE]
    bare = Line(
        benchmark=benchmark.name, title=benchmark.title, measure=measure, tasks=len(loaded.items), base=score(base_N)
    )
    if group is None:
        return bare
    other_N = base_N
    if against is not None:
        other_N = np.mean([values_N[name] for name in rival(subjects, group, against).members], axis=0)
    members = tuple(MemberScore(name, score(values_N[name], other_N)) for name in group.members)
    mean_N = np.mean([values_N[name] for name in group.members], axis=0)
    vote = None
    if measure == "greedy" and len(members) > 1:
        vote = score(majority([sheets[name] for name in group.members]), other_N)
    role = None if group.role is None else str(group.role)
    return replace(
        bare, what=group.what, role=role, step=group.step, members=members, mean=score(mean_N, other_N), vote=vote
    )


def rival(subjects: Subjects, group: Group, against: str) -> Group:
    """Whom a group's gains are on: the same role of what is named."""
    others = [each for each in subjects.groups if each.what == against]
    for each in others:
        if each.role == group.role:
            return each
    if not others:
        raise InputError(f"{against} is not among what is evaluated", "name it there too, spelt the same")
    there = " and ".join(_plural(each.role and str(each.role)) or "a single adapter" for each in others)
    mine = f"the {group.role}s of {group.what}" if group.role else f"the single adapter {group.what}"
    raise InputError(
        f"{mine} cannot be set against {against}, which has {there}",
        "evaluate the same role of both (--role), or leave --against out",
    )


def _plural(role: str | None) -> str:
    return f"{role}s" if role else ""


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _plus_minus(found: Score) -> str:
    return _percent(found.value) + ("" if found.error is None else f" ±{100 * found.error:.1f}")


def _gained(found: Score | None) -> list[str]:
    if found is None:
        return ["", "", ""]
    gain = found.gain
    if gain is None:
        return [_plus_minus(found), "", ""]
    between = "" if gain.low is None or gain.high is None else f"[{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
    return [_plus_minus(found), f"{100 * gain.value:+.1f}", between]


def _spread(line: Line) -> Sequence[str]:
    if len(line.members) < 2:
        return ["", "", ""]
    ends = [f"{_percent(each.score.value)} {each.name}" for each in (line.weakest, line.best)]
    return [*ends, "" if line.vote is None else _percent(line.vote.value)]
