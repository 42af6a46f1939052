"""The one place that puts races together: verifier, engine, race and state, opened from settings and closed again.

    with open_races([Start.new(settings)]) as stage: ...                 a new race, of which nothing is kept
    with open_races([Start.of_run(settings, rules, run)]) as stage: ...  a run's, where it stands

Several races share one engine and one verifier, each with members of its own names; each is the race that it would be
alone.
"""

import asyncio
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Self

import torch

from redqueen import __version__
from redqueen.analysis import quarters
from redqueen.analysis.coverage import Coverage
from redqueen.analysis.watch import Watch
from redqueen.cluster.asked import is_asked_for
from redqueen.cluster.connect import open_judges, open_members
from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.verifier import ClusterVerifier
from redqueen.cluster.watched import WatchedWorkers
from redqueen.engine.bank import Bank
from redqueen.engine.local import LocalEngine
from redqueen.engine.namespaced import NamespacedEngine
from redqueen.engine.protocol import Engine, MemberId, MemberState
from redqueen.engine.queued import QueuedEngine
from redqueen.errors import InputError
from redqueen.evals.asking import Slices, encoder, is_chat, positions
from redqueen.evals.protocol import Prompts
from redqueen.keys import key
from redqueen.phases.checks import Checks
from redqueen.phases.journal import Forgetful, Journal, Shelf
from redqueen.phases.race import Race
from redqueen.phases.state import State, restored
from redqueen.population.board import Board
from redqueen.population.members import SOLO, founders
from redqueen.resources import unwatched_objects
from redqueen.runs.checkpoints import Loaded
from redqueen.runs.metrics import BASE, BENCHMARK
from redqueen.runs.records_file import RECORDS
from redqueen.runs.rows import TaskRow
from redqueen.runs.run import Run
from redqueen.runs.sqlite import damaged
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.tasks.archive import CAPACITY, Archive, Entry, Trivial
from redqueen.tasks.families import Families
from redqueen.tasks.files import validated_seeds
from redqueen.tasks.protocol import Complexity, Task
from redqueen.training.checks import refuse_idle
from redqueen.training.rules import Rules, read_rules
from redqueen.training.sources import refuse_unsound
from redqueen.verifier import OpenVerifier, Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A race that is to be opened: new, or where a checkpoint and the records up to it say that it stands."""

    settings: Config
    rules: Rules
    name: str = ""
    """What its members are called by on an engine that it shares; empty for a race alone."""
    checkpoint: Loaded | None = None
    records: Store | None = None
    """Of the checkpoint."""
    shelf: Shelf = field(default_factory=Forgetful)
    """Where verdicts are journalled."""

    @classmethod
    def new(cls, settings: Config, name: str = "", shelf: Shelf | None = None) -> Self:
        """At the beginning."""
        rules = read_rules(settings)
        refuse_idle(settings)
        return cls(settings=settings, rules=rules, name=name, shelf=shelf or Forgetful())

    @classmethod
    def of_run(cls, settings: Config, rules: Rules, run: Run, name: str = "") -> Self:
        """Where the run stands; what is judged goes into its journal."""
        return cls(settings=settings, rules=rules, name=name, checkpoint=run.loaded, records=run.store, shelf=run.store)

    @property
    def adapters(self) -> list[MemberId]:
        """Whose weights the engine holds, by the race's own names."""
        if self.checkpoint is not None:
            return list(self.checkpoint.members)
        population = self.settings.population
        if population.single:
            return [SOLO]
        return [member.id for member in founders(population.teachers, population.students).members]


@dataclass(frozen=True, slots=True)
class Opened:
    """A race and where it stands."""

    race: Race
    state: State


