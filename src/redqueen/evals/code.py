"""Grading programs on the tests of a benchmark, as EvalPlus does, in the verifier.

A program's function is called with every input. Its results are compared here, outside the guest, with those of the
benchmark's own solution. As in EvalPlus, floats are equal within 1e-6 or the task's own tolerance, the first failure
ends it, and all tests of a program have 60 seconds of CPU time. A test may take four times as long as the reference
takes for the task's longest test, and at least a second; loading the program counts with the first test of a process.

Programs may keep state between calls, so tests that are compared together share a process. A process begins no further
test after a while; then a new one runs all of them again, with more time. So a grade is always about what a single
process returned, on a slow machine too, and a process that is out of time has met a test that takes too long.

Most right programs return exactly what the reference does, so a process first sends only a hash of all results; where
that differs, tests are compared one by one. Results that are too long to send (some tests ask for a million numbers)
are compared by digests that equal values share.
"""

import hashlib
import marshal
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from redqueen.evals import calls
from redqueen.evals.protocol import Grade
from redqueen.verifier import Result, Status, Verifier
from redqueen.verifier.guest import literals

LEAST_SECONDS = 1.0
TIMES_THE_REFERENCE = 4.0
TURN_SECONDS = 0.1
"""How long a program's first process begins new tests."""
GROWTH = 4
"""Times as long as the last, for one that starts over: all that came before costs a third of the last then."""
NEARLY = 1.5
"""Times the reference."""
PROGRAM_SECONDS = 60.0
REFERENCE_SECONDS = 120.0
FEWER = (128, 1)
"""Tests in a process, where all of them at once are too much for one."""
RTOL = 1e-07
Value = Any
Oracle = Callable[[Sequence[Value], Value, Value], bool | None]
"""Inputs, result and expected result of a test: whether it passes, or None to leave it to equality."""

_FLOATS = re.compile(r"\d\.\d|\de[+-]|inf|nan")
_TOO_MUCH = (Status.MEMORY, Status.TOO_LONG)


