"""`redqueen crossplay`: the students of two runs at the tasks of both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from redqueen.commands.agreement import agreed_engine
from redqueen.commands.command import CLUSTER_OPTIONS, ENGINE_OPTIONS, Configured, Reporting, positive
from redqueen.console import Report


@dataclass(frozen=True, kw_only=True)
class CrossplayCommand(Reporting, Configured):
    """Let the students of two runs attempt the newest tasks of both, beside their bare base.

    Who has the better students, and whose tasks are harder? Students are asked as in their own race: by its prompts, at
    its temperature, with its longest attempt.
    """

    uses = ("verifier", *ENGINE_OPTIONS, *CLUSTER_OPTIONS)
    run_a: Annotated[Path, tyro.conf.arg(metavar="RUN_A", help_behavior_hint="")]
    """A run, at its newest checkpoint."""
    run_b: Annotated[Path, tyro.conf.arg(metavar="RUN_B", help_behavior_hint="")]
    """Another one, on the same base."""
    tasks: int = 64
    """Of each run: its newest ones whose difficulty counts, of each kind in turn."""
    attempts: int = 8
    """Sampled attempts of every student at each task, beside a greedy one."""

    def report(self) -> Report:
        tasks, attempts = positive("--tasks", self.tasks), positive("--attempts", self.attempts)
        from redqueen.evals.crossplay import cross_play
        from redqueen.evals.subjects import find_subjects
        from redqueen.runs.store import Store

        runs = self.run_a, self.run_b
        for run in runs:
            with Store.read(run):  # refuses what is no run
                pass
        subjects = find_subjects([str(run) for run in runs], "students")
        return cross_play(
            subjects,
            tasks=tasks,
            attempts=attempts,
            settings=agreed_engine(self.settings, subjects.runs),
        )
