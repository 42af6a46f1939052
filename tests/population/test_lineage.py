"""Lineage: the tree that is drawn."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.population.lineage import dot, draw
from redqueen.population.members import Birth, Member, Population, founders


def replaced(population: Population, dead: str, step: int, operator: str | None, *parents: str) -> Population:
    old = population.member(dead)
    child = Member(id=population.next_id(old.seat), role=old.role, seat=old.seat, birth=Birth(step, operator, parents))
    return population.replaced(dead, child, step)


@pytest.fixture
def family() -> Population:
    population = founders(1, 4)
    population = replaced(population, "s3", 10, "dare", "s0", "s1")
    population = replaced(population, "s1", 20, "noise", "s3.1")
    population = replaced(population, "s2", 20, None)
    return replaced(population, "s0", 30, "dare", "s1.1", "s2.1")


def test_the_tree_is_drawn_below_the_better_parent(family):
    assert draw(family) == "\n".join(
        [
            "t0",
            "s0 +",
            "└─ s3.1  dare, step 10 with s1",
            "   └─ s1.1  noise, step 20",
            "      └─ s0.1  dare, step 30 with s2.1",
            "s1 +",
            "s2 +",
            "s3 +",
            "s2.1  fresh, step 20",
        ]
    )


def test_siblings_hang_on_one_line():
    population = replaced(founders(1, 3), "s1", 10, "noise", "s0")
    population = replaced(population, "s2", 10, "noise", "s0")
    assert draw(population).splitlines()[1:4] == ["s0", "├─ s1.1  noise, step 10", "└─ s2.1  noise, step 10"]


def test_graphviz_gets_both_parents_and_marks_the_dead(family):
    lines = dot(family).splitlines()
    assert lines[0] == "digraph lineage {"
    assert lines[-1] == "}"
    assert '  "s0" -> "s3.1" [label="dare"];' in lines
    assert '  "s1" -> "s3.1" [label="dare"];' in lines
    assert '  "t0" [shape=box];' in lines
    assert '  "s0" [shape=ellipse, style=dashed];' in lines
    assert '  "s0.1" [shape=ellipse];' in lines


def test_an_operators_name_cannot_break_out_of_its_label():
    population = replaced(founders(1, 2), "s1", 10, 'a".py:\\X', "s0")
    assert r'[label="a\".py:\\X"]' in dot(population)


@given(st.integers(2, 6), st.integers(0, 40), st.integers(0, 99))
def test_everybody_who_ever_lived_is_drawn_once(size, events, seed):
    rng, population = Random(seed), founders(1, size)
    for step in range(1, events + 1):
        dead, *others = rng.sample([each.id for each in population.students], size)
        parents = others[: rng.randint(0, min(2, len(others)))]
        population = replaced(population, dead, step, "x" if parents else None, *parents)
    assert len(draw(population).splitlines()) == len(population.members) + len(population.graves)


def test_a_very_long_line_can_be_drawn():
    population = founders(1, 2)
    for step in range(1, 2001):
        dead, parent = ("s0", "s1") if step % 2 else ("s1", "s0")
        ids = {each.seat: each.id for each in population.members}
        population = replaced(population, ids[dead], step, "noise", ids[parent])
    assert len(draw(population).splitlines()) == 2003
