"""A snapshot keeps the roles apart and says how varied each teacher's tasks are."""

import math
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from redqueen.analysis.diversity import ENOUGH_TASKS, Spread, entropy, take, variety
from redqueen.population.members import Role, founders
from redqueen.tasks.code import SEEDS, CodeTask


def task(kind: str, program: str) -> CodeTask:
    return CodeTask(kind, program=program, inputs=("1",), outputs=("2",))


def one_type(kind: str, count: int) -> list[CodeTask]:
    """Different programs that are all one type of problem."""
    return [task(kind, f"def f(x):\n    return x + {place}") for place in range(count)]


def many_types(kind: str, count: int) -> list[CodeTask]:
    return [task(kind, SEEDS[place % len(SEEDS)].program) for place in range(count)]


# Entropy


@given(st.integers(1, 40), st.integers(1, 5))
def test_equally_frequent_labels_have_the_logarithm_of_their_number(labels, times):
    assert entropy([str(label) for label in range(labels)] * times) == pytest.approx(math.log2(labels))


@given(st.lists(st.sampled_from("abcd")), st.randoms())
def test_entropy_depends_on_how_often_labels_occur_and_on_nothing_else(labels, random: Random):
    renamed = [label.upper() for label in labels]
    random.shuffle(renamed)
    assert entropy(renamed) == pytest.approx(entropy(labels))
    assert 0 <= entropy(labels) <= 2 + 1e-12


def test_no_labels_and_one_label_have_no_entropy():
    assert entropy([]) == entropy(["a"]) == entropy("aaaa") == 0


# Teachers


def test_a_teacher_that_writes_one_type_of_problem_has_no_variety_however_its_programs_differ():
    found = variety(one_type("code_o", 40))
    assert len({each.id for each in one_type("code_o", 40)}) == 40
    assert (found.tasks, found.kinds_bits, found.descriptors_bits) == (40, 0, 0)


def test_a_teacher_that_writes_many_types_of_two_kinds_has_both_varieties():
    found = variety(many_types("code_o", 48) + many_types("code_i", 48))
    assert found.kinds_bits == 1
    assert found.descriptors_bits > 3


def test_a_kind_with_varied_programs_does_not_hide_one_that_has_none():
    given_programs = many_types("code_f", 100)
    assert variety(given_programs + one_type("code_o", ENOUGH_TASKS)).descriptors_bits == 0


def test_a_kind_with_too_few_tasks_is_not_judged_by_itself():
    assert variety(many_types("code_f", 100) + one_type("code_o", ENOUGH_TASKS - 1)).descriptors_bits > 2
    assert variety(many_types("code_f", 12) + one_type("code_o", 12)).descriptors_bits > 1


# Snapshots


def test_roles_are_measured_apart_and_a_silent_teacher_is_left_out():
    population = founders(2, 3)
    cosines = torch.eye(5, dtype=torch.float64)
    cosines[0, 1] = cosines[1, 0] = 1  # the teachers are one
    snapshot = take(7, population, cosines, {"t0": one_type("code_o", 3), "t1": []})
    assert snapshot.roles[Role.TEACHER] == Spread(2, pytest.approx(1), 0)  # pyright: ignore[reportArgumentType]
    assert snapshot.roles[Role.STUDENT] == Spread(3, pytest.approx(3), 1)  # pyright: ignore[reportArgumentType]
    assert list(snapshot.teachers) == ["t0"]
