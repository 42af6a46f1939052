"""`redqueen study`: arms x seeds, their exam and their tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from redqueen.commands.command import OfRace, Reporting, needs, numbers, pass_at
from redqueen.console import Report, say
from redqueen.errors import Interrupted
from redqueen.training.arms import STUDIED


@dataclass(frozen=True, kw_only=True)
class StudyCommand(Reporting, OfRace):
    """Compare the population with its baselines: arms x seeds on one engine, their exam, tables and plots.

    The runs in FOLDER/ARM-SEED are ordinary ones (`redqueen compare`, `tasks`, `exam`). The same command resumes a
    study that was stopped or killed. Ctrl-C finishes the phase and saves.
    """

    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where runs, answers and outcomes.json are kept; by default runs/study-SETTINGS."""
    arms: Annotated[str, tyro.conf.arg(metavar="ARM,ARM")] = ",".join(STUDIED)
    """`population`, and baselines as in `redqueen train --arm`; each may have settings of its own, such as
    "population rl.share=students". With a semicolon in it, semicolons separate arms: settings may then have commas."""
    seeds: int = 5
    """Races of each arm."""
    first_seed: int | None = None
    """Use seeds from this one on, such as seeds that played no part in choosing settings; run.seed when left out."""
    steps: int | None = None
    """Steps of every race; run.steps when left out."""
    match: Literal["flops"] | None = None
    """Run the population first, and every other arm until it has spent as many floating-point operations as the
    population of its seed, within eight times the steps; by default equal steps."""
    sweep: Annotated[str | None, tyro.conf.arg(metavar="LR,LR")] = None
    """First choose each arm's learning rate from these, by other seeds and tasks; rl.lr when left out."""
    sweep_seeds: int = 2
    """Races of each arm and rate in the sweep."""
    sweep_steps: int | None = None
    """Steps of the sweep's races; by default those of the study."""
    attempts: int = 8
    """Sampled attempts at each task of the exam, beside a greedy one."""
    k: int | None = None
    """k for pass@k; more attempts give a more precise estimate. By default the number of attempts."""
    exam: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl|NAME")] = None
    """The exam, as in `redqueen exam --tasks`; it needs tasks in the bands 1 to 4."""
    jobs: int = 1
    """Processes that share the races, each with its own engine."""
    plots: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Also draw plots into this folder."""

    def report(self) -> Report:
        rates = () if self.sweep is None else numbers("--sweep", self.sweep)
        from redqueen.tasks.families import Families
        from redqueen.tasks.files import exam_file
        from redqueen.training.study import plots
        from redqueen.training.study.design import Design
        from redqueen.training.study.study import run_study

        if self.plots is not None:
            needs("study", "matplotlib")
        families = Families.of(self.settings.tasks.families)
        design = Design(
            folder=self.to or Path("runs") / f"study-{Path(self.source or 'default').stem}",
            settings=self.settings,
            arms=arm_list(self.arms),
            seeds=self.seeds,
            first_seed=self.settings.run.seed if self.first_seed is None else self.first_seed,
            steps=self.steps,
            match=self.match,
            rates=rates,
            sweep_seeds=self.sweep_seeds,
            sweep_steps=self.sweep_steps,
            attempts=self.attempts,
            k=pass_at(self.attempts, self.k),
            exam_file=None if self.exam is None else exam_file(self.exam, families),
            jobs=self.jobs,
        )
        try:
            report = run_study(design)
        except Interrupted:
            say("stopped; the same command goes on from there")
            raise
        if self.plots is not None:
            for path in plots.draw(report.races, report.outcomes, report.base, self.plots):
                say(str(path))
        return report


def arm_list(text: str) -> tuple[str, ...]:
    """Separated by semicolons where there are any, otherwise by commas."""
    names = text.split(";" if ";" in text else ",")
    return tuple(name.strip() for name in names if name.strip())
