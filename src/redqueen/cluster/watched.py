"""The workers of a race as its records have them: a row for each at every step, and what became of them.

Several races may share the workers, and each has its own place in what happened so far.
"""

from redqueen.cluster.engine import ClusterEngine
from redqueen.runs.rows import WorkerEventRow, WorkerRow


class WatchedWorkers:
    """Those that a race is on."""

    def __init__(self, engine: ClusterEngine, prefix: str) -> None:
        """The race's members have names that begin with `prefix` there."""
        self._engine, self._prefix = engine, prefix
        self._told = 0

    def rows(self, step: int) -> list[WorkerRow]:
        """Of now, with the race's own members."""
        return [
            WorkerRow(
                step=step,
                worker=worker.name,
                machine=worker.machine,
                process=worker.process,
                members=tuple(
                    member.removeprefix(self._prefix) for member in worker.members if member.startswith(self._prefix)
                ),
                seconds=worker.seconds,
            )
            for worker in self._engine.workers
        ]

    def take_events(self, step: int) -> list[WorkerEventRow]:
        """What happened since the last time; `step` is under way."""
        news = list(self._engine.worker_events)[self._told :]
        self._told += len(news)
        return [
            WorkerEventRow(step=step, time=event.time, worker=event.worker, what=event.what, cause=event.cause)
            for event in news
        ]
