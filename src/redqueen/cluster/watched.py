"""The workers of a race as its records have them: a row for each at every step, and what became of them and of
verifiers elsewhere.

Several races may share the workers, and each has its own place in what happened so far.
"""

from collections.abc import Sequence
from typing import Protocol

from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.hands import WorkerEvent
from redqueen.cluster.verifier import ClusterVerifier
from redqueen.runs.rows import WorkerEventRow, WorkerRow


class _Watched(Protocol):
    @property
    def events(self) -> Sequence[WorkerEvent]:
        """All so far; it only grows."""
        ...


class WatchedWorkers:
    """Those that a race is on."""

    def __init__(self, engine: ClusterEngine, prefix: str, verifier: ClusterVerifier | None = None) -> None:
        """The race's members have names that begin with `prefix` there."""
        self._engine, self._prefix = engine, prefix
        self._watched: list[_Watched] = [engine] if verifier is None else [engine, verifier]
        self._told = [0] * len(self._watched)

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
        news: list[WorkerEvent] = []
        for at, watched in enumerate(self._watched):
            new = list(watched.events)[self._told[at] :]
            self._told[at] += len(new)
            news += new
        return [
            WorkerEventRow(step=step, time=event.time, worker=event.worker, what=event.what, cause=event.cause)
            for event in sorted(news, key=lambda event: event.time)
        ]
