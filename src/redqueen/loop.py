"""The race, step by step: match, propose, verify, solve, update; before every so many steps evolve, after every so many
average, as the settings have it. Read this first.

A race is a coroutine over an engine and a verifier that it does not own, so several can share them. What a step draws
is keyed by the run's seed and the step, so a run that was killed and resumed is the run that never stopped. Each phase
is a file in `phases/`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from redqueen.phases import record
from redqueen.phases.clock import STREAM, Clock, Stopped
from redqueen.phases.diversity import snapshot
from redqueen.phases.drift import drift
from redqueen.phases.elsewhere import call_back, look_elsewhere
from redqueen.phases.evaluate import Accuracies, evaluate
from redqueen.phases.evolve import Evolved, evolve, take_back
from redqueen.phases.exchange import exchange, settled
from redqueen.phases.happened import Happened
from redqueen.phases.items import fared
from redqueen.phases.judge import judge, outcomes
from redqueen.phases.learn import learn, soundness
from redqueen.phases.match import foresee, match
from redqueen.phases.measure import behave, measure
from redqueen.phases.pull import pull
from redqueen.phases.race import Race
from redqueen.phases.ruler import SolveRates, ruler
from redqueen.phases.state import State
from redqueen.phases.timeline import WAITING, Timeline
from redqueen.phases.view import View
from redqueen.population.play import play
from redqueen.runs.metrics import BASE, FLOPS, RACE
from redqueen.runs.rows import StepRecord, WorkerEventRow
from redqueen.runs.run import Run

Track = Callable[[int, Mapping[str, float]], None]


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
    while not settings.ends(state.step, state.flops):
        clock = Clock(state.step + 1, view, stopping)
        try:
            state, rows = await one_step(race, state, clock)
        except Stopped:
            break
        finally:
            happened = note_workers(race, run, clock.step)
        with clock("record"):
            run.store.write(rows)
        if state.step % settings.checkpoint_every == 0 or settings.ends(state.step, state.flops):
            with clock("checkpoint"):
                save(race, state, run)
            saved = state.step
        for phase in ("record", "checkpoint"):
            run.store.add_timing(state.step, phase, clock.seconds.get(phase, 0.0))
        view.step_done(record.summary(race, state, rows, clock.seconds, happened))
        track(state.step, record.tracked(rows, clock.seconds))
    if saved < state.step:
        save(race, state, run)
    return state


async def one_step(race: Race, state: State, clock: Clock) -> tuple[State, StepRecord]:
    """The state after one more step, and what to write down of it."""
    step = state.step + 1
    with clock("evolve", may_stop=True):
        evolved = await evolve(race, state)
    try:
        before = replace(
            state,
            population=evolved.population,
            watch=evolved.watch or state.watch,
            health=state.health.born(event.child for event in evolved.events),
        )
        return await _step(race, before, step, evolved, clock)
    except Stopped:
        take_back(race, evolved)
        raise


async def _step(race: Race, state: State, step: int, evolved: Evolved, clock: Clock) -> tuple[State, StepRecord]:
    settings = race.settings
    with clock("match"):
        matches, asked = match(race, state, step)
    with clock(STREAM, may_stop=True):
        exchanged = await exchange(race, state, step, matches, asked, clock.check_stop)
    with clock("grade"):
        texts = await settled(race, state, step, exchanged)
        rollouts = judge(race, state, step, texts.proposals, texts.attempts)
        items = fared(step, texts.items, rollouts)
        posed = [*rollouts, *items]
        rated, meetings = play(state.population, step, outcomes(matches, rollouts), settings.match.rule)
        population = state.population if settings.population.single else rated
        board = state.board.add(meetings)
    sampled = texts.spans()
    clock.split(STREAM, sampled, rest=WAITING)
    ruled: SolveRates = {}
    if settings.run.ruler_every and step % settings.run.ruler_every == 0:
        with clock("ruler"):
            ruled = await ruler(race, step, posed)
    with clock("update", may_stop=True):
        # Neither the verifier nor the interpreter has anything to do while members learn.
        behaving = asyncio.create_task(behave(race, posed))
        archive = state.archive.add(one.entry for one in posed if one.entry is not None)
        played = replace(state, step=step, population=population, board=board, archive=archive)
        foreseeing = asyncio.create_task(foresee(race, played, behaving))
        try:
            learned = await learn(race, state, step, rollouts)
        finally:
            foreseeing.cancel()
    drifted, elsewhere, recalls, seen = None, None, (), None
    looking = step % settings.run.measure_every == 0
    if looking:
        # How members differ is seen before they are averaged, what becomes of them after it.
        with clock("measure"):
            drifted = await drift(race, state, population)
            seen = None if settings.population.single else snapshot(race, state, step, population)
    with clock("evolve"):
        pull(race, step, population, learned.unfit_steps)
    if looking:
        with clock("measure"):
            elsewhere = await look_elsewhere(race, population)
            recalls = await call_back(race, population, elsewhere)
    evaluated: Accuracies = {}
    if race.slices is not None:
        with clock("evaluate"):
            evaluated = await evaluate(race, step, population, state.base_on)
    with clock("measure"):
        measured = await measure(race, state, step, posed, behaving)
        after = replace(
            played,
            watch=state.watch if seen is None else seen.watch,
            cells=measured.cells,
            behaviours=measured.seen,
            health=state.health.see(
                soundness(race, rollouts), learned.unfit_steps, [recall.member for recall in recalls]
            ),
            base_on=state.base_on | {benchmark for subject, benchmark in evaluated if subject == BASE},
        )
        happened = Happened(
            step=step,
            population=population,
            meetings=meetings,
            rollouts=rollouts,
            items=items,
            spare=texts.spare,
            learned=learned,
            evolved=evolved,
            verifier_runs=Counter(evolved.trials.verifier_runs)
            + Counter({**texts.verifier_runs, RACE: measured.verifier_runs}),
            measured=measured,
            drift=drifted,
            elsewhere=elsewhere,
            recalls=recalls,
            seen=seen,
            ruled=ruled,
            evaluated=evaluated,
        )
    timeline = Timeline.of(clock.spans, sampled["propose"], sampled["solve"], race.checks.take())
    rows = record.rows(race, happened, clock.seconds, timeline)
    return replace(after, flops=state.flops + int(rows.figures()[FLOPS])), rows


def note_workers(race: Race, run: Run, step: int) -> list[WorkerEventRow]:
    """Write down what became of workers, also where that is the end of the race."""
    happened = [] if race.workers is None else race.workers.take_events(step)
    if happened:
        run.store.add_worker_events(happened)
    return happened


def save(race: Race, state: State, run: Run) -> None:
    """A checkpoint of everything that the records do not have."""
    adapters = dict.fromkeys(race.adapter(member.id) for member in state.population.members)
    weights = {id: race.engine.read(id, optimiser=True) for id in adapters}
    run.save(state.step, state.as_record(), weights, base_name=race.base_name, modules=race.modules)
