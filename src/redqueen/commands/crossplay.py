"""`redqueen crossplay`: the students of two runs at the tasks of both."""

from dataclasses import dataclass
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
    run_a: Annotated[str, tyro.conf.arg(metavar="RUN|RUN:STEP|RUN/MEMBER", help_behavior_hint="")]
    """A run with its living students, at its newest checkpoint or at that of a step; or one of its members."""
    run_b: Annotated[str, tyro.conf.arg(metavar="RUN|RUN:STEP|RUN/MEMBER", help_behavior_hint="")]
    """The same of another run, or of another step, on the same base."""
    tasks: int = 64
    """Of each run: its newest ones whose difficulty counts, of each kind in turn."""
    attempts: int = 8
    """Sampled attempts of every student at each task, beside a greedy one."""

    def report(self) -> Report:
        tasks, attempts = positive("--tasks", self.tasks), positive("--attempts", self.attempts)
        from redqueen.evals.crossplay import cross_play
        from redqueen.evals.subjects import find_subjects
        from redqueen.evolution.consensus import weights_of
        from redqueen.runs.naming import named_in_run

        runs = self.run_a, self.run_b
        for run in runs:
            named_in_run(run)  # refuses what is none
        subjects = find_subjects(runs, "students", read=weights_of)
        return cross_play(
            subjects,
            tasks=tasks,
            attempts=attempts,
            settings=agreed_engine(self.settings, subjects.runs),
        )
