"""The modules that call a program's function in a guest. They share no names with the program.

They know nothing of the expected results: all that a program could change there is what it returns.
"""

import marshal
import re
from collections.abc import Sequence
from typing import Any

from redqueen.verifier import Job, Limits, Outcome, Result, Verifier
from redqueen.verifier.guest import literals

LONGEST_SENT = 2_000
"""Characters of an expected result; of a longer one a digest is kept."""

CHUNK_TESTS, CHUNK_BYTES = 2_000, 200_000
"""The most that one process gets; a larger test has a process of its own."""
_MODULE = "redqueen_calls"
_NUMPY = re.compile(r"\b(?:numpy|scipy|pandas)\b")
# Modules that answers import for tests of their own, which are never run. Guests do not have them.
_STAND_INS = {
    "timeit": "from time import perf_counter as default_timer\n",
    "unittest": "class TestCase:\n    pass\n",
}
_LIMITS = {"memory_mb": 4096, "value_chars": 4_000_000, "stdout_bytes": 10_000_000}

# Each hash is of a result and of the hash before it. All guests of one kind share Python's hash seed.
EVERY_HASH = """
from marshal import loads

def chunk_of(function):
    def chunk(packed):
        hashes, whole = [], 0
        for arguments in loads(packed):
            whole = hash((whole, repr(function(*arguments))))
            hashes.append(whole)
        return hashes
    return chunk
"""
# Time is the process's own in user mode, so that the load of the machine does not count.
LAST_HASH = """
from marshal import loads
from os import times

def chunk_of(function):
    def chunk(packed, turn, limit):
        count, whole, begun, end = 0, 0, 0.0, times()[0] + turn
        for arguments in loads(packed):
            further = hash((whole, repr(function(*arguments))))
            now = times()[0]
            if now - begun > limit:
                return count, whole, True
            count, whole, begun = count + 1, further, now
            if now > end:
                break
        return count, whole, False
    return chunk
"""
# Gives the results, and how it ended where a call failed. A result is copied at once, since a later call may change
# it. Arrays and the like are copied as bytes, which numpy's may even equal.
_VALUES = """
import sys
from marshal import dumps, loads
from os import times

class Opaque(Exception):
    pass

def copied(value):
    if type(value) in (bool, int, str, float):
        return value
    try:
        copy = loads(dumps(value))
        changed = CHECKED and (repr(copy) != repr(value) if "numpy" in sys.modules else copy != value)
    except ValueError:
        raise Opaque from None
    if changed:
        raise Opaque
    return copy

def chunk_of(function):
    def chunk(packed, turn, limit):
        returned, begun, end = [], 0.0, times()[0] + turn
        for arguments in loads(packed):
            try:
                value = copied(shown(function(*arguments)))
            except Opaque:
                return returned, "opaque"
            except BaseException as error:
                return returned, "exc:" + type(error).__name__
            now = times()[0]
            if now - begun > limit:
                return returned, "timeout"
            returned.append(value)
            begun = now
            if now > end:
                break
        return returned
    return chunk
"""
_CHECKED, _UNCHECKED = (_VALUES.replace("CHECKED", word) for word in ("True", "False"))
# For values that equal a plain one but have a type of their own: counters, named tuples, numpy's numbers, fractions.
_PLAIN = """
def plain(value):
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    for kind in (list, tuple):
        if isinstance(value, kind):
            return kind(map(plain, value))
    if isinstance(value, (set, frozenset)):
        return set(map(plain, value))
    for kind in (bool, int, float, complex, str, bytes):
        if isinstance(value, kind):
            return kind(value)
    if type(value).__module__ in ("fractions", "decimal"):
        return number(value)
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value

def number(value):
    for kind in (float, int):
        try:
            if kind(value) == value:
                return kind(value)
        except (ArithmeticError, ValueError):
            pass
    return repr(value)
"""
_SPELT = """
def spelt(value):
    if isinstance(value, float) and value == value and abs(value) != float("inf") and value == int(value):
        value = int(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ",".join(map(spelt, value)) + ")"
    if isinstance(value, set):
        return "set(" + ",".join(sorted(map(spelt, value))) + ")"
    if isinstance(value, dict):
        return "dict(" + ",".join(sorted(spelt(k) + ":" + spelt(v) for k, v in value.items())) + ")"
    return ascii(value)

def digest(text):
    from hashlib import sha256

    return "long result " + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
"""
# A digest of the `repr`, which is fast; the few integers too long for one are spelt.
_SHORT = """
def shown(value):
    try:
        text = repr(value)
    except ValueError:
        return digest(spelt(value))
    return digest(text) if len(text) > LONGEST else value
"""
VALUES = f"{_CHECKED}\ndef shown(value):\n    return value\n"
SHORT_VALUES, SHORT_EXPECTED = (
    f"{_CHECKED}{_SPELT}{_SHORT}".replace("LONGEST", str(longest)) for longest in (4 * LONGEST_SENT, LONGEST_SENT)
)
"""More is sent of answers than of references, so a short expected result never meets a digest."""
PLAIN_VALUES = f"{_UNCHECKED}{_PLAIN}\nshown = plain\n"
NOT_NONE = f"{_CHECKED}\ndef shown(value):\n    return value if isinstance(value, bool) else value is not None\n"
LOOSE_DIGESTS = f"{_CHECKED}{_PLAIN}{_SPELT}\ndef shown(value):\n    return digest(spelt(plain(value)))\n"
"""Equal values have equal digests: 1, 1.0 and True, sets in any order."""


def packed(inputs: Sequence[Sequence[Any]]) -> str:
    """The inputs of several tests as the argument of a guest's call."""
    return repr(marshal.dumps([list(arguments) for arguments in inputs]))


def cut(sizes: Sequence[int], start: int) -> list[range]:
    """Chunks of tests that share a process, from the test at `start` on."""
    chunks: list[range] = []
    size = 0
    for place in range(start, len(sizes)):
        size += sizes[place]
        if place > start and (place - start == CHUNK_TESTS or size > CHUNK_BYTES):
            chunks.append(range(start, place))
            start, size = place, sizes[place]
    return [*chunks, range(start, len(sizes))] if start < len(sizes) else chunks


async def called(program: str, entry: str, module: str, arguments: str, verifier: Verifier, seconds: float) -> Outcome:
    """Call the program's function in a guest through one of these modules."""
    modules = [(_MODULE, module), *((name, text) for name, text in _STAND_INS.items() if name in program)]
    job = Job.calls(
        f"{program}\n\nfrom {_MODULE} import chunk_of as redqueen_chunk\nredqueen_chunk = redqueen_chunk({entry})\n",
        [arguments],
        entry="redqueen_chunk",
        modules=modules,
        numpy=bool(_NUMPY.search(program)),
        seeds=1,
        limits=Limits(cpu_s=seconds, **_LIMITS),
    )
    [outcome] = await verifier.run([job])
    return outcome


def read(result: Result, most: int) -> tuple[list[Any], str]:
    """The values in a guest's reply, and how it ended where a call failed."""
    if result.value is None:
        return [], result.verdict
    reply = literals.parse(result.value)
    values, ending = reply if isinstance(reply, tuple) and len(reply) == 2 else (reply, "")
    if not isinstance(values, list) or not isinstance(ending, str) or len(values) > most or not (values or ending):
        return [], "bad reply"
    return values, ending
