"""The archive: the tasks of a race so far, and what teachers are shown of them.

Teachers see recent tasks near the students' frontier, of different types. A full archive forgets its oldest tasks and
never refuses a new one; only the keys by which duplicates are known are kept for good. Nothing here depends on how
the archive came about: one that is restored from a run's records draws what the one would have drawn that wrote them.
"""

from bisect import bisect
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, chain
from random import Random
from typing import Any, Generic, Self

from redqueen.tasks.protocol import Kind, Task, TaskT

CAPACITY = 4096
"""Tasks that are kept whole."""
HALF_LIFE = 10
"""Steps after which a task is half as likely to be shown."""
SMALL = 64
"""While fewer tasks than this are fit to be shown, the seeds are among them."""
_SOLVED_ALWAYS = 0.1
"""The weight of a task that everybody solves, beside 1 for one that half of the attempts solve."""
_LEAST = 1e-9
"""No age makes a task impossible to draw."""
_TRIES = 16
"""Draws that may fall on what is spent already before what is left is listed."""


class Trivial(StrEnum):
    """Why a task's difficulty does not count."""

    LONG_ANSWER = "long_answer"
    """The answer is far longer than those of recent tasks."""
    NEAR_DUPLICATE = "near_duplicate"
    """A recent task of the same teacher differs from it in constants alone."""
    NEVER_SOLVED = "never_solved"
    """Nobody solved it, nor any recent task of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A task, and how it fared in its step."""

    task: Task
    step: int
    teacher: str
    solved: int
    """Attempts that were right, of all students together."""
    attempts: int
    trivial: Trivial | None = None

    @property
    def weight(self) -> float:
        """How near it is to the frontier, from 0 (nobody solves it, or its difficulty does not count) to 1."""
        if self.trivial is not None or not self.solved:
            return 0.0
        rate = self.solved / self.attempts
        return _SOLVED_ALWAYS + (1 - _SOLVED_ALWAYS) * 4 * rate * (1 - rate)


class Archive:
    """Seeds, the newest entries in the order of their (step, place), and the keys of all that there ever were. It is a
    value: a step gives another one."""

    def __init__(self, seeds: Iterable[Task] = ()) -> None:
        self.seeds = tuple(seeds)
        self._seed_keys = {seed.near_key for seed in self.seeds}
        self._entries: deque[Entry] = deque(maxlen=CAPACITY)
        self._keys: set[tuple[str, str]] = set()
        self._pools: dict[type[Task], _Pool[Any]] = {}
        """What `references` draws from, by type of task, once it has."""

    @classmethod
    def restored(cls, seeds: Iterable[Task], entries: Iterable[Entry], keys: Iterable[tuple[str, str]]) -> Self:
        """From a run's records: the entries, of which the newest `CAPACITY` are enough, and (kind, near key) of every
        task that there ever was, those of the entries included."""
        archive = cls(seeds)
        archive._entries.extend(entries)
        archive._keys.update(keys)
        return archive

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, oldest first."""
        return iter(self._entries)

    @property
    def newest(self) -> int:
        """The step of the newest entry."""
        return self._entries[-1].step if self._entries else 0

    def add(self, entries: Iterable[Entry]) -> "Archive":
        """The archive with a step's entries too, in the order of their places."""
        new = list(entries)
        archive = Archive(self.seeds)
        archive._entries.extend(chain(self._entries, new))
        # A union of sets hashes nothing anew: half a million keys take a few hundredths of a second.
        archive._keys = self._keys | {(entry.task.kind, entry.task.near_key) for entry in new}
        return archive

    def seen(self, task: Task) -> bool:
        """Whether a task of this kind, or a seed, was the same in all that matters."""
        return task.near_key in self._seed_keys or (task.kind, task.near_key) in self._keys

    def references(self, kind: Kind[Any, TaskT], count: int, rng: Random) -> list[TaskT]:
        """Tasks to show to a teacher who is asked for this kind: no program twice, and while there are types of
        problem that none of them is of, no type twice either."""
        pool = self._pools.get(kind.task_type)
        if pool is None:
            pool = self._pools[kind.task_type] = self._pool(kind.task_type)
        return pool.draw(count, rng)

    def _pool(self, task_type: type[TaskT]) -> "_Pool[TaskT]":
        fit: list[tuple[TaskT, float]] = []
        unfit: list[tuple[TaskT, float]] = []
        for entry in self._entries:
            if type(entry.task) is task_type and entry.task.original:
                recency = max(0.5 ** ((self.newest - entry.step) / HALF_LIFE), _LEAST)
                weight = entry.weight
                (fit if weight else unfit).append((entry.task, recency * (weight or 1.0)))
        if len(fit) < SMALL:
            fit += [(seed, 1.0) for seed in self.seeds if type(seed) is task_type]
        return _Pool(fit or unfit)


class _Pool(Generic[TaskT]):
    """Tasks with weights, drawn so that programs and types of problem differ."""

    def __init__(self, weighted: Sequence[tuple[TaskT, float]]) -> None:
        self._tasks = [task for task, _ in weighted]
        self._weights = [weight for _, weight in weighted]
        self._sums = list(accumulate(self._weights))

    def draw(self, count: int, rng: Random) -> list[TaskT]:
        drawn: list[TaskT] = []
        bodies: set[str] = set()
        types: set[str] = set()
        while len(drawn) < count:
            task = self._one(bodies, types, rng)
            if task is None and types:
                types.clear()  # one of each is there: the next round begins
                continue
            if task is None:
                break
            drawn.append(task)
            bodies.add(task.body_key)
            types.add(task.descriptor)
        return drawn

    def _one(self, bodies: set[str], types: set[str], rng: Random) -> TaskT | None:
        """One whose program and type are not among these. Trying first and listing later draws by the same law as
        listing at once, and costs nothing while most of the pool is left."""
        if not self._tasks:
            return None
        for _ in range(_TRIES):
            at = min(bisect(self._sums, rng.random() * self._sums[-1]), len(self._sums) - 1)
            task = self._tasks[at]
            if task.body_key not in bodies and task.descriptor not in types:
                return task
        places = [
            at for at, task in enumerate(self._tasks) if task.body_key not in bodies and task.descriptor not in types
        ]
        if not places:
            return None
        return self._tasks[rng.choices(places, [self._weights[at] for at in places])[0]]
