"""What is read of a race's settings before anything is opened: a mistake in it then costs nothing."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.console import say
from redqueen.errors import ConfigError, InputError
from redqueen.evals.benchmarks import chosen
from redqueen.evals.data import LoadedBenchmark, at_hand, find
from redqueen.evals.maths import check_gradable
from redqueen.evals.protocol import Prompts
from redqueen.evolution.variation import Operator, resolve
from redqueen.plugins import BENCHMARKS, FAMILIES
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.files import FileDraft, exam_file, read_held_out, read_seeds
from redqueen.tasks.guards import Guards, read_patterns
from redqueen.tasks.protocol import Form
from redqueen.training.checks import check, named_plugins


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a race goes by, beside its settings."""

    families: Families
    operators: Mapping[str, Operator]
    guards: Guards
    seeds: Sequence[FileDraft] | None
    """The user's own, not run yet; None for the families'."""
    benchmarks: tuple[LoadedBenchmark, ...]
    """The slices that members are evaluated on during the race."""
    versions: Mapping[str, str]
    """Of the user's files and of packages with plug-ins: a run that is resumed with other ones says so."""
    notes: tuple[str, ...]
    """Lines about what could not be read."""


def read_rules(settings: Config) -> Rules:
    check(settings)
    tasks = settings.tasks
    families = Families.of(tasks.families, tasks.form, unfenced=tasks.unfenced, briefs=tasks.briefs)
    operators = resolve(settings.evolution.operators)
    _can_breed(settings, operators)
    guards, notes = read_guards(settings, families)
    seeds = _read_seeds(settings, families, notes)
    return Rules(
        families=families,
        operators=operators,
        guards=guards,
        seeds=seeds,
        benchmarks=_read_benchmarks(settings),
        versions=versions(settings, families),
        notes=tuple(notes),
    )


def read_guards(settings: Config, families: Families) -> tuple[Guards, list[str]]:
    """What the settings refuse, and lines about what of it could not be read."""
    guard, foreign = settings.guard, _shipped().exams.keys() - families.exams.keys()
    told = [f"guard.held_out: none of tasks.families has the exam {name}" for name in guard.held_out if name in foreign]
    files = [exam_file(name, families) for name in guard.held_out if name not in foreign]
    held_out = read_held_out(files, families)
    if held_out.unreadable:
        told.append(f"{held_out.unreadable} held-out programs cannot be compared with tasks and are not guarded")
    caps = {name: most for name, most in (("lines", guard.max_lines), ("depth", guard.max_depth)) if most is not None}
    guards = Guards(
        held_out=held_out.keys,
        deny=read_patterns(guard.deny),
        caps=caps,
        duplicates=guard.duplicates,
        shortcuts=guard.shortcuts,
    )
    return guards, told


def _read_seeds(settings: Config, families: Families, notes: list[str]) -> list[FileDraft] | None:
    name = settings.tasks.seeds
    if name is None:
        return None
    if name in families.seed_files:
        return read_seeds(families.seed_files[name], families)
    if name in _shipped().seed_files:
        notes.append(f"tasks.seeds: none of tasks.families has the seeds {name}; each begins with its own")
        return None
    return read_seeds(Path(name), families)


def _shipped() -> Families:
    """The families that come with the package. A preset may name their seeds and exams, which say nothing to a race
    without them."""
    return Families.of(tuple(FAMILIES.builtins))


def _read_benchmarks(settings: Config) -> tuple[LoadedBenchmark, ...]:
    """The slices that the settings want members evaluated on; where they do not say, those that are at hand."""
    evals = settings.evals
    if evals.every == 0:
        return ()
    folder = None if evals.data is None else Path(evals.data)
    wanted = chosen(evals.suite, Prompts(evals.prompts))
    if evals.every is not None or folder is not None:
        check_gradable(wanted)
        return tuple(find(benchmark, folder, "--evals.data").first(evals.items) for benchmark in wanted)
    found = []
    for benchmark in wanted if settings.tasks.form != Form.SHORT else ():
        if at_hand(benchmark):
            try:
                check_gradable([benchmark])
                found.append(find(benchmark).first(evals.items))
            except InputError as error:
                say(f"members will not be evaluated on {benchmark.name}: {error}")
    return tuple(found)


def versions(settings: Config, families: Families) -> dict[str, str]:
    """Of all that the settings name and that does not come with the package: hashes of files, the plug-ins' included,
    and versions of the packages that provide plug-ins."""
    files: list[tuple[str, str | Path]] = []
    packages: dict[str, str] = {}
    known = _shipped()
    if settings.tasks.seeds is not None and settings.tasks.seeds not in {*families.seed_files, *known.seed_files}:
        files.append(("tasks.seeds", settings.tasks.seeds))
    exams = {*families.exams, *known.exams}
    files += [("guard.held_out", name) for name in settings.guard.held_out if name not in exams]
    for registry, text in named_plugins(settings):
        if registry is BENCHMARKS and settings.evals.every == 0:
            continue
        name = registry.name_in(text)
        if (file := registry.file_in(name)) is not None:
            files.append((registry.setting, file))
        elif (package := registry.package(name)) is not None:
            packages[f"{registry.setting} {name}"] = package
    hashes = {f"{name} {path}": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for name, path in files}
    return hashes | packages


def _can_breed(settings: Config, operators: dict[str, Operator]) -> None:
    """What evolution would refuse at its first event, or could not make anything of, refused at the start."""
    if settings.rl.update == "none":
        if all(operator.copies for operator in operators.values()):
            raise ConfigError(
                'with rl.update = "none" and copies alone nothing would ever change',
                "add an operator that makes something new: `redqueen operators` lists them",
            )
        for name in (name for name, operator in operators.items() if operator.moments):
            raise ConfigError(
                f'the operator "{name}" in evolution.operators weighs by the optimiser\'s moments, and with '
                'rl.update = "none" there are none',
                "leave one of the two out",
            )
    if settings.evolution.pull and settings.evolution.every:
        for name in (name for name, operator in operators.items() if not operator.keeps_factors):
            raise ConfigError(
                f'the operator "{name}" gives children other factors than their parents, and evolution.pull averages '
                "factors",
                "use operators that keep them, such as slot_noise and layer_wise, or set evolution.pull or "
                "evolution.every to 0",
            )
    if settings.evolution.every == 0 or any(operator.parents == 1 for operator in operators.values()):
        return
    for role, count in (("teachers", settings.population.teachers), ("students", settings.population.students)):
        if count == 2:
            raise ConfigError(
                f"evolution.operators names no mutation, and of two {role} one is left to breed from",
                "add one that needs a single parent: `redqueen operators` lists them",
            )
