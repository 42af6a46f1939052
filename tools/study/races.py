"""Races that run at once on one engine and one verifier, each in a run folder of its own, and their exam after them;
or shared out among processes that each do this.

Each is the race that `redqueen train` would run alone: it goes on from its checkpoint, and one that is finished is not
run again. Members of the shared engine are called RACE/ID.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch
from study.sitting import BARE, Answered, Examinee, Sitting

from redqueen.config import open_engine, open_verifier
from redqueen.engine.bank import Bank
from redqueen.engine.local import LocalEngine
from redqueen.engine.namespaced import NamespacedEngine
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError, UserError
from redqueen.loop import run_race
from redqueen.phases.race import SOLO
from redqueen.population.members import Population
from redqueen.population.members import restore as restore_population
from redqueen.settings import Config
from redqueen.terminal import Quiet, StepSummary, span_text
from redqueen.training.train import adapters, enter, finished, heeding_signals, open_run, reached, read_rules
from redqueen.verifier.zygotes import available_cores

TICKS = 20
"""Lines about how far they are."""


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


class Own(NamespacedEngine):
    """A race's part of the engine, whose fresh members have the A factors of the race's own seed, as alone."""

    def __init__(self, engine: LocalEngine, name: str, fresh: MemberState) -> None:
        super().__init__(engine, f"{name}/")
        self._fresh = fresh

    def fresh(self) -> MemberState:
        return self._fresh


class Progress:
    """How far the races of one process are together."""

    def __init__(self, entries: Sequence[Entry], job: str = "") -> None:
        self._job = job
        self._done = {entry.name: 0 for entry in entries}
        self._steps = sum(entry.settings.run.steps for entry in entries)
        self._told, self._start = 0, time.monotonic()

    def reached(self, name: str, step: int) -> None:
        self._done[name] = step
        done = sum(self._done.values())
        if done * TICKS // self._steps > self._told:
            self._told = done * TICKS // self._steps
            self.say(f"{done:,} of {self._steps:,} steps, {span_text(time.monotonic() - self._start)}")

    def say(self, line: str) -> None:
        print(f"race: {self._job}{line}", file=sys.stderr, flush=True)


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


def hold(entries: Sequence[Entry], sitting: Sitting, jobs: int = 1) -> list[Answered] | None:
    """Run what is not finished and examine who has not been; all answers, or None if somebody stopped the races."""
    if any(entry.settings.track.to for entry in entries):
        raise InputError("races on one engine report to no tracker", "leave out track.to")
    jobs = min(jobs, len(entries))
    if jobs == 1:
        done = _run_and_examine(entries, sitting, Progress(entries), bare=True)
    else:
        done = _share_out(entries, sitting, jobs)
    return list(sitting.known().values()) if done else None


def _share_out(entries: Sequence[Entry], sitting: Sitting, jobs: int) -> bool:
    """The same in so many processes; the first error of one of them stops the others, which save what they have."""
    context = multiprocessing.get_context("spawn")
    children: dict[Connection, SpawnProcess] = {}
    for at in range(jobs):
        ours, theirs = context.Pipe(duplex=False)
        # Arms differ in what they cost, and an arm's races stand side by side.
        child = context.Process(target=_job, args=(theirs, entries[at::jobs], sitting, at + 1, jobs))
        child.start()
        theirs.close()
        children[ours] = child
    done, first = True, None
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        for child in children.values():
            if child.is_alive():
                child.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        open_pipes = set(children)
        while open_pipes:
            for pipe in wait(list(open_pipes)):
                assert isinstance(pipe, Connection)
                open_pipes.discard(pipe)
                try:
                    said: bool | UserError = pipe.recv()
                except EOFError:
                    what = "a process of the study ended before its races had"
                    said = False if stopped else InputError(what, "give the same command again: it goes on from there")
                if isinstance(said, UserError) and first is None:
                    first = said
                    stop()
                done = done and said is True
        for child in children.values():
            child.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if first is not None:
        raise first
    return done


def _job(told: Connection, entries: Sequence[Entry], sitting: Sitting, number: int, jobs: int) -> None:
    """One of the processes. A terminal's Ctrl-C reaches the parent alone, which passes it on; without a parent there is
    nobody to report to."""
    os.setpgrp()
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    share = max(1, available_cores() // jobs)
    torch.set_num_threads(share)
    progress = Progress(entries, f"job {number} of {jobs}: ")
    try:
        told.send(_run_and_examine(entries, sitting, progress, bare=number == 1, workers=share, jobs=jobs))
    except UserError as error:
        told.send(error)


def _run_and_examine(
    entries: Sequence[Entry],
    sitting: Sitting,
    progress: Progress,
    *,
    bare: bool,
    workers: int | None = None,
    jobs: int = 1,
) -> bool:
    """Whether all came to their end; `bare` also examines the base. `workers` is for a verifier whose settings leave
    them open; so many `jobs` do this at once."""
    rules = {entry.name: read_rules(entry.settings) for entry in entries}
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
        bare = bare and BARE not in known
        if not racing and not absent and not bare:
            return True
        members = [f"{entry.name}/{id}" for entry in racing for id in adapters(entry.settings, runs[entry.name].loaded)]
        members += [student.name for student in absent]
        shared = entries[0].settings
        pool = shared.verifier.model_copy(update={"workers": shared.verifier.workers or workers})
        verifier = stack.enter_context(open_verifier(pool))
        engine = stack.enter_context(open_engine(shared.engine, members, engines=jobs))
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

        async def sharing(entry: Entry, stopping: Callable[[], bool]) -> tuple[Entry, int, Population]:
            with engine.shared():
                return await one(entry, stopping)

        async def all_races(stopping: Callable[[], bool]) -> list[tuple[Entry, int, Population]]:
            return await asyncio.gather(*(sharing(entry, stopping) for entry in racing))

        progress.say(f"{len(racing)} of {len(entries)} races to run, {len(members)} adapters on one engine")
        with heeding_signals(Heard("", progress)) as stopping:
            came = asyncio.run(all_races(stopping))
        if any(step < entry.settings.run.steps for entry, step, _ in came):
            return False
        asked = [*absent, *(student for entry, _, population in came for student in students(entry, population))]
        if bare:
            asked.insert(0, BARE)
        progress.say(f"the exam: {len(asked)} examinees at {len(sitting.places)} tasks")
        sitting.hold(engine, verifier, asked)
        return True


def students(entry: Entry, population: Population) -> list[Examinee]:
    """Whom the exam of a finished race is about."""
    ids: list[MemberId] = [SOLO]
    if not entry.settings.population.single:
        ids = [member.id for member in population.students]
    return [Examinee(entry.name, entry.settings.run.steps, id) for id in ids]