@dataclass(frozen=True, kw_only=True)
class Tests:
    entry: str
    solution: str
    """The reference, as a whole program."""
    base: int
    """The first so many are the base tests; at least one."""
    split: bool
    """Whether that number is known, so that the base tests have a verdict of their own."""
    inputs: Sequence[Sequence[Value]]
    expected: Sequence[str]
    """Canonical texts of the reference's results or their digests."""
    seconds: Sequence[float]
    """What the reference takes for each."""
    hashes: Sequence[tuple[int, int, Sequence[int] | None]]
    """For each chunk of tests its first and last place (exclusive) and the reference's running hashes, None where a
    result has none. All base tests are in the first chunk."""
    atol: float
    not_none: bool = False
    """Only whether a result is None counts."""
    oracle: Oracle | None = None

    @cached_property
    def limit(self) -> float:
        return max(LEAST_SECONDS, TIMES_THE_REFERENCE * max(self.seconds))

    @cached_property
    def long(self) -> frozenset[int]:
        """The places of expected results that are digests."""
        return frozenset(place for place, text in enumerate(self.expected) if text.startswith("'long result "))

    @cached_property
    def chunks(self) -> "list[Chunk]":
        return [
            Chunk(range(start, end), self.arguments(range(start, end)), None if self.not_none else hashes)
            for start, end, hashes in self.hashes
        ]

    @cached_property
    def tolerances(self) -> list[float]:
        """For each test. As in EvalPlus, an expected float sets it for all later ones, base tests and others apart."""
        tolerances: list[float] = []
        for texts in (self.expected[: self.base], self.expected[self.base :]):
            atol = self.atol
            for text in texts:
                if atol == 0 and _FLOATS.search(text) and _is_floats(literals.parse(text)):
                    atol = 1e-6
                tolerances.append(atol)
        return tolerances

    def arguments(self, places: range) -> str:
        return calls.packed([self.inputs[place] for place in places])


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tests that share a process."""

    places: range
    arguments: str
    hashes: Sequence[int] | None


async def judge(program: str, tests: Tests, verifier: Verifier) -> Grade:
    """Whether the program passes all tests, and the base tests. It votes by its results on the base tests."""
    candidate = _Candidate(program, tests, verifier)
    base_right, results, why = True, list(tests.expected[: tests.base]), ""
    for chunk in tests.chunks:
        done, result = await candidate.agreed(chunk)
        if done == len(chunk.places):
            continue
        base = tests.base if chunk.places.start == 0 else 0
        if done < base:
            results, why = await candidate.base()
            base_right = not why
        if not why and len(chunk.places) > base:
            stopped = result.status in (Status.EXCEPTION, Status.TIMEOUT)
            why = result.verdict if stopped else await candidate.fault(chunk.places[base:])
        if why:
            break
    vote = hashlib.sha256(", ".join(results).encode()).hexdigest()[:16] if results else None
    return Grade(correct=not why, vote=vote, parts={"base": base_right} if tests.split else {}, why=why)


class _Candidate:
    """A program on its way through the tests."""

    def __init__(self, program: str, tests: Tests, verifier: Verifier) -> None:
        self._program, self._tests, self._verifier = program, tests, verifier
        self._turn = TURN_SECONDS
        self._left = PROGRAM_SECONDS
        self._took = 0.0
        """What the last process took. Only one that gets through its tests counts against the 60 seconds."""

    async def agreed(self, chunk: Chunk) -> tuple[int, Result]:
        """How many of the first tests have the reference's results by their hashes, and how the last process ended."""
        done, result, hashes = 0, Result(Status.NO_RESULT), chunk.hashes
        while hashes is not None:
            result = await self._run(calls.LAST_HASH, chunk.arguments)
            match literals.parse(result.value) if result.value is not None else None:
                case (int(count), int(last), bool(late)) if 0 <= count <= len(hashes) and last == (
                    hashes[count - 1] if count else 0
                ):
                    done = count
                    if late or not count:
                        return done, Result(Status.TIMEOUT) if late else result
                    if done == len(hashes):
                        self._left -= self._took
                        break
                    self._start_over(chunk.places)
                case _:
                    break
        return done, result

    async def base(self) -> tuple[list[str], str]:
        """The results of the base tests until the program fails, right or wrong, in canonical texts followed by how it
        ended; and what is wrong with the first that is."""
        values, ending = await self._base_values()
        results, why = [], ""
        for place, value in enumerate(values):
            right = not why and await self._is_right(place, value)
            why = why or ("" if right else "wrong result")
            digest = right and place in self._tests.long
            results.append(self._tests.expected[place] if digest else literals.encode(value, 10**9))
        return [*results, ending] if results and ending else results, why or ending

    async def _base_values(self) -> tuple[list[Value], str]:
        """All from one process if it survives them, otherwise each test in its own."""
        places = range(self._tests.base)
        values, first = await self._values(places)
        while not first and len(values) < len(places):
            self._start_over(places)
            values, first = await self._values(places)
        if values or not first or first.startswith("exc:"):
            return values, first
        alone = []
        for place in places:
            values, ending = await self._values(range(place, place + 1))
            alone += values
            if ending:
                return alone, ending
        return alone, "" if first in _TOO_MUCH else first

    async def fault(self, places: range, fewer: Sequence[int] = FEWER) -> str:
        """What is wrong with the first of these tests that fails, or "". All go to one process, or fewer where that is
        too much for it."""
        seen = 0
        while True:
            values, ending = await self._values(places)
            if ending in _TOO_MUCH and fewer and len(places) > 1:
                for start in range(0, len(places), fewer[0]):
                    if why := await self.fault(places[start : start + fewer[0]], fewer[1:]):
                        return why
                return ""
            for place, value in zip(places[seen:], values[seen:], strict=False):
                if not await self._is_right(place, value):
                    return "wrong result"
            if ending or len(values) == len(places):
                self._left -= self._took
                return ending
            seen = len(values)
            self._start_over(places)

    async def _values(self, places: range) -> tuple[list[Value], str]:
        """The results of these tests, as far as one process gets; and how it ended where a test failed."""
        tests = self._tests
        arguments = tests.arguments(places)
        module = calls.NOT_NONE if tests.not_none else calls.SHORT_VALUES if tests.long else calls.VALUES
        values, ending = calls.read(await self._run(module, arguments), len(places))
        if ending == Status.OPAQUE and not tests.not_none:
            values, ending = calls.read(await self._run(calls.PLAIN_VALUES, arguments), len(places))
        return values, ending

    async def _is_right(self, place: int, value: Value) -> bool:
        tests = self._tests
        if _passes(tests, place, value):
            return True
        if place not in tests.long:
            return False
        arguments = f"{tests.arguments(range(place, place + 1))}, 0, {REFERENCE_SECONDS}"
        actual, expected = [
            await calls.called(program, tests.entry, calls.LOOSE_DIGESTS, arguments, self._verifier, seconds)
            for program, seconds in ((self._program, PROGRAM_SECONDS), (tests.solution, REFERENCE_SECONDS))
        ]
        return actual.results == expected.results and calls.read(actual.results[0], 1)[1] == ""

    def _start_over(self, places: range) -> None:
        """The next process has enough for all of these tests if the program is nearly as fast as the reference."""
        reference = sum(self._tests.seconds[place] for place in places)
        self._turn = max(GROWTH * max(self._turn, self._took), NEARLY * reference)

    async def _run(self, module: str, arguments: str) -> Result:
        """In one process, which has a turn and the time of the test that it is at by then."""
        turn, limit = self._turn, self._tests.limit
        seconds = min(self._left, turn + limit)
        if seconds < 0.001:
            return Result(Status.TIMEOUT)
        outcome = await calls.called(
            self._program, self._tests.entry, module, f"{arguments}, {turn}, {limit}", self._verifier, seconds
        )
        self._took = outcome.user_ms / 1000
        return outcome.results[0]


