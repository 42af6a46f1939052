"""Fitness: what each measure says, and what it says of those who have not played."""

import pytest

from redqueen.evolution.fitness import Fitness
from redqueen.plugins import FITNESS
from redqueen.population.board import Board
from redqueen.population.members import Population, Role, founders
from redqueen.population.play import KindOutcome, MatchOutcome, play
from redqueen.population.ratings import Rating
from redqueen.population.results import TaskScore


def match(teacher: str, student: str, *solved: int, teacher_reward=None, student_reward=None) -> MatchOutcome:
    scores = tuple(TaskScore(each, 8) for each in solved)
    return MatchOutcome(teacher, student, {"k": KindOutcome(scores, teacher_reward, student_reward)})


def played(population: Population, *outcomes: MatchOutcome) -> Board:
    return Board(tuple(play(population, 1, outcomes, "ours")[1]))


def breeding(name: str, role: Role, population: Population, board: Board) -> dict[str, float]:
    values = FITNESS.get(name)(population, role, board)
    if name != "rating":
        assert all(each.breeding == each.survival for each in values.values())
    return {id: each.breeding for id, each in values.items()}


def test_by_rating_one_breeds_by_the_lower_bound_and_stays_by_the_mean():
    population = founders(1, 2).rated({"s0": Rating(30, 5), "s1": Rating(25, 1)})
    fitness = FITNESS.get("rating")(population, Role.STUDENT, Board())
    assert fitness == {"s0": Fitness(15, 30), "s1": Fitness(22, 25)}


@pytest.mark.parametrize("name", FITNESS.names())
@pytest.mark.parametrize("role", Role)
def test_every_measure_covers_its_role_and_nobody_else(name, role):
    population = founders(3, 2)
    for board in (Board(), played(population, match("t0", "s0", 4))):
        assert list(FITNESS.get(name)(population, role, board)) == [each.id for each in population.of(role)]


def test_by_reward_the_mean_over_meetings_counts():
    population = founders(2, 2)
    board = played(
        population,
        match("t0", "s0", 4, teacher_reward=0.2, student_reward=1.0),
        match("t0", "s1", 4, teacher_reward=0.6, student_reward=-0.5),
        match("t1", "s1", teacher_reward=-1.0),
    )
    assert breeding("reward", Role.TEACHER, population, board) == pytest.approx({"t0": 0.4, "t1": -1.0})
    assert breeding("reward", Role.STUDENT, population, board) == pytest.approx({"s0": 1.0, "s1": -0.5})


def test_by_rate_every_opponent_counts_once_and_impossible_tasks_do_not():
    population = founders(2, 2)
    board = played(
        population,
        match("t0", "s0", 8, 0),
        match("t0", "s0", 8),
        match("t0", "s0", 8),
        match("t1", "s0", 2),
        match("t1", "s1", 4),
    )
    assert breeding("rate", Role.STUDENT, population, board) == pytest.approx({"s0": 5 / 8, "s1": 0.5})
    assert breeding("rate", Role.TEACHER, population, board) == pytest.approx({"t0": 0.0, "t1": 5 / 8})


def test_a_teacher_of_impossible_tasks_has_stumped_nobody_and_its_student_nothing_to_show():
    population = founders(2, 2)
    board = played(population, match("t0", "s0", 0, 0), match("t1", "s1", 2))
    assert breeding("rate", Role.TEACHER, population, board) == {"t0": 0.0, "t1": 0.75}
    assert breeding("rate", Role.STUDENT, population, board) == {"s0": 0.25, "s1": 0.25}


@pytest.mark.parametrize("name", ["reward", "rate"])
def test_who_has_not_played_is_as_good_as_the_mean_of_the_rest(name):
    population = founders(1, 3)
    board = played(population, match("t0", "s0", 8, student_reward=1.0), match("t0", "s1", 4, student_reward=0.5))
    values = breeding(name, Role.STUDENT, population, board)
    assert values == {"s0": 1.0, "s1": 0.5, "s2": 0.75}
