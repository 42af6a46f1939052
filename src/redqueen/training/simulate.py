"""Whether ratings find out who is good, and whether evolution drops the right ones: a race without any model.

Members get true skills; everything else is what a run does: matchmaking, results, ratings, replacement. True skills
are N(25, 25/6) in both roles, and an attempt succeeds with Phi((student - teacher) / (sqrt(2) beta)), all tasks of a
match alike. Nobody learns. In the races with births a child's skill is its parents' mean, or in a second model that
of the better one, plus N(0, beta/2).
"""

import math
import statistics
import time
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from redqueen.errors import InputError
from redqueen.evolution import replacement
from redqueen.keys import numbers
from redqueen.population.board import Board
from redqueen.population.matchmaking import schedule
from redqueen.population.members import Member, MemberId, Population, founders
from redqueen.population.play import KindOutcome, Outcome, play
from redqueen.population.ratings import BETA, MU, SIGMA
from redqueen.population.results import TaskScore
from redqueen.settings import Config
from redqueen.settings.models import EvolutionConfig
from redqueen.training.checks import check

if TYPE_CHECKING:
    from rich.console import Console

ATTEMPTS = 64
"""Of a match, unless told otherwise."""
ATTEMPTS_PER_TASK = 8
SKILL_SPREAD = SIGMA / 2
CHILD_SPREAD = BETA / 2

Inheritance = Literal["mean", "best"]


class Estimate(NamedTuple):
    """A mean over seeds, and where it lies with 95 % confidence."""

    mean: float
    low: float
    high: float


class _Breeder(NamedTuple):
    name: str
    parents: int


