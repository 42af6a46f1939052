"""Schedules: everybody plays, equally often, never with an excluded seat, and as the matchmaker's weights say."""

import math
from collections import Counter
from itertools import product
from random import Random
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redqueen.errors import ConfigError
from redqueen.plugins import MATCHMAKERS
from redqueen.population import matchmaking
from redqueen.population.board import Board
from redqueen.population.matchmaking import Maker, Match, schedule
from redqueen.population.members import Member, Population, founders
from redqueen.population.play import KindOutcome, MatchOutcome, play
from redqueen.population.ratings import Rating, expected
from redqueen.population.results import TaskScore
from redqueen.settings import Config
from redqueen.settings.models import MatchConfig, PopulationConfig
from redqueen.training import checks

SHAPES = list(product(range(1, 10), repeat=2))


def rated(teachers: int, students: int, seed: int = 0) -> Population:
    rng = Random(seed)
    population = founders(teachers, students)
    return population.rated({each.id: Rating(rng.gauss(25, 6), rng.uniform(1, 8)) for each in population.members})


def scheduled(population: Population, maker: str, *more: Any) -> list[Match]:
    return schedule(population, MATCHMAKERS.get(maker), *more)


def played(population: Population, matches: list[Match], step: int) -> Board:
    outcomes = [
        MatchOutcome(match.teacher, student, {"k": KindOutcome((TaskScore(1, 2),))})
        for match in matches
        for student in match.students
    ]
    return Board(tuple(play(population, step, outcomes, "ours")[1]))


def check(matches: list[Match], teachers: int, students: int, panel: int) -> None:
    assert len(matches) == max(teachers, math.ceil(students / panel))
    by_teacher = Counter(match.teacher for match in matches)
    by_student = Counter(student for match in matches for student in match.students)
    for counts, size in ((by_teacher, teachers), (by_student, students)):
        assert len(counts) == size, "nobody is idle"
        assert max(counts.values()) - min(counts.values()) <= 1
    for match in matches:
        assert len(set(match.students)) == len(match.students) == panel


@pytest.mark.parametrize("maker", MATCHMAKERS.names())
def test_everybody_plays_equally_often_in_every_shape_and_panel(maker):
    for teachers, students in SHAPES:
        population, board = rated(teachers, students), Board()
        for panel in range(1, students + 1):
            matches = scheduled(population, maker, board, Random(panel), panel)
            check(matches, teachers, students, panel)
            board = board.add(played(population, matches, panel).meetings)


@pytest.mark.parametrize("maker", MATCHMAKERS.names())
def test_without_exclusions_the_first_order_of_teachers_will_do(monkeypatch, maker):
    monkeypatch.setattr(matchmaking, "SHUFFLES", 1)
    for teachers, students, panel in [(64, 40, 39), (33, 20, 19), (64, 5, 4), (5, 40, 3), (9, 7, 6)]:
        check(scheduled(rated(teachers, students), maker, Board(), Random(0), panel), teachers, students, panel)


@pytest.mark.parametrize("maker", MATCHMAKERS.names())
def test_without_a_panel_one_student_attempts_a_task_or_all_do(maker):
    for teachers, students in SHAPES:
        matches = scheduled(rated(teachers, students), maker, Board(), Random(1))
        check(matches, teachers, students, students if maker == "all" else 1)


