"""The design of a study: its races with their settings and run folders, and its exam."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from redqueen.cluster.asked import is_asked_for
from redqueen.errors import InputError
from redqueen.evals.figures import Tally
from redqueen.population.members import SOUP
from redqueen.runs.store import Store
from redqueen.settings import Config, override
from redqueen.tasks.families import Families
from redqueen.tasks.files import usual_exam
from redqueen.training import arms
from redqueen.training.resuming import as_begun
from redqueen.training.study.exam import READ_BY_EXAM, Examinee, Half, HalfExam

SWEEP_SEED = 1000
"""The first seed of the sweep; those of a study are below it."""


MOST_STEPS = 8
"""An arm that is to spend what the population spends may take this many times its steps."""
SAME = (*READ_BY_EXAM, "run", "verifier")
"""The settings and sections that no arm has of its own. All races run on one engine and one verifier."""
LONGEST_ARM = 180
"""A file of the exam is called after the race, the step and the member, in 255 letters at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRace:
    arm: str
    seed: int
    settings: Config
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def end(self) -> int:
        """Its last step; of a race that ends by its operations, once it has ended."""
        if self.settings.run.flops is None:
            return self.settings.run.steps
        with Store.read(self.folder) as store:
            return store.last_step()

    def students(self, answers: Mapping[Examinee, Tally]) -> list[str]:
        """Who of this race sat the exam at its end."""
        return [member for member in self._at_end(answers) if member != SOUP]

    def own(self, answers: Mapping[Examinee, Tally]) -> list[Tally]:
        """The answers of this race's students at its end."""
        return [tally for member, tally in self._at_end(answers).items() if member != SOUP]

    def soup(self, answers: Mapping[Examinee, Tally]) -> Tally | None:
        """Those of the mean of its students, where there are several."""
        return self._at_end(answers).get(SOUP)

    def _at_end(self, answers: Mapping[Examinee, Tally]) -> dict[str, Tally]:
        end = self.name, self.end
        return {examinee.member: tally for examinee, tally in answers.items() if (examinee.race, examinee.step) == end}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Arms x seeds, and how they are compared."""

    folder: Path
    settings: Config
    arms: tuple[str, ...] = arms.STUDIED
    seeds: int = 5
    first_seed: int = 0
    steps: int | None = None
    """Of every race; None for those of the settings."""
    rates: tuple[float, ...] = ()
    """Learning rates of the sweep; without any, all arms have that of the settings."""
    sweep_seeds: int = 2
    sweep_steps: int | None = None
    """None for those of the study."""
    attempts: int = 8
    """Sampled attempts at each task of the exam, beside a greedy one."""
    k: int | None = None
    """Of pass@k; the number of attempts when None."""
    exam_file: Path | None = None
    """None for the base's own exam."""
    match: Literal["flops"] | None = None
    """What every arm but the population spends as much of as the population of its seed; None for equal steps."""
    jobs: int = 1
    """Processes that share the races, each with its own engine: one keeps a core busy, not a GPU."""

    def __post_init__(self) -> None:
        if len(set(self.arms)) < len(self.arms) or len(set(self.rates)) < len(self.rates):
            raise InputError("an arm or a learning rate is named twice", "name each once")
        if not self.arms or min(self.seeds, self.sweep_seeds, self.attempts, self.jobs) < 1:
            raise InputError("a study needs arms, seeds, attempts and jobs", "use 1 or more")
        if self.first_seed < 0 or self.first_seed + self.seeds > SWEEP_SEED:
            raise InputError(f"seeds from {SWEEP_SEED} on are the sweep's", f"use seeds from 0 to {SWEEP_SEED - 1}")
        if self.jobs > 1 and is_asked_for(self.settings.cluster):
            raise InputError("--jobs are processes of this machine, and a cluster has workers", "leave out --jobs")
        if self.match and arms.POPULATION not in self.arms:
            raise InputError(f"--match is with the arm {arms.POPULATION}, which --arms leaves out", "name it too")
        if self.match and self.settings.run.flops is not None:
            raise InputError("--match gives run.flops to all arms but the population", "leave out run.flops")
        for arm in self.arms:
            arms.refuse_own(arm, SAME, "give {} for the whole study")
            if self.rates:
                arms.refuse_own(arm, ["rl.lr"], "leave it out, or leave out --sweep, which chooses every arm's")
            if arms.apply(self.settings, arm).track.to:
                raise InputError("a study cannot report to trackers", "leave out track.to")
            if len(arms.folder_name(arm)) > LONGEST_ARM:
                what = f"an arm's name is a folder's, and this one has more than {LONGEST_ARM} letters: {arm}"
                raise InputError(what, "give it fewer settings of its own")

    def races(
        self, rates: Mapping[str, float] | None = None, budgets: Mapping[int, int] | None = None
    ) -> tuple[StudyRace, ...]:
        """The races of the study; `rates` has the learning rates that the sweep chose, by arm, `budgets` by seed the
        floating-point operations that all arms but the population have."""
        rates, budgets = rates or {}, budgets or {}
        most = MOST_STEPS * (self.steps or self.settings.run.steps)
        return tuple(
            self._race(f"{arms.folder_name(arm)}-{seed}", arm, seed, rates.get(arm), self.steps)
            if arm == arms.POPULATION or seed not in budgets
            else self._race(f"{arms.folder_name(arm)}-{seed}", arm, seed, rates.get(arm), most, budgets[seed])
            for arm in self.arms
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        )

    def sweep_races(self) -> tuple[StudyRace, ...]:
        """The races of the sweep: every arm with every rate."""
        return tuple(
            self._race(f"sweep/{arms.folder_name(arm)}-lr{lr:g}-{seed}", arm, seed, lr, self.sweep_steps or self.steps)
            for arm in self.arms
            for lr in self.rates
            for seed in range(SWEEP_SEED, SWEEP_SEED + self.sweep_seeds)
        )

    def exam(self, half: Half) -> HalfExam:
        families = Families.of(self.settings.tasks.families)
        return HalfExam(
            file=self.exam_file or usual_exam(self.settings.engine.base, families),
            half=half,
            folder=(self.folder if half == "odd" else self.folder / "sweep") / "exam",
            settings=self.settings,
            attempts=self.attempts,
            k=self.k or self.attempts,
        )

    def _race(
        self, folder: str, arm: str, seed: int, lr: float | None, steps: int | None, flops: int | None = None
    ) -> StudyRace:
        changes = {"run.seed": seed, "rl.lr": lr, "run.steps": steps, "run.flops": flops}
        given = {name: repr(value) for name, value in changes.items() if value is not None}
        settings = arms.apply(override(self.settings, given), arm)
        place = self.folder / folder
        return StudyRace(arm=arm, seed=seed, settings=as_begun(settings, place), folder=place)
