"""What an exam found, as a table and as plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.analysis.resampling import DRAWS, Interval
from redqueen.console import print_table, printable
from redqueen.evals.figures import Figures, Gain, Part, Tally, figures, gain, parts, scores
from redqueen.evals.protocol import Item
from redqueen.evals.subjects import BARE, Group, Subjects

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRow:
    """One subject, or the mean of a group: figures and gains for each part of the exam."""

    name: str
    what: str | None
    """What the user named it by; None for the base."""
    step: int | None
    role: str | None
    members: tuple[str, ...]
    """Whose mean it is; empty for a subject of its own."""
    figures: tuple[Figures, ...]
    gains: tuple[Gain, ...]
    """On the base, which has none."""
    summary: bool
    """It speaks for its group: a mean, or the only one of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamReport:
    """What `redqueen exam` found."""

    base: str
    how: Mapping[str, Any]
    """The file, the prompts' form, attempts, k of pass@k, temperature, the longest attempt; what it was computed on."""
    parts: tuple[Part, ...]
    """All tasks first."""
    rows: tuple[SubjectRow, ...]
    """The bare base first; the mean of a group after its members."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            **self.how,
            "tasks": len(self.parts[0].places),
            "draws": DRAWS,
            "examinees": [self._record(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def _record(self, row: SubjectRow) -> dict[str, Any]:
        """Every part under the names of its band and kind and whether it has shortcuts; null is all of them."""
        about = {name: getattr(row, name) for name in ("name", "what", "step", "role", "members")}
        of_parts = []
        for at, part in enumerate(self.parts):
            gained = {"gain": asdict(row.gains[at])} if row.gains else {}
            size = {"band": part.band, "kind": part.kind, "shortcut": part.shortcut, "tasks": len(part.places)}
            of_parts.append(size | asdict(row.figures[at]) | gained)
        return about | {"parts": of_parts}

    def render(self, console: "Console") -> None:
        from rich.text import Text

        apart = self._several(lambda part: part.kind is None and part.shortcut is not None)
        kinds = self._several(lambda part: part.band is None and part.kind is not None and part.shortcut is None)
        bands = self._several(lambda part: part.kind is None and part.band is not None)
        shown = [*apart, *kinds, *bands]
        heads = ["all", "greedy", f"pass@{self.how['k']}", *map(self._title, shown), "well formed", "tokens"]
        lines = [line for row in self.rows for line in _lines(row, shown)]
        figures = {head: [cells[at] for _, cells in lines] for at, head in enumerate(heads)}
        spare = [*map(self._title, reversed(bands)), "tokens", "well formed"]
        spare += map(self._title, [*reversed(kinds), *reversed(apart)])
        left_out = print_table(console, {"%": [name for name, _ in lines]}, figures, spare)
        if left_out:
            console.print(Text(f"no room here for {', '.join(left_out)}: --to FILE.json has all"), soft_wrap=True)
        for line in (*self._below(), *self.notes):
            console.print(Text(printable(line)), soft_wrap=True)

    def _several(self, wanted: Callable[[Part], bool]) -> list[int]:
        """The places of such parts, where there is more than one of them."""
        places = [at for at, part in enumerate(self.parts) if wanted(part)]
        return places if len(places) > 1 else []

    def _title(self, at: int) -> str:
        part = self.parts[at]
        if part.shortcut is not None:
            return "shortcut" if part.shortcut else "no shortcut"
        return str(part.kind) if part.band is None else f"band {part.band}"

    def _below(self) -> list[str]:
        tasks, how = len(self.parts[0].places), self.how
        lines = [
            f"{tasks:,} tasks, {how['attempts']} sampled (temperature {how['temperature']:g}) and 1 greedy attempt at "
            f"each, {how['form']} prompts, at most {how['max_tokens']} tokens; "
            f"but for greedy and pass@{how['k']} accuracy is that of sampled attempts"
        ]
        easy = next((len(part.places) for part in self.parts if part.shortcut and part.kind is None), 0)
        if easy:
            lines.append(f"{easy:,} of the tasks have a shortcut: they can be solved without reasoning")
        summaries = [row for row in self.rows if row.summary]
        for row in summaries:
            if (ratio := row.gains[0].ratio) is not None:
                times = _between(ratio, "{:.2f}") or "[no interval]"
                lines.append(f"{row.name}: {ratio.value:.2f} {times} times the base's sampled accuracy")
        if summaries:
            lines.append("[ ] 95 % by resampling tasks, the same ones for both sides: it says nothing of other runs")
        return lines


def exam_report(
    subjects: Subjects, items: Sequence[Item], tallies: Mapping[str, Tally], how: Mapping[str, Any]
) -> ExamReport:
    """Everybody's answers in figures, the bare base's among them."""
    exam_parts = parts(items)
    chosen = [list(part.places) for part in exam_parts]
    base_N_F = scores(tallies[BARE], k=how["k"])

    def row(name: str, whose: Sequence[str], group: Group | None) -> SubjectRow:
        ours_N_F = scores(*(tallies[subject] for subject in whose), k=how["k"])
        of_parts = tuple(figures(ours_N_F[places]) for places in chosen)
        if group is None:
            return SubjectRow(
                name=name, what=None, step=None, role=None, members=(), figures=of_parts, gains=(), summary=False
            )
        gains = tuple(gain(ours_N_F[places], base_N_F[places]) for places in chosen)
        members = tuple(whose) if len(whose) > 1 else ()
        summary = bool(members) or len(group.members) == 1
        return SubjectRow(
            name=name,
            what=group.what,
            step=group.step,
            role=group.role,
            members=members,
            figures=of_parts,
            gains=gains,
            summary=summary,
        )

    rows = [row(f"{subjects.base} (bare)", [BARE], None)]
    for group in subjects.groups:
        rows += [row(name, [name], group) for name in group.members]
        if len(group.members) > 1:
            where = f" of {group.what}" if len({other.what for other in subjects.groups}) > 1 else ""
            rows.append(row(f"mean of {group.role}s{where}", list(group.members), group))
    return ExamReport(base=subjects.base, how=how, parts=tuple(exam_parts), rows=tuple(rows), notes=subjects.notes)


def _lines(row: SubjectRow, parts: Sequence[int]) -> list[tuple[str, list[str]]]:
    """The lines of the table about a subject; below a summary stands what it gains on the base."""
    figure = row.figures[0]
    shares = [figure.sampled, figure.greedy, figure.pass_at_k, *(row.figures[at].sampled for at in parts)]
    cells = [f"{100 * share:.1f}" for share in (*shares, figure.well_formed)]
    lines = [(row.name, [*cells, f"{figure.tokens:.1f}"])]
    if row.summary:
        of_all = row.gains[0]
        gained = [of_all.sampled, of_all.greedy, of_all.pass_at_k, *(row.gains[at].sampled for at in parts)]
        lines.append(("  less the base", [f"{100 * interval.value:+.1f}" for interval in gained] + ["", ""]))
        lines.append(("", [_between(interval, times=100) for interval in gained] + ["", ""]))
    return lines


def _between(interval: Interval, form: str = "{:+.1f}", times: float = 1.0) -> str:
    """The interval, or nothing where there is none."""
    if interval.low is None or interval.high is None:
        return ""
    return f"[{form.format(times * interval.low)}, {form.format(times * interval.high)}]"
