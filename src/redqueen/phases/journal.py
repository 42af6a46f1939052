"""Verdicts by content, so that a step that is done again after a crash comes out as it did.

A program near its time limit may pass once and fail the next time. Whatever was judged since the last checkpoint is
kept until the next one is whole.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from redqueen.errors import InputError, RunError
from redqueen.tasks.protocol import Attempt, Draft, Task
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.verifier import Status

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
Judged = tuple[list[O], int]
"""Results, and the verifier's runs that they took."""
Judge = Callable[[Sequence[I]], Awaitable[Judged[O]]]


class Shelf(Protocol):
    """Where a journal is kept."""

    def journal_get(self, keys: Sequence[str]) -> Mapping[str, Any]: ...

    def journal_put(self, step: int, entries: Mapping[str, Any]) -> None: ...


class Forgetful:
    """A shelf for races that nobody resumes."""

    def journal_get(self, keys: Sequence[str]) -> Mapping[str, Any]:
        return {}

    def journal_put(self, step: int, entries: Mapping[str, Any]) -> None:
        return


class Journal:
    """What was judged, and what is to be written down at the end of the phase.

    Whole groups are kept, with the runs that they took, so that the account of a step that is done again is the same.
    Of equal groups one is judged and the others get its verdicts and runs, as they will when the step is done again.
    """

    def __init__(self, shelf: Shelf, restore: Callable[[Mapping[str, Any]], Task]) -> None:
        """`restore` makes a task of its record."""
        self._shelf = shelf
        self._tasks = _Form(_to_record, lambda record: _from_record(record, restore))
        self._new: dict[str, _Group[Any]] = {}
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def drafts(
        self, drafts: Sequence[Draft], validate: Judge[Draft, Task | Rejection]
    ) -> Judged[Task | Rejection]:
        return await self._through(_key("drafts", [asdict(draft) for draft in drafts]), drafts, validate, self._tasks)

    async def attempts(self, attempts: Sequence[Attempt], grade: Judge[Attempt, Verdict]) -> Judged[Verdict]:
        texts = [(attempt.task.id, attempt.text, attempt.cut) for attempt in attempts]
        return await self._through(_key("attempts", texts), attempts, grade, _VERDICTS)

    async def behaviours(self, programs: Sequence[str], find: Judge[str, str | None]) -> Judged[str | None]:
        return await self._through(_key("behaviours", list(programs)), programs, find, _PLAIN)

    async def grades(self, answers: Sequence[str], grade: Judge[str, bool]) -> Judged[bool]:
        return await self._through(_key("grades", list(answers)), answers, grade, _YES_NO)

    def flush(self, step: int) -> None:
        """Write down what was judged since the last time."""
        if self._new:
            self._shelf.journal_put(step, {key: group.entry() for key, group in self._new.items()})
            self._new = {}

    def forget(self) -> None:
        """Have judged anew what was judged since the last time."""
        self._new = {}

    async def _through(self, key: str, items: Sequence[I], judge: Judge[I, O], form: "_Form[O]") -> Judged[O]:
        # Whoever judges and fails, or is cancelled, leaves it to the next that waits.
        async with self._under_way.setdefault(key, asyncio.Lock()):
            known = self._shelf.journal_get([key]).get(key)
            if known is not None:
                return _read(known, form)
            if key not in self._new:
                self._new[key] = _Group(form, *await judge(items))
            group = self._new[key]
            return list(group.results), group.runs


def _read(known: Any, form: "_Form[O]") -> Judged[O]:
    try:
        return [form.read(result) for result in known["results"]], known["runs"]
    except (KeyError, TypeError, ValueError, InputError) as error:
        what = f"what was judged in the step under way cannot be read from the journal ({error})"
        raise RunError(what, "restore the run's records from a copy, or start another run") from None


@dataclass(frozen=True, slots=True)
class _Form(Generic[O]):
    """Results as plain values, there and back."""

    write: Callable[[O], Any]
    read: Callable[[Any], O]


@dataclass(frozen=True, slots=True)
class _Group(Generic[O]):
    """What was judged together and is not written down yet."""

    form: _Form[O]
    results: Sequence[O]
    runs: int

    def entry(self) -> dict[str, Any]:
        return {"results": [self.form.write(result) for result in self.results], "runs": self.runs}


def _key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _to_record(became: Task | Rejection) -> Any:
    if isinstance(became, Rejection):
        return {"rejected": [str(became.reason), became.detail, became.program, became.runs]}
    return {"task": became.record()}


def _from_record(record: Any, restore: Callable[[Mapping[str, Any]], Task]) -> Task | Rejection:
    if "task" in record:
        return restore(record["task"])
    reason, detail, *evidence = record["rejected"]
    program, runs = evidence or ("", ())  # entries of older versions have none
    return Rejection(Reason(reason), detail, program, tuple(runs))


def _verdict_record(verdict: Verdict) -> Any:
    return [getattr(verdict, field.name) for field in fields(verdict)]


def _verdict(record: Any) -> Verdict:
    names = [field.name for field in fields(Verdict)]
    given = dict(zip(names[: len(record)], record, strict=True))
    reason, status = given["reason"], given["status"]
    return Verdict(
        grade=Grade(given["grade"]),
        reason=None if reason is None else Reason(reason),
        status=None if status is None else Status(status),
        detail=given["detail"],
        runs=tuple(given.get("runs", ())),  # entries of older versions end before this or the next
        shortcut=given.get("shortcut", False),
    )


_VERDICTS = _Form(_verdict_record, _verdict)
_YES_NO: _Form[bool] = _Form(bool, bool)
_PLAIN: _Form[str | None] = _Form(lambda text: text, lambda text: text)
