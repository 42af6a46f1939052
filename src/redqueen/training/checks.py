"""What settings must agree on across sections, and with the plug-ins that they name. Light, so that a mistake is told
at once; nothing is opened."""

import math
from collections.abc import Iterator
from random import Random

from redqueen.cluster.asked import refuse_settings
from redqueen.errors import ConfigError
from redqueen.plugins import BENCHMARKS, ESTIMATORS, MATCHMAKERS, OPERATORS, REGISTRIES, Registry
from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker, count_matches, schedule
from redqueen.population.members import founders
from redqueen.rl.advantages import Estimator
from redqueen.rl.batch import MIN_ROWS
from redqueen.settings import Config, flat
from redqueen.settings.idle import idle
from redqueen.settings.toml import shown
from redqueen.tasks.families import Families
from redqueen.tasks.guards import read_patterns
from redqueen.ui.trackers import refuse_unknown


def with_kinds(settings: Config) -> Config:
    """The settings with all kinds of their families, where tasks.kinds was left out and tasks.families was not."""
    tasks = settings.tasks
    if "kinds" in tasks.model_fields_set or "families" not in tasks.model_fields_set:
        return settings
    _check_plugins(settings)
    kinds = tuple(Families.of(tasks.families).kinds)
    return settings.model_copy(update={"tasks": tasks.model_copy(update={"kinds": kinds})})


def check(settings: Config) -> None:
    """Refuse settings with which no race can be run or nothing can be learnt."""
    _check_plugins(settings)
    refuse_settings(settings.cluster)
    refuse_unknown(settings.track.to)
    _check_tasks(settings)
    _check_sources(settings)
    _check_single(settings)
    _check_learning(settings)
    _check_matches(settings)
    _check_evolution(settings)


def refuse_idle(settings: Config) -> None:
    """Refuse what would do nothing, for a new race: whoever asks for it is mistaken. One that has it goes on."""
    asked, off = flat(settings), flat(Config())
    for name, why in idle(settings).items():
        what = f"{name} = {shown(asked[name], quote=True)} would do nothing: {why}"
        raise ConfigError(what, f"set {name} to {'none' if off[name] is None else shown(off[name], quote=True)}")


def named_plugins(settings: Config) -> Iterator[tuple[Registry, str]]:
    """What the settings name, as they write it."""
    values = flat(settings)
    for registry in REGISTRIES:
        value = values[registry.setting]
        for text in [value] if isinstance(value, str) else value:
            yield registry, text


def _check_plugins(settings: Config) -> None:
    """Operators and benchmarks take long to import: whoever needs them does."""
    for registry, text in named_plugins(settings):
        registry.check(text)
        if registry not in (OPERATORS, BENCHMARKS):
            registry.get(text)


def _check_tasks(settings: Config) -> None:
    tasks = settings.tasks
    Families.of(tasks.families).chosen(tasks.kinds)
    if len(set(tasks.kinds)) < len(tasks.kinds):
        raise ConfigError("tasks.kinds names a kind twice", "say how often each is wanted with tasks.mix")
    if tasks.mix and len(tasks.mix) != len(tasks.kinds):
        raise ConfigError(
            f"tasks.mix has {len(tasks.mix)} numbers for {len(tasks.kinds)} kinds",
            "give one for each of tasks.kinds, or leave it out",
        )
    read_patterns(settings.guard.deny)


def proposed_kinds(settings: Config) -> list[str]:
    """The kinds that teachers are asked for: those of no source."""
    families = Families.of(settings.tasks.families)
    return [kind for kind in settings.tasks.kinds if families.source_of(kind) is None]


def _check_sources(settings: Config) -> None:
    """Students may train on fixed sources alone; then there is nobody to propose, and nobody is rated."""
    population, proposed = settings.population, proposed_kinds(settings)
    if population.teachers and not proposed:
        raise ConfigError(
            f"nobody proposes tasks of a fixed source, and population.teachers = {population.teachers}",
            "set population.teachers to 0 and evolution.every to 0, or add a family such as code to tasks.families",
        )
    if population.teachers:
        return
    if proposed:
        raise ConfigError(
            f"population.teachers = 0 leaves nobody to propose {', '.join(proposed)}",
            "set population.teachers to 1 or more, or leave these out of tasks.kinds",
        )
    if settings.match.exclude:
        raise ConfigError("match.exclude keeps seats apart, and without teachers there are no matches", "leave it out")
    if settings.evolution.every and not settings.evolution.trial:
        raise ConfigError(
            f"evolution.every = {settings.evolution.every} goes by ratings, and without teachers nobody is rated",
            "set evolution.every to 0, or evolution.trial to 8 or so: students are then compared at common tasks",
        )


