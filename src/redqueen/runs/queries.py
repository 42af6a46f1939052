"""What can be asked of a run's records, by anybody at any time."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypedDict, Unpack

from redqueen.population.board import Meeting, PairTally
from redqueen.population.members import Role
from redqueen.population.ratings import MatchResult
from redqueen.runs.columns import TABLES
from redqueen.runs.metrics import Metric
from redqueen.runs.records_file import RecordsFile, where
from redqueen.runs.rows import (
    SOURCE,
    AlarmRow,
    AttemptRow,
    EventRow,
    MetricRow,
    RejectionRow,
    TaskRow,
    TimelineRow,
    Timing,
    WorkerEventRow,
    WorkerRow,
)

SAVED = "saved"
"""The fact that is the run's own business: of which step its newest checkpoint is."""
_AT_ONCE = 500
"""Keys in one query: SQLite bounds how many a statement may have."""
_TALLIES = """
SELECT teacher, student, match_result, count(*), sum(tasks), sum(unsolved), sum(attempts), sum(unsolved_attempts),
    sum(solved)
FROM (SELECT teacher, student, match_result, sum(tasks) AS tasks, sum(unsolved) AS unsolved, sum(attempts) AS attempts,
        sum(unsolved_attempts) AS unsolved_attempts, sum(solved) AS solved
    FROM matches WHERE step BETWEEN ? AND ? GROUP BY step, match)
GROUP BY teacher, student, match_result"""
_BY_PLACE = {False: "step, place", True: "step DESC, place DESC"}
_CONDITIONS = {
    "kind": "kind = ?",
    "teacher": "teacher = ?",
    "since": "step >= ?",
    "until": "step <= ?",
    "min_rate": "CAST(solved AS REAL) / attempts >= ?",
    "max_rate": "CAST(solved AS REAL) / attempts <= ?",
    "trivial": "(trivial IS NOT NULL) = ?",
    "oversight": "oversight = ?",
    "reason": "reason = ?",
    "text": "instr(lower(CAST(text AS TEXT)), lower(?)) > 0",
    "before": "(step, place) < (?, ?)",
}


class ProposalFilters(TypedDict, total=False):
    """Which proposals are wanted; None takes all."""

    kind: str | None
    teacher: str | None
    since: int | None
    """A step, which belongs to the range, as that of `until` does."""
    until: int | None
    text: str | None
    """What the teacher's text has somewhere, ASCII letters in either case."""
    before: tuple[int, int] | None
    """A step and a place, which do not."""


class TaskFilters(ProposalFilters, total=False):
    min_rate: float | None
    max_rate: float | None
    trivial: bool | None
    oversight: bool | None


class RejectionFilters(ProposalFilters, total=False):
    reason: str | None


