"""The command that runs a race."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.command import Command, console, positive, printable, show
from redqueen.errors import InputError
from redqueen.training import arms

if TYPE_CHECKING:
    from redqueen.training.train import Fork, Reached


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Run a race: teachers propose, students solve, both learn, the weakest are replaced.

    The same command again resumes it. Ctrl-C finishes the phase and saves.
    """

    preset: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[PRESET|FILE.toml]", help_behavior_hint="")] = (
        dataclasses.field(metadata={"least": 0, "most": 1})
    )
    """The settings, as with --config; the defaults when left out."""
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

    @property
    def source(self) -> str | None:
        if self.preset and self.config is not None:
            raise InputError("the settings are named twice", "leave out --config")
        return self.preset[0] if self.preset else self.config

    def run(self) -> None:
        settings = arms.apply(self.settings, self.arm)
        if self.json and not self.plan:
            raise InputError("--json is for --plan", "a run's figures are in its records: `redqueen tasks`, `compare`")
        if self.plan:
            from redqueen.training.plan import plan

            show(plan(settings), as_json=self.json)
            return
        from redqueen.terminal import open_view
        from redqueen.training.train import train

        folder = self._folder(settings.run.seed)
        view = open_view(self.quiet, console())
        try:
            reached = train(settings, folder, view, self._fork())
            view.finished(_next(folder, reached, settings.run.steps))
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


@dataclass(frozen=True, kw_only=True)
class RetentionTest(Command):
    """The retention test: how many updates a member's children need to earn what it earns, by operator.

    Children of every operator in the run's settings, of two controls and fresh members practise on the newest
    checkpoint; the run is left as it is.
    """

    run_folder: Annotated[Path, tyro.conf.arg(name="run", metavar="RUN")]
    """The run."""
    member: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """Whose children, such as s0."""
    children: int = 3
    """Of each operator."""
    updates: int = 20
    """How long they practise."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.evolution.retention import WINDOW
        from redqueen.training.retention import examine

        if self.updates < WINDOW:
            raise InputError(f"--updates cannot be {self.updates}", f"use {WINDOW} or more")
        if self.member is None:
            raise InputError("retention needs --member", "name one of the run's living members, such as s0")
        children, updates = positive("--children", self.children), positive("--updates", self.updates)
        show(examine(self.run_folder, self.member, children, updates), as_json=self.json)


def _next(folder: Path, reached: "Reached", steps: int) -> list[str]:
    """What became of it, and what to do now."""
    name = printable(str(folder))
    if reached.steps < steps:
        return [f"stopped after step {reached.steps} of {steps}; the same command goes on from there"]
    return [
        f"{reached.steps} steps are done: {name}",
        f"  redqueen tasks {name} --solved-max 0.5",
        "      the hard tasks; --show STEP:PLACE shows one of them whole",
        f"  redqueen export {name} --member {reached.best} --to {reached.best}",
        "      the student with the best rating, as a PEFT folder",
        f"  redqueen compare {name} OTHER",
        "      beside another run, such as one with --arm single-wide",
    ]
