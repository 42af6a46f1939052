"""A run from its settings: it is found or begun, its race is opened and led to its end, and Ctrl-C is heeded."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from redqueen.analysis import quarters
from redqueen.analysis.summary import Summary, summarise, write_report
from redqueen.errors import RunError
from redqueen.loop import run_race
from redqueen.phases.view import View, end_text
from redqueen.population.members import Population
from redqueen.population.members import restore as restore_population
from redqueen.runs import CONFIG, FORKED_FROM
from redqueen.runs.checkpoints import Loaded
from redqueen.runs.run import Run, fork, origin_of
from redqueen.runs.store import Store
from redqueen.settings import Affects, Config, affecting, dump, flat, load_run, unwritten
from redqueen.settings.idle import idle
from redqueen.settings.toml import shown
from redqueen.tasks.families import Families
from redqueen.training.checks import refuse_idle
from redqueen.training.resuming import as_begun, at_least, at_least_done, is_run, kept, unsaid
from redqueen.training.rules import read_rules
from redqueen.training.setup import Stage, Start, open_races
from redqueen.ui.trackers import tracking


@dataclass(frozen=True, slots=True)
class Fork:
    """A step of another run."""

    source: Path
    step: int


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a run stands."""

    steps: int
    """That are done."""
    summary: Summary | None
    """None before its end."""
    end: str
    """The last step, or about which one it will be."""
    signal: int | None = None
    """What stopped it."""


def train(settings: Config, folder: Path, view: View, forked: Fork | None = None) -> Reached:
    """Begin the run in `folder`, or go on with it, until its steps are done or somebody stops it."""
    settings = at_least_done(as_begun(settings, folder), folder)
    rules = read_rules(settings)
    if not is_run(folder):
        refuse_idle(settings)
    if forked is not None:
        settings = at_least(settings, forked.step)
        _begin_fork(forked, folder, settings)
    with open_run(settings, folder) as run:
        if (end := finished(run, settings)) is not None:
            by = "run.steps" if end.step >= settings.run.steps else "run.flops"
            view.say(f"nothing is left to do after step {end.step}; raise {by} to go on")
            return reached(run, settings, end.step, restore_population(end.state.get("population", {})))
        start = Start.of_run(settings, rules, run)
        with (
            tracking(settings.track, folder, config=settings.model_dump(), say=view.say) as track,
            open_races([start], cluster=True) as stage,
        ):
            started(start, run, stage, view)
            race, state = stage.only.race, stage.only.state
            with heeding_signals(view) as stopping:
                ended = asyncio.run(run_race(race, state, run, view, stopping, track))
        return replace(reached(run, settings, ended.step, ended.population), signal=stopping.signal)


def open_run(settings: Config, folder: Path) -> Run:
    """Begun with these settings, or gone on with."""
    keep = settings.run
    text, free = kept(settings, folder)
    run = Run.open(folder, text, free=free, last=keep.keep_last, every=keep.keep_every)
    if keep.flops is not None and not quarters.flops_known(run.store):
        run.close()
        what = f"{folder} has steps of an older version, whose floating-point operations nobody counted"
        raise RunError(what, "leave out run.flops, or name another folder to begin at step 1")
    return run


def finished(run: Run, settings: Config) -> Loaded | None:
    """The end of a run that was at its end when it was opened."""
    at_end = run.loaded is not None and settings.run.ends(run.loaded.step, quarters.flops(run.store))
    return run.loaded if at_end else None


def started(start: Start, run: Run, stage: Stage, view: View) -> None:
    """Note what the run goes on with, and say so; also what is otherwise than it was."""
    facts = {**stage.facts, **start.rules.versions}
    before = [
        f'{key} stays "{value}", as in the version that began this run'
        for key, value in unwritten(run.folder / CONFIG).items()
        if key in unsaid(start.settings, run.folder) and key not in idle(start.settings)
    ]
    notes = [*start.rules.notes, *run.notes, *before, *_changed(run.store.facts(), facts)]
    run.store.set_facts(facts)
    state = stage.races[start.name].state
    view.started(facts, state.step, _end(start.settings, state.step, state.flops), notes)


def reached(run: Run, settings: Config, steps: int, population: Population) -> Reached:
    """Where the run stands; at its end its report is written, while the folder is still ours alone."""
    summary, flops = None, quarters.flops(run.store)
    if settings.run.ends(steps, flops):
        summary = summarise(run.store, settings, population)
        write_report(run.folder, summary)
    return Reached(steps, summary, _end(settings, steps, flops))


def _end(settings: Config, step: int, flops: int) -> str:
    """The last step, as far as that can be told after this one."""
    return end_text(step, settings.run.steps_left(step, flops), settings.run.steps)


class Stopping:
    """Whether somebody wants the race to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """What was sent first."""

    def __call__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def heeding_signals(view: View) -> Iterator[Stopping]:
    """The first Ctrl-C (or SIGTERM) asks the race to stop, the second does not wait."""
    stopping = Stopping()

    def ask(number: int, _: object) -> None:
        if stopping():
            # The engine's thread may be in the middle of minutes of work. What is on the disk is whole at any moment.
            view.close()
            os._exit(128 + number)
        stopping.signal = number
        line = (
            "stopping: first this phase is finished, then the run is saved; once more stops at once, and the last "
            "checkpoint stays"
        )
        try:
            # Not from here: the signal may have come while a line was being printed.
            asyncio.get_running_loop().call_soon_threadsafe(view.say, line)
        except RuntimeError:
            view.say(line)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _begin_fork(forked: Fork, folder: Path, settings: Config) -> None:
    """Make the fork, unless it is there already and the same command resumes it."""
    if (folder / CONFIG).exists():
        with Store.read(folder) as store:
            origin = store.facts().get(FORKED_FROM)
        if origin != origin_of(forked.source, forked.step):
            what = f"{folder} is there already, {f'forked from {origin}' if origin else 'and no fork'}"
            raise RunError(what, "name another folder with --run, or leave --fork out to go on with it")
        return
    with Store.read(forked.source):  # refuses what is not a run folder
        theirs = load_run(forked.source / CONFIG)
    # Members and adapters are the checkpoint's: other ones cannot go on from it.
    there, here = flat(theirs), flat(settings)
    for key in here:
        if key in affecting(Affects.MEMBERS) and there[key] != here[key]:
            raise RunError(
                f"{forked.source} has {key} = {shown(there[key])}, and {shown(here[key])} is asked for its fork",
                "a fork keeps its source's members: give the same",
            )
    families = Families.of(settings.tasks.families)
    for kind in theirs.tasks.kinds:
        if kind not in families.kinds:
            what = f"{forked.source} has tasks of the kind {kind}, and none of tasks.families has it"
            raise RunError(what, "add the source's families, which its config.toml names")
    fork(forked.source, forked.step, folder, dump(settings))


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What a resumed run finds otherwise than it was."""
    return [
        f"{name} was {before[name]} and is {value}: what follows may differ"
        for name, value in now.items()
        if before.get(name, value) != value
    ]
