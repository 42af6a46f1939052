"""What a finished run came to, from its records: a summary for the terminal, and the same as a file in its folder.

Both are written from the same tables. One run is one seed, so nothing here says what another race would come to.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from redqueen.analysis.kinds import by_kind
from redqueen.analysis.quarters import (
    Series,
    by_subject,
    compute,
    count_text,
    quarters,
    seconds,
    series,
    shown,
    solve_rates,
)
from redqueen.console import columns, cut, printable, span_text
from redqueen.errors import RunError
from redqueen.population.lineage import everybody, generations
from redqueen.population.members import Birth, Population, Role
from redqueen.runs import REPORT, metrics
from redqueen.runs.atomic import write_text
from redqueen.runs.rows import TaskRow
from redqueen.runs.store import Store
from redqueen.settings import Config, dump

PHASES = 3
"""Named in the totals: where most of the time went."""
MOST_MEMBERS = 8
"""Of a role, on a terminal: the best ones."""
ENOUGH = 3
"""Steps without an update after which a member is named that never had one."""
_LEAST_RATE = 1e-9
"""Of a task that somebody solved."""
_MARKDOWN = re.compile(r"[\\`*<|\[\]]")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = (0,)
    """Columns of words; all others are figures."""

    def lines(self, width: int) -> list[str]:
        return [cut(self.title, width), *columns(self.head, self.rows, self.left, width)]

    def markdown(self) -> list[str]:
        rule = (":--" if place in self.left else "--:" for place in range(len(self.head)))
        rows = (map(_escaped, row) for row in (self.head, *self.rows))
        head, *body = (f"| {' | '.join(row)} |" for row in rows)
        return [f"## {_escaped(self.title)}", "", head, f"| {' | '.join(rule)} |", *body]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A run that is done."""

    steps: int
    members: Table
    kinds: Table | None
    """Their figures side by side, where there are several."""
    quarters: Table
    note: str
    """What the figures of the quarters can bear."""
    totals: str
    usage: Table
    """What each adapter that ever was used up."""
    phases: Table
    facts: Mapping[str, str]
    settings: str
    """As TOML."""
    hardest: TaskRow | None
    """Of the tasks of the last quarter that somebody solved."""

    def lines(self, width: int) -> list[str]:
        """For a terminal of so many columns."""
        best = _best(self.members)
        left_out = len(self.members.rows) - len(best.rows)
        more = [f"{left_out} more in {REPORT}"] if left_out else []
        kinds = [*self.kinds.lines(width), ""] if self.kinds else []
        return ["", *best.lines(width), *more, "", *kinds, *self.quarters.lines(width), self.note, "", self.totals]

    def markdown(self, name: str) -> str:
        """All there is to say about the run of this name."""
        facts = Table("Environment", ("", ""), tuple(self.facts.items()), (0, 1))
        blocks = [
            [f"# {_escaped(name)}", "", self.totals],
            self.members.markdown(),
            *([self.kinds.markdown()] if self.kinds else []),
            [*self.quarters.markdown(), "", self.note],
            self.usage.markdown(),
            self.phases.markdown(),
            facts.markdown(),
            ["## Settings", "", "```toml", self.settings.rstrip("\n"), "```"],
        ]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def summarise(store: Store, settings: Config, population: Population) -> Summary:
    """`population` as it is after the last step of the records."""
    steps = store.last_step()
    first, last = quarters(steps)
    phases = seconds(store)
    table, note = _quarters(store, settings, first, last)
    return Summary(
        steps=steps,
        members=_members(store, settings, population, last),
        kinds=_kinds(store, settings, last) if len(settings.tasks.kinds) > 1 else None,
        quarters=table,
        note=note,
        totals=_totals(store, phases),
        usage=_usage(store, population),
        phases=Table("Seconds", ("phase", "seconds"), tuple((name, f"{spent:,.1f}") for name, spent in phases.items())),
        facts=store.facts(),
        settings=dump(settings),
        hardest=_hardest(store, last),
    )


def write_report(folder: Path, summary: Summary) -> Path:
    """Into the folder of the run, over the report of a shorter one."""
    path = folder / REPORT
    try:
        write_text(path, summary.markdown(Path(os.path.abspath(folder)).name))
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}"
        raise RunError(what, "the run is whole; mend that, and the same command writes it again") from None
    return path


def _members(store: Store, settings: Config, population: Population, last: range) -> Table:
    figures = {
        head: by_subject(store, metric)
        for head, metric in metrics.MEMBER_COLUMNS.items()
        if metric is not metrics.ENTROPY
    }
    ages = generations({id: member.birth.parents for id, member in everybody(population).items()})
    rows = []
    for role in Role:
        for member in sorted(population.of(role), key=lambda one: -one.rating.lower):
            rated = settings.population.teachers > 0 and not settings.population.single
            rating = "-" if not rated else f"{member.rating.mu:.1f} ±{member.rating.sigma:.1f}"
            means = (_two(by_member.get(member.id, Series({})).mean(last)) for by_member in figures.values())
            rows.append((member.id, str(member.role), rating, *means, origin(member.birth, ages[member.id])))
    head = ("member", "role", "rating", *figures, "from")
    return Table(f"Members, by their last quarter ({_span(last)})", head, tuple(rows), (0, 1, len(head) - 1))


