"""Programs against the tests of a benchmark, as EvalPlus judges them, and in the verifier.

A program's function is called with every input; what it returns is compared here, outside the guest, with what the
benchmark's own solution returned. As in EvalPlus, a test that the reference does in t seconds may take 4 t and at least
one, floats count as equal within 1e-6 or the task's own tolerance, and the first failure ends it. Many tests share a
process: after a while it hands over what it has and the next one goes on there, so that no call is done twice and a
process that is out of time has met a test that takes too long.

Most right programs return exactly what the reference does, so a process first says only the hash of all that it
returned; whoever differs there is looked at test by test. Results that are too long to send (some tests ask for a
million numbers) are compared by digests that equal values share.
"""

import hashlib
import marshal
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from redqueen.evals.protocol import Grade
from redqueen.verifier import Job, Limits, Outcome, Result, Status, Verifier
from redqueen.verifier.guest import literals

LEAST_SECONDS = 1.0
TURN_SECONDS = 0.1
"""After so long no further test is begun in a process."""
TIMES_THE_REFERENCE = 4.0
REFERENCE_SECONDS = 120.0
MEMORY_MB = 4096
LONGEST_SENT = 2_000
"""Characters of an expected result; a longer one is kept as a digest."""
CHUNK_TESTS, CHUNK_BYTES = 2_000, 200_000
"""What a process gets at most; a single test that is more has one of its own."""
LOOKED_AT = 128
"""Tests that are looked at together."""
RTOL = 1e-07
Value = Any
Oracle = Callable[[Sequence[Value], Value, Value], bool | None]
"""Inputs, result and expected result of a test: whether it passes, or None to leave it to equality."""

_NUMPY = re.compile(r"\b(?:numpy|scipy|pandas)\b")
# What answers import for tests of their own, which nobody runs, and guests do not have.
_STAND_INS = {
    "timeit": "from time import perf_counter as default_timer\n",
    "unittest": "class TestCase:\n    pass\n",
}
_LIMITS = {"memory_mb": MEMORY_MB, "value_chars": 4_000_000, "stdout_bytes": 10_000_000}
# What a guest does with a program's function. It is told nothing of what is expected: all that a program could change
# here is what it returns. A result is copied at once, since a later call may change it.
_CHUNK = """
def redqueen_chunk(packed):
    import marshal, time

    returned, end = [], time.process_time() + TURN
    for arguments in marshal.loads(packed):
        try:
            value = CALL(*arguments)
            if type(value) not in (bool, int, str, float):
                copy = marshal.loads(marshal.dumps(value))
                if CHANGED:  # of a type that only looks plain
                    raise ValueError
                value = copy
            returned.append(value)
        except BaseException as error:
            return returned, type(error).__name__
        if time.process_time() > end:
            break
    return returned
"""
# Each hash is of a result and of the hash before it. Those of Python are fixed by the seed that all guests of one kind
# share.
_HASHING = """
def redqueen_chunk(packed, done=0, whole=0):
    import marshal, time

    hashes, end = [], time.process_time() + TURN
    for arguments in marshal.loads(packed)[done:]:
        whole = hash((whole, repr(ENTRY(*arguments))))
        hashes.append(whole)
        if time.process_time() > end:
            break
    return KEPT
"""
_HASHES = _HASHING.replace("KEPT", "hashes")
_LAST_HASH = _HASHING.replace("KEPT", "len(hashes), whole")
# Values that equal a plain one but are of a type of their own: counters, named tuples, numbers of numpy.
_PLAIN = """
def redqueen_plain(value):
    if isinstance(value, dict):
        return {redqueen_plain(key): redqueen_plain(item) for key, item in value.items()}
    for kind in (list, tuple):
        if isinstance(value, kind):
            return kind(map(redqueen_plain, value))
    if isinstance(value, (set, frozenset)):
        return set(map(redqueen_plain, value))
    for kind in (bool, int, float, complex, str, bytes):
        if isinstance(value, kind):
            return kind(value)
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value

def redqueen_call(*arguments):
    return redqueen_plain(ENTRY(*arguments))
"""
_NOT_NONE = """
def redqueen_call(*arguments):
    value = ENTRY(*arguments)
    return value if isinstance(value, bool) else value is not None
"""
_SPELT = """
def redqueen_spelt(value):
    if isinstance(value, float) and value == value and abs(value) != float("inf") and value == int(value):
        value = int(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ",".join(map(redqueen_spelt, value)) + ")"
    if isinstance(value, set):
        return "set(" + ",".join(sorted(map(redqueen_spelt, value))) + ")"
    if isinstance(value, dict):
        return "dict(" + ",".join(sorted(redqueen_spelt(k) + ":" + redqueen_spelt(v) for k, v in value.items())) + ")"
    return ascii(value)

def redqueen_digest(text):
    import hashlib

    return "long result " + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
"""
# A digest of the `repr`, which is fast; the few integers that have none are spelt.
_SHORT = f"""{_SPELT}
def redqueen_call(*arguments):
    value = ENTRY(*arguments)
    try:
        text = repr(value)
    except ValueError:
        return redqueen_digest(redqueen_spelt(value))
    return redqueen_digest(text) if len(text) > LONGEST else value
"""
# So that equal values have equal digests: 1, 1.0 and True, sets in any order.
_LOOSE = f"""{_PLAIN.replace("redqueen_call", "redqueen_made")}{_SPELT}
def redqueen_call(*arguments):
    return redqueen_digest(redqueen_spelt(redqueen_made(*arguments)))
"""


