"""What runs of a program gave, in one line for each call: what a rejection shows beside the program.

Only results are in it, no times and no addresses of ours, so that a program that always does the same leaves the same
evidence. A long result is cut, and says how long it was and what it hashes to, so that two that differ look different.
"""

import hashlib
from collections.abc import Sequence

from redqueen.verifier import Outcome

VALIDATED = "when validated"
AS_GRADED = "called as a grader calls it"
BESIDE_ATTEMPTS = "beside an attempt"
LONGEST = 200
"""Characters of one result: there may be eight runs of twelve calls, and each result may have thousands."""


def shown(when: str, inputs: Sequence[str], outcome: Outcome) -> tuple[str, ...]:
    """What each call gave in each run, the first hash seed first; nothing where the job was too long to be run."""
    if not outcome.runs:
        return ()
    calls = zip(*outcome.runs, strict=True)
    return tuple(
        _line(when, given, [result.verdict for result in results]) for given, results in zip(inputs, calls, strict=True)
    )


def agreed(inputs: Sequence[str], gave: Sequence[str]) -> tuple[str, ...]:
    """What each call gave in every run of a validation."""
    return tuple(_line(VALIDATED, given, [value, value]) for given, value in zip(inputs, gave, strict=True))


def _line(when: str, given: str, gave: Sequence[str]) -> str:
    same = len(gave) > 1 and len(set(gave)) == 1
    said = f"{_short(gave[0])} in each run" if same else " | ".join(map(_short, gave))
    return f"{when}, f({given}): {said}"


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[:LONGEST]}... ({len(text):,} characters, SHA-256 {digest}...)"
