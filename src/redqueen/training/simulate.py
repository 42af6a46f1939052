"""Do ratings find the better members, and does evolution replace the worst? Races with known skills and no model.

Members get true skills; everything else is what a run does: matchmaking, results, ratings, replacement. True skills
are N(25, 25/6) in both roles, or as near to each other as the user says, and an attempt succeeds with
Phi((student - teacher) / (sqrt(2) beta)), all tasks of a match alike. Nobody learns. In the races with births a child's
skill is its parents' mean, or in a second model that of the better one, plus normal noise of half the spread of skills.

A trial (`evolution.trial`) gives a member its true solve rate against an average opponent plus noise. Each role has its
own: a student is judged by all its attempts at the tasks of the interval that are fit for a trial, of which there may
be fewer than it asks for; a teacher by one reward for each of its proposals.
"""

import math
import statistics
import time
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, combinations
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from redqueen.console import print_table
from redqueen.errors import InputError
from redqueen.evolution import replacement
from redqueen.keys import numbers
from redqueen.plugins import MATCHMAKERS
from redqueen.population.board import Board
from redqueen.population.matchmaking import schedule
from redqueen.population.members import Member, MemberId, Population, Role, founders
from redqueen.population.play import KindOutcome, MatchOutcome, play
from redqueen.population.ratings import BETA, MU, SIGMA
from redqueen.population.results import TaskScore
from redqueen.settings import Config
from redqueen.training.checks import check

if TYPE_CHECKING:
    from rich.console import Console

ATTEMPTS = 64
"""Of a match in `lineage`."""
ATTEMPTS_PER_TASK = 8
SKILL_SPREAD = SIGMA / 2
"""The standard deviation of true skills when nobody says otherwise: a student that far above its teacher solves three
tasks in four."""
CHILD_SPREAD = 0.5
"""Of a child's skill, as a part of that."""
RATE_PER_POINT = NormalDist().pdf(0) / (math.sqrt(2) * BETA)
"""What one point of skill adds to a solve rate between equals."""
TRIAL_VARIANCE = {Role.STUDENT: 0.1, Role.TEACHER: 0.13}
"""Of the difference of two members of a real race with the same random numbers: of students' verdicts on the same task,
of teachers' rewards for proposals to the same prompt."""

Inheritance = Literal["mean", "best"]


class MeanInterval(NamedTuple):
    """A mean over seeds with its 95 % interval."""

    mean: float
    low: float
    high: float


class _Breeder(NamedTuple):
    name: str
    parents: int


