"""The exam of a study: one half of the tasks, for the students of all races and the bare base.

Answers are kept in files and not sampled again as long as the exam is the same. The tasks at even places (from 0, in
the order of the exam) choose learning rates, those at odd places are reported: neither is used for the other.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from redqueen.analysis.distance import first_alike
from redqueen.engine.queued import QueuedEngine
from redqueen.errors import InputError
from redqueen.evals.examination import examine
from redqueen.evals.figures import Tally, figures, scores
from redqueen.plugins import FAMILIES
from redqueen.resources import place
from redqueen.runs.atomic import write_text
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.files import FileDraft, read_exam, validated_exam
from redqueen.verifier import Verifier

MAIN = ("1", "2", "3", "4")
"""The bands of the main figures. Others may be too hard for anybody, or unlike what is trained on."""
MAIN_NAME = "1-4"
NO_SHORTCUT = f"{MAIN_NAME} no shortcut"
READ_BY_EXAM = ("engine", "tasks.families", "tasks.form", "tasks.unfenced", "tasks.attempt_tokens")
"""The settings and sections that answers depend on, beside the weights and the temperature: everybody is asked at the
study's, whatever temperature an arm was trained at."""
Half = Literal["even", "odd"]
BATCH = 32
"""Examinees at a time: enough to keep any device busy; no more is lost when the exam is killed."""


@dataclass(frozen=True, slots=True)
class Examinee:
    """A member of a race after a step, or the bare base."""

    race: str
    step: int
    member: str

    @property
    def name(self) -> str:
        """Its name in the shared engine; the bare base has none."""
        return f"{self.race}/{self.member}" if self.race else ""

    @property
    def file(self) -> str:
        return f"{self.race}-{self.step}-{self.member}.json" if self.race else "base.json"