@dataclass(frozen=True)
class Tests:
    """What one task's programs are put to."""

    entry: str
    solution: str
    """The reference, as a whole program."""
    base: int
    """How many of the tests, the first ones, are the base tests; at least one."""
    split: bool
    """Whether that is known, and the base tests are a verdict of their own."""
    inputs: Sequence[Sequence[Value]]
    """The arguments of each call."""
    expected: Sequence[str]
    """Canonical texts of what the reference returns, or of its digest."""
    seconds: Sequence[float]
    """What the reference takes for each."""
    hashes: Sequence[tuple[int, int, Sequence[int] | None]]
    """The first place of tests that go together, the one after the last, and a hash for each of all that the reference
    has returned by then; None where that has none. The first have all base tests."""
    atol: float
    not_none: bool = False
    """Only whether a result is None counts."""
    oracle: Oracle | None = None

    @cached_property
    def long(self) -> frozenset[int]:
        """The places of expected results that are digests."""
        return frozenset(place for place, text in enumerate(self.expected) if text.startswith("'long result "))

    @cached_property
    def base_chunk(self) -> "Chunk":
        return self.chunk(range(self.base))

    @cached_property
    def chunks(self) -> "list[tuple[Chunk, Sequence[int] | None]]":
        return [(self.chunk(range(start, end)), hashes) for start, end, hashes in self.hashes]

    def chunk(self, places: range) -> "Chunk":
        expected = "[" + ", ".join(self.expected[place] for place in places) + "]"
        longest = max(self.seconds[place] for place in places)
        return Chunk(places, packed([self.inputs[place] for place in places]), expected, longest)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tests that go to one process."""

    places: range
    text: str
    """The argument of the guest's call."""
    expected: str
    """What comes back from a program that returns just what the reference does."""
    seconds: float
    """The reference takes for the longest of them."""


async def judge(program: str, tests: Tests, verifier: Verifier) -> Grade:
    """Whether the program passes the tests, and the base ones of them: what it makes of those is also what it votes
    by."""
    base_right, shown, why = False, [_inside(tests.base_chunk.expected)], ""
    for number, (chunk, hashes) in enumerate(tests.chunks):
        done, result = await _agreed(program, tests, chunk, hashes, verifier)
        if number == 0:
            base_right = done >= tests.base
            if not base_right:
                shown = []
                why = await _fault(program, tests, range(tests.base), verifier, shown)
                base_right, done = not why, tests.base
        if not why and done < len(chunk.places):
            stopped = result.status in (Status.EXCEPTION, Status.TIMEOUT)
            why = result.verdict if stopped else await _fault(program, tests, chunk.places[done:], verifier, [])
        if why:
            break
    vote = hashlib.sha256(", ".join(shown).encode()).hexdigest()[:16] if shown else None
    return Grade(not why, vote, {"base": base_right} if tests.split else {}, why)


async def _agreed(
    program: str, tests: Tests, chunk: Chunk, hashes: Sequence[int] | None, verifier: Verifier
) -> tuple[int, Result]:
    """For how many of the first tests the program returns just what the reference does, as far as hashes tell; and how
    the last process ended."""
    done, whole, result = 0, 0, Result(Status.NO_RESULT)
    while hashes is not None and not tests.not_none and done < len(chunk.places):
        rest = replace(chunk, text=f"{chunk.text}, {done}, {whole}")
        result = await _run(program, tests.entry, rest, _LAST_HASH, verifier)
        match literals.parse(result.value) if result.value is not None else None:
            case (int(further), int(whole)) if (
                0 < further <= len(hashes) - done and hashes[done + further - 1] == whole
            ):
                done += further
            case _:
                break
    return done, result