class Queries(RecordsFile):
    """Rows come one at a time, and from an index alone wherever that has what is asked for."""

    def last_step(self) -> int:
        """The last whole step; 0 before the first."""
        return self._count("SELECT coalesce(max(step), 0) FROM steps")

    def saved(self) -> int:
        """The step of the last checkpoint; 0 if there never was one."""
        return self._count("SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM facts WHERE name = ?", (SAVED,))

    def facts(self) -> dict[str, str]:
        return dict(self._query("SELECT name, value FROM facts WHERE name <> ? ORDER BY name", [str, str], [SAVED]))

    def journal_get(self, keys: Collection[str]) -> dict[str, Any]:
        """Those of the keys that have an entry, and its value."""
        wanted, entries = list(dict.fromkeys(keys)), {}
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT key, value FROM journal WHERE key IN ({marks})"
            entries.update(self._query(sql, [str, object], some))
        return {key: entries[key] for key in wanted if key in entries}

    def tasks(
        self, *, newest_first: bool = False, limit: int | None = None, **filters: Unpack[TaskFilters]
    ) -> Iterator[TaskRow]:
        """The tasks that fit every filter, one at a time, by step and place. A task without attempts has no solve
        rate, and fits none."""
        return self._select(TaskRow, _conditions(filters), _BY_PLACE[newest_first], limit, "browse_tasks")

    def rejections(
        self, *, newest_first: bool = False, limit: int | None = None, **filters: Unpack[RejectionFilters]
    ) -> Iterator[RejectionRow]:
        """The rejections that fit every filter, one at a time, by step and place."""
        return self._select(RejectionRow, _conditions(filters), _BY_PLACE[newest_first], limit, "browse_rejections")

    def reasons(self, **filters: Unpack[RejectionFilters]) -> dict[str, int]:
        """How often proposals were rejected for each reason, the most frequent first."""
        condition, values = where(_conditions(filters))
        group = "GROUP BY reason ORDER BY count(*) DESC, reason"
        return dict(self._query(f"SELECT reason, count(*) FROM rejections {condition} {group}", [str, int], values))

    def proposals(self, since: int) -> Iterator[tuple[str, str | None, int]]:
        """Kind, why rejected (None of tasks) and how many: all proposals from a step on."""
        made = "SELECT kind, NULL, count(*) FROM tasks INDEXED BY browse_tasks WHERE step >= ? GROUP BY kind"
        rejected = "SELECT kind, reason, count(*) FROM rejections WHERE step >= ? GROUP BY kind, reason"
        return self._query(f"{made} UNION ALL {rejected}", [str, str | None, int], (since, since))

    def solved(self, since: int) -> Iterator[tuple[str, int, int]]:
        """Kind, attempts that were right, and attempts: all matches from a step on."""
        sums = "SELECT kind, sum(solved), sum(attempts) FROM matches WHERE step >= ? GROUP BY kind"
        return self._query(sums, [str, int, int], (since,))

    def timelines(self, since: int) -> Iterator[TimelineRow]:
        """From a step on."""
        return self._select(TimelineRow, [("step >= ?", since)], order="step")

    def outline(self) -> Iterator[tuple[int, int, str, int, int, bool]]:
        """Step, place, kind, solved, attempts and whether its difficulty counts: every task, from the index alone."""
        columns = "step, place, kind, solved, attempts, trivial IS NULL"
        sql = f"SELECT {columns} FROM tasks INDEXED BY browse_tasks ORDER BY step, place"
        return self._query(sql, [int, int, str, int, int, bool])

    def item_counts(self) -> Iterator[tuple[int, str, int, int]]:
        """Step, kind, solved and attempts of every item of a fixed source, which is in no match."""
        sql = (
            "SELECT step, kind, solved, attempts FROM tasks INDEXED BY browse_tasks WHERE teacher = ? "
            "ORDER BY step, place"
        )
        return self._query(sql, [int, str, int, int], [SOURCE])

    def task(self, step: int, place: int) -> TaskRow | None:
        return next(self._select(TaskRow, [("step = ?", step), ("place = ?", place)]), None)

    def rejection(self, step: int, place: int) -> RejectionRow | None:
        return next(self._select(RejectionRow, [("step = ?", step), ("place = ?", place)]), None)

    def attempts(self, step: int, place: int) -> list[AttemptRow]:
        """All attempts at one task, by student and number."""
        return list(self._select(AttemptRow, [("step = ?", step), ("place = ?", place)], "student, number"))

    def keys(self) -> Iterator[tuple[str, str]]:
        """Kind and near key of every task."""
        return self._query("SELECT kind, near_key FROM tasks ORDER BY step, place", [str, str])

    def shapes(self) -> Iterator[tuple[str, str, tuple[int, int, int, int], str | None]]:
        """Kind, descriptor, figures of complexity and behaviour that some task had."""
        columns = "kind, descriptor, depth, cyclomatic, lines, variables, behaviour"
        hints = [str, str, int, int, int, int, str | None]
        for kind, descriptor, *figures, behaviour in self._query(f"SELECT DISTINCT {columns} FROM tasks", hints):
            depth, cyclomatic, lines, variables = figures
            yield kind, descriptor, (depth, cyclomatic, lines, variables), behaviour

    def meetings(self) -> Iterator[Meeting]:
        """What a `Board` is made of, in the order in which it was written."""
        return self._select(Meeting, order="step, rowid")

    def events(self) -> Iterator[EventRow]:
        """In the order in which they were written."""
        return self._select(EventRow, order="step, rowid")

    def alarms(self, newest: int | None = None) -> list[AlarmRow]:
        """In the order in which they were written; of many the newest."""
        return list(self._select(AlarmRow, order="step DESC, number DESC", limit=newest))[::-1]

    def players(self) -> dict[str, Role]:
        """Everybody who has played, by role and name."""
        sides = [(role, f"SELECT DISTINCT {role} FROM matches ORDER BY 1") for role in Role]
        return {member: role for role, sql in sides for (member,) in self._query(sql, [str])}

    def tallies(self, since: int, until: int) -> dict[tuple[str, str], PairTally]:
        """What teachers and students did against each other in these steps, by teacher and student."""
        tallies: dict[tuple[str, str], PairTally] = {}
        hints = [str, str, MatchResult, *[int] * 6]
        for teacher, student, result, matches, *sums in self._query(_TALLIES, hints, (since, until)):
            won = {f"{result}_wins" if result != MatchResult.DRAW else "draws": matches}
            counted = dict(zip(("tasks", "unsolved", "attempts", "unsolved_attempts", "solved"), sums, strict=True))
            pair = teacher, student
            tallies[pair] = tallies.get(pair, PairTally()) + PairTally(matches=matches, **won, **counted)
        return tallies

    def figures(self, metric: Metric, since: int, by_kind: str) -> Iterator[tuple[str, str, int, float | None]]:
        """Subject, kind, step and value of a metric after a step, from the index alone: of all kinds together, and of
        the subject `by_kind` also each kind's."""
        columns = "subject, kind, step, value FROM metrics INDEXED BY browse_metrics"
        wanted = "name = ? AND step > ? AND (kind = '' OR subject = ?)"
        sql = f"SELECT {columns} WHERE {wanted} ORDER BY step"
        return self._query(sql, [str, str, int, float | None], (metric.name, since, by_kind))

    def metrics(
        self, metric: Metric | None = None, subject: str | None = None, kind: str | None = None
    ) -> Iterator[MetricRow]:
        """By step, subject, kind and name. None takes all; the kind "" is all kinds together."""
        filters = [("name = ?", metric and metric.name), ("subject = ?", subject), ("kind = ?", kind)]
        index = None if metric is None else "browse_metrics"
        return self._select(MetricRow, filters, "step, subject, kind, name", index=index)

    def timings(self, since: int = 0) -> Iterator[Timing]:
        """After a step."""
        return self._select(Timing, [("step > ?", since)], order="step, phase")

    def timeline(self, until: int) -> TimelineRow | None:
        """The newest up to a step."""
        return next(self._select(TimelineRow, [("step <= ?", until)], order="step DESC", limit=1), None)

    def workers(self, step: int) -> list[WorkerRow]:
        """Those of a cluster at the end of a step, in the order in which they were written."""
        return list(self._select(WorkerRow, [("step = ?", step)], order="rowid"))

    def worker_events(self, newest: int) -> list[WorkerEventRow]:
        """In the order in which they were written; of many the newest."""
        return list(self._select(WorkerEventRow, order="rowid DESC", limit=newest))[::-1]

    def counts(self, *only: str) -> dict[str, int]:
        """How many rows each table of the steps has, and how many steps there are; or those tables alone."""
        tables = only or ("steps", *TABLES.values())
        return {table: self._count(f"SELECT count(*) FROM {table}") for table in tables}


def _conditions(filters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(_CONDITIONS[name], value) for name, value in filters.items()]
