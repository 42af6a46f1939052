"""Races that run at once on one engine and one verifier, each in a run folder of its own, and their exam after them.

Each is the race that `redqueen train` would run alone: it goes on from its checkpoint, and one that is finished is not
run again. Members of the shared engine are called RACE/ID.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from redqueen.console import say, span_text
from redqueen.engine.protocol import MemberId
from redqueen.errors import InputError
from redqueen.loop import run_race
from redqueen.phases.view import Quiet, StepSummary
from redqueen.population.members import SOLO, Population
from redqueen.population.members import restore as restore_population
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import BARE, Examinee, HalfExam
from redqueen.training.train import finished, heeding_signals, open_run, reached, started

TICKS = 20
"""Lines about how far they are."""


class RaceProgress:
    """How far the races of one process are together."""

    def __init__(self, races: Sequence[StudyRace], job: str = "") -> None:
        self._job = job
        self._done = {race.name: 0 for race in races}
        self._steps = sum(race.settings.run.steps for race in races)
        self._ticks, self._start = 0, time.monotonic()

    def reached(self, name: str, step: int) -> None:
        self._done[name] = step
        done = sum(self._done.values())
        if done * TICKS // self._steps > self._ticks:
            self._ticks = done * TICKS // self._steps
            self.say(f"{done:,} of {self._steps:,} steps, {span_text(time.monotonic() - self._start)}")

    def say(self, line: str) -> None:
        say(f"{self._job}{line}")


class RaceView(Quiet):
    """The view of one race among many: what must be read, and the steps that are done."""

    def __init__(self, name: str, progress: RaceProgress) -> None:
        self._name, self._progress = name, progress

    def started(self, facts: Mapping[str, str], step: int, steps: int, notes: Sequence[str]) -> None:
        self._progress.reached(self._name, step)
        for note in notes:
            self.say(note)

    def step_done(self, summary: StepSummary) -> None:
        self._progress.reached(self._name, summary.step)

    def say(self, line: str) -> None:
        self._progress.say(f"{self._name}: {line}" if self._name else line)


def run_and_examine(
    races: Sequence[StudyRace],
    exam: HalfExam,
    progress: RaceProgress,
    *,
    bare: bool,
    workers: int | None = None,
    jobs: int = 1,
) -> bool:
    """Run what is not finished and examine who has not been; whether all came to their end. `bare` also examines the
    base. `workers` is for a verifier whose settings leave them open; so many `jobs` do this at once."""
    rules = {race.name: read_rules(race.settings) for race in races}
    with ExitStack() as stack:
        runs = {race.name: stack.enter_context(open_run(race.settings, race.folder)) for race in races}
        ends = {race.name: finished(runs[race.name], race.settings) for race in races}
        for race in races:
            end = ends[race.name]
            if end is not None and end.step > race.settings.run.steps:
                what = f"{race.folder} is at step {end.step}, and {race.settings.run.steps} are asked for"
                raise InputError(what, "ask for as many as it has, or name another folder")
        unfinished = [race for race in races if ends[race.name] is None]
        answers = exam.answers()
        unasked = {
            student: end.members[student.member]
            for race in races
            if (end := ends[race.name]) is not None
            for student in students(race, restore_population(end.state["population"]))
            if student not in answers
        }
        bare = bare and BARE not in answers
        if not unfinished and not unasked and not bare:
            return True
        starts = {
            race.name: Start.of_run(race.settings, rules[race.name], runs[race.name], f"{race.name}/")
            for race in unfinished
        }
        beside = {student.name: state for student, state in unasked.items()}
        stage = stack.enter_context(
            open_races(list(starts.values()), races[0].settings, beside=beside, workers=workers, engines=jobs)
        )
        engine = stage.engine

        async def one(race: StudyRace, stopping: Callable[[], bool]) -> tuple[StudyRace, int, Population]:
            run, start, view = runs[race.name], starts[race.name], RaceView(race.name, progress)
            started(start, run, stage, view)
            opened = stage.races[start.name]
            with engine.shared():
                ended = await run_race(opened.race, opened.state, run, view, stopping)
            reached(run, race.settings, ended.step, ended.population)
            return race, ended.step, ended.population

        async def all_races(stopping: Callable[[], bool]) -> list[tuple[StudyRace, int, Population]]:
            return await asyncio.gather(*(one(race, stopping) for race in unfinished))

        progress.say(f"{len(unfinished)} of {len(races)} races to run, {len(engine.members)} adapters on one engine")
        with heeding_signals(RaceView("", progress)) as stopping:
            ended = asyncio.run(all_races(stopping))
        if any(step < race.settings.run.steps for race, step, _ in ended):
            return False
        examinees = [*unasked, *(student for race, _, population in ended for student in students(race, population))]
        if bare:
            examinees.insert(0, BARE)
        progress.say(f"the exam: {len(examinees)} examinees at {len(exam.places)} tasks")
        exam.ask(engine, stage.verifier, examinees)
        return True


def students(race: StudyRace, population: Population) -> list[Examinee]:
    """Whom the exam of a finished race is about."""
    ids: list[MemberId] = [SOLO]
    if not race.settings.population.single:
        ids = [member.id for member in population.students]
    return [Examinee(race.name, race.settings.run.steps, id) for id in ids]