async def _fault(program: str, tests: Tests, places: range, verifier: Verifier, shown: list[str]) -> str:
    """What is wrong with the first of these tests that is wrong, or nothing. What the program returned goes to
    `shown`. Many go to one process; where that is too much for it, each to one of its own."""
    before = range(0 if places.start < tests.base else tests.base, places.start)
    atol, alone = _tolerance(tests, before, tests.atol), 0
    while places:
        some = places[: 1 if alone else LOOKED_AT]
        why, atol, done = await _try(program, tests, tests.chunk(some), atol, verifier, shown)
        if why in (Status.MEMORY, Status.TOO_LONG) and len(some) > 1:
            alone = len(some)
            continue
        if why:
            return why
        places, alone = places[done:], max(0, alone - 1)
    return ""


async def _try(
    program: str, tests: Tests, chunk: Chunk, atol: float, verifier: Verifier, shown: list[str]
) -> tuple[str, float, int]:
    """What is wrong with the first result that is wrong, or nothing; the tolerance from there on; and how many tests
    have been done. What the program returned goes to `shown`."""
    trailer = _NOT_NONE if tests.not_none else _SHORT if tests.long else ""
    result = await _run(program, tests.entry, chunk, trailer, verifier)
    if not tests.not_none and _is_foreign(result):
        result = await _run(program, tests.entry, chunk, _PLAIN, verifier)
    if result.status is not Status.OK or result.value is None:
        return result.verdict, atol, 0
    if result.value == chunk.expected:
        shown.append(_inside(result.value))
        return "", _tolerance(tests, chunk.places, atol), len(chunk.places)
    found = literals.parse(result.value)
    values, raised = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
    if not isinstance(values, list) or not isinstance(raised, str) or len(values) > len(chunk.places):
        return "bad reply", atol, 0
    shown.append(result.value if raised else _inside(result.value))
    for place, value in zip(chunk.places, values, strict=False):
        passed, atol = _passes(tests, place, value, atol)
        if not passed and place in tests.long:
            alone = tests.chunk(range(place, place + 1))
            spelt = [
                await _run(each, tests.entry, alone, _LOOSE, verifier, REFERENCE_SECONDS)
                for each in (program, tests.solution)
            ]
            passed = all(each.status is Status.OK for each in spelt) and spelt[0].value == spelt[1].value
        if not passed:
            return "wrong result", atol, 0
    if raised or not values:
        return f"exc:{raised}" if raised else "bad reply", atol, 0
    return "", atol, len(values)


def _inside(text: str) -> str:
    """The items of a list, which are the same however many processes they came from."""
    return text[1:-1]


def _is_foreign(result: Result) -> bool:
    """Something that is no plain value came back: the guest could not send it, or could not copy it."""
    return result.status is Status.OPAQUE or (result.value or "").endswith(", 'ValueError')")


@dataclass(frozen=True, slots=True)
class Reference:
    """What the benchmark's own solution makes of the tests."""

    expected: list[str]
    seconds: list[float]
    hashes: list[tuple[int, int, list[int] | None]]


async def reference(
    program: str, entry: str, inputs: Sequence[Sequence[Value]], *, base: int, not_none: bool, verifier: Verifier
) -> Reference:
    expected: list[str] = []
    seconds: list[float] = []
    trailer = _NOT_NONE if not_none else _SHORT
    sizes = [len(marshal.dumps(list(each))) for each in inputs]
    for places in _cut(sizes, 0):
        some = [inputs[place] for place in places]
        values, took = await _refer(program, entry, some, trailer, verifier)
        if values is None:
            values, took = await _refer(program, entry, some, _PLAIN, verifier)
        if values is None:
            raise ValueError(f"the benchmark's own solution of {entry} returns what no test can be made of")
        expected += [literals.encode(value, 10**9) for value in values]
        times = [took / len(some)] * len(some)
        if took > LEAST_SECONDS / TIMES_THE_REFERENCE:
            times = [(await _refer(program, entry, [one], trailer, verifier))[1] for one in some]
        seconds += times
    hashes: list[tuple[int, int, list[int] | None]] = []
    for places in _cut(sizes, base) or [range(len(inputs))]:
        places = range(0 if not hashes else places.start, places.stop)  # the base tests go with the first ones
        some = [inputs[place] for place in places]
        hashes.append((places.start, places.stop, (await _refer(program, entry, some, _HASHES, verifier))[0]))
    return Reference(expected, seconds, hashes)