@dataclass(frozen=True, slots=True)
class Stage:
    """What races run on, and the races."""

    engine: QueuedEngine
    verifier: OpenVerifier
    races: Mapping[str, Opened]
    """By name."""
    facts: Mapping[str, str]
    """What they run on, for records."""

    @property
    def only(self) -> Opened:
        [opened] = self.races.values()
        return opened

    @property
    def local(self) -> LocalEngine:
        """The engine, of this process."""
        assert isinstance(self.engine, LocalEngine), "only a race that says so is opened on a cluster"
        return self.engine


@contextmanager
def open_races(
    starts: Sequence[Start],
    shared: Config | None = None,
    *,
    beside: Mapping[MemberId, MemberState] | None = None,
    workers: int | None = None,
    engines: int = 1,
    cluster: bool = False,
) -> Iterator[Stage]:
    """Open what these races need, and the races. `shared` has the settings of engine and verifier: the first race's
    when left out.

    `beside` are further members of the engine; `workers` is for settings that leave the verifier's open; so many
    `engines` are to share the device's memory. Without `cluster` races that have one are refused.
    """
    shared = shared or starts[0].settings
    if is_asked_for(shared.cluster) and not cluster:
        mend = "leave out all settings of cluster"
        raise InputError("this is not done on a cluster: races, studies and evaluations are", mend)
    members = [f"{start.name}{member}" for start in starts for member in start.adapters]
    trains = any(start.settings.rl.update != "none" for start in starts)
    with (
        open_judges(shared, workers) as verifier,
        open_members(shared, [*members, *(beside or ())], engines, trains=trains) as engine,
    ):
        for member, weights in (beside or {}).items():
            engine.write(member, weights)
        corners = _corners(engine, starts)
        races = asyncio.run(_open_all(starts, corners, engine, verifier))
        with unwatched_objects():
            yield Stage(engine, verifier, races, _facts(engine, verifier))


class _Own(NamespacedEngine):
    """A race's part of a shared engine, whose fresh members have the A factors of the race's own seed, as alone."""

    def __init__(self, engine: QueuedEngine, name: str, fresh: MemberState) -> None:
        super().__init__(engine, name)
        self._fresh = fresh

    def fresh(self) -> MemberState:
        return self._fresh


def _corners(engine: QueuedEngine, starts: Sequence[Start]) -> list[Engine]:
    """The engine as each race sees it."""
    if len(starts) == 1 and not starts[0].name:
        return [engine]
    fresh = {seed: _fresh(engine, seed) for seed in dict.fromkeys(start.settings.run.seed for start in starts)}
    corners = [_Own(engine, start.name, fresh[start.settings.run.seed]) for start in starts]
    for start, corner in zip(starts, corners, strict=True):
        if start.checkpoint is None:
            for member in start.adapters:
                corner.write(member, corner.fresh())
    return list(corners)


def _fresh(engine: QueuedEngine, seed: int) -> MemberState:
    """What a fresh member is on an engine of this seed."""
    bank, cpu = engine.bank, torch.device("cpu")
    linears = [group.linears for group in bank.groups]
    return Bank(linears, rank=bank.rank, alpha=bank.alpha, members=(), device=cpu, dtype=bank.dtype, seed=seed).fresh()


async def _open_all(
    starts: Sequence[Start], corners: Sequence[Engine], engine: QueuedEngine, verifier: OpenVerifier
) -> dict[str, Opened]:
    opened: dict[str, Opened] = {}
    for start, corner in zip(starts, corners, strict=True):
        await refuse_unsound(start.settings, start.rules.versions, verifier, start.records)
        race = _race(start, corner, engine, verifier)
        seeds = await _seeds(start.rules, verifier)
        opened[start.name] = Opened(
            race, _new_state(race, seeds) if start.checkpoint is None else _old(race, seeds, start)
        )
    return opened


USUAL_LOOK = 20
"""Steps from one look at benchmarks to the next, where settings do not say."""


