"""The race, step by step: match, propose, verify, solve, update, and every so many steps evolve. Read this first.

A race is a coroutine over an engine and a verifier that it does not own, so several can share them. What a step draws
is keyed by the run's seed and the step, so a run that was killed and resumed is the run that never stopped. Each phase
is a file in `phases/`.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from redqueen.phases import record
from redqueen.phases.evaluate import BASE, Accuracies, evaluate
from redqueen.phases.evolve import evolve
from redqueen.phases.judge import outcomes, score, withdraw
from redqueen.phases.learn import learn, lessons
from redqueen.phases.measure import behave, measure
from redqueen.phases.propose import propose, verify
from redqueen.phases.race import Race
from redqueen.phases.solve import grade, solve
from redqueen.phases.state import State
from redqueen.phases.view import View
from redqueen.population.matchmaking import schedule
from redqueen.population.play import play
from redqueen.runs.metrics import RACE
from redqueen.runs.rows import StepRecord
from redqueen.runs.run import Run

Track = Callable[[int, Mapping[str, float]], None]


class Stopped(Exception):
    """Somebody wants the race to stop; the step under way is given up, and nothing of it has happened."""


async def run_race(
    race: Race,
    state: State,
    run: Run,
    view: View,
    stopping: Callable[[], bool],
    track: Track = lambda step, figures: None,
) -> State:
    """Step after step until all are done, or until somebody wants to stop. Either way what was reached is saved.
    `track` is given the figures of each step."""
    settings, saved = race.settings.run, state.step
    while state.step < settings.steps:
        clock = Clock(state.step + 1, view, stopping)
        try:
            state, rows = await one_step(race, state, clock)
        except Stopped:
            break
        with clock("record"):
            run.store.write(rows)
        if state.step % settings.checkpoint_every == 0 or state.step == settings.steps:
            with clock("checkpoint"):
                save(race, state, run)
            saved = state.step
        for phase in ("record", "checkpoint"):
            run.store.add_timing(state.step, phase, clock.seconds.get(phase, 0.0))
        view.step_done(record.summary(race, state, rows, clock.seconds))
        track(state.step, record.tracked(rows, clock.seconds))
    if saved < state.step:
        save(race, state, run)
    return state


async def one_step(race: Race, state: State, clock: "Clock") -> tuple[State, StepRecord]:
    """The state after one more step, and what to write down of it."""
    settings, step = race.settings, state.step + 1
    with clock("match"):
        match = settings.match
        rng = race.numbers(step, "match")
        matches = schedule(state.population, match.maker, state.board, rng, match.panel, match.kept_apart)
    with clock("propose", may_stop=True):
        proposals = await propose(race, state, step, matches)
    with clock("verify"):
        posed, runs = await verify(race, state, step, proposals)
    with clock("solve", may_stop=True):
        attempts = await solve(race, step, matches, posed)
    with clock("grade"):
        tries, more = await grade(race, step, attempts)
        runs |= more
        posed, tries = withdraw(posed, tries)
        scored = score(race, state, step, posed, tries)
        rated, meetings = play(state.population, step, outcomes(matches, scored, tries), match.rule)
        population = state.population if settings.population.single else rated
        board = state.board.add(meetings)
    with clock("update", may_stop=True):
        given = lessons(race, scored, tries)
        # The verifier has nothing to do while members learn.
        behaving = asyncio.create_task(behave(race, scored))
        learned = await learn(race, state, step, given)
    with clock("evolve"):
        evolved = evolve(race, state, step, population, board)
    evaluated: Accuracies = {}
    if race.slices is not None:
        with clock("evaluate"):
            evaluated = await evaluate(race, step, evolved.population, state.base_on)
    with clock("measure"):
        measured = await measure(race, state, step, scored, behaving)
        runs[RACE] = measured.verifier_runs
        state.archive.add(each.entry for each in scored if each.entry is not None)
        health = state.health.see(record.soundness(race, given))
        base_on = state.base_on | {benchmark for subject, benchmark in evaluated if subject == BASE}
        after = State(
            step,
            evolved.population,
            evolved.watch,
            board,
            state.archive,
            measured.cells,
            measured.seen,
            health,
            base_on,
        )
        happened = record.Happened(
            step, population, meetings, scored, tries, given, learned, evolved, runs, measured, evaluated
        )
    return after, record.rows(race, happened, clock.seconds)


def save(race: Race, state: State, run: Run) -> None:
    """A checkpoint of everything that the records do not have."""
    adapters = dict.fromkeys(race.adapter(member.id) for member in state.population.members)
    weights = {id: race.engine.read(id, optimiser=True) for id in adapters}
    run.save(state.step, state.as_record(), weights, base_name=race.base_name, modules=race.modules)


class Clock:
    """The seconds of each phase, said as it begins; the place where a race that shall stop does."""

    def __init__(self, step: int, view: View, stopping: Callable[[], bool]) -> None:
        self.step = step
        self.seconds: dict[str, float] = {}
        self._view, self._stopping = view, stopping

    @contextmanager
    def __call__(self, phase: str, *, may_stop: bool = False) -> Iterator[None]:
        if may_stop and self._stopping():
            raise Stopped
        self._view.phase(self.step, phase)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start
