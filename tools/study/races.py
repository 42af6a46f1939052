"""Races that run at once on one engine and one verifier, each in a run folder of its own, and their exam after them.

Each is the race that `redqueen train` would run alone: it goes on from its checkpoint, and one that is finished is not
run again. Members of the shared engine are called RACE/ID.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from study.sitting import BARE, Answered, Examinee, Sitting

from redqueen.config import open_engine, open_verifier
from redqueen.engine.bank import Bank
from redqueen.engine.corner import Corner
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError
from redqueen.loop import run_race
from redqueen.phases.race import SOLO
from redqueen.population.members import Population
from redqueen.population.members import restore as restore_population
from redqueen.settings import Config
from redqueen.terminal import Quiet, StepSummary, span_text
from redqueen.training.train import adapters, enter, finished, heeding_signals, open_run, reached, read_rules

TICKS = 20
"""Lines about how far the races are, in all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One race."""

    arm: str
    seed: int
    settings: Config
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name


class Own(Corner):
    """A race's part of the engine, whose fresh members have the A factors of the race's own seed, as alone."""

    def __init__(self, engine: LocalEngine, name: str, fresh: MemberState) -> None:
        super().__init__(engine, f"{name}/")
        self._fresh = fresh

    def fresh(self) -> MemberState:
        return self._fresh


class Progress:
    """How far all races are together."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._done = {entry.name: 0 for entry in entries}
        self._steps = sum(entry.settings.run.steps for entry in entries)
        self._told, self._start = 0, time.monotonic()

    def reached(self, name: str, step: int) -> None:
        self._done[name] = step
        done = sum(self._done.values())
        if done * TICKS // self._steps > self._told:
            self._told = done * TICKS // self._steps
            self.say(f"{done:,} of {self._steps:,} steps of all races, {span_text(time.monotonic() - self._start)}")

    def say(self, line: str) -> None:
        print(f"race: {line}", file=sys.stderr, flush=True)


class Heard(Quiet):
    """The view of one race among many: what must be read, and the steps that are done."""

    def __init__(self, name: str, progress: Progress) -> None:
        self._name, self._progress = name, progress

    def started(self, facts: Mapping[str, str], step: int, steps: int, notes: Sequence[str]) -> None:
        self._progress.reached(self._name, step)
        for note in notes:
            self.say(note)

    def step_done(self, summary: StepSummary) -> None:
        self._progress.reached(self._name, summary.step)

    def say(self, line: str) -> None:
        self._progress.say(f"{self._name}: {line}" if self._name else line)


def fresh_members(engine: LocalEngine, seeds: Sequence[int]) -> dict[int, MemberState]:
    """What a fresh member is on an engine of each of these seeds."""
    bank = engine.bank
    return {
        seed: Bank(
            [group.linears for group in bank.groups],
            rank=bank.rank, alpha=bank.alpha, members=(), device=torch.device("cpu"), dtype=bank.dtype, seed=seed,
        ).fresh()
        for seed in dict.fromkeys(seeds)
    }  # fmt: skip


def hold(entries: Sequence[Entry], sitting: Sitting) -> list[Answered] | None:
    """Run what is not finished and examine who has not been; all answers, or None if somebody stopped the races."""
    if any(entry.settings.track.to for entry in entries):
        raise InputError("races on one engine report to no tracker", "leave out track.to")
    rules = {entry.name: read_rules(entry.settings) for entry in entries}
    progress = Progress(entries)
    with ExitStack() as stack:
        runs = {entry.name: stack.enter_context(open_run(entry.settings, entry.folder)) for entry in entries}
        ends = {entry.name: finished(runs[entry.name], entry.settings) for entry in entries}
        for entry in entries:
            end = ends[entry.name]
            if end is not None and end.step > entry.settings.run.steps:
                what = f"{entry.folder} is at step {end.step}, and {entry.settings.run.steps} are asked for"
                raise InputError(what, "ask for as many as it has, or name another folder")
        racing = [entry for entry in entries if ends[entry.name] is None]
        known = sitting.known()
        absent = {
            student: end.members[student.member]
            for entry in entries
            if (end := ends[entry.name]) is not None
            for student in students(entry, restore_population(end.state["population"]))
            if student not in known
        }
        if not racing and not absent and BARE in known:
            return list(known.values())
        members = [f"{entry.name}/{id}" for entry in racing for id in adapters(entry.settings, runs[entry.name].loaded)]
        members += [student.name for student in absent]
        shared = entries[0].settings
        verifier = stack.enter_context(open_verifier(shared.verifier))
        engine = stack.enter_context(open_engine(shared.engine, members))
        for student, state in absent.items():
            engine.write(student.name, state)
        fresh = fresh_members(engine, [entry.seed for entry in racing])

        async def one(entry: Entry, stopping: Callable[[], bool]) -> tuple[Entry, int, Population]:
            settings, run, view = entry.settings, runs[entry.name], Heard(entry.name, progress)
            corner = Own(engine, entry.name, fresh[entry.seed])
            if run.loaded is None:
                for id in adapters(settings):
                    corner.write(id, corner.fresh())
            race, state = await enter(settings, rules[entry.name], run, corner, engine, verifier, view)
            ended = await run_race(race, state, run, view, (), stopping)
            reached(run, settings, ended.step, ended.population)
            return entry, ended.step, ended.population

        async def all_races(stopping: Callable[[], bool]) -> list[tuple[Entry, int, Population]]:
            return await asyncio.gather(*(one(entry, stopping) for entry in racing))

        progress.say(f"{len(racing)} of {len(entries)} races to run, {len(members)} adapters on one engine")
        with heeding_signals(Heard("", progress)) as stopping:
            came = asyncio.run(all_races(stopping))
        if any(step < entry.settings.run.steps for entry, step, _ in came):
            return None
        asked = [*absent, *(student for entry, _, population in came for student in students(entry, population))]
        if BARE not in known:
            asked.insert(0, BARE)
        progress.say(f"the exam: {len(asked)} examinees at {len(sitting.places)} tasks")
        return list(sitting.hold(engine, verifier, asked).values())


def students(entry: Entry, population: Population) -> list[Examinee]:
    """Whom the exam of a finished race is about."""
    ids: list[MemberId] = [SOLO]
    if not entry.settings.population.single:
        ids = [member.id for member in population.students]
    return [Examinee(entry.name, entry.settings.run.steps, id) for id in ids]
