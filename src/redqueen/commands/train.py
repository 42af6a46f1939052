"""The command that runs a race."""

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
from redqueen.errors import InputError
from redqueen.settings import Config
from redqueen.training import arms

if TYPE_CHECKING:
    from redqueen.training.train import Fork, Reached

WIDEST = 100
"""Columns of a summary, and for a pipe or a file all of them."""


@dataclass(frozen=True, kw_only=True)
class Train(OfRace):
    """Run a race: teachers propose, students solve, both learn, the weakest are replaced.

    The same command again resumes it. Ctrl-C finishes the phase and saves.
    """

    run_folder: Annotated[str | None, tyro.conf.arg(name="run", metavar="DIR")] = None
    """Where the run is kept; runs/ and the names of preset, arm and seed when left out."""
    arm: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Instead of the population a baseline of it: single, single-wide (the population's tokens in every step),
    single-long (in all steps together), 1t1s, frozen-teachers, frozen-students, no-evolution, random-matching,
    shuffled-rewards."""
    fork: Annotated[str | None, tyro.conf.arg(metavar="RUN:STEP")] = None
    """Begin where another run was after this step, with these settings; it must have a checkpoint of it."""
    plan: bool = False
    """Say what a step costs (tokens, memory, seconds) after trying one, and stop."""
    quiet: bool = False
    """Print nothing while it runs."""
    json: bool = False
    """With --plan: print one line of JSON."""

    def run(self) -> None:
        settings = arms.apply(self.settings, self.arm)
        if self.json and not self.plan:
            raise InputError("--json is for --plan", "a run's figures are in its records: `redqueen tasks`, `compare`")
        if self.plan:
            from redqueen.training.plan import plan

            show(plan(settings), as_json=self.json)
            return
        from redqueen.training.train import train
        from redqueen.ui.live import open_view

        folder = self._folder(settings.run.seed)
        screen = console()
        width = min(screen.width, WIDEST) if screen.is_terminal else WIDEST
        view = open_view(self.quiet, screen)
        try:
            reached = train(settings, folder, view, self._fork())
            view.finished(_end(folder, reached, settings, width))
        finally:
            view.close()

    def _folder(self, seed: int) -> Path:
        if self.run_folder is not None:
            return Path(self.run_folder)
        name = Path(self.source or "default").stem
        parts = [name, *([self.arm] if self.arm else []), *([f"seed{seed}"] if seed else [])]
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
    """What became of the run, and what to do now."""
    steps = settings.run.steps
    if reached.summary is None:
        return [f"stopped after step {reached.steps} of {steps}; the same command goes on from there"]
    from redqueen.runs import REPORT

    lines = [*reached.summary.lines(width), f"all of this and the settings: {folder / REPORT}", "", "next:"]
    for words, why in advice(folder, reached, settings):
        lines += [f"  {program()} {shlex.join(words)}", f"      {why}"]
    return lines


def advice(folder: Path, reached: "Reached", settings: Config) -> list[tuple[list[str], str]]:
    """Commands that can be given as they are, each with what it is for."""
    run, hardest = str(folder), None if reached.summary is None else reached.summary.hardest
    if hardest is None:
        tasks = ["tasks", run], "the newest tasks; --rejected shows what was refused, and why"
    else:
        solved = f"the hardest late task that somebody solved, {hardest.solved} of {hardest.attempts} times"
        tasks = ["tasks", run, "--show", f"{hardest.step}:{hardest.place}"], f"{solved}; without --show the newest ones"
    member = ["exam", run], "how good the students are on fixed tasks, beside the bare base"
    page = ["watch", run], "ratings, lineage, matches and every task in the browser; `report` makes one file of it"
    return [tasks, member, _comparison(folder, settings), page]


def _comparison(folder: Path, settings: Config) -> tuple[list[str], str]:
    """With the baseline at equal tokens where the race has one, otherwise with a second seed."""
    from redqueen.runs import CONFIG, REPORT

    baseline, seed = "single-wide", settings.run.seed + 1
    how, why = ["--arm", baseline], "one adapter in both roles, with the same tokens"
    name = f"{_whole(folder).name}-{baseline}"
    if settings.population.single or settings.rl.frozen != "nobody" or settings.rl.update == "none":
        how, why = ["--run.seed", str(seed)], "the same with another seed: one race says little"
        name = f"{_whole(folder).name}-seed{seed}"
    other = folder.with_name(name) if folder.name == _whole(folder).name else _whole(folder).with_name(name)
    compare = ["compare", str(folder), str(other)]
    if (other / REPORT).is_file():
        return compare, why
    train = ["train", str(folder / CONFIG), *how, "--run", str(other)]
    return train, f"{why}; then `{program()} {shlex.join(compare)}`"


def _whole(folder: Path) -> Path:
    """With a name, which `.` and `..` have not."""
    return Path(os.path.abspath(folder))


def program() -> str:
    """What this program is called by in the user's shell: its name alone is found only where its place is in PATH."""
    ours = Path(sys.executable).with_name("redqueen")
    found = shutil.which("redqueen")
    if found is not None and ours.exists() and os.path.samefile(found, ours):
        return "redqueen"
    if ours.exists():
        return shlex.quote(os.path.relpath(ours) if ours.is_relative_to(Path.cwd()) else str(ours))
    return f"{shlex.quote(sys.executable)} -m redqueen"
