"""Whether a task family is sound and hack-proof enough to be trained on (`redqueen check`).

A race finds every hole in a family, by reward, and then teaches it to all its members. So each kind is tried with ten
checks first, on tasks of the family's own (`material`): `answers` (right, wrong and worthless ones), `prompts` (what
they give away), `processes` (hash seeds), `fuzz` (odd texts), `data` (records, keys, figures), `speed`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

from redqueen.errors import MachineError, VerifierFault
from redqueen.plugins import one_line
from redqueen.tasks.families import Families
from redqueen.tasks.soundness.answers import golds_pass, told_apart, worthless_earn_nothing
from redqueen.tasks.soundness.data import figures_in_bands, keys_hold, records_return
from redqueen.tasks.soundness.findings import Finding, Outcome, failed, untried
from redqueen.tasks.soundness.fuzz import odd_texts_are_taken
from redqueen.tasks.soundness.inert import runs_nothing
from redqueen.tasks.soundness.material import Material, enough, gather
from redqueen.tasks.soundness.processes import Found, elsewhere, processes_agree
from redqueen.tasks.soundness.prompts import answer_hidden
from redqueen.tasks.soundness.speed import quick_enough
from redqueen.tasks.sources import Source
from redqueen.verifier import OpenVerifier, StrictVerifier, Verifier

Check = Callable[[Material, Verifier], Awaitable[Finding]]
MATERIAL, PROCESSES, SPEED, INERT = "tasks", "processes", "speed", "runs nothing"
CHECKS: Mapping[str, Check] = {
    "told apart": told_apart,
    "right answers": golds_pass,
    "worthless": worthless_earn_nothing,
    INERT: runs_nothing,
    "hidden": answer_hidden,
    "odd texts": odd_texts_are_taken,
    "records": records_return,
    "keys": keys_hold,
    "figures": figures_in_bands,
}
"""Those of one process whose result does not depend on the clock."""
ORDER = (
    MATERIAL, "told apart", "right answers", "worthless", INERT, "hidden", PROCESSES, "odd texts", "records", "keys",
    "figures", SPEED,
)  # fmt: skip
"""As they are reported: first whether there is enough to check with."""
OF_SOURCES = (INERT,)
"""Those of fixed sources alone: what other families execute is their own business, in guests."""
DECISIVE = (MATERIAL, "told apart", "right answers", "worthless", INERT, PROCESSES)
"""Those without which a source would teach a hole in it, or a race would not be the same when it is done again."""
DECISIVE_ITEMS = 48
"""A rate of guesses of one in eight shows in as many nearly always."""
_THEIR_PLACE = "mend it there: what a model writes must not end a race"
_OUR_PLACE = "give back what tasks/protocol.py says; if the family does, the check is at fault, so please report it"


@dataclass(frozen=True, slots=True)
class Row:
    """What one check found of one kind."""

    check: str
    kind: str
    finding: Finding

    @property
    def failed(self) -> bool:
        return self.finding.outcome is Outcome.FAILED


@dataclass(frozen=True, slots=True)
class Soundness:
    """What all checks found of a family, kind by kind."""

    family: str
    rows: tuple[Row, ...]
    drawn: bool = False
    """It is a source: nobody proposes its tasks."""

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(row.kind for row in self.rows))

    @property
    def checks(self) -> list[str]:
        return list(dict.fromkeys(row.check for row in self.rows))

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row.failed]

    def of(self, check: str, kind: str) -> Finding:
        return next(row.finding for row in self.rows if (row.check, row.kind) == (check, kind))

    def as_json(self) -> dict[str, Any]:
        rows = [{"check": row.check, "kind": row.kind, **asdict(row.finding)} for row in self.rows]
        return {"family": self.family, "sound": not self.failures, "failed": len(self.failures), "checks": rows}


async def check_family(name: str, verifier: OpenVerifier, most: int, others: Found | None = None) -> Soundness:
    """Check the family of this name, with at most so many tasks of each kind. `others` is what other processes find of
    it, where they were asked before."""
    return await _check(name, ORDER, verifier, most, others)


async def check_source(name: str, verifier: OpenVerifier, *, unfenced: bool = False) -> Soundness:
    """The checks that decide whether students may be trained on a source of this name, on a few items, with answers
    read as the race reads them."""
    return await _check(name, DECISIVE, verifier, DECISIVE_ITEMS, unfenced=unfenced)


async def _check(
    name: str,
    checks: Sequence[str],
    verifier: OpenVerifier,
    most: int,
    asked: Found | None = None,
    *,
    unfenced: bool = False,
) -> Soundness:
    families = Families.of([name], unfenced=unfenced)
    [family] = families.families
    checks = [check for check in checks if isinstance(family, Source) or check not in OF_SOURCES]
    others = asyncio.create_task(_as_asked(asked) if asked else elsewhere(name, verifier.tier, most, unfenced))
    strict = StrictVerifier(verifier)
    materials = await gather(families, strict, most)
    found: dict[tuple[str, str], Finding] = {}
    for material in materials:
        kind = material.kind.name
        found[MATERIAL, kind] = await _found(enough, material, strict)
        for check in (check for check in CHECKS if check in checks):
            found[check, kind] = await _found(CHECKS[check], material, strict)
    checked_elsewhere = _beside(await others)
    for material in materials:
        found[PROCESSES, material.kind.name] = await _found(checked_elsewhere, material, strict)
    for material in materials if SPEED in checks else ():
        # Last, when nothing else of ours is at work.
        found[SPEED, material.kind.name] = await _found(quick_enough, material, strict)
    rows = [Row(check, each.kind.name, found[check, each.kind.name]) for each in materials for check in checks]
    return Soundness(name, tuple(rows), isinstance(family, Source))


async def _as_asked(others: Found) -> Found:
    return others


def _beside(others: Found) -> Check:
    return lambda material, verifier: processes_agree(material, verifier, others)


async def _found(check: Check, material: Material, verifier: Verifier) -> Finding:
    """What a check finds. A family that raises has failed it; the machine that fails says nothing of the family."""
    if not material.tasks and check is not enough:
        return untried("no tasks")
    try:
        return await check(material, verifier)
    except (MachineError, VerifierFault):
        raise
    except Exception as error:
        place = extract_tb(error.__traceback__)[-1]
        return failed(
            "raises",
            f"it raises {one_line(error)}",
            example=f"{place.filename}, line {place.lineno}",
            mend=_OUR_PLACE if Path(place.filename).parent == Path(__file__).parent else _THEIR_PLACE,
        )
