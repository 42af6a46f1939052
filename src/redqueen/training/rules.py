"""What is read of a race's settings before anything is opened: a mistake in it then costs nothing."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.analysis.complexity import of_task
from redqueen.engine.known import EMBEDDED
from redqueen.errors import ConfigError
from redqueen.evals.benchmarks import chosen
from redqueen.evals.data import LoadedBenchmark, find
from redqueen.evals.exam_files import FUNCTIONS, exam_file
from redqueen.evals.maths import check_gradable
from redqueen.evolution.variation import Operator, resolve
from redqueen.settings import Config
from redqueen.tasks.guards import Caps, Guards, read_patterns
from redqueen.tasks.library import Seed, read_held_out, read_seeds
from redqueen.training.checks import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a race goes by, beside its settings."""

    operators: Mapping[str, Operator]
    guards: Guards
    seeds: Sequence[Seed] | None
    """The user's own, not run yet; None for the family's."""
    benchmarks: tuple[LoadedBenchmark, ...]
    """The slices that members are evaluated on during the race."""
    files: Mapping[str, str]
    """What the settings' own files hold, by hash: a run that is resumed with other ones says so."""
    notes: tuple[str, ...]
    """Lines about what could not be read."""


def read_rules(settings: Config) -> Rules:
    check(settings)
    operators = resolve(settings.evolution.operators)
    _can_breed(settings, operators)
    guards, notes = read_guards(settings)
    return Rules(
        operators=operators,
        guards=guards,
        seeds=_read_seeds(settings),
        benchmarks=_read_benchmarks(settings),
        files=hash_files(settings),
        notes=tuple(notes),
    )


def read_guards(settings: Config) -> tuple[Guards, list[str]]:
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


def _read_seeds(settings: Config) -> list[Seed] | None:
    if settings.tasks.seeds is None:
        return None
    embedded = EMBEDDED.get(settings.tasks.seeds)
    return read_seeds(Path(settings.tasks.seeds) if embedded is None else embedded.seeds)


def _read_benchmarks(settings: Config) -> tuple[LoadedBenchmark, ...]:
    """The slices that the settings want members evaluated on."""
    asked = settings.evals
    if not asked.every:
        return ()
    folder = None if asked.data is None else Path(asked.data)
    wanted = chosen(",".join(asked.suite))
    check_gradable(wanted)
    return tuple(find(each, folder, "--evals.data").first(asked.items) for each in wanted)


def hash_files(settings: Config) -> dict[str, str]:
    asked = [("tasks.seeds", each) for each in [settings.tasks.seeds] if each is not None]
    asked += [("guard.held_out", each) for each in settings.guard.held_out]
    files = [(name, each) for name, each in asked if each not in (*EMBEDDED, FUNCTIONS)]
    return {f"{name} {path}": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for name, path in files}


def _can_breed(settings: Config, operators: dict[str, Operator]) -> None:
    """What evolution would refuse at its first event, refused at the start."""
    if settings.evolution.every == 0 or any(operator.parents == 1 for operator in operators.values()):
        return
    for role, count in (("teachers", settings.population.teachers), ("students", settings.population.students)):
        if count == 2:
            raise ConfigError(
                f"evolution.operators names no mutation, and of two {role} one is left to breed from",
                "add one that needs a single parent, such as full_noise",
            )