@dataclass(frozen=True, slots=True)
class Reference:
    """The results of the benchmark's own solution, as in `Tests`."""

    expected: Sequence[str]
    seconds: Sequence[float]
    hashes: Sequence[tuple[int, int, list[int] | None]]


async def reference(
    program: str, entry: str, inputs: Sequence[Sequence[Value]], *, base: int, not_none: bool, verifier: Verifier
) -> Reference:
    expected: list[str] = []
    seconds: list[float] = []
    module = calls.NOT_NONE if not_none else calls.SHORT_EXPECTED
    sizes = [len(marshal.dumps(list(arguments))) for arguments in inputs]
    for places in calls.cut(sizes, 0):
        chunk = [inputs[place] for place in places]
        values, took = await _refer(program, entry, chunk, module, verifier)
        if values is None:
            values, took = await _refer(program, entry, chunk, calls.PLAIN_VALUES, verifier)
        if values is None:
            raise ValueError(f"the benchmark's own solution of {entry} returns values that cannot be compared")
        expected += [literals.encode(value, 10**9) for value in values]
        times = [took / len(chunk)] * len(chunk)
        if took > LEAST_SECONDS / TIMES_THE_REFERENCE:
            times = [(await _refer(program, entry, [arguments], module, verifier))[1] for arguments in chunk]
        seconds += times
    hashes: list[tuple[int, int, list[int] | None]] = []
    for places in calls.cut(sizes, base) or [range(len(inputs))]:
        places = range(0 if not hashes else places.start, places.stop)  # the base tests go with the first ones
        chunk = [inputs[place] for place in places]
        chunk_hashes, _ = await _refer(program, entry, chunk, calls.EVERY_HASH, verifier)
        hashes.append((places.start, places.stop, chunk_hashes))
    return Reference(expected, seconds, hashes)


async def _refer(
    program: str, entry: str, inputs: Sequence[Sequence[Value]], module: str, verifier: Verifier
) -> tuple[list[Value] | None, float]:
    """The reference's results, None where they are not plain values or have no hash; and the seconds they took."""
    times = "" if module is calls.EVERY_HASH else f", {REFERENCE_SECONDS}, {REFERENCE_SECONDS}"
    outcome = await calls.called(program, entry, module, calls.packed(inputs) + times, verifier, REFERENCE_SECONDS)
    values, ending = calls.read(outcome.results[0], len(inputs))
    if ending == Status.OPAQUE or (module is calls.EVERY_HASH and ending.startswith("exc:")):
        return None, 0.0
    if ending or len(values) != len(inputs):
        raise ValueError(f"the benchmark's own solution of {entry} ends with {ending or 'too few results'}")
    return values, outcome.cpu_ms / 1000


def _passes(tests: Tests, place: int, value: Value) -> bool:
    expected = literals.parse(tests.expected[place])
    if tests.oracle is not None:
        passes = tests.oracle(tests.inputs[place], value, expected)
        if passes is not None:
            return passes
    atol = tests.tolerances[place]
    return bool(value == expected) or (atol != 0 and _close(value, expected, atol))


def _is_floats(value: Value) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(element, float) for element in value)
    return isinstance(value, float)


def _close(value: Value, expected: Value, atol: float) -> bool:
    if type(value) is not type(expected):
        return False
    if isinstance(expected, (list, tuple)) and len(value) != len(expected):
        return False
    try:
        return bool(np.allclose(value, expected, rtol=RTOL, atol=atol))
    except (TypeError, ValueError, OverflowError):  # not numbers, or not of one shape
        return False