BARE = Examinee("", 0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfExam:
    """One half of an exam, and how it is sampled."""

    file: Path
    half: Half
    folder: Path
    settings: Config
    """The study's. Those of `READ_BY_EXAM`, which are the same for all arms, and rl.temperature count."""
    attempts: int
    k: int
    """Of pass@k."""

    @property
    def families(self) -> Families:
        tasks = self.settings.tasks
        return Families.of(tasks.families, tasks.form, unfenced=tasks.unfenced)

    @property
    def places(self) -> list[int]:
        """Of the tasks in the whole exam."""
        return places_of(self.half, [task.band for task in self._drafts()])

    def parts(self) -> dict[str, list[int]]:
        """The tasks of this half, numbered from 0, by band, and those of the main bands by kind and, once the answers
        say it, by whether they have a shortcut."""
        exam = self._drafts()
        tasks = [exam[number] for number in self.places]
        main = [at for at, task in enumerate(tasks) if task.band in MAIN]
        if not main:
            raise InputError(f"{self.file} has no task in the bands {', '.join(MAIN)}", "use an exam with such bands")
        parts = {MAIN_NAME: main}
        for at, task in enumerate(tasks):
            if task.band not in MAIN:
                parts.setdefault(task.band, []).append(at)
        for at in main:
            parts.setdefault(f"{MAIN_NAME} {tasks[at].draft.kind}", []).append(at)
        shortcuts = self._shortcuts()
        if shortcuts is not None:
            apart = {
                NO_SHORTCUT: [at for at in main if shortcuts[at] is None],
                f"{MAIN_NAME} shortcut": [at for at in main if shortcuts[at] is not None],
            }
            parts |= {name: places for name, places in apart.items() if places}
        return parts

    def by_band(self) -> dict[str, list[int]]:
        """The tasks of this half, numbered from 0, by band and kind."""
        exam = self._drafts()
        parts: dict[str, list[int]] = {}
        for at, number in enumerate(self.places):
            parts.setdefault(f"{exam[number].band} {exam[number].draft.kind}", []).append(at)
        return dict(sorted(parts.items()))

    def answers(self) -> dict[Examinee, Tally]:
        answers = {}
        for record in self._records():
            counts = record["answered"]["answers"]
            attempts = counts.pop("attempts")
            tally = Tally(attempts=attempts, **{name: tuple(values) for name, values in counts.items()})
            answers[Examinee(**record["answered"]["who"])] = tally
        return answers

    def examine(self, engine: QueuedEngine, verifier: Verifier, examinees: Sequence[Examinee]) -> None:
        """Examine these, some at a time, and keep their answers."""
        exam = asyncio.run(validated_exam(self._drafts(), self.families, verifier))
        tasks = [exam[number] for number in self.places]
        self.folder.mkdir(exist_ok=True)
        for start in range(0, len(examinees), BATCH):
            batch = examinees[start : start + BATCH]
            weights = {examinee.name: engine.read(examinee.name) for examinee in batch if examinee != BARE}
            members = {**{examinee.name: None for examinee in batch}, **first_alike(weights)}
            answers = asyncio.run(
                examine(
                    engine, verifier, members, tasks, kinds=self.families.kinds, attempts=self.attempts,
                    temperature=self.settings.rl.temperature, max_tokens=self.settings.tasks.attempt_tokens,
                )
            )  # fmt: skip
            for examinee in batch:
                answered = {"who": asdict(examinee), "answers": asdict(answers[examinee.name])}
                shortcuts = [task.shortcut for task in tasks]
                record = {"how": self._conditions(), "answered": answered, "shortcuts": shortcuts}
                write_text(self.folder / examinee.file, json.dumps(record) + "\n")

    def _records(self) -> Iterator[dict[str, Any]]:
        """The answers that were given under these conditions."""
        conditions = self._conditions()
        for file in sorted(self.folder.glob("*.json")):
            record = json.loads(file.read_text())
            if record["how"] == conditions:
                yield record

    def _shortcuts(self) -> list[str | None] | None:
        """Of each task of this half, as whoever examined found them; answers of older versions do not say."""
        return next((record["shortcuts"] for record in self._records() if "shortcuts" in record), None)

    def _drafts(self) -> list[FileDraft]:
        return read_exam(self.file, self.families)

    def _conditions(self) -> dict[str, Any]:
        """All that answers depend on beside the weights."""
        settings = self.settings
        files = [file for name in settings.tasks.families if (file := FAMILIES.file_in(name))]
        return {
            **{str(file): _digest(file) for file in files},
            "exam": _digest(self.file),
            "places": self.half,
            "attempts": self.attempts,
            "base": settings.engine.base,
            "dtype": str(place(settings.engine)[1]),
            **({"quantise": settings.engine.quantise} if settings.engine.quantise != "none" else {}),
            "form": settings.tasks.form,
            **({"unfenced": True} if settings.tasks.unfenced else {}),
            "temperature": settings.rl.temperature,
            "max_tokens": settings.tasks.attempt_tokens,
        }


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def places_of(half: Half, bands: Sequence[str]) -> list[int]:
    """The places of one half of an exam whose tasks are of these bands. The even half, which chooses learning rates,
    has the main bands alone."""
    if half == "odd":
        return list(range(1, len(bands), 2))
    return [at for at in range(0, len(bands), 2) if bands[at] in MAIN]


def exam_figures(answers: Sequence[Tally], parts: Mapping[str, Sequence[int]], k: int) -> dict[str, float]:
    """The means over a race's students, and for the main bands also the best and the weakest student."""
    by_name: dict[str, float] = {}
    scores_N_F = scores(*answers, k=k)
    for part, places in parts.items():
        mean = figures(scores_N_F[list(places)])
        by_name |= {
            f"exam {part}, sampled": mean.sampled,
            f"exam {part}, greedy": mean.greedy,
            f"exam {part}, pass@{k}": mean.pass_at_k,
            f"exam {part}, well formed": mean.well_formed,
            f"exam {part}, tokens": mean.tokens,
        }
    main = list(parts[MAIN_NAME])
    sampled = [figures(scores(student)[main]).sampled for student in answers]
    return by_name | {f"exam {MAIN_NAME}, weakest": min(sampled), f"exam {MAIN_NAME}, best": max(sampled)}
