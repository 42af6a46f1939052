"""A race from its settings: everything that it needs is opened, the run is found or begun, and Ctrl-C is heeded."""

import asyncio
import contextlib
import hashlib
import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from redqueen import __version__
from redqueen.config import dump, load, open_engine, open_verifier
from redqueen.engine.base import Base
from redqueen.engine.known import EMBEDDED
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Engine, MemberId
from redqueen.errors import ConfigError, InputError, RunError
from redqueen.evals.asking import Slices, encoder, positions
from redqueen.evals.benchmarks import chosen
from redqueen.evals.data import Loaded as Benchmarked
from redqueen.evals.data import find as find_benchmark
from redqueen.evals.maths import can_grade
from redqueen.evals.protocol import Prompts
from redqueen.evolution import variation
from redqueen.evolution.breeding import scatter
from redqueen.exam.named import FUNCTIONS, exam_file
from redqueen.loop import run_race
from redqueen.measure.complexity import Complexity, of_task
from redqueen.measure.coverage import Coverage, place
from redqueen.measure.watch import Watch
from redqueen.phases.journal import Journal, Shelf
from redqueen.phases.look import BASE
from redqueen.phases.race import SOLO, Race
from redqueen.phases.record import LOOKED
from redqueen.phases.state import State, restored
from redqueen.population.board import Board
from redqueen.population.members import Population, founders
from redqueen.population.members import restore as restore_population
from redqueen.runs.checkpoints import Loaded
from redqueen.runs.rows import TaskRow
from redqueen.runs.run import CONFIG, FORKED_FROM, Run, fork, origin_of
from redqueen.runs.sqlite import damaged
from redqueen.runs.store import RECORDS, Store
from redqueen.runs.summary import Summary, summarise, write_report
from redqueen.settings import Config
from redqueen.tasks import FAMILIES
from redqueen.tasks import restore as restore_task
from redqueen.tasks.archive import CAPACITY, Archive, Entry, Trivial
from redqueen.tasks.code import SEEDS
from redqueen.tasks.code.code_o import CodeO
from redqueen.tasks.guards import Caps, Guards, read_patterns
from redqueen.tasks.library import Seed, read_held_out, read_seeds, validated_seeds
from redqueen.tasks.protocol import Form, Kind, Task
from redqueen.terminal import View
from redqueen.toml import shown
from redqueen.trackers import close_trackers, open_trackers
from redqueen.verifier import LocalVerifier, Verifier

FREE = ("run.steps", "run.checkpoint_every", "run.keep_last", "run.keep_every", "verifier.workers", "track", "evals")
"""Settings that a run may be resumed with others of: they change nothing that has been done."""


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


def train(settings: Config, folder: Path, view: View, forked: Fork | None = None) -> Reached:
    """Begin the run in `folder`, or go on with it, until its steps are done or somebody stops it."""
    rules = read_rules(settings)
    if forked is not None:
        _begin_fork(forked, folder, settings)
    with open_run(settings, folder) as run:
        if (end := finished(run, settings)) is not None:
            view.say("nothing is left to do; raise run.steps to go on")
            return reached(run, settings, end.step, restore_population(end.state.get("population", {})))
        trackers = open_trackers(settings.track.to, folder, settings.track.project, folder.name, settings.model_dump())
        try:
            with (
                open_verifier(settings.verifier) as verifier,
                open_engine(settings.engine, adapters(settings, run.loaded), settings.run.seed) as engine,
            ):
                race, state = asyncio.run(enter(settings, rules, run, engine, engine, verifier, view))
                with heeding_signals(view) as stopping:
                    ended = asyncio.run(run_race(race, state, run, view, trackers, stopping))
        finally:
            close_trackers(trackers, view.say)
        return reached(run, settings, ended.step, ended.population)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is read of a race's settings before anything is opened: a mistake in it then costs nothing."""

    operators: dict[str, variation.Operator]
    guards: Guards
    told: list[str]
    """Lines about what could not be read."""
    benchmarks: tuple[Benchmarked, ...]


def read_rules(settings: Config) -> Rules:
    operators = variation.resolve(settings.evolution.operators)
    can_breed(settings, operators)
    own_seeds(settings)
    return Rules(operators, *open_guards(settings), open_benchmarks(settings))


def open_run(settings: Config, folder: Path) -> Run:
    """Begun with these settings, or gone on with."""
    keep = settings.run
    return Run.open(folder, dump(settings), free=FREE, last=keep.keep_last, every=keep.keep_every)