_BREEDERS = (_Breeder("mutation", 1), _Breeder("crossover", 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsReport:
    """What `redqueen simulate ratings` found."""

    teachers: int
    students: int
    seeds: int
    rounds: int
    attempts: int
    births: int
    settings: Mapping[str, Any]
    tau_teachers: Estimate
    """Kendall's tau between rated and true order after the rounds, without births."""
    tau_students: Estimate
    worst_quarter_hit: Estimate
    """The share of the dead that are truly among the worst quarter of their role, by our rule."""
    worst_quarter_hit_paper: Estimate
    worst_quarter_hit_chance: Estimate
    """The same when anybody dies."""
    worst_quarter_hit_best_parent: Estimate
    """As the first, when a child takes after its better parent."""
    worst_quarter_hit_best_parent_paper: Estimate
    newborn_hit: Estimate
    """The share of the dead that were born at the event before, among those of the second event and later."""
    newborn_hit_paper: Estimate
    seconds: float

    @property
    def tau(self) -> Estimate:
        """The lower of both roles'."""
        return min(self.tau_teachers, self.tau_students)

    def as_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("teachers", "students", "seeds", "rounds", "attempts", "births", "settings", "seconds")
        }
        for name in ("tau", *(name for name in type(self).__annotations__ if name not in values)):
            estimate: Estimate = getattr(self, name)
            values[name] = estimate.mean
            values[f"{name}_interval"] = [estimate.low, estimate.high]
        return values

    def render(self, console: "Console") -> None:
        from rich.table import Table

        evolution, match = self.settings["evolution"], self.settings["match"]
        console.print(
            f"{self.teachers} teachers and {self.students} students, {self.seeds} seeds, {self.attempts} attempts a "
            f'match, matchmaker "{match["maker"]}", results by rule "{match["rule"]}"',
            soft_wrap=True,
        )
        table = Table("", "mean", "95 %")
        for column in table.columns[1:]:
            column.justify = "right"
        for name, estimate in (
            (f"order of the teachers after {self.rounds} rounds (Kendall's tau)", self.tau_teachers),
            ("order of the students", self.tau_students),
            ("the dead are of the worst quarter: our rule", self.worst_quarter_hit),
            ("  the paper's rule", self.worst_quarter_hit_paper),
            ("  anybody dies", self.worst_quarter_hit_chance),
            ("  our rule, children take after the better parent", self.worst_quarter_hit_best_parent),
            ("  the paper's rule, likewise", self.worst_quarter_hit_best_parent_paper),
            ("the dead are newborns: our rule", self.newborn_hit),
            ("  the paper's rule", self.newborn_hit_paper),
        ):
            table.add_row(name, f"{estimate.mean:.3f}", f"{estimate.low:.3f} to {estimate.high:.3f}")
        console.print(table)
        console.print(
            f"{self.births} events, one every {evolution['every']} rounds; {self.seconds:.0f} s", soft_wrap=True
        )


@dataclass(slots=True, kw_only=True)
class _Race:
    """A race under way."""

    population: Population
    skills: dict[MemberId, float]
    rng: Random
    board: Board = field(default_factory=Board)
    step: int = 0


def ratings(
    teachers: int, students: int, seeds: int, rounds: int, attempts: int, births: int, settings: Config
) -> RatingsReport:
    """Races of all seeds, without births and with them under both rules."""
    started = time.perf_counter()
    if min(teachers, students) < 2:
        raise InputError("one member of a role has no order", "simulate 2 teachers and 2 students or more")
    if attempts % ATTEMPTS_PER_TASK:
        raise InputError(
            f"--attempts cannot be {attempts}", f"use a multiple of {ATTEMPTS_PER_TASK}, a task's attempts"
        )
    if births < 2:
        raise InputError("one event has no newborns to judge by", "use --births 2 or more")
    if seeds < 2:
        raise InputError("one seed gives no interval", "use --seeds 2 or more")
    if settings.evolution.every == 0:
        raise InputError("evolution.every = 0 leaves no births to simulate", "set it to 1 or more")
    settings = Config.model_validate(
        settings.model_dump() | {"population": {"teachers": teachers, "students": students}}
    )
    # Whether match.exclude and the elites suit these sizes.
    check(settings)
    orders = [_orders(seed, rounds, attempts, settings) for seed in range(seeds)]
    ours = [_births(seed, births, attempts, settings, "ours", "mean") for seed in range(seeds)]
    paper = [_births(seed, births, attempts, settings, "paper", "mean") for seed in range(seeds)]
    ours_best = [_births(seed, births, attempts, settings, "ours", "best") for seed in range(seeds)]
    paper_best = [_births(seed, births, attempts, settings, "paper", "best") for seed in range(seeds)]
    return RatingsReport(
        teachers=teachers,
        students=students,
        seeds=seeds,
        rounds=rounds,
        attempts=attempts,
        births=births,
        settings={name: getattr(settings, name).model_dump(mode="json") for name in ("match", "evolution")},
        tau_teachers=estimate([teachers for teachers, _ in orders]),
        tau_students=estimate([students for _, students in orders]),
        worst_quarter_hit=_share([race.worst for race in ours]),
        worst_quarter_hit_paper=_share([race.worst for race in paper]),
        worst_quarter_hit_chance=_share([race.chance for race in ours]),
        worst_quarter_hit_best_parent=_share([race.worst for race in ours_best]),
        worst_quarter_hit_best_parent_paper=_share([race.worst for race in paper_best]),
        newborn_hit=_share([race.newborn for race in ours]),
        newborn_hit_paper=_share([race.newborn for race in paper]),
        seconds=time.perf_counter() - started,
    )


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """The share of pairs in the same order, less that of pairs in the opposite one."""
    signs = [
        math.copysign(1, (one[i] - one[j]) * (other[i] - other[j])) if one[i] != one[j] and other[i] != other[j] else 0
        for i, j in combinations(range(len(one)), 2)
    ]
    return statistics.fmean(signs)


def estimate(values: Sequence[float]) -> Estimate:
    mean = statistics.fmean(values)
    error = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - error, mean + error)


class _Deaths(NamedTuple):
    """Of one race, for every death whether ..."""

    worst: list[bool]
    """... it was one of the truly worst quarter's,"""
    chance: list[bool]
    """... somebody drawn at random was,"""
    newborn: list[bool]
    """... it was one of those that the last event brought."""


def _share(races: Sequence[list[bool]]) -> Estimate:
    """Races are the unit: deaths within one are not independent."""
    shares = [statistics.fmean(race) for race in races if race]
    if len(shares) < 2:
        raise InputError("too few members die to judge by", "use more --births, or larger roles")
    return estimate(shares)


def _start(seed: int, settings: Config) -> _Race:
    rng = numbers("simulate", seed)
    population = founders(settings.population.teachers, settings.population.students)
    return _Race(
        population=population, skills={each.id: rng.gauss(MU, SKILL_SPREAD) for each in population.members}, rng=rng
    )


