"""`redqueen check`: whether a task family is sound and hack-proof enough to be trained on."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from redqueen.commands.command import Configured, Reporting, positive
from redqueen.console import columns, printable, show
from redqueen.errors import InputError
from redqueen.resources import open_verifier

if TYPE_CHECKING:
    from rich.console import Console

    from redqueen.tasks.soundness import Soundness
    from redqueen.tasks.soundness.findings import Finding

WIDTH = 100
"""Of a table; kinds that do not fit in stand in another one below."""
_GAP = 2
MEND = "mend these; docs/extending.md, Check a family, says what each check asks"


@dataclass(frozen=True, kw_only=True)
class CheckCommand(Reporting, Configured):
    """Check that a task family is sound and hack-proof enough to be trained on.

    Each kind is tried with ten checks. The exit status is 0 when it passes all of them, otherwise 2.
    """

    uses = ("verifier",)
    family: Annotated[str, tyro.conf.arg(metavar="FAMILY")]
    """As tasks.families names it: one of ours or of an installed package's, or FILE.py:NAME. It is imported: give only
    code that you trust."""
    tasks: Annotated[int, tyro.conf.arg(metavar="N")] = 200
    """At most this many tasks of each kind."""

    def run(self) -> None:
        report = self.report()
        show(report, as_json=self.json)
        failures, checks = len(report.soundness.failures), len(report.soundness.rows)
        if failures:
            raise InputError(f"{failures} of {checks} checks of the task family {self.family} failed", MEND)

    def report(self) -> "CheckReport":
        most = positive("--tasks", self.tasks)
        from redqueen.plugins import FAMILIES
        from redqueen.tasks.soundness import check_family

        FAMILIES.check(self.family)
        with open_verifier(self.settings.verifier) as verifier:
            return CheckReport(asyncio.run(check_family(self.family, verifier, most)))


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A table of all findings, how fast each kind is, then what failed."""

    soundness: "Soundness"

    def as_json(self) -> dict[str, Any]:
        return self.soundness.as_json()

    def render(self, console: "Console") -> None:
        lines: list[str] = []
        for kinds in _that_fit(self.soundness):
            lines += [*_table(self.soundness, kinds), ""]
        lines += [_speed(self.soundness, kind) for kind in self.soundness.kinds]
        if self.soundness.drawn:
            lines.append("nobody proposes its tasks: what is said of proposals and drafts does not apply")
        for row in self.soundness.failures:
            lines += ["", *_failure(row.check, row.kind, row.finding)]
        if not self.soundness.failures:
            lines += ["", f"{self.soundness.family} passes all checks"]
        for line in lines:
            console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def _cell(finding: "Finding") -> str:
    outcome = str(finding.outcome)
    return f"{outcome.upper() if finding.what else outcome}, {finding.figure}"


def _table(soundness: "Soundness", kinds: Sequence[str]) -> list[str]:
    rows = [[check, *(_cell(soundness.of(check, kind)) for kind in kinds)] for check in soundness.checks]
    return columns(["check", *kinds], rows, range(len(kinds) + 1), WIDTH)


def _that_fit(soundness: "Soundness") -> list[list[str]]:
    """The kinds, table by table."""
    tables: list[list[str]] = []
    room = 0
    for kind in soundness.kinds:
        width = _GAP + max(len(kind), *(len(_cell(soundness.of(check, kind))) for check in soundness.checks))
        if not tables or room < width:
            tables.append([])
            room = WIDTH - max(map(len, soundness.checks))
        tables[-1].append(kind)
        room -= width
    return tables


def _speed(soundness: "Soundness", kind: str) -> str:
    from redqueen.tasks.soundness import SPEED

    values = soundness.of(SPEED, kind).values
    if not values:
        return f"{kind}: its speed could not be measured"
    made = "validation" if "validations_a_second" in values else "draw"
    return (
        f"{kind}: {values[f'{made}s_a_second']:,.0f} {made}s/s and {values['grades_a_second']:,.0f} grades/s in "
        f"batches; alone 99 % take at most {values[f'{made}_99_ms']:,.1f} and {values['grade_99_ms']:,.1f} ms, the "
        f"worst {values[f'{made}_worst_ms']:,.1f} and {values['grade_worst_ms']:,.1f} ms"
    )


def _failure(check: str, kind: str, finding: "Finding") -> list[str]:
    lines = [f"{kind}, {check}: {finding.what}"]
    if finding.example:
        lines.append(f"  for example: {finding.example}")
    return [*lines, f"  to mend it: {finding.mend}"]
