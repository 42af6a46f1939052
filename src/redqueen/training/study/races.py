"""Races that run at once on one engine and one verifier, each in its own run folder, and then their exam.

Each is the race that `redqueen train` would run alone: it resumes from its checkpoint, and a finished one is not run
again. Members of the shared engine are called RACE/ID.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from redqueen.analysis import quarters
from redqueen.console import say, span_text
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError, Interrupted
from redqueen.evolution.consensus import soup
from redqueen.loop import run_race
from redqueen.phases.state import State
from redqueen.phases.view import Quiet, StepSummary
from redqueen.population.members import SOLO, SOUP, Population
from redqueen.population.members import restore as restore_population
from redqueen.runs.checkpoints import Loaded
from redqueen.runs.run import Run
from redqueen.training.arms import POPULATION
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import BARE, Examinee, HalfExam
from redqueen.training.train import finished, heeding_signals, open_run, reached, started

TICKS = 20


class RaceProgress:
    def __init__(self, races: Sequence[StudyRace], job: str = "") -> None:
        self._job = job
        self._done = {race.name: 0 for race in races}
        self._steps = sum(race.settings.run.steps for race in races)
        self._most = "at most " if any(race.settings.run.flops is not None for race in races) else ""
        self._ticks, self._start = 0, time.monotonic()

    def reached(self, name: str, step: int) -> None:
        self._done[name] = step
        done = sum(self._done.values())
        if done * TICKS // self._steps > self._ticks:
            self._ticks = done * TICKS // self._steps
            self.say(f"{done:,} of {self._most}{self._steps:,} steps, {span_text(time.monotonic() - self._start)}")

    def say(self, line: str) -> None:
        say(f"{self._job}{line}")


class RaceView(Quiet):
    """The view of one race among many: notes, and the progress."""

    def __init__(self, name: str, progress: RaceProgress) -> None:
        self._name, self._progress = name, progress

    def started(self, facts: Mapping[str, str], step: int, end: str, notes: Sequence[str]) -> None:
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
) -> None:
    """Run the unfinished races and examine their students; Interrupted says that a signal stopped them. `bare` also
    examines the base. `workers` is for a verifier whose settings leave it open; `jobs` processes do this at once."""
    rules = {race.name: read_rules(race.settings) for race in races}
    with ExitStack() as stack:
        runs = {race.name: stack.enter_context(open_run(race.settings, race.folder)) for race in races}
        ends = {race.name: _end(race, runs[race.name]) for race in races}
        unfinished = [race for race in races if ends[race.name] is None]
        answers = exam.answers()
        unexamined = {
            examinee: weights for examinee, weights in _at_end(races, ends).items() if examinee not in answers
        }
        bare = bare and BARE not in answers
        if not unfinished and not unexamined and not bare:
            return
        starts = {
            race.name: Start.of_run(race.settings, rules[race.name], runs[race.name], f"{race.name}/")
            for race in unfinished
        }
        beside = {student.name: state for student, state in unexamined.items()}
        stage = stack.enter_context(
            open_races(
                list(starts.values()), races[0].settings, beside=beside, workers=workers, engines=jobs, cluster=True
            )
        )
        engine = stage.engine

        async def run_one(race: StudyRace, stopping: Callable[[], bool]) -> State:
            run, start, view = runs[race.name], starts[race.name], RaceView(race.name, progress)
            started(start, run, stage, view)
            opened = stage.races[start.name]
            with engine.shared():
                end = await run_race(opened.race, opened.state, run, view, stopping)
            reached(run, race.settings, end.step, end.population)
            return end

        async def run_all(stopping: Callable[[], bool]) -> list[State]:
            return await asyncio.gather(*(run_one(race, stopping) for race in unfinished))

        adapters = len(beside) + sum(len(start.adapters) for start in starts.values())
        progress.say(f"{len(unfinished)} of {len(races)} races to run, {adapters} adapters on one engine")
        with heeding_signals(RaceView("", progress)) as stopping:
            states = asyncio.run(run_all(stopping))
        examinees = [BARE] if bare else []
        examinees += unexamined
        for race, state in zip(unfinished, states, strict=True):
            if stopping.signal is not None and not race.settings.run.ends(state.step, state.flops):
                raise Interrupted(stopping.signal)
            weights = {student: engine.read(f"{race.name}/{student}") for student in _students(race, state.population)}
            for examinee, own in _examinees(race, state.step, state.population, weights).items():
                if examinee.member == SOUP:
                    engine.write(examinee.name, own)
                examinees.append(examinee)
        progress.say(f"the exam: {len(examinees)} examinees at {len(exam.places)} tasks")
        exam.examine(engine, stage.verifier, examinees)


def _end(race: StudyRace, run: Run) -> Loaded | None:
    """Where the race ended, if it did."""
    end = finished(run, race.settings)
    if end is not None and end.step > race.settings.run.steps:
        what = f"{race.folder} is at step {end.step}, and --steps is {race.settings.run.steps}"
        raise InputError(what, "use as many steps as it has, or name another folder")
    if end is not None and race.settings.run.ends(end.step - 1, quarters.flops(run.store, end.step - 1)):
        what = f"{race.folder} is at step {end.step} and has spent more than the {POPULATION} of seed {race.seed}"
        raise InputError(what, "name another folder")
    return end


def _at_end(races: Sequence[StudyRace], ends: Mapping[str, Loaded | None]) -> dict[Examinee, MemberState]:
    """Who sits the exam for the races that are over."""
    examinees: dict[Examinee, MemberState] = {}
    for race in races:
        if (end := ends[race.name]) is not None:
            examinees |= _examinees(race, end.step, restore_population(end.state["population"]), end.members)
    return examinees


def _students(race: StudyRace, population: Population) -> list[MemberId]:
    return [SOLO] if race.settings.population.single else [member.id for member in population.students]


def _examinees(
    race: StudyRace, step: int, population: Population, weights: Mapping[MemberId, MemberState]
) -> dict[Examinee, MemberState]:
    """Who sits the exam at a race's end: its students, and their mean where there are several."""
    members = {id: weights[id] for id in _students(race, population)}
    if len(members) > 1:
        members[SOUP] = soup(list(members.values()))
    return {Examinee(race.name, step, id): state for id, state in members.items()}
