"""`redqueen exam`: how good members are on a fixed set of tasks."""

import json as plain_json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from redqueen.commands.agreement import agreed, agreed_engine, named_base
from redqueen.commands.command import COMPUTED, Configured, positive
from redqueen.console import printable, show
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.evals.exam_report import ExamReport


@dataclass(frozen=True, kw_only=True)
class Exam(Configured):
    """How good members are on a fixed set of tasks, all in one batch, beside their bare base.

    Prompts, temperature and the longest attempt are those of the runs; --tasks.form, --rl.temperature and
    --tasks.attempt-tokens change them.
    """

    uses = ("verifier", *COMPUTED, "tasks.form", "tasks.attempt_tokens", "rl.temperature")
    what: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN|RUN:STEP|FOLDER|BASE...", help_behavior_hint="")]
    """Runs (their newest checkpoints, or those of a step), PEFT folders, or a base; all of one base."""
    tasks: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl|NAME")] = None
    """The exam: a file of tasks, `functions`, or the name of a base that comes with the package for its own; that of
    the base when left out, or else `functions`."""
    bands: Annotated[str | None, tyro.conf.arg(metavar="BAND,BAND")] = None
    """Of these bands only; of all when left out."""
    attempts: int = 8
    """At each task, beside a greedy one."""
    k: int | None = None
    """Of pass@k, which is the surer the more attempts there are; the number of attempts when left out."""
    role: Literal["students", "teachers", "all"] = "students"
    """Whom of a run."""
    json: bool = False
    """Print one line of JSON."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Also write all figures to this file, which must not be there yet."""

    def run(self) -> None:
        attempts = positive("--attempts", self.attempts)
        k = attempts if self.k is None else positive("--k", self.k)
        if k > attempts:
            raise InputError(f"pass@{k} cannot be told from {attempts} attempts", f"use --attempts {k} or more")
        if self.to is not None:
            _refuse(self.to)
        report = self.evaluate(attempts, k)
        show(report, as_json=self.json)
        if self.to is not None:
            from redqueen.runs.atomic import write_text

            try:
                write_text(self.to, plain_json.dumps(report.as_json(), indent=1) + "\n")
            except OSError as error:
                raise InputError(f"{self.to} cannot be written: {error.strerror}", "name another file") from None
            if not self.json:
                print(printable(f"all figures are in {self.to}"))

    def evaluate(self, attempts: int, k: int) -> "ExamReport":
        from redqueen.engine.known import EMBEDDED
        from redqueen.evals.exam_files import exam_file, usual_exam
        from redqueen.evals.examination import evaluate_exam
        from redqueen.evals.figures import in_order
        from redqueen.evals.subjects import find_subjects
        from redqueen.tasks.library import read_exam
        from redqueen.tasks.protocol import Form

        settings = self.settings
        subjects = find_subjects(self.what, self.role, named_base(settings))
        file = usual_exam(subjects.base) if self.tasks is None else exam_file(self.tasks)
        drafts = read_exam(file)
        there = in_order(each.band for each in drafts)
        wanted = there if self.bands is None else in_order(band.strip() for band in self.bands.split(","))
        for band in wanted:
            if band not in there:
                raise InputError(f"{file} has no band {band!r}", f"it has {', '.join(there)}")
        form = "short" if subjects.base in EMBEDDED else "long"
        return evaluate_exam(
            subjects,
            file,
            [each for each in drafts if each.band in wanted],
            bands=wanted,
            form=Form(agreed("tasks", "form", settings, subjects.runs, form)),
            attempts=attempts,
            k=k,
            temperature=agreed("rl", "temperature", settings, subjects.runs, settings.rl.temperature),
            max_tokens=agreed("tasks", "attempt_tokens", settings, subjects.runs, settings.tasks.attempt_tokens),
            engine_settings=agreed_engine(settings, subjects.runs),
            verifier_settings=settings.verifier,
        )


def _refuse(path: Path) -> None:
    """Now rather than when all is done."""
    if path.suffix != ".json":
        raise InputError(f"{path} is of no known format", "use a name that ends in .json")
    if path.exists():
        raise InputError(f"{path} is there already", "name another file, or remove it")
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.absolute().parent}", "make it, or name another file")