def finished(run: Run, settings: Config) -> Loaded | None:
    """The end of a run whose steps were all done when it was opened."""
    return run.loaded if run.loaded is not None and run.loaded.step >= settings.run.steps else None


async def enter(
    settings: Config, rules: Rules, run: Run, engine: Engine, whole: LocalEngine, verifier: LocalVerifier, view: View
) -> tuple[Race, State]:
    """A run's race where it stands, on an engine that has its adapters. `whole` is the engine that `engine` is a part
    of, where races share one, and otherwise the same."""
    facts = describe(whole, verifier) | inputs(settings)
    notes = [*rules.told, *run.notes, *_changed(run.store.facts(), facts)]
    run.store.set_facts(facts)
    race = open_race(settings, engine, whole.base, verifier, rules.guards, rules.operators, run.store, rules.benchmarks)
    seeds = await open_seeds(settings, verifier)
    state = old_state(race, seeds, run.loaded, run.store) if run.loaded else new_state(race, seeds)
    view.started(facts, state.step, settings.run.steps, notes)
    return race, state


def reached(run: Run, settings: Config, steps: int, population: Population) -> Reached:
    """Where the run stands; at its end its report is written, while the folder is still ours alone."""
    summary = None
    if steps >= settings.run.steps:
        summary = summarise(run.store, settings, population)
        write_report(run.folder, summary)
    return Reached(steps, summary)


def open_guards(settings: Config) -> tuple[Guards, list[str]]:
    """What the settings refuse, and lines about what of it could not be read."""
    guard = settings.guard
    held_out = read_held_out([exam_file(each) for each in guard.held_out])
    told = []
    if held_out.unreadable:
        told.append(f"{held_out.unreadable} held-out programs cannot be compared with tasks and are not guarded")
    caps = None
    if guard.max_lines is not None or guard.max_depth is not None:
        caps = Caps(of_task, guard.max_lines, guard.max_depth)
    return Guards(held_out.keys, read_patterns(guard.deny), caps, guard.duplicates), told


def open_race(
    settings: Config,
    engine: Engine,
    base: Base,
    verifier: Verifier,
    guards: Guards,
    operators: dict[str, variation.Operator],
    shelf: Shelf,
    benchmarks: tuple[Benchmarked, ...] = (),
) -> Race:
    """Everything that does not change from step to step."""
    form = Form(settings.tasks.form)
    known: dict[str, Kind[Any, Any]] = {n: k for family in FAMILIES.values() for n, k in family(form).kinds.items()}
    return Race(
        settings=settings,
        kinds={name: known[name] for name in settings.tasks.kinds},
        engine=engine,
        encode=base.encode,
        positions=positions(base),
        verifier=verifier,
        guards=guards,
        operators=operators,
        journal=Journal(shelf),
        base_name=base.name,
        modules=tuple(name for name, _ in base.model.named_modules()),
        device=next(base.model.parameters()).device,
        slices=open_slices(settings, base, benchmarks),
    )


def open_benchmarks(settings: Config) -> tuple[Benchmarked, ...]:
    """The slices that the settings want looked at."""
    asked = settings.evals
    if not asked.every:
        return ()
    folder = None if asked.data is None else Path(asked.data)
    wanted = chosen(",".join(asked.suite))
    can_grade(wanted)
    return tuple(find_benchmark(each, folder, "--evals.data").first(asked.items) for each in wanted)


def open_slices(settings: Config, base: Base, benchmarks: tuple[Benchmarked, ...]) -> Slices | None:
    if not benchmarks:
        return None
    prompts = Prompts(settings.evals.prompts)
    return Slices(benchmarks, encoder(base, prompts), prompts)


async def open_seeds(settings: Config, verifier: Verifier) -> tuple[Task, ...]:
    """What teachers begin from: the user's file, run and found sound, or our own."""
    own = own_seeds(settings)
    return tuple(SEEDS) if own is None else await validated_seeds(own, CodeO(), verifier)


def own_seeds(settings: Config) -> list[Seed] | None:
    """Those that the settings name, not run yet."""
    if settings.tasks.seeds is None:
        return None
    embedded = EMBEDDED.get(settings.tasks.seeds)
    return read_seeds(Path(settings.tasks.seeds) if embedded is None else embedded.seeds)


def new_state(race: Race, seeds: Sequence[Task]) -> State:
    """A race before its first step; the engine has its founders already."""
    began = founders(race.settings.population.teachers, race.settings.population.students)
    if race.settings.rl.update == "none":
        scatter(race.engine, [member.id for member in began.members], race.settings.run.seed)
    return State(0, began, Watch(len(race.kinds)), Board(), Archive(seeds), Coverage(), Coverage())