def _orders(seed: int, rounds: int, attempts: int, settings: Config) -> tuple[float, float]:
    race = _start(seed, settings)
    for _ in range(rounds):
        _round(race, attempts, settings)
    return _tau(race, race.population.teachers), _tau(race, race.population.students)


def _tau(race: _Race, members: Sequence[Member]) -> float:
    return kendall([each.rating.mu for each in members], [race.skills[each.id] for each in members])


def _births(
    seed: int, births: int, attempts: int, settings: Config, rule: Literal["ours", "paper"], inheritance: Inheritance
) -> _Deaths:
    race = _start(seed, settings)
    evolution: EvolutionConfig = settings.evolution.model_copy(update={"rule": rule})
    settings = settings.model_copy(update={"match": settings.match.model_copy(update={"rule": rule})})
    deaths = _Deaths([], [], [])
    for _ in range(births):
        events = _interval(race, attempts, settings, evolution, seed)
        for event in events:
            role = race.population.of(event.role)
            skills = sorted(race.skills[each.id] for each in role)
            worst = skills[max(1, len(role) // 4) - 1]
            deaths.worst.append(race.skills[event.dead] <= worst)
            deaths.chance.append(race.skills[race.rng.choice(role).id] <= worst)
            if race.step > evolution.every:
                born = race.population.member(event.dead).birth.step
                deaths.newborn.append(born == race.step - evolution.every)
        _replace(race, events, inheritance)
    return deaths


def lineage(births: int, seed: int, settings: Config) -> Population:
    """The population, with its dead, of a race with births: what there is to draw of a real one."""
    if settings.evolution.every == 0:
        raise InputError("evolution.every = 0 leaves no births to simulate", "set it to 1 or more")
    from redqueen.evolution.variation import resolve

    operators = list(resolve(settings.evolution.operators).values())
    race = _start(seed, settings)
    for _ in range(births):
        _replace(race, _interval(race, ATTEMPTS, settings, settings.evolution, seed, operators), "mean")
    return race.population


def _interval(
    race: _Race,
    attempts: int,
    settings: Config,
    evolution: EvolutionConfig,
    seed: int,
    operators: Sequence[replacement.Breeder] = _BREEDERS,
) -> list[replacement.Event]:
    """The rounds from one replacement to the next, and the plan of that."""
    for _ in range(evolution.every):
        _round(race, attempts, settings)
    return replacement.plan(race.population, race.step, evolution, race.board, operators, seed)


def _replace(race: _Race, events: Sequence[replacement.Event], inheritance: Inheritance) -> None:
    for event in events:
        inherited = [race.skills[parent] for parent in event.parents]
        middle = statistics.fmean(inherited) if inheritance == "mean" else max(inherited)
        race.skills[event.child.id] = race.rng.gauss(middle, CHILD_SPREAD)
    race.population = replacement.apply(race.population, events)


def _round(race: _Race, attempts: int, settings: Config) -> None:
    race.step += 1
    match = settings.match
    matches = schedule(race.population, match.maker, race.board, race.rng, match.panel, match.kept_apart)
    outcomes = [
        Outcome(each.teacher, student, {"simulated": _outcome(race, each.teacher, student, attempts)})
        for each in matches
        for student in each.students
    ]
    race.population, meetings = play(race.population, race.step, outcomes, match.rule)
    race.board = race.board.add(meetings)


def _outcome(race: _Race, teacher: MemberId, student: MemberId, attempts: int) -> KindOutcome:
    p = NormalDist().cdf((race.skills[student] - race.skills[teacher]) / (math.sqrt(2) * BETA))
    sizes = [ATTEMPTS_PER_TASK] * (attempts // ATTEMPTS_PER_TASK)
    if attempts % ATTEMPTS_PER_TASK:
        sizes.append(attempts % ATTEMPTS_PER_TASK)
    scores = tuple(TaskScore(solved, size) for size, solved in zip(sizes, _binomials(sizes, p, race.rng), strict=True))
    rates = [score.solved / score.attempts for score in scores]
    return KindOutcome(
        scores,
        teacher_reward=statistics.fmean(1 - rate if rate else 0.0 for rate in rates),
        student_reward=1.5 * statistics.fmean(rates) - 0.5,
    )


def _binomials(sizes: Sequence[int], p: float, rng: Random) -> list[int]:
    ladders = {
        size: list(accumulate(math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(size)))
        for size in set(sizes)
    }
    return [bisect(ladders[size], rng.random()) for size in sizes]
