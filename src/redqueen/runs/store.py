"""The records of a run, in SQLite: written a step at a time, read by anybody at any time.

A step is there whole or not at all, and on the disk before `write` returns, so that no checkpoint can be newer than
the records that it stands on.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from redqueen.errors import Fault
from redqueen.runs.columns import LASTING, TABLES, insert
from redqueen.runs.metrics import METRICS
from redqueen.runs.queries import SAVED, Queries
from redqueen.runs.rows import StepRecord, TimelineRow, Timing, WorkerEventRow


class Store(Queries):
    """The records of one run."""

    def write(self, record: StepRecord) -> None:
        """A step, whole, in one transaction. A step is written once."""
        for row in record.metrics:
            if row.name not in METRICS:
                raise Fault(f"there is no metric {row.name} in `runs/metrics.py`")
            if row.kind and not METRICS[row.name].by_kind:
                raise Fault(f"the metric {row.name} is not by kind, but was recorded for {row.kind}")
        with self._transaction() as db:
            db.execute("INSERT INTO steps VALUES (?)", (record.step,))
            timings = [Timing(record.step, phase, seconds) for phase, seconds in record.timings.items()]
            timelines = [] if record.timeline is None else [TimelineRow(record.step, record.timeline)]
            for rows in (
                record.matches,
                record.tasks,
                record.rejections,
                [rejection.evidence for rejection in record.rejections if rejection.evidence is not None],
                record.attempts,
                record.events,
                record.alarms,
                record.metrics,
                timings,
                timelines,
                record.workers,
            ):
                insert(db, rows)

    def add_timing(self, step: int, phase: str, seconds: float) -> None:
        """What is known only after the step was written."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO timings VALUES (?, ?, ?)", (step, phase, seconds))

    def add_worker_events(self, events: Sequence[WorkerEventRow]) -> None:
        """Whenever they have happened."""
        with self._transaction() as db:
            insert(db, events)

    def drop_worker_events(self) -> None:
        """They are another run's."""
        with self._transaction() as db:
            db.execute("DELETE FROM worker_events")

    def drop_after(self, step: int) -> None:
        """Forget the steps after this one; the journal stays."""
        with self._transaction() as db:
            for table in ("steps", *(table for row, table in TABLES.items() if row not in LASTING)):
                db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """What the run runs on. Facts of other names stay as they are."""
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def journal_put(self, step: int, entries: Mapping[str, Any]) -> None:
        """Plain values by key, for a step that is still under way."""
        rows = [(key, step, json.dumps(value)) for key, value in entries.items()]
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO journal VALUES (?, ?, ?)", rows)

    def journal_prune(self, step: int) -> None:
        """Forget the entries of this step and of those before it."""
        with self._transaction() as db:
            db.execute("DELETE FROM journal WHERE step <= ?", (step,))

    def mark_saved(self, step: int) -> None:
        """There is a checkpoint of this step: if none can be found one day, they are lost and not yet to be made."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (SAVED, str(step)))
