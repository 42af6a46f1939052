"""The exam of a study: every second task, for all students of all races and the bare base, each kept in a file.

Who has a file is not asked again, as long as the exam is the same. The tasks at even places (from 0, in the order
of the exam) choose learning rates, those at odd places are what the study reports: neither is used for the other.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from redqueen.engine.local import LocalEngine
from redqueen.errors import InputError
from redqueen.evals.examination import examine
from redqueen.evals.figures import Tally, figures, scores
from redqueen.resources import place
from redqueen.runs.atomic import write_text
from redqueen.settings import Config
from redqueen.tasks.library import ExamTask, read_exam, validated_exam
from redqueen.tasks.protocol import Form
from redqueen.verifier import Verifier

MAIN = ("1", "2", "3", "4")
"""The bands that the main figures are over. Others may be out of anybody's reach, or not of what is trained on."""
MAIN_NAME = "1-4"
Half = Literal["even", "odd"]
AT_A_TIME = 32
"""Examinees of a batch: enough to keep any device busy, and all that is lost when the exam is killed."""


@dataclass(frozen=True, slots=True)
class Examinee:
    """A member of a race after a step, or the bare base."""

    race: str
    step: int
    member: str

    @property
    def name(self) -> str:
        """As the shared engine calls it; the bare base has none."""
        return f"{self.race}/{self.member}" if self.race else ""

    @property
    def file(self) -> str:
        return f"{self.race}-{self.step}-{self.member}.json" if self.race else "base.json"


BARE = Examinee("", 0, "")


@dataclass(frozen=True, slots=True)
class Answered:
    """What an examinee made of the tasks, in their order."""

    who: Examinee
    answers: Tally


@dataclass(frozen=True, slots=True)
class Sitting:
    """One half of an exam, and how it is asked."""

    exam: Path
    half: Half
    kept: Path
    """Where the answers are, a folder."""
    settings: Config
    """Of any of the races: the form of the prompts, the temperature and the longest attempt are the same for all."""
    attempts: int

    @property
    def places(self) -> list[int]:
        return chosen([each.band for each in read_exam(self.exam)], self.half)

    def parts(self) -> dict[str, list[int]]:
        """Which of the answers (not of the exam's tasks) are about what: by band, and the main bands by kind."""
        drafts = read_exam(self.exam)
        own = [drafts[at] for at in self.places]
        main = [at for at, each in enumerate(own) if each.band in MAIN]
        if not main:
            raise InputError(f"{self.exam} has no task in the bands {', '.join(MAIN)}", "use an exam with such bands")
        found = {MAIN_NAME: main}
        for at, each in enumerate(own):
            if each.band not in MAIN:
                found.setdefault(each.band, []).append(at)
        for at in main:
            found.setdefault(f"{MAIN_NAME} {own[at].draft.kind}", []).append(at)
        return found

    def by_band(self) -> dict[str, list[int]]:
        """The answers about each kind in each band."""
        drafts = read_exam(self.exam)
        found: dict[str, list[int]] = {}
        for at, each in enumerate(drafts[own] for own in self.places):
            found.setdefault(f"{each.band} {each.draft.kind}", []).append(at)
        return dict(sorted(found.items()))

    def known(self) -> dict[Examinee, Answered]:
        """Who has answered already, and what."""
        kept = [json.loads(file.read_text()) for file in sorted(self.kept.glob("*.json"))]
        how = self._how()
        found = [_restored(each["answered"]) for each in kept if each["how"] == how]
        return {each.who: each for each in found}

    def hold(self, engine: LocalEngine, verifier: Verifier, asked: Sequence[Examinee]) -> dict[Examinee, Answered]:
        """Ask these, some at a time, and keep what they say; all that are known then."""
        tasks = asyncio.run(self._tasks(verifier))
        self.kept.mkdir(exist_ok=True)
        for at in range(0, len(asked), AT_A_TIME):
            some = asked[at : at + AT_A_TIME]
            members = {each.name: None if each == BARE else each.name for each in some}
            found = asyncio.run(
                examine(
                    engine, verifier, members, tasks, form=Form(self.settings.tasks.form), attempts=self.attempts,
                    temperature=self.settings.rl.temperature, max_tokens=self.settings.tasks.attempt_tokens,
                )
            )  # fmt: skip
            for each in some:
                record = {"how": self._how(), "answered": asdict(Answered(each, found[each.name]))}
                write_text(self.kept / each.file, json.dumps(record) + "\n")
        return self.known()

    async def _tasks(self, verifier: Verifier) -> list[ExamTask]:
        tasks = await validated_exam(read_exam(self.exam), verifier)
        return [tasks[at] for at in self.places]

    def _how(self) -> dict[str, Any]:
        """Whatever another answer might come from, but the weights."""
        settings = self.settings
        return {
            "exam": hashlib.sha256(self.exam.read_bytes()).hexdigest()[:16],
            "places": self.half,
            "attempts": self.attempts,
            "base": settings.engine.base,
            "dtype": str(place(settings.engine)[1]),
            "form": settings.tasks.form,
            "temperature": settings.rl.temperature,
            "max_tokens": settings.tasks.attempt_tokens,
        }


def chosen(bands: Sequence[str], half: Half) -> list[int]:
    """The places of one half of an exam whose tasks are of these bands; of the even ones the main bands alone, since
    learning rates are chosen by nothing else."""
    if half == "odd":
        return list(range(1, len(bands), 2))
    return [at for at in range(0, len(bands), 2) if bands[at] in MAIN]


def exam_figures(answers: Sequence[Tally], parts: Mapping[str, Sequence[int]], attempts: int) -> dict[str, float]:
    """The mean over a race's students; of the main bands also its best and its weakest student."""
    found: dict[str, float] = {}
    scores_N_F = scores(*answers)
    for part, places in parts.items():
        own = figures(scores_N_F[list(places)])
        found |= {
            f"exam {part}, sampled": own.sampled,
            f"exam {part}, greedy": own.greedy,
            f"exam {part}, pass@{attempts}": own.pass_at_k,
            f"exam {part}, well formed": own.well_formed,
            f"exam {part}, tokens": own.tokens,
        }
    main = list(parts[MAIN_NAME])
    alone = [figures(scores(each)[main]).sampled for each in answers]
    return found | {f"exam {MAIN_NAME}, weakest": min(alone), f"exam {MAIN_NAME}, best": max(alone)}


def _restored(record: Mapping[str, Any]) -> Answered:
    answers: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in record["answers"].items()
    }
    return Answered(Examinee(**record["who"]), Tally(**answers))