@settings(max_examples=40)
@given(st.data())
def test_whom_the_settings_keep_apart_never_meet_and_still_everybody_plays(data):
    maker = data.draw(st.sampled_from(list(MATCHMAKERS.names())))
    teachers, students = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    panel = data.draw(st.integers(1, students))
    pairs = [(f"t{t}", f"s{s}") for t in range(teachers) for s in range(students)]
    exclude = data.draw(st.sets(st.sampled_from(pairs), max_size=len(pairs) // 2))
    population = rated(teachers, students)
    # An excluded seat stays excluded when somebody else sits on it.
    heir = population.members[0]
    child = Member(id=population.next_id(heir.seat), role=heir.role, seat=heir.seat)
    population = population.replaced(heir.id, child, 1)
    seats = {each.id: each.seat for each in population.members}
    try:
        matches = scheduled(population, maker, Board(), Random(data.draw(st.integers(0, 9))), panel, exclude)
    except ConfigError as error:
        assert "match.exclude leaves no schedule" in str(error)
        assume(False)
    check(matches, teachers, students, panel)
    for match in matches:
        assert not {(seats[match.teacher], seats[student]) for student in match.students} & exclude


def test_a_derangement_is_always_found():
    for size in range(2, 10):
        exclude = [(f"t{index}", f"s{index}") for index in range(size)]
        for seed in range(30):
            check(scheduled(rated(size, size), "pfsp", Board(), Random(seed), 1, exclude), size, size, 1)


def test_the_only_schedule_there_is_is_found():
    size = 8
    exclude = [(f"t{t}", f"s{s}") for t in range(size) for s in range(size) if s > t]
    matches = scheduled(rated(size, size), "uniform", Board(), Random(3), 1, exclude)
    assert {(match.teacher, *match.students) for match in matches} == {(f"t{i}", f"s{i}") for i in range(size)}


def test_an_impossible_schedule_is_refused_in_one_line():
    exclude = [("t0", "s0"), ("t1", "s0"), ("t0", "s1"), ("t1", "s1")]
    with pytest.raises(ConfigError, match=r"match\.exclude leaves no schedule in which everybody plays; exclude fewer"):
        scheduled(rated(3, 3), "pfsp", Board(), Random(0), 1, exclude)


def test_cross_evaluation_leaves_out_only_the_excluded():
    matches = scheduled(founders(2, 3), "all", Board(), Random(0), None, [("t0", "s1")])
    assert {match.teacher: match.students for match in matches} == {"t0": ("s0", "s2"), "t1": ("s0", "s1", "s2")}


def test_in_turn_everybody_has_met_everybody_after_as_many_steps_as_it_takes():
    population, board = founders(5, 5), Board()
    for step in range(1, 6):
        matches = scheduled(population, "round_robin", board, Random(step))
        board = board.add(played(population, matches, step).meetings)
    pairs = {(meeting.teacher, meeting.student) for meeting in board.meetings}
    assert len(pairs) == 25 and all(board.met(*pair) == 1 for pair in pairs)


def test_a_panel_of_cross_evaluation_begins_with_those_who_have_met_least():
    population = founders(1, 4)
    board = played(population, [Match("t0", ("s0", "s2"))], 1)
    first, second = scheduled(population, "all", board, Random(0), 2)
    assert (set(first.students), set(second.students)) == ({"s1", "s3"}, {"s0", "s2"})


def test_in_turn_teachers_begin_with_different_students():
    matches = scheduled(founders(4, 4), "round_robin", Board(), Random(5))
    assert {match.teacher: match.students for match in matches} == {f"t{i}": (f"s{i}",) for i in range(4)}


def test_members_hopelessly_far_apart_still_meet():
    population = founders(2, 2).rated({"s0": Rating(-1e6, 1), "s1": Rating(-1e6, 1)})
    check(scheduled(population, "pfsp", Board(), Random(0)), 2, 2, 1)


@pytest.mark.parametrize("maker", ["pfsp", "uniform"])
@pytest.mark.parametrize(("teachers", "students"), [(4, 4), (6, 3), (3, 7), (2, 4)])
def test_every_draw_follows_the_weights_given_the_pool(maker, teachers, students):
    """A chi-square test over all (teacher, pool) that came up often: the pool is what choose is given."""
    population = rated(teachers, students, seed=1)
    draws: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    choose = MATCHMAKERS.get(maker).choose

    def recorded(teacher, pool, board, rng):
        chosen = choose(teacher, pool, board, rng)
        draws[teacher.id, tuple(each.id for each in pool), chosen.id] += 1
        return chosen

    rng, runs = Random(7), 3000
    pools: Counter[int] = Counter()
    for _ in range(runs):
        matches = schedule(population, Maker(recorded, 1), Board(), rng)
        left: set[str] = set()
        for match in matches:
            left = left or {each.id for each in population.students}
            pools[len(left)] += 1
            left -= set(match.students)
    assert sum(draws.values()) == runs * max(teachers, students)
    # What choose was given is the whole pool: without exclusions nobody is held back.
    sizes = Counter()
    for (_, pool, _), count in draws.items():
        sizes[len(pool)] += count
    assert sizes == pools

    statistic, freedom = 0.0, 0
    for teacher, pool in {(teacher, pool) for teacher, pool, _ in draws}:
        total = sum(draws[teacher, pool, student] for student in pool)
        weights = {student: weight(population, maker, teacher, student) for student in pool}
        foreseen = {student: total * each / sum(weights.values()) for student, each in weights.items()}
        if len(pool) < 2 or min(foreseen.values()) < 5:
            continue
        statistic += sum((draws[teacher, pool, student] - count) ** 2 / count for student, count in foreseen.items())
        freedom += len(pool) - 1
    assert freedom >= 2
    assert statistic < chi_square_bound(freedom, 0.001)


def weight(population: Population, maker: str, teacher: str, student: str) -> float:
    p = expected(population.member(student).rating, population.member(teacher).rating)
    return p * (1 - p) if maker == "pfsp" else 1.0


def chi_square_bound(freedom: int, p: float) -> float:
    """Wilson and Hilferty's approximation of the value exceeded with probability p."""
    z = NormalDist().inv_cdf(1 - p)
    return freedom * (1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3


def test_any_teacher_may_come_first():
    first = {scheduled(founders(4, 4), "pfsp", Board(), Random(seed))[0].teacher for seed in range(60)}
    assert first == {"t0", "t1", "t2", "t3"}


@pytest.mark.parametrize(
    ("teachers", "students", "apart"),
    [
        (4, 8, [("t0", f"s{index}") for index in range(1, 8)]),
        (4, 4, [(f"t{teacher}", f"s{student}") for teacher in (0, 1) for student in (1, 2, 3)]),
    ],
)
def test_a_schedule_that_can_never_be_made_is_refused_with_the_settings(teachers, students, apart):
    with pytest.raises(ConfigError, match="everybody plays"):
        checks.check(
            Config(
                population=PopulationConfig(teachers=teachers, students=students),
                match=MatchConfig(exclude=tuple(f"{teacher}:{student}" for teacher, student in apart)),
            )
        )


def test_teachers_that_share_one_opponent_are_scheduled_every_time():
    apart = {(f"t{teacher}", "s1") for teacher in range(8)}
    for seed in range(30):
        check(scheduled(founders(16, 2), "pfsp", Board(), Random(seed), None, apart), 16, 2, 1)
