"""Cross-play: the students of two runs at the tasks of both, beside the bare base.

A run's solve rate is at its own teachers' tasks, so it cannot say which of two runs has the better students or the
harder tasks. Here everybody attempts the same tasks with the same random numbers. Students are asked as in their own
race: by its prompts, at its temperature, with its longest attempt.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from redqueen.analysis.resampling import DRAWS, Interval, paired
from redqueen.cluster.connect import open_judges
from redqueen.console import Progress, print_table, printable, say
from redqueen.errors import InputError
from redqueen.evals.examination import examine
from redqueen.evals.figures import Scores, scores
from redqueen.evals.subjects import BARE, Group, Subjects, computed_on, open_subjects
from redqueen.runs.rows import TaskRow
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.files import ExamTask
from redqueen.tasks.protocol import Task

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs."""

    run: str
    step: int
    """Of its checkpoint; its tasks are of no later one."""
    students: tuple[str, ...]
    tasks: tuple[str, ...]
    """Their ids, the newest first."""
    form: str
    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How somebody did at the tasks of one run: shares of attempts that are right, means over students and tasks."""

    who: str
    asked_as: str
    """The run whose prompts were used."""
    tasks_of: str
    sampled: Interval
    greedy: Interval
    by_kind: Mapping[str, Interval]
    """Of sampled attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossPlayReport:
    """What `redqueen crossplay` found."""

    base: str
    how: Mapping[str, Any]
    sides: tuple[Side, Side]
    cells: tuple[Cell, ...]
    """By who, then by whose tasks: each run's students and the base asked as they are."""
    differences: tuple[Cell, ...]
    """The first run's students less the second's, task by task."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            **self.how,
            "draws": DRAWS,
            "runs": [asdict(side) for side in self.sides],
            "cells": [asdict(cell) for cell in self.cells],
            "differences": [asdict(cell) for cell in self.differences],
            "notes": list(self.notes),
        }

    def render(self, console: "Console") -> None:
        from rich.text import Text

        rows = list(dict.fromkeys(cell.who for cell in (*self.cells, *self.differences)))
        columns = {
            f"tasks of {side.run}": [
                _shown(cell.sampled, signed=cell in self.differences)
                for who in rows
                for cell in (*self.cells, *self.differences)
                if (cell.who, cell.tasks_of) == (who, side.run)
            ]
            for side in self.sides
        }
        print_table(console, {"%": rows}, columns, [])
        first, second = self.sides
        sizes = " and ".join(f"{len(side.tasks)} tasks of {side.run} (up to step {side.step})" for side in self.sides)
        common = len({*first.tasks} & {*second.tasks})
        lines = [
            f"{sizes}{f', {common} of them the same' if common else ''}; {self.how['attempts']} sampled attempts of "
            "every student at each",
            "[ ] 95 % by resampling tasks: it says nothing of other runs",
            *self.notes,
        ]
        for line in lines:
            console.print(Text(printable(line)), soft_wrap=True)


def cross_play(subjects: Subjects, *, tasks: int, attempts: int, settings: Config) -> CrossPlayReport:
    """The students of two runs, who are the subjects, at the newest tasks of both."""
    first, second = subjects.groups
    families = {
        what: Families.of(run.tasks.families, run.tasks.form, unfenced=run.tasks.unfenced)
        for what, run in subjects.runs.items()
    }
    own = _own_tasks(subjects, families, tasks)
    chosen = {task.id: task for group_tasks in own.values() for task in group_tasks}
    places = {id: at for at, id in enumerate(chosen)}
    kinds = [task.kind for task in chosen.values()]
    by_side: list[tuple[Group, Scores, Scores]] = []
    void: set[str] = set()
    with open_judges(settings) as verifier, open_subjects(subjects, settings) as engine:
        members = len(subjects.members) + 2
        say(f"{len(chosen):,} tasks, {attempts} sampled and 1 greedy attempt at each, by {members} subjects")
        progress = Progress("crossplay", 0, len(chosen) * (attempts + 1) * members)
        for group in subjects.groups:
            settings = subjects.runs[group.what]
            tallies = asyncio.run(
                examine(
                    engine, verifier, {BARE: None} | {name: name for name in group.members},
                    [ExamTask(task, "") for task in chosen.values()],
                    kinds=families[group.what].kinds, attempts=attempts, temperature=settings.rl.temperature,
                    max_tokens=settings.tasks.attempt_tokens, answered=progress.more, void=void,
                )
            )  # fmt: skip
            by_side.append((group, scores(*(tallies[name] for name in group.members)), scores(tallies[BARE])))
        computed = computed_on(engine)

    own = {what: [task for task in group_tasks if task.id not in void] for what, group_tasks in own.items()}
    for what, left in own.items():
        if not left:
            raise InputError(f"no task of {what} returns its own output again", "name another run, or more --tasks")

    def cells(who: str, asked_as: str, scores_N_F: Scores) -> Iterator[Cell]:
        for what, group_tasks in own.items():
            at = [places[task.id] for task in group_tasks]
            yield _cell(who, asked_as, what, scores_N_F[at], [kinds[place] for place in at])

    table: list[Cell] = []
    for group, students_N_F, base_N_F in by_side:
        table += cells(f"students of {group.what}", group.what, students_N_F)
        table += cells(f"the base, asked as {group.what}", group.what, base_N_F)
    less_N_F = by_side[0][1] - by_side[1][1]
    return CrossPlayReport(
        base=subjects.base,
        how={"attempts": attempts, **computed},
        sides=(_side(first, subjects, own), _side(second, subjects, own)),
        cells=tuple(table),
        differences=tuple(cells(f"students of {first.what} less {second.what}", "", less_N_F)),
        notes=(
            *subjects.notes,
            *([f"{len(void)} of the tasks do not return their own output again: left out"] if void else []),
        ),
    )


def _own_tasks(subjects: Subjects, families: Mapping[str, Families], count: int) -> dict[str, list[Task]]:
    """By run its newest tasks, all of kinds that both runs know."""
    own = {
        group.what: _newest(group, subjects.runs[group.what], families[group.what], count) for group in subjects.groups
    }
    for what, known in families.items():
        for task in chain(*own.values()):
            if task.kind not in known.kinds:
                raise InputError(f"{what} does not know the kind {task.kind}", "name runs of the same families")
    return own


def _newest(group: Group, settings: Config, families: Families, count: int) -> list[Task]:
    """The newest tasks of a run whose difficulty counts, of each kind in turn; none twice."""
    chosen: dict[str, TaskRow] = {}
    assert group.run is not None
    with Store.read(group.run) as store:
        waiting = deque(
            store.tasks(kind=kind, until=group.step, trivial=False, newest_first=True) for kind in settings.tasks.kinds
        )
        while waiting and len(chosen) < count:
            rows = waiting.popleft()
            row = next((row for row in rows if row.id not in chosen), None)
            if row is not None:
                chosen[row.id] = row
                waiting.append(rows)
    if not chosen:
        raise InputError(f"{group.what} has no task whose difficulty counts", "name a run that has some")
    return [families.restore(row.record) for row in chosen.values()]


def _side(group: Group, subjects: Subjects, own: Mapping[str, Sequence[Task]]) -> Side:
    settings = subjects.runs[group.what]
    assert group.step is not None
    return Side(
        run=group.what,
        step=group.step,
        students=tuple(group.members),
        tasks=tuple(task.id for task in own[group.what]),
        form=settings.tasks.form,
        temperature=settings.rl.temperature,
        max_tokens=settings.tasks.attempt_tokens,
    )


def _cell(who: str, asked_as: str, tasks_of: str, scores_N_F: Scores, kinds: Sequence[str]) -> Cell:
    sampled_N, greedy_N = scores_N_F[:, 0], scores_N_F[:, 1]
    by_kind = {
        kind: paired(sampled_N[[at for at, other in enumerate(kinds) if other == kind]]) for kind in Counter(kinds)
    }
    return Cell(
        who=who,
        asked_as=asked_as,
        tasks_of=tasks_of,
        sampled=paired(sampled_N),
        greedy=paired(greedy_N),
        by_kind=by_kind,
    )


def _shown(interval: Interval, *, signed: bool) -> str:
    form = "+.1f" if signed else ".1f"
    value = f"{100 * interval.value:{form}}"
    if interval.low is None or interval.high is None:
        return value
    return f"{value} [{100 * interval.low:{form}}, {100 * interval.high:{form}}]"