def _least_prompts(settings: Config) -> int:
    """What a teacher is asked in a match at least: what falls to sources is not asked of it."""
    tasks, proposed = settings.tasks, proposed_kinds(settings)
    if len(proposed) == len(tasks.kinds):
        return tasks.prompts
    weights = dict(zip(tasks.kinds, tasks.mix or [1.0] * len(tasks.kinds), strict=True))
    return sum(math.floor(weights[kind] / sum(weights.values()) * tasks.prompts + 1e-9) for kind in proposed)


def _check_single(settings: Config) -> None:
    if not settings.population.single:
        return
    mend = "use `--arm single`, which sets what belongs to it"
    if settings.population.teachers != 1 or settings.population.students != 1:
        raise ConfigError("population.single is one adapter in both roles: one teacher and one student", mend)
    if settings.evolution.every:
        raise ConfigError("population.single leaves nobody to evolve, and evolution.every is not 0", mend)
    if settings.rl.frozen != "nobody":
        raise ConfigError(f'population.single is both, and rl.frozen = "{settings.rl.frozen}" would stop both', mend)


def _check_learning(settings: Config) -> None:
    """A group of one has nothing to be compared with, and a handful of texts makes no step (`rl.batch`)."""
    if settings.rl.update == "none":
        return
    alone = [name for name in ("proposals", "attempts") if getattr(settings.tasks, name) == 1]
    estimator: Estimator = ESTIMATORS.get(settings.rl.estimator)
    if alone and estimator.needs_groups:
        raise ConfigError(
            f'tasks.{alone[0]} = 1 leaves rl.estimator = "{settings.rl.estimator}" nothing to compare',
            "use 2 or more, or an estimator that compares other things than the texts of one prompt",
        )
    teachers = settings.population.teachers
    if not teachers:
        return
    maker: Maker = MATCHMAKERS.get(settings.match.maker)
    matches, _ = count_matches(teachers, settings.population.students, maker, settings.match.panel)
    texts = _least_prompts(settings) * settings.tasks.proposals * (matches // teachers)
    if texts < MIN_ROWS and settings.rl.frozen != "teachers":
        raise ConfigError(
            f"tasks.prompts and tasks.proposals make {texts} texts, too few for a teacher to learn from",
            f"make their product {MIN_ROWS} or more, or freeze the teachers with rl.frozen",
        )


def _check_matches(settings: Config) -> None:
    teachers = [f"t{index}" for index in range(settings.population.teachers)]
    students = [f"s{index}" for index in range(settings.population.students)]
    panel = settings.match.panel or 1
    if panel > len(students):
        raise ConfigError(
            f"match.panel = {panel} wants more students than population.students = {len(students)}",
            f"use a panel of at most {len(students)}, or more students",
        )
    apart = settings.match.kept_apart
    for seats, seated in ((teachers, [t for t, _ in apart]), (students, [s for _, s in apart])):
        for seat in sorted(set(seated) - set(seats)):
            raise ConfigError(
                f"match.exclude names {shown(seat)}, and there is no such seat",
                f"the seats are {seats[0]} to {seats[-1]}" if len(seats) > 1 else f"the only one is {seats[0]}",
            )
    for seat in students if apart else ():
        if all((teacher, seat) in apart for teacher in teachers):
            raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
    for seat in teachers if apart else ():
        left = sum((seat, student) not in apart for student in students)
        if left == 0:
            raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
        if left < panel:
            raise ConfigError(
                f"match.panel = {panel} wants more students than match.exclude leaves to {seat}",
                f"use a panel of at most {left}, or exclude fewer pairs",
            )
    if apart:
        # A schedule that cannot be made, or seldom, must not end a run in the middle.
        population = founders(settings.population.teachers, settings.population.students)
        maker: Maker = MATCHMAKERS.get(settings.match.maker)
        for seed in range(10):
            schedule(population, maker, Board(), Random(seed), settings.match.panel, apart)


def _check_evolution(settings: Config) -> None:
    for role, count in (("teachers", settings.population.teachers), ("students", settings.population.students)):
        if settings.evolution.every and count > 1 and settings.evolution.elites >= count:
            raise ConfigError(
                f"evolution.elites = {settings.evolution.elites} spares all of population.{role} = {count}",
                "use fewer elites, or turn evolution off with evolution.every = 0",
            )
    if settings.rl.update == "none":
        if settings.evolution.every == 0:
            raise ConfigError(
                'with rl.update = "none" and evolution.every = 0 nothing would ever change',
                "let one of the two work",
            )
        if max(settings.population.teachers, settings.population.students) == 1:
            raise ConfigError(
                'rl.update = "none" leaves everything to evolution, which replaces nobody in a role of one',
                "set population.teachers or population.students to 2 or more",
            )
