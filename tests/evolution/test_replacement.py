"""Replacement: who may die, who may breed, what a child starts with, under both rules."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.test_fitness import match, played
from redqueen.errors import ConfigError
from redqueen.evolution.replacement import FRESH, Event, apply, due, plan
from redqueen.population.board import Board
from redqueen.population.members import Birth, Member, Population, Role, founders
from redqueen.population.ratings import PRIOR, SIGMA, Rating
from redqueen.settings.models import EvolutionConfig


@dataclass(frozen=True)
class Operator:
    name: str
    parents: int


MUTATION, CROSSOVER = Operator("noise", 1), Operator("dare", 2)


def students(*ratings: tuple[float, float]) -> Population:
    """One teacher and students with these ratings."""
    population = founders(1, len(ratings))
    return population.rated({f"s{index}": Rating(*each) for index, each in enumerate(ratings)})


def born(population: Population, id: str, step: int) -> Population:
    """The same with this member born later."""
    members = tuple(
        replace(each, birth=Birth(step, "noise", ("s0",))) if each.id == id else each for each in population.members
    )
    return replace(population, members=members)


def planned(population: Population, step: int = 11, operators=(MUTATION, CROSSOVER), seed=0, **settings) -> list[Event]:
    collapsed = settings.pop("collapsed", frozenset())
    distances = settings.pop("distances", None)
    trials = settings.pop("trials", None)
    config = EvolutionConfig(**settings)
    return plan(population, step, config, Board(), operators, seed, distances, collapsed, trials)


@pytest.mark.parametrize(("step", "every", "is_due"), [(11, 10, True), (10, 10, False), (1, 10, False), (11, 0, False)])
def test_events_come_before_the_step_after_every_so_many(step, every, is_due):
    assert due(step, EvolutionConfig(every=every)) is is_due
    assert bool(planned(founders(4, 4), step, every=every)) is is_due


@pytest.mark.parametrize(
    ("size", "share", "deaths"), [(1, 0.9, 0), (2, 0.1, 1), (4, 0.25, 1), (8, 0.25, 2), (7, 0.3, 2), (100, 0.29, 29)]
)
def test_a_share_of_each_role_dies_but_one_at_least(size, share, deaths):
    events = planned(founders(size, 4), share=share)
    assert sum(event.role is Role.TEACHER for event in events) == deaths
    assert any(event.role is Role.STUDENT for event in events)


def test_by_our_rule_the_lowest_mean_dies_and_by_the_papers_the_lowest_bound():
    population = students((30, 1), (28, 8), (20, 1), (25, 1))
    assert [event.dead for event in planned(population)] == ["s2"]
    assert [event.dead for event in planned(population, rule="paper")] == ["s1"]


def test_a_child_starts_at_its_roles_mean_by_our_rule_and_at_the_prior_by_the_papers():
    population = students((30, 1), (28, 1), (20, 1), (22, 1))
    assert planned(population)[0].child.rating == Rating(25, SIGMA)
    lifted = population.rated({"s0": Rating(50, 1)})
    assert planned(lifted)[0].child.rating == Rating(30, SIGMA)
    assert planned(lifted, rule="paper")[0].child.rating == PRIOR


def test_the_young_are_spared_until_they_are_one_and_a_half_intervals_old():
    population = born(students((30, 1), (28, 1), (20, 8), (25, 1)), "s2", 11)
    assert [event.dead for event in planned(population, 21)] == ["s3"]
    assert [event.dead for event in planned(population, 31)] == ["s2"]
    assert [event.dead for event in planned(population, 21, rule="paper")] == ["s2"], "the paper spares nobody"


def test_where_all_but_the_best_are_young_nobody_dies():
    population = born(students((30, 1), (28, 1)), "s1", 11)
    assert planned(population, 21) == []


@pytest.mark.parametrize("rule", ["ours", "paper"])
def test_elites_never_die(rule):
    # The most certain one has the best bound and the lowest mean.
    population = students((20, 0.1), (25, 3), (26, 3), (27, 3))
    assert [event.dead for event in planned(population, rule=rule, elites=1)] == ["s1"]
    assert [event.dead for event in planned(population, elites=0)] == ["s0"]
    assert [event.dead for event in planned(population, rule=rule, elites=3, share=0.9)] == ["s1"]


mus = st.lists(st.tuples(st.floats(0, 50), st.floats(0.5, 9)), min_size=2, max_size=9)


@given(
    mus,
    st.floats(0.05, 0.95),
    st.integers(0, 2),
    st.sampled_from(["ours", "paper"]),
    st.sampled_from(["truncation", "tournament"]),
    st.integers(0, 99),
)
def test_parents_survive_and_children_take_the_seats_of_the_dead(ratings, share, elites, rule, selection, seed):
    population = students(*ratings)
    events = planned(population, share=share, elites=elites, rule=rule, selection=selection, seed=seed)
    dead = {event.dead for event in events}
    assert len(dead) == len(events) < len(ratings)
    breeding = {each.id: each.rating.lower for each in population.members}
    for event in events:
        assert not dead & set(event.parents)
        assert len(set(event.parents)) == len(event.parents) == {"noise": 1, "dare": 2}[event.operator]
        assert all(breeding[one] >= breeding[other] for one, other in pairwise(event.parents)), "the better one first"
        assert (event.child.birth.step, event.child.birth.operator) == (11, event.operator)
        assert event.child.birth.parents == event.parents
    after = apply(population, events)
    assert [each.seat for each in after.members] == [each.seat for each in population.members]
    assert {grave.member.id for grave in after.graves} == dead
    assert len({each.id for each in after.members}) == len(after.members)
    assert planned(population, share=share, elites=elites, rule=rule, selection=selection, seed=seed) == events


def test_where_there_were_trials_they_decide_and_not_the_ratings():
    population = students((30, 1), (28, 1), (20, 1), (25, 1))
    trials = {"s0": 0.2, "s1": 0.5, "s2": 0.9, "s3": 0.4}
    [event] = planned(population, operators=[MUTATION], trials=trials)
    assert event.dead == "s0"
    assert event.parents[0] in ("s2", "s1")
    [event] = planned(population, operators=[MUTATION], trials=dict.fromkeys(trials, 0.5))
    assert event.dead == "s2", "where a trial tells nothing ratings do"
    [event] = planned(population, trials={"t0": 0.1})
    assert event.dead == "s2", "students had no trial"


def test_a_merge_has_all_survivors_for_parents():
    [event] = planned(students((30, 1), (28, 1), (20, 1), (25, 1)), operators=[Operator("mean", 0)])
    assert (event.dead, event.parents) == ("s2", ("s0", "s1", "s3"))


def test_every_event_has_a_seed_of_its_own_that_the_runs_seed_changes():
    first, second = planned(founders(8, 8), seed=1), planned(founders(8, 8), seed=2)
    assert len({event.seed for event in (*first, *second)}) == 8


def test_operators_are_drawn_equally_often():
    names = [event.operator for seed in range(400) for event in planned(founders(4, 4), seed=seed)]
    assert 320 < names.count("noise") < 480


def test_one_survivor_can_only_be_mutated():
    for seed in range(20):
        [event] = planned(students((30, 1), (20, 1)), seed=seed)
        assert (event.operator, event.parents) == ("noise", ("s0",))
    with pytest.raises(ConfigError, match="one student is left to breed from"):
        planned(students((30, 1), (20, 1)), operators=[CROSSOVER])


def test_a_fresh_member_comes_into_a_collapsed_role_where_the_settings_allow_it():
    population = founders(4, 8)
    collapsed = frozenset({Role.STUDENT})
    teacher, first, second = planned(population, inject=True, collapsed=collapsed)
    assert (first.operator, first.parents, first.child.birth) == (FRESH, (), Birth(11))
    assert first.child.rating == Rating(25, SIGMA)
    assert FRESH not in (teacher.operator, second.operator)
    assert all(event.operator != FRESH for event in planned(population, collapsed=collapsed))


def test_a_fresh_member_is_spared_while_it_is_young():
    population = founders(1, 4)
    [event] = planned(population, inject=True, collapsed=frozenset({Role.STUDENT}))
    after = apply(population, [event]).rated({event.child.id: Rating(0, 1)})
    assert [each.dead for each in planned(after, 21)] != [event.child.id]
    assert [each.dead for each in planned(after, 31)] == [event.child.id]


def test_sharing_decides_who_dies_too():
    population = students((30, 1), (29, 1), (28, 1), (27, 1))
    distances = {
        ("s0", "s1"): 0.0,
        ("s0", "s2"): 0.0,
        ("s1", "s2"): 0.0,
        ("s0", "s3"): 1.0,
        ("s1", "s3"): 1.0,
        ("s2", "s3"): 1.0,
    }
    assert [event.dead for event in planned(population, selection="sharing", distances=distances)] == ["s2"]
    assert [event.dead for event in planned(population)] == ["s3"]
    with pytest.raises(ConfigError, match="sharing"):
        planned(population, selection="sharing")


def test_only_what_was_played_since_the_last_event_counts():
    population = founders(1, 2)
    first = played(population, match("t0", "s0", 8), match("t0", "s1", 1)).meetings
    old = Board(tuple(replace(meeting, step=10) for meeting in first))
    new = Board(
        tuple(
            replace(meeting, step=11)
            for meeting in played(population, match("t0", "s0", 1), match("t0", "s1", 8)).meetings
        )
    )
    settings = EvolutionConfig(fitness="rate")
    [event] = plan(population, 21, settings, old.add(new.meetings), [MUTATION], 0)
    assert event.dead == "s0"
    [event] = plan(population, 11, settings, old, [MUTATION], 0)
    assert event.dead == "s1"


def test_the_dead_keep_their_names_and_the_next_on_the_seat_gets_a_new_one():
    population = founders(1, 2)
    names = []
    for step in (11, 21, 31):
        worst = population.students[-1]
        population = population.rated({worst.id: Rating(0, 1)})
        events = planned(population, step, rule="paper")
        population = apply(population, events)
        names += [event.child.id for event in events]
    assert names == ["s1.1", "s1.2", "s1.3"]
    assert isinstance(population.member("s1.3"), Member)
