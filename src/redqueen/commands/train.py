"""`redqueen train`: run a race."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import OfRace
from redqueen.console import console, show
from redqueen.errors import InputError, Interrupted
from redqueen.settings import Config
from redqueen.training import arms

if TYPE_CHECKING:
    from redqueen.training.train import Fork, Reached

ARM_HELP = (
    "A baseline instead of the population: single, single-wide (as many tokens as the population in every step), "
    "single-long (as many in all steps together), 1t1s, frozen-teachers, frozen-students, no-evolution, "
    "random-matching, shuffled-rewards."
)
WIDEST = 100
"""Columns of a summary, and for a pipe or a file all of them."""


@dataclass(frozen=True, kw_only=True)
class TrainCommand(OfRace):
    """Run a race: teachers propose, students solve, both learn, the weakest are replaced.

    The same command resumes it. Ctrl-C finishes the phase and saves.
    """

    run_folder: Annotated[str | None, tyro.conf.arg(name="run", metavar="DIR")] = None
    """The folder of the run; by default runs/PRESET-ARM-SEED."""
    arm: Annotated[str | None, tyro.conf.arg(metavar="ARM", help=ARM_HELP)] = None
    fork: Annotated[str | None, tyro.conf.arg(metavar="RUN:STEP")] = None
    """Begin from another run's checkpoint of this step, with these settings."""
    plan: bool = False
    """Try one step, print what it costs (tokens, memory, seconds) and stop. Without the weights or the GPU, print what
    its base's configuration alone says."""
    quiet: bool = False
    """Print nothing while the race runs."""
    json: bool = False
    """With --plan: print one line of JSON."""

    def run(self) -> None:
        settings = arms.apply(self.settings, self.arm)
        if self.json and not self.plan:
            raise InputError("--json is for --plan", "a run's figures are in its records: `redqueen tasks`, `compare`")
        if self.plan:
            self._plan(settings)
            return
        from redqueen.training.resuming import refuse_others

        folder = self.folder(settings.run.seed)
        if self.fork is None:
            refuse_others(settings, folder)
        from redqueen.training.train import train
        from redqueen.ui.live import open_view

        screen = console()
        width = min(screen.width, WIDEST) if screen.is_terminal else WIDEST
        view = open_view(self.quiet, screen)
        try:
            reached = train(settings, folder, view, self._fork())
            view.finished(_end(folder, reached, settings, width))
            if reached.summary is None and reached.signal is not None:
                raise Interrupted(reached.signal)
        finally:
            view.close()

    def _plan(self, settings: Config) -> None:
        from redqueen.training.outline import lacking, outline

        if (why := lacking(settings)) is not None:
            show(outline(settings, why), as_json=self.json)
            return
        from redqueen.training.plan import plan

        show(plan(settings), as_json=self.json)

    def folder(self, seed: int) -> Path:
        """Of the run with this seed."""
        if self.run_folder is not None:
            return Path(self.run_folder)
        name = Path(self.source or "default").stem
        parts = [name, *([arms.folder_name(self.arm)] if self.arm else []), *([f"seed{seed}"] if seed else [])]
        return Path("runs") / "-".join(parts)

    def _fork(self) -> "Fork | None":
        if self.fork is None:
            return None
        from redqueen.training.train import Fork

        run, _, step = self.fork.rpartition(":")
        if not run or not step.isascii() or not step.isdigit():
            raise InputError(f"--fork cannot be {self.fork}", "write RUN:STEP, such as runs/demo:20")
        return Fork(Path(run), int(step))


def _end(folder: Path, reached: "Reached", settings: Config, width: int) -> list[str]:
    if reached.summary is None:
        return [f"stopped after step {reached.steps} of {reached.end}; the same command goes on from there"]
    from redqueen.runs import REPORT

    lines = [*reached.summary.lines(width), f"all of this and the settings: {folder / REPORT}", "", "next:"]
    for words, why in advice(folder, reached, settings):
        lines += [f"  {program()} {shlex.join(words)}", f"      {why}"]
    return lines


def advice(folder: Path, reached: "Reached", settings: Config) -> list[tuple[list[str], str]]:
    run, hardest = str(folder), None if reached.summary is None else reached.summary.hardest
    if hardest is None:
        tasks = ["tasks", run], "the newest tasks; --rejected shows what was refused, and why"
    else:
        solved = f"the hardest late task that somebody solved, {hardest.solved} of {hardest.attempts} times"
        tasks = ["tasks", run, "--show", f"{hardest.step}:{hardest.place}"], f"{solved}; without --show the newest ones"
    exam = ["exam", run], "how good the students are on fixed tasks, beside the bare base"
    page = ["watch", run], "ratings, lineage, matches and every task in the browser; `report` makes one file of it"
    # A source has no exam, and without teachers there is nothing else.
    return [tasks, *([exam] if settings.population.teachers else []), _comparison(folder, settings), page]


def _comparison(folder: Path, settings: Config) -> tuple[list[str], str]:
    """With the baseline at equal tokens where the race has one, otherwise with a second seed."""
    from redqueen.runs import CONFIG, REPORT

    baseline, seed = "single-wide", settings.run.seed + 1
    option, why, suffix = ["--arm", baseline], "one adapter in both roles, with the same tokens", baseline
    population = settings.population
    if population.single or not population.teachers or settings.rl.frozen != "nobody" or settings.rl.update == "none":
        option, why = ["--run.seed", str(seed)], "the same with another seed: one race says little"
        suffix = f"seed{seed}"
    absolute = Path(os.path.abspath(folder))
    # `.` and `..` have no name to add to.
    named = folder if folder.name == absolute.name else absolute
    second = named.with_name(f"{named.name}-{suffix}")
    compare = ["compare", str(folder), str(second)]
    if (second / REPORT).is_file():
        return compare, why
    train = ["train", str(folder / CONFIG), *option, "--run", str(second)]
    return train, f"{why}; then `{program()} {shlex.join(compare)}`"


def program() -> str:
    """How the user's shell calls this program: `redqueen` only if PATH leads to this installation."""
    ours = Path(sys.executable).with_name("redqueen")
    in_path = shutil.which("redqueen")
    if in_path is not None and ours.exists() and os.path.samefile(in_path, ours):
        return "redqueen"
    if ours.exists():
        return shlex.quote(os.path.relpath(ours) if ours.is_relative_to(Path.cwd()) else str(ours))
    return f"{shlex.quote(sys.executable)} -m redqueen"