def _race(start: Start, engine: Engine, whole: QueuedEngine, verifier: Verifier) -> Race:
    """Everything that does not change from step to step. `engine` is the race's part of `whole`."""
    settings, rules, base = start.settings, start.rules, whole.base
    slices, prompts = None, Prompts(settings.evals.prompts)
    evals = settings.evals
    workers = None
    if isinstance(whole, ClusterEngine) and settings.cluster.address is not None:
        workers = WatchedWorkers(whole, start.name, verifier if isinstance(verifier, ClusterVerifier) else None)
    asked = evals.every is not None or evals.data is not None or prompts is Prompts.RAW or is_chat(base)
    if rules.benchmarks and asked:
        slices = Slices(rules.benchmarks, encoder(base, prompts), prompts, evals.every or USUAL_LOOK)
    return Race(
        settings=settings,
        families=rules.families,
        kinds=rules.families.chosen(settings.tasks.kinds),
        engine=engine,
        size=whole.size,
        norms=whole.norms,
        encode=base.encode,
        positions=positions(base),
        verifier=verifier,
        guards=rules.guards,
        operators=rules.operators,
        journal=Journal(start.shelf, rules.families.restore),
        checks=Checks(),
        base_name=base.name,
        modules=tuple(name for name, _ in base.model.named_modules()),
        device=whole.device,
        slices=slices,
        workers=workers,
    )


async def _seeds(rules: Rules, verifier: Verifier) -> tuple[Task, ...]:
    """What teachers begin from: the user's own, run and found sound, or the families'."""
    own = rules.seeds
    return rules.families.seeds if own is None else await validated_seeds(own, rules.families, verifier)


def _new_state(race: Race, seeds: Sequence[Task]) -> State:
    """Before its first step; the engine has its founders already."""
    began = founders(race.settings.population.teachers, race.settings.population.students)
    if race.settings.rl.update == "none":
        for member in began.members:
            race.engine.write(member.id, race.fresh(key(race.settings.run.seed, "scatter", member.id)))
    return State(
        step=0,
        population=began,
        watch=Watch(max(len(race.proposed), 1)),
        board=Board(),
        archive=Archive(seeds),
        cells=Coverage(),
        behaviours=Coverage(),
    )


def _old(race: Race, seeds: Sequence[Task], start: Start) -> State:
    """Where the checkpoint and the records up to it say that the race stands."""
    loaded, records = start.checkpoint, start.records
    assert loaded is not None and records is not None
    for member, weights in loaded.members.items():
        race.engine.write(member, weights)
    entries = [_entry(records, row, race.families) for row in records.tasks(newest_first=True, limit=CAPACITY)]
    shapes = list(records.shapes())
    return restored(
        loaded.state,
        Board(tuple(records.meetings())),
        Archive.restored(seeds, reversed(entries), records.keys()),
        Coverage.of(race.families.cell(kind, label, Complexity(*figures)) for kind, label, figures, _ in shapes),
        Coverage.of(behaviour for *_, behaviour in shapes if behaviour is not None),
        frozenset(row.kind for row in records.metrics(BENCHMARK, BASE)),
        quarters.flops(records),
    )


def _entry(records: Store, row: TaskRow, families: Families) -> Entry:
    try:
        task, trivial = families.restore(row.record), None if row.trivial is None else Trivial(row.trivial)
    except (KeyError, TypeError, ValueError, InputError) as error:
        how = f"the task of step {row.step}, place {row.place} is none of its family's ({error})"
        raise damaged(records.folder / RECORDS, how) from None
    return Entry(
        task=task, step=row.step, teacher=row.teacher, solved=row.solved, attempts=row.attempts, trivial=trivial
    )


def _facts(engine: QueuedEngine, verifier: OpenVerifier) -> dict[str, str]:
    """What races run on, for their records."""
    return {
        "base": engine.base.name,
        "device": engine.computes_on,
        "dtype": str(engine.dtype).removeprefix("torch."),
        "quantise": engine.base.quantise,
        "threads": str(torch.get_num_threads()),
        "isolation": str(verifier.tier),
        "redqueen": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
    }