_BREEDERS = (_Breeder("mutation", 1), _Breeder("crossover", 2))
_LABELS = {
    "tau_teachers": "order of the teachers after the rounds (Kendall's tau)",
    "tau_students": "order of the students",
    "worst_quarter_hit": "share of the dead in the true worst quarter: our rule",
    "worst_quarter_hit_teachers": "  our rule, dead teachers alone",
    "worst_quarter_hit_students": "  our rule, dead students alone",
    "worst_quarter_hit_paper": "  the paper's rule",
    "worst_quarter_hit_chance": "  by chance",
    "worst_quarter_hit_best_parent": "  our rule, children take after the better parent",
    "worst_quarter_hit_best_parent_paper": "  the paper's rule, likewise",
    "newborn_hit": "share of the dead born at the event before: our rule",
    "newborn_hit_paper": "  the paper's rule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsReport:
    """The report of `redqueen simulate ratings`."""

    sizes: Mapping[str, int]
    spread: float
    """The standard deviation of members' solve rates against an equal."""
    settings: Mapping[str, Any]
    trials: Mapping[str, float]
    """The tasks of students' trials and the proposals of teachers', by role, the mean over events; none without
    trials."""
    figures: Mapping[str, MeanInterval]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        figures = {"tau": min(self.figures["tau_teachers"], self.figures["tau_students"]), **self.figures}
        values = {**self.sizes, "spread": self.spread, "settings": self.settings, "trials": self.trials}
        values["seconds"] = self.seconds
        for name, figure in figures.items():
            values |= {name: figure.mean, f"{name}_interval": [figure.low, figure.high]}
        return values

    def render(self, console: "Console") -> None:
        sizes, match = self.sizes, self.settings["match"]
        console.print(
            f"{sizes['teachers']} teachers and {sizes['students']} students, {sizes['seeds']} seeds, "
            f"{sizes['rounds']} rounds, {sizes['attempts']} attempts a match, "
            f"solve rates {self.spread:.3g} apart (standard deviation), "
            f'matchmaker "{match["maker"]}", results by rule "{match["rule"]}"',
            soft_wrap=True,
        )
        labels = {name: label for name, label in _LABELS.items() if name in self.figures}
        figures = [self.figures[name] for name in labels]
        intervals = [f"{figure.low:.3f} to {figure.high:.3f}" for figure in figures]
        columns = {"mean": [f"{figure.mean:.3f}" for figure in figures], "95 %": intervals}
        print_table(console, {"": list(labels.values())}, columns)
        every = self.settings["evolution"]["every"]
        if every == 0:
            console.print(f"no events: evolution.every is 0; {self.seconds:.0f} s", soft_wrap=True)
            return
        tasks = self.trials
        trial = (
            f", each after a trial of {tasks['student']:.0f} tasks for students and {tasks['teacher']:.0f} proposals "
            "for teachers"
            if tasks
            else ""
        )
        console.print(
            f"{sizes['births']} events, one every {every} rounds{trial}; {self.seconds:.0f} s", soft_wrap=True
        )


@dataclass(slots=True, kw_only=True)
class _Race:
    population: Population
    skills: dict[MemberId, float]
    spread: float
    rng: Random
    board: Board = field(default_factory=Board)
    step: int = 0
    fit: int = 0
    """Tasks since the last event that were solved now and then."""


def ratings(
    teachers: int,
    students: int,
    seeds: int,
    rounds: int,
    attempts: int,
    births: int,
    settings: Config,
    spread: float | None = None,
) -> RatingsReport:
    """Races of all seeds, without births and with them under both rules; without them alone where evolution.every is 0.
    `spread` is the standard deviation of members' solve rates against an equal."""
    started = time.perf_counter()
    if min(teachers, students) < 2:
        raise InputError("one member of a role has no order", "simulate 2 teachers and 2 students or more")
    if attempts % ATTEMPTS_PER_TASK:
        raise InputError(
            f"--attempts cannot be {attempts}", f"use a multiple of {ATTEMPTS_PER_TASK}, a task's attempts"
        )
    if births < 2:
        raise InputError("one event has no newborns to judge by", "use --births 2 or more")
    if spread is not None and not 0 < spread < 0.5:
        raise InputError(f"--spread cannot be {spread:g}", "use a difference of solve rates, such as 0.005")
    points = SKILL_SPREAD if spread is None else spread / RATE_PER_POINT
    if seeds < 2:
        raise InputError("one seed gives no interval", "use --seeds 2 or more")
    settings = Config.model_validate(
        settings.model_dump() | {"population": {"teachers": teachers, "students": students}}
    )
    # Whether match.exclude and the elites suit these sizes.
    check(settings)
    orders = [_orders(seed, rounds, attempts, settings, points) for seed in range(seeds)]
    figures = {
        "tau_teachers": estimate([of_teachers for of_teachers, _ in orders]),
        "tau_students": estimate([of_students for _, of_students in orders]),
    }
    trials: dict[str, float] = {}
    if settings.evolution.every:
        of_births, trials = _with_births(seeds, births, attempts, settings, points)
        figures |= of_births
    sizes = {"teachers": teachers, "students": students, "seeds": seeds, "rounds": rounds}
    return RatingsReport(
        sizes={**sizes, "attempts": attempts, "births": births if settings.evolution.every else 0},
        spread=points * RATE_PER_POINT,
        settings={name: getattr(settings, name).model_dump(mode="json") for name in ("match", "evolution")},
        trials=trials,
        figures=figures,
        seconds=time.perf_counter() - started,
    )


def _with_births(
    seeds: int, births: int, attempts: int, settings: Config, spread: float
) -> tuple[dict[str, MeanInterval], dict[str, float]]:
    """What races with births find, and the size of their trials."""
    ours, paper, ours_best, paper_best = (
        [_births(seed, births, attempts, settings, rule, inheritance, spread) for seed in range(seeds)]
        for inheritance in ("mean", "best")
        for rule in ("ours", "paper")
    )
    of_role = {role: [deaths.worst_of(role) for deaths in ours] for role in Role}
    figures = {
        "worst_quarter_hit": _share([deaths.worst for deaths in ours]),
        **{f"worst_quarter_hit_{role}s": _share(own) for role, own in of_role.items() if sum(map(bool, own)) > 1},
        "worst_quarter_hit_paper": _share([deaths.worst for deaths in paper]),
        "worst_quarter_hit_chance": _share([deaths.chance for deaths in ours]),
        "worst_quarter_hit_best_parent": _share([deaths.worst for deaths in ours_best]),
        "worst_quarter_hit_best_parent_paper": _share([deaths.worst for deaths in paper_best]),
        "newborn_hit": _share([deaths.newborn for deaths in ours]),
        "newborn_hit_paper": _share([deaths.newborn for deaths in paper]),
    }
    if not settings.evolution.trial:
        return figures, {}
    trials = [trial for deaths in ours for trial in deaths.trials]
    return figures, {str(role): statistics.fmean(trial.get(role, 0) for trial in trials) for role in Role}


def lineage(births: int, seed: int, settings: Config) -> Population:
    """The population, with its dead, after a race with births."""
    if settings.evolution.every == 0:
        raise InputError("evolution.every = 0 leaves no births to simulate", "set it to 1 or more")
    from redqueen.evolution.variation import resolve

    operators = list(resolve(settings.evolution.operators).values())
    race = _start(seed, settings)
    for _ in range(births):
        _replace(race, _interval(race, ATTEMPTS, settings, seed, operators), "mean")
    return race.population


def kendall(a: Sequence[float], b: Sequence[float]) -> float:
    """The share of pairs in the same order, less that of pairs in the opposite one."""
    signs = [
        math.copysign(1, (a[i] - a[j]) * (b[i] - b[j])) if a[i] != a[j] and b[i] != b[j] else 0
        for i, j in combinations(range(len(a)), 2)
    ]
    return statistics.fmean(signs)


def estimate(values: Sequence[float]) -> MeanInterval:
    mean = statistics.fmean(values)
    error = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return MeanInterval(mean, mean - error, mean + error)


class _Deaths(NamedTuple):
    """For every death in a race, whether ..."""

    worst: list[bool]
    """the dead was among the worst quarter by true skill,"""
    chance: list[bool]
    """a member drawn at random was,"""
    newborn: list[bool]
    """the dead was born at the event before."""
    roles: list[Role]
    """Of the dead."""
    trials: list[dict[Role, int]]
    """For every event the size of its trials."""

    def worst_of(self, role: Role) -> list[bool]:
        return [worst for worst, own in zip(self.worst, self.roles, strict=True) if own is role]


def _share(races: Sequence[list[bool]]) -> MeanInterval:
    """Races are the unit: deaths within one are not independent."""
    shares = [statistics.fmean(race) for race in races if race]
    if len(shares) < 2:
        raise InputError("too few members die to judge by", "use more --births, or larger roles")
    return estimate(shares)


def _start(seed: int, settings: Config, spread: float = SKILL_SPREAD) -> _Race:
    rng = numbers("simulate", seed)
    population = founders(settings.population.teachers, settings.population.students)
    skills = {member.id: rng.gauss(MU, spread) for member in population.members}
    return _Race(population=population, skills=skills, spread=spread, rng=rng)


def _orders(
    seed: int, rounds: int, attempts: int, settings: Config, spread: float = SKILL_SPREAD
) -> tuple[float, float]:
    """How well the ratings order teachers and students after these rounds, as Kendall's tau."""
    race = _start(seed, settings, spread)
    for _ in range(rounds):
        _round(race, attempts, settings)

    def tau(members: Sequence[Member]) -> float:
        return kendall([member.rating.mu for member in members], [race.skills[member.id] for member in members])

    return tau(race.population.teachers), tau(race.population.students)


def _births(
    seed: int,
    births: int,
    attempts: int,
    settings: Config,
    rule: Literal["ours", "paper"],
    inheritance: Inheritance,
    spread: float,
) -> _Deaths:
    race = _start(seed, settings, spread)
    changed = {name: getattr(settings, name).model_copy(update={"rule": rule}) for name in ("match", "evolution")}
    settings = settings.model_copy(update=changed)
    every = settings.evolution.every
    deaths = _Deaths([], [], [], [], [])
    for _ in range(births):
        events = _interval(race, attempts, settings, seed)
        deaths.trials.append(_trial_tasks(race, settings))
        for event in events:
            deaths.roles.append(event.role)
            role = race.population.of(event.role)
            skills = sorted(race.skills[member.id] for member in role)
            worst = skills[max(1, len(role) // 4) - 1]
            deaths.worst.append(race.skills[event.dead] <= worst)
            deaths.chance.append(race.skills[race.rng.choice(role).id] <= worst)
            if race.step > every:
                deaths.newborn.append(race.population.member(event.dead).birth.step == event.step - every)
        _replace(race, events, inheritance)
    return deaths


def _interval(
    race: _Race, attempts: int, settings: Config, seed: int, operators: Sequence[replacement.Breeder] = _BREEDERS
) -> list[replacement.Event]:
    """Play the rounds from one event to the next, and plan that."""
    race.fit = 0
    for _ in range(settings.evolution.every):
        _round(race, attempts, settings)
    trials = _trials(race, _trial_tasks(race, settings))
    return replacement.plan(
        race.population, race.step + 1, settings.evolution, race.board, operators, seed, trials=trials
    )


def _trial_tasks(race: _Race, settings: Config) -> dict[Role, int]:
    """What a trial has: for students no more than the tasks of the interval that are fit."""
    if not settings.evolution.trial:
        return {}
    # It imports torch.
    from redqueen.phases.trial import trial_sizes

    sizes = trial_sizes(settings)
    return {role: min(size, race.fit) if role is Role.STUDENT else size for role, size in sizes.items()}


def _trials(race: _Race, tasks: Mapping[Role, int]) -> dict[MemberId, float]:
    """What each member is worth in a trial; nothing of a role whose trial has no tasks."""
    worth: dict[MemberId, float] = {}
    for role, count in tasks.items():
        if count:
            judged = count * ATTEMPTS_PER_TASK if role is Role.STUDENT else count
            # The difference of two members has twice the variance of each one's error.
            error = math.sqrt(TRIAL_VARIANCE[role] / 2 / judged)
            for member in race.population.of(role):
                worth[member.id] = RATE_PER_POINT * race.skills[member.id] + race.rng.gauss(0, error)
    return worth


def _replace(race: _Race, events: Sequence[replacement.Event], inheritance: Inheritance) -> None:
    for event in events:
        inherited = [race.skills[parent] for parent in event.parents]
        middle = statistics.fmean(inherited) if inheritance == "mean" else max(inherited)
        race.skills[event.child.id] = race.rng.gauss(middle, CHILD_SPREAD * race.spread)
    race.population = replacement.apply(race.population, events)


def _round(race: _Race, attempts: int, settings: Config) -> None:
    race.step += 1
    rules = settings.match
    maker = MATCHMAKERS.get(rules.maker)
    matches = schedule(race.population, maker, race.board, race.rng, rules.panel, rules.kept_apart)
    panels = [
        [
            MatchOutcome(match.teacher, student, {"simulated": _outcome(race, match.teacher, student, attempts)})
            for student in match.students
        ]
        for match in matches
    ]
    race.fit += sum(map(_fit_tasks, panels))
    race.population, meetings = play(race.population, race.step, list(chain(*panels)), rules.rule)
    race.board = race.board.add(meetings)


def _fit_tasks(panel: Sequence[MatchOutcome]) -> int:
    """How many tasks of a match were solved now and then by its students together."""
    by_task = zip(*(outcome.kinds["simulated"].scores for outcome in panel), strict=True)
    return sum(0 < sum(score.solved for score in task) < sum(score.attempts for score in task) for task in by_task)


def _outcome(race: _Race, teacher: MemberId, student: MemberId, attempts: int) -> KindOutcome:
    p = NormalDist().cdf((race.skills[student] - race.skills[teacher]) / (math.sqrt(2) * BETA))
    solved = _binomials(attempts // ATTEMPTS_PER_TASK, ATTEMPTS_PER_TASK, p, race.rng)
    rates = [count / ATTEMPTS_PER_TASK for count in solved]
    return KindOutcome(
        tuple(TaskScore(count, ATTEMPTS_PER_TASK) for count in solved),
        teacher_reward=statistics.fmean(1 - rate if rate else 0.0 for rate in rates),
        student_reward=1.5 * statistics.fmean(rates) - 0.5,
    )


def _binomials(count: int, size: int, p: float, rng: Random) -> list[int]:
    """This many draws from a binomial distribution."""
    cumulative = list(accumulate(math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(size)))
    return [bisect(cumulative, rng.random()) for _ in range(count)]
