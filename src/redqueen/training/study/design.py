"""The design of a study: its races with their settings, the folders of their runs, and its exam."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redqueen.errors import InputError
from redqueen.evals.exam_files import usual_exam
from redqueen.settings import Config, override
from redqueen.training import arms
from redqueen.training.study.exam import Half, HalfExam

SWEEP_SEED = 1000
"""The first seed of the sweep: a study has none from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRace:
    """One race of a study."""

    arm: str
    seed: int
    settings: Config
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Arms x seeds, and how they are compared."""

    folder: Path
    settings: Config
    """What all races share."""
    arms: tuple[str, ...] = arms.STUDIED
    seeds: int = 5
    first_seed: int = 0
    steps: int | None = None
    """Of every race; the settings' own when left out."""
    rates: tuple[float, ...] = ()
    """Learning rates of the sweep; without them the settings' own is used for all arms."""
    sweep_seeds: int = 2
    sweep_steps: int | None = None
    """As the study's when left out."""
    attempts: int = 8
    """At each task of the exam, beside a greedy one."""
    exam_file: Path | None = None
    """The base's own exam when left out."""
    jobs: int = 1
    """Processes among which the races are shared out, each with an engine: one keeps a core busy, not a GPU."""

    def __post_init__(self) -> None:
        if len(set(self.arms)) < len(self.arms) or len(set(self.rates)) < len(self.rates):
            raise InputError("an arm or a learning rate is named twice", "name each once")
        if not self.arms or min(self.seeds, self.sweep_seeds, self.attempts, self.jobs) < 1:
            raise InputError("a study needs arms, seeds, attempts and jobs", "use 1 or more")
        if self.first_seed < 0 or self.first_seed + self.seeds > SWEEP_SEED:
            raise InputError(f"seeds from {SWEEP_SEED} on are the sweep's", f"use seeds from 0 to {SWEEP_SEED - 1}")
        if self.settings.track.to:
            raise InputError("races on one engine report to no tracker", "leave out track.to")

    def races(self, rates: Mapping[str, float] | None = None) -> tuple[StudyRace, ...]:
        """Of the study itself; `rates` has the learning rates of the arms that have one of their own."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        return tuple(
            StudyRace(
                arm=arm,
                seed=seed,
                settings=self._settings(arm, seed, (rates or {}).get(arm), self.steps),
                folder=self.folder / f"{arm}-{seed}",
            )
            for arm in self.arms
            for seed in seeds
        )

    def sweep_races(self) -> tuple[StudyRace, ...]:
        """Of the sweep: every arm with every rate."""
        return tuple(
            StudyRace(
                arm=arm,
                seed=seed,
                settings=self._settings(arm, seed, lr, self.sweep_steps or self.steps),
                folder=self.folder / "sweep" / f"{arm}-lr{lr:g}-{seed}",
            )
            for arm in self.arms
            for lr in self.rates
            for seed in range(SWEEP_SEED, SWEEP_SEED + self.sweep_seeds)
        )

    def exam(self, half: Half) -> HalfExam:
        return HalfExam(
            file=self.exam_file or usual_exam(self.settings.engine.base),
            half=half,
            folder=(self.folder if half == "odd" else self.folder / "sweep") / "exam",
            settings=self.settings,
            attempts=self.attempts,
        )

    def _settings(self, arm: str, seed: int, lr: float | None, steps: int | None) -> Config:
        changes = {"run.seed": seed, "rl.lr": lr, "run.steps": steps}
        given = {name: repr(value) for name, value in changes.items() if value is not None}
        return arms.apply(override(self.settings, given), arm)
