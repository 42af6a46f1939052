"""Programs with known verdicts, judged by one verifier after the other while the machine does something else."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as Late
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from cases import ATTACK_PRELOAD, Case, draw
from loads import under

from redqueen.errors import RedQueenError
from redqueen.verifier import LocalVerifier, Outcome, Tier

BATCH = (20, 120)
TRIES = 3
"""Starts for one sitting, should they be refused."""
_BATCH_S = 900
"""For one batch: longer, and it hangs."""
_RUNS = 2
"""Of a job, in versions whose jobs do not say."""
_SAMPLES = 5
_CHARS = 120


@dataclass(slots=True)
class Tally:
    """What became of one class."""

    count: int = 0
    wrong: int = 0
    raised: int = 0
    """The batch that it was in raised, or there was no verifier to run it."""
    samples: list[str] = field(default_factory=list)
    """Some of the wrong ones."""
    confusions: Counter[str] = field(default_factory=Counter)

    def judge(self, case: Case, outcome: Outcome) -> None:
        verdict = outcome.results[0].verdict
        self.count += 1
        if case.right(verdict):
            return
        self.wrong += 1
        self.confusions[f"{_short(case.expected)} -> {_short(verdict)}"] += 1
        if len(self.samples) < _SAMPLES:
            self.samples.append(f"{_short(case.name)}: expected {_short(case.expected)}, got {_short(verdict)}")


@dataclass(slots=True)
class Found:
    """What a measurement came to."""

    load: str
    tier: str
    """Of the quiet machine."""
    classes: dict[str, Tally]
    starts: int = 0
    refused: list[str] = field(default_factory=list)
    weaker: list[str] = field(default_factory=list)
    """Starts that came to a weaker tier than the quiet machine has, with the reason."""
    errors: list[str] = field(default_factory=list)
    """What batches raised."""
    seconds: float = 0.0
    runs: int = 0

    @property
    def good(self) -> bool:
        bad = any(tally.wrong or tally.raised for tally in self.classes.values())
        return not (bad or self.refused or self.weaker or self.errors)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "good": self.good}


def _short(text: str) -> str:
    return text if len(text) <= _CHARS else f"{text[:_CHARS]}..."


def measure(load: str, counts: dict[str, int], starts: int, seed: int) -> Found:
    """Draw the programs and run them under the load, a share in each of so many sittings."""
    rng = Random(seed)
    cases = draw(counts, rng)
    with LocalVerifier(preload=ATTACK_PRELOAD) as quiet:
        tier = quiet.tier
    found = Found(load, str(tier), {kind: Tally() for kind in counts})
    with under(load):
        start = time.monotonic()
        for sitting in range(starts):
            sit(cases[sitting::starts], found, rng)
        found.seconds = time.monotonic() - start
    return found


def sit(cases: Sequence[Case], found: Found, rng: Random) -> None:
    """Open a verifier, have it judge these, close it."""
    verifier = _open(found)
    if verifier is None:
        _lost(cases, found)
        return
    with verifier:
        for batch in _batches(cases, rng):
            _judge(verifier, batch, found)


def _open(found: Found) -> LocalVerifier | None:
    for _ in range(TRIES):
        found.starts += 1
        try:
            verifier = LocalVerifier(preload=ATTACK_PRELOAD)
        except RedQueenError as error:
            found.refused.append(str(error))
            continue
        if verifier.tier.strength < Tier(found.tier).strength:
            found.weaker.append("; ".join(f"{refusal.tier}: {refusal.why}" for refusal in verifier.refusals))
        return verifier
    return None


def _batches(cases: Sequence[Case], rng: Random) -> Iterator[Sequence[Case]]:
    while cases:
        size = rng.randint(*BATCH)
        yield cases[:size]
        cases = cases[size:]


def _judge(verifier: LocalVerifier, batch: Sequence[Case], found: Found) -> None:
    try:
        outcomes = verifier.submit([case.job for case in batch]).result(_BATCH_S)
    except (RedQueenError, Late) as error:
        found.errors.append(f"{type(error).__name__}: {error}")
        _lost(batch, found)
        return
    found.runs += sum(getattr(case.job, "seeds", _RUNS) for case in batch)
    for case, outcome in zip(batch, outcomes, strict=True):
        found.classes[case.kind].judge(case, outcome)


def _lost(cases: Sequence[Case], found: Found) -> None:
    for case in cases:
        found.classes[case.kind].count += 1
        found.classes[case.kind].raised += 1


def show(found: Found) -> None:
    print(f"{'class':10}{'programs':>10}{'wrong':>8}{'raised':>8}")
    for kind, tally in found.classes.items():
        print(f"{kind:10}{tally.count:10,}{tally.wrong:8,}{tally.raised:8,}")
    print(f"{found.starts} starts: {len(found.refused)} refused, {len(found.weaker)} weaker than {found.tier}")
    print(f"{found.runs:,} runs in {found.seconds:.1f} s: {found.runs / max(found.seconds, 1e-9):,.1f} a second")
    for kind, tally in found.classes.items():
        for confusion, count in tally.confusions.most_common():
            print(f"  {kind}: {count} x {confusion}")
        for sample in tally.samples:
            print(f"    {kind}: {sample}")
    for what, lines in (("refused", found.refused), ("weaker", found.weaker), ("raised", found.errors)):
        for line, count in Counter(lines).most_common():
            print(f"  {what}: {count} x {line}")
    print("every verdict is right" if found.good else "NOT every verdict is right")