def _best(members: Table) -> Table:
    rows = [[row for row in members.rows if row[1] == role][:MOST_MEMBERS] for role in Role]
    return replace(members, rows=tuple(row for some in rows for row in some))


def _kinds(store: Store, settings: Config, last: range) -> Table:
    rows = tuple(
        (
            of_kind.kind,
            f"{of_kind.proposals:,}",
            _two(of_kind.valid),
            _two(of_kind.solve_rate),
            _two(of_kind.guess_rate),
            count_text(of_kind.cells),
            count_text(of_kind.checks_a_second),
            ", ".join(f"{reason} {share:.0%}" for reason, share in of_kind.rejected) or "-",
        )
        for of_kind in by_kind(store, settings.tasks.kinds, last[0])
    )
    head = ("kind", "proposals", metrics.VALID.title, "solved", "guessed", "cells", "checks/s", "rejected for")
    return Table(f"Kinds, {_span(last)}", head, rows, (0, len(head) - 1))


def origin(born: Birth, generation: int) -> str:
    """Where a member comes from, in a few words."""
    if born.operator is not None:
        return f"{born.operator} of {', '.join(born.parents)}; generation {generation}, step {born.step}"
    return f"fresh, step {born.step}" if born.step else "founder"


def _quarters(store: Store, settings: Config, first: range, last: range) -> tuple[Table, str]:
    """And what its figures can bear."""
    solved = solve_rates(store)
    kinds = {kind: f"{metrics.SOLVE_RATE.title} {kind}" for kind in settings.tasks.kinds}
    if len(kinds) > 1:
        kinds[""] = f"{metrics.SOLVE_RATE.title}, all kinds"
    means = {name: solved.get(kind, Series({})) for kind, name in kinds.items()}
    means[metrics.VALID.title_of(Role.TEACHER)] = series(store, metrics.VALID, Role.TEACHER)
    means |= {metric.title: series(store, metric) for metric in metrics.COMPLEXITY}
    if (ruler := series(store, metrics.RULER)).steps:
        means[metrics.RULER.title] = ruler
    means[metrics.LENGTH.title_of(Role.STUDENT)] = series(store, metrics.LENGTH, Role.STUDENT)
    figures = {name: (curve.over(first), curve.over(last)) for name, curve in means.items()}
    rows = [
        (name, *(shown(None if figure is None else figure.estimate) for figure in both))
        for name, both in figures.items()
    ]
    cells, new = series(store, metrics.COVERAGE), series(store, metrics.NEW_CELLS)
    rows.append(("structural cells, by then", *(count_text(cells.at(quarter[-1])) for quarter in (first, last))))
    rows.append(("structural cells, new", *(count_text(new.total(quarter)) for quarter in (first, last))))
    blocks = any(figure is not None and figure.blocks for both in figures.values() for figure in both)
    if not settings.population.teachers:
        whose = "items are drawn anew in every step"
    else:
        whose = "tasks are the teachers' own and change, so solve rates say little of how good students are"
    bears = "~ is over blocks of steps and says nothing of other seeds" if blocks else "too few steps for an interval"
    return Table("First quarter -> last quarter", ("", _span(first), _span(last)), tuple(rows)), (
        f"one seed: {bears}; {whose}"
    )


def _totals(store: Store, phases: Mapping[str, float]) -> str:
    counts, used = store.counts(), compute(store)
    events = len({event.step for event in store.events()})
    replaced = _many(counts["events"], "replacement") + (f" in {_many(events, 'event')}" * (events < counts["events"]))
    made = [_many(counts["steps"], "step"), replaced, _many(counts["tasks"], "task")]
    costs = [f"{count_text(total)} {metric.title}" for metric, total in used.items()]
    most = ", ".join(f"{name} {span_text(spent)}" for name, spent in list(phases.items())[:PHASES])
    idle = sorted(
        subject
        for subject, updated in by_subject(store, metrics.UPDATED).items()
        if len(updated.steps) >= ENOUGH and not updated.total()
    )
    never = f"; never updated: {', '.join(idle)}" if idle else ""
    return f"{', '.join([*made, *costs])}; {span_text(sum(phases.values()))} ({most}){never}"


def _usage(store: Store, population: Population) -> Table:
    used = [by_subject(store, metric) for metric in metrics.COMPUTE]
    subjects = {subject for usage in used for subject in usage}
    known = [id for id in everybody(population) if id in subjects]
    # The race's own comes last, as the sum of all: it also has what was measured on nobody's account.
    order = [*known, *sorted(subjects - {*known, metrics.RACE}), *({metrics.RACE} & subjects)]
    rows = tuple(
        (subject, *(count_text(usage.get(subject, Series({})).total()) for usage in used)) for subject in order
    )
    return Table("Compute", ("", *(metric.title for metric in metrics.COMPUTE)), rows)


def _hardest(store: Store, last: range) -> TaskRow | None:
    """The newest of those that are equally hard."""
    solved = store.tasks(since=last[0], min_rate=_LEAST_RATE, trivial=False, newest_first=True)
    return min(solved, key=lambda row: row.solved / row.attempts, default=None)


def _span(steps: range) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]}-{steps[-1]}"


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _escaped(text: str) -> str:
    """As it is, in a cell or a title of Markdown."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))