def old_state(race: Race, seeds: Sequence[Task], loaded: Loaded, records: Store) -> State:
    """Where a checkpoint and the records up to it say that the race stands."""
    for member, weights in loaded.members.items():
        race.engine.write(member, weights)
    entries = [_entry(records, row) for row in records.tasks(newest_first=True, limit=CAPACITY)]
    shapes = list(records.shapes())
    return restored(
        loaded.state,
        Board(tuple(records.meetings())),
        Archive.restored(seeds, reversed(entries), records.keys()),
        Coverage.of(
            # A task without a program is recorded with zeros.
            place(kind, label, Complexity(*figures) if any(figures) else None)
            for kind, label, figures, _ in shapes
        ),
        Coverage.of(behaviour for *_, behaviour in shapes if behaviour is not None),
        frozenset(each.kind for each in records.metrics(LOOKED, BASE)),
    )


def _entry(records: Store, row: TaskRow) -> Entry:
    try:
        task, trivial = restore_task(row.record), None if row.trivial is None else Trivial(row.trivial)
    except (KeyError, TypeError, ValueError, InputError) as error:
        how = f"the task of step {row.step}, place {row.place} is none ({error})"
        raise damaged(records.folder / RECORDS, how) from None
    return Entry(task, row.step, row.teacher, row.solved, row.attempts, trivial)


def adapters(settings: Config, loaded: Loaded | None = None) -> list[MemberId]:
    """Whose weights the engine holds."""
    if loaded is not None:
        return list(loaded.members)
    if settings.population.single:
        return [SOLO]
    return [member.id for member in founders(settings.population.teachers, settings.population.students).members]


def describe(engine: LocalEngine, verifier: LocalVerifier) -> dict[str, str]:
    """What a run runs on, for its records."""
    return {
        "base": engine.base.name,
        "device": torch.cuda.get_device_name() if engine.device.type == "cuda" else f"cpu ({platform.machine()})",
        "dtype": str(engine.dtype).removeprefix("torch."),
        "threads": str(torch.get_num_threads()),
        "isolation": str(verifier.tier),
        "redqueen": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
    }


def inputs(settings: Config) -> dict[str, str]:
    """What the settings' own files hold, by hash: a run that is resumed with other ones says so."""
    asked = [("tasks.seeds", each) for each in [settings.tasks.seeds] if each is not None]
    asked += [("guard.held_out", each) for each in settings.guard.held_out]
    files = [(name, each) for name, each in asked if each not in (*EMBEDDED, FUNCTIONS)]
    return {f"{name} {path}": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for name, path in files}


@contextlib.contextmanager
def heeding_signals(view: View) -> Iterator[Callable[[], bool]]:
    """Whether somebody wants the race to stop: the first Ctrl-C (or SIGTERM) asks, the second does not wait."""
    asked = False

    def ask(number: int, _: object) -> None:
        nonlocal asked
        if asked:
            # The engine's thread may be in the middle of minutes of work. What is on the disk is whole at any moment.
            view.close()
            os._exit(128 + number)
        asked = True
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
        yield lambda: asked
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
    with Store.read(forked.source):  # refuses what is no run
        theirs = load(str(forked.source / CONFIG))
    # Members and adapters are the checkpoint's: other ones cannot go on from it.
    for section, names in (
        ("population", ("teachers", "students", "single")),
        ("engine", ("base", "rank", "alpha", "target_modules")),
    ):
        for name in names:
            there, here = (getattr(getattr(each, section), name) for each in (theirs, settings))
            if there != here:
                raise RunError(
                    f"{forked.source} has {section}.{name} = {shown(there)}, and {shown(here)} is asked for its fork",
                    "a fork keeps its source's members: give the same",
                )
    fork(forked.source, forked.step, folder, dump(settings))


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What a resumed run finds otherwise than it was."""
    return [
        f"{name} was {before[name]} and is {value}: what follows may differ"
        for name, value in now.items()
        if before.get(name, value) != value
    ]


def can_breed(settings: Config, operators: dict[str, variation.Operator]) -> None:
    """What evolution would refuse at its first event, refused at the start."""
    if settings.evolution.every == 0 or any(operator.parents == 1 for operator in operators.values()):
        return
    for role, count in (("teachers", settings.population.teachers), ("students", settings.population.students)):
        if count == 2:
            raise ConfigError(
                f"evolution.operators names no mutation, and of two {role} one is left to breed from",
                "add one that needs a single parent, such as full_noise",
            )
