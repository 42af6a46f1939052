"""A study from its sweep to its tables. What is finished is not done again, so the same command resumes a study."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from redqueen.analysis import quarters
from redqueen.analysis.quarters import count_text
from redqueen.console import say, span_text
from redqueen.errors import InputError, Interrupted
from redqueen.evals.figures import Tally
from redqueen.resources import device_name, machine_name, place
from redqueen.runs.atomic import write_text
from redqueen.runs.metrics import FLOPS
from redqueen.runs.store import Store
from redqueen.training.arms import POPULATION
from redqueen.training.checks import refuse_idle
from redqueen.training.resuming import is_run
from redqueen.training.rules import read_rules
from redqueen.training.study.design import Design, StudyRace
from redqueen.training.study.exam import BARE, HalfExam, exam_figures
from redqueen.training.study.jobs import run_all
from redqueen.training.study.outcomes import ArmGain, RaceOutcome, gains, outcome
from redqueen.training.study.sweep import sweep
from redqueen.training.study.tables import arms_table, gains_table

if TYPE_CHECKING:
    from rich.console import Console

OUTCOMES = "outcomes.json"
JOBS = "jobs.jsonl"
"""A line for each command with its seconds and its machine; one that was killed leaves none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    """The report of `redqueen study`."""

    exam: HalfExam
    rates: Mapping[str, float]
    """The learning rates that the sweep chose, by arm; empty without a sweep."""
    races: tuple[StudyRace, ...]
    outcomes: tuple[RaceOutcome, ...]
    base: Mapping[str, float]
    less_base: Mapping[str, Mapping[str, ArmGain]]
    took: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Any]:
        exam = self.exam
        return {
            "exam": {
                "file": str(exam.file),
                "tasks": len(exam.places),
                "places": exam.half,
                "attempts": exam.attempts,
                "k": exam.k,
            },
            "learning_rates": dict(self.rates) or "the settings' own",
            "base": self.base,
            "less_base": {
                arm: {part: asdict(gain) for part, gain in parts.items()} for arm, parts in self.less_base.items()
            },
            "runs": [asdict(outcome) for outcome in self.outcomes],
        }

    def render(self, console: "Console") -> None:
        k = self.exam.k
        blocks = arms_table(self.outcomes, self.base, k), gains_table(self.less_base, k), self.took
        console.print("\n\n".join(blocks), soft_wrap=True, markup=False, highlight=False)


def run_study(design: Design) -> StudyReport:
    """From the sweep to outcomes.json; Interrupted says that a signal stopped it."""
    start = time.monotonic()
    # Bad settings are refused before anything is written.
    races, exam = design.races(), design.exam("odd")
    begun = {race.arm for race in races if is_run(race.folder)}
    for race in {race.arm: race for race in races}.values():
        read_rules(race.settings)
        if race.arm not in begun:
            refuse_idle(race.settings)
    exam.parts()
    design.folder.mkdir(parents=True, exist_ok=True)
    try:
        rates = sweep(design) if design.rates else {}
        races = design.races(rates)
        first = [race for race in races if race.arm == POPULATION] if design.match else races
        answers = run_all(first, exam, design.jobs)
        if len(first) < len(races):
            races = design.races(rates, {race.seed: _spent(race) for race in first})
            answers = run_all([race for race in races if race.arm != POPULATION], exam, design.jobs)
    except Interrupted:
        _note_time(design, time.monotonic() - start)
        raise
    took = _note_time(design, time.monotonic() - start)
    parts, of_arm = exam.parts(), dict[str, list[Tally]]()
    for race in races:
        of_arm.setdefault(race.arm, []).extend(race.own(answers))
    report = StudyReport(
        exam=exam,
        rates=rates,
        races=races,
        outcomes=tuple(outcome(race, answers, parts, exam.k) for race in races),
        base=exam_figures([answers[BARE]], parts, exam.k),
        less_base=gains(of_arm, answers[BARE], {**parts, **exam.by_band()}, exam.k),
        took=took,
    )
    for race, own in zip(races, report.outcomes, strict=True):
        if own.short and own.flops is not None:
            spent = f"{count_text(own.figures[FLOPS.title])} of {count_text(own.flops)} floating-point operations"
            say(f"{race.name} has spent {spent} in its {own.steps} steps: it is not matched")
    write_text(design.folder / OUTCOMES, json.dumps(report.as_json(), indent=1) + "\n")
    return report


def _spent(race: StudyRace) -> int:
    with Store.read(race.folder) as store:
        if not quarters.flops_known(store):
            what = f"{race.folder} has steps of an older version, whose floating-point operations nobody counted"
            raise InputError(what, "leave out --match, or name another folder")
        return quarters.flops(store)


def _note_time(design: Design, seconds: float) -> str:
    """Add a line about this command to the file; a sentence about all commands so far."""
    settings = design.settings
    device = "a cluster" if settings.cluster.address else device_name(place(settings.engine)[0])
    file = design.folder / JOBS
    with file.open("a") as lines:
        lines.write(json.dumps({"seconds": seconds, "machine": machine_name(), "device": device}) + "\n")
    jobs = [json.loads(line) for line in file.read_text().splitlines()]
    total, machines = sum(job["seconds"] for job in jobs), {f"{job['machine']}; {job['device']}" for job in jobs}
    parts = f" in {len(jobs)} parts" if len(jobs) > 1 else ""
    return (
        f"{total:,.0f} s ({span_text(total)}){parts} for sweep, races and exam together, on "
        f"{' and '.join(sorted(machines))}; races share an engine, so arms cannot be timed apart."
    )
