"""`redqueen exam`: how good members are on a fixed set of tasks."""

import json as plain_json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from redqueen.commands.agreement import agreed, agreed_engine, named_base
from redqueen.commands.command import (
    CLUSTER_OPTIONS,
    ENGINE_OPTIONS,
    Configured,
    Reporting,
    Whats,
    check_output,
    optional_positive,
    pass_at,
    positive,
    write_output,
)
from redqueen.console import Report, printable, show
from redqueen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ExamCommand(Reporting, Configured):
    """Evaluate members on a fixed set of tasks, all in one batch, beside their bare base.

    Families, prompts, how answers are read, temperature and the longest attempt are those of the runs;
    --tasks.families, --tasks.form, --tasks.unfenced, --rl.temperature and --tasks.attempt-tokens change them.
    """

    uses = (
        "verifier", *ENGINE_OPTIONS, *CLUSTER_OPTIONS,
        "tasks.families", "tasks.form", "tasks.unfenced", "tasks.attempt_tokens", "rl.temperature",
    )  # fmt: skip
    what: Whats
    """Runs (their newest checkpoint, or that of a step), single members of these, PEFT folders or a base; all of one
    base. A member is an id, `student` or `teacher` for the best one as in `export`, or `soup` for the mean of all
    students: runs/a/s0.2, runs/a:20/soup."""
    tasks: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl|NAME")] = None
    """The exam: a file, or the name of one that a task family has, such as `functions`; that of the base or the first
    when left out."""
    bands: Annotated[str | None, tyro.conf.arg(metavar="BAND,BAND")] = None
    """Only these bands of difficulty; by default all."""
    attempts: int = 8
    """Sampled attempts at each task, beside a greedy one."""
    k: int | None = None
    """k for pass@k; more attempts give a more precise estimate. By default the number of attempts."""
    role: Literal["students", "teachers", "all"] = "students"
    """Which members of a run."""
    every: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Of each run all checkpoints that it has of every N-th step, and not its newest alone: how members got there."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Also write all figures to this file, which must not exist yet."""

    def run(self) -> None:
        if self.to is not None:
            _check_writable(self.to)
        report = self.report()
        show(report, as_json=self.json)
        if self.to is not None:
            write_output(self.to, plain_json.dumps(report.as_json(), indent=1) + "\n")
            if not self.json:
                print(printable(f"all figures are in {self.to}"))

    def report(self) -> Report:
        attempts, every = positive("--attempts", self.attempts), optional_positive("--every", self.every)
        k = pass_at(attempts, self.k)
        from redqueen.engine.known import EMBEDDED
        from redqueen.evals.examination import evaluate_exam
        from redqueen.evals.figures import in_order
        from redqueen.evals.subjects import find_subjects
        from redqueen.evolution.consensus import weights_of
        from redqueen.tasks.families import Families
        from redqueen.tasks.files import exam_file, read_exam, usual_exam

        settings = self.settings
        subjects = find_subjects(self.what, self.role, named_base(settings), weights_of, every)
        form = agreed("tasks", "form", settings, subjects.runs, "short" if subjects.base in EMBEDDED else "long")
        names = agreed("tasks", "families", settings, subjects.runs, settings.tasks.families)
        unfenced = agreed("tasks", "unfenced", settings, subjects.runs, settings.tasks.unfenced)
        families = Families.of(names, form, unfenced=unfenced)
        file = usual_exam(subjects.base, families) if self.tasks is None else exam_file(self.tasks, families)
        drafts = read_exam(file, families)
        known = in_order(draft.band for draft in drafts)
        bands = known if self.bands is None else in_order(band.strip() for band in self.bands.split(","))
        for band in bands:
            if band not in known:
                raise InputError(f"{file} has no band {band!r}", f"it has {', '.join(known)}")
        return evaluate_exam(
            subjects,
            file,
            [draft for draft in drafts if draft.band in bands],
            families,
            bands=bands,
            attempts=attempts,
            k=k,
            temperature=agreed("rl", "temperature", settings, subjects.runs, settings.rl.temperature),
            max_tokens=agreed("tasks", "attempt_tokens", settings, subjects.runs, settings.tasks.attempt_tokens),
            settings=agreed_engine(settings, subjects.runs),
        )


def _check_writable(path: Path) -> None:
    """Before the exam rather than after it."""
    if path.suffix != ".json":
        raise InputError(f"{path} is of no known format", "use a name that ends in .json")
    if path.exists():
        raise InputError(f"{path} exists already", "name another file, or remove it")
    check_output(path)