async def _refer(
    program: str, entry: str, some: Sequence[Sequence[Value]], trailer: str, verifier: Verifier
) -> tuple[list[Value] | None, float]:
    """What the reference returns, None where it is no plain value or has no hash; and the seconds of it."""
    chunk = Chunk(range(len(some)), packed(some), "", 0.0)
    outcome = await _outcome(
        program, entry, chunk, trailer, verifier, REFERENCE_SECONDS, REFERENCE_SECONDS, LONGEST_SENT
    )
    [result] = outcome.results
    if _is_foreign(result) or (trailer is _HASHES and result.status is Status.EXCEPTION):
        return None, 0.0
    values = literals.parse(result.value) if result.value is not None else None
    if not isinstance(values, list) or len(values) != len(some):
        raise ValueError(f"the benchmark's own solution of {entry} ends with {result.verdict[:100]}")
    return values, outcome.cpu_ms / 1000


def packed(inputs: Sequence[Sequence[Value]]) -> str:
    """As the guest's call takes them."""
    return repr(marshal.dumps([list(each) for each in inputs]))


def _cut(sizes: Sequence[int], start: int) -> list[range]:
    """The places of tests that go together, from the first place on."""
    chunks: list[range] = []
    size = 0
    for place in range(start, len(sizes)):
        size += sizes[place]
        if place > start and (place - start == CHUNK_TESTS or size > CHUNK_BYTES):
            chunks.append(range(start, place))
            start, size = place, sizes[place]
    return [*chunks, range(start, len(sizes))] if start < len(sizes) else chunks


async def _run(
    program: str, entry: str, chunk: Chunk, trailer: str, verifier: Verifier, least: float = LEAST_SECONDS
) -> Result:
    seconds = max(least, TIMES_THE_REFERENCE * chunk.seconds)
    seconds += TURN_SECONDS
    outcome = await _outcome(program, entry, chunk, trailer, verifier, seconds, TURN_SECONDS, 4 * LONGEST_SENT)
    return outcome.results[0]


async def _outcome(
    program: str, entry: str, chunk: Chunk, trailer: str, verifier: Verifier, seconds: float, turn: float, longest: int
) -> Outcome:
    """`longest` is more for answers than for references: so a short expected result is never met by a digest."""
    given = trailer.replace("ENTRY", entry).replace("LONGEST", str(longest)).replace("TURN", str(turn))
    numpy = bool(_NUMPY.search(program))
    # numpy's values may equal the bytes that they are copied as; what has been made plain need not be looked at.
    changed = "False" if trailer is _PLAIN else "repr(copy) != repr(value)" if numpy else "copy != value"
    called = _CHUNK.replace("CALL", "redqueen_call" if trailer else entry).replace("CHANGED", changed)
    called = called.replace("TURN", str(turn))
    chunk_call = "" if trailer in (_HASHES, _LAST_HASH) else called
    source = f"{program}\n{given}{chunk_call}"
    limits = Limits(cpu_s=seconds, **_LIMITS)
    modules = [(name, text) for name, text in _STAND_INS.items() if name in program]
    job = Job.calls(
        source, [chunk.text], entry="redqueen_chunk", modules=modules, numpy=numpy, twice=False, limits=limits
    )
    [outcome] = await verifier.run([job])
    return outcome


def _tolerance(tests: Tests, places: range, atol: float) -> float:
    """After these tests: a float among the expected results sets it for good, as in EvalPlus."""
    if atol == 0 and any(
        _is_floats(literals.parse(text)) for place in places if "." in (text := tests.expected[place])
    ):
        return 1e-6
    return atol


def _passes(tests: Tests, place: int, value: Value, atol: float) -> tuple[bool, float]:
    """Whether a result is right, and the tolerance from here on."""
    expected = literals.parse(tests.expected[place])
    if tests.oracle is not None:
        found = tests.oracle(tests.inputs[place], value, expected)
        if found is not None:
            return found, atol
    if atol == 0 and _is_floats(expected):
        atol = 1e-6
    if value == expected:
        return True, atol
    return atol != 0 and _close(value, expected, atol), atol


def _is_floats(value: Value) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(each, float) for each in value)
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
