"""Members and populations: values that change by making others, and that JSON keeps."""

import json

import pytest

from redqueen.errors import InputError
from redqueen.population.members import Birth, Member, Role, founders, restore
from redqueen.population.ratings import PRIOR, Rating


def test_founders_sit_on_numbered_seats_with_the_priors_rating():
    population = founders(2, 3)
    assert [each.id for each in population.members] == ["t0", "t1", "s0", "s1", "s2"]
    assert {each.rating for each in population.members} == {PRIOR}
    assert [each.role for each in population.teachers] == [Role.TEACHER] * 2


def test_a_child_takes_the_seat_and_a_name_of_its_own():
    population = founders(1, 2)
    child = Member(
        id=population.next_id("s0"),
        role=Role.STUDENT,
        seat="s0",
        rating=Rating(20, 5),
        birth=Birth(10, "dare", ("s1", "s0")),
    )
    after = population.replaced("s0", child, 10)
    assert [each.id for each in after.members] == ["t0", "s0.1", "s1"]
    assert [(grave.member.id, grave.step) for grave in after.graves] == [("s0", 10)]
    assert after.next_id("s0") == "s0.2"
    assert child.age(25) == 15
    assert [each.id for each in population.members] == ["t0", "s0", "s1"], "the old value stays"
    assert restore(json.loads(json.dumps(after.as_record()))) == after


def test_a_child_cannot_take_a_seat_of_the_other_role():
    population = founders(1, 1)
    with pytest.raises(InputError, match="cannot take the seat"):
        population.replaced("s0", Member(id="t0.1", role=Role.TEACHER, seat="t0"), 1)


def test_only_the_living_are_rated():
    population = founders(1, 1)
    assert population.rated({"s0": Rating(1, 2)}).member("s0").rating == Rating(1, 2)
    with pytest.raises(InputError, match="no living member 'x'"):
        population.rated({"x": PRIOR})


def test_the_best_of_a_role_is_one_that_has_proved_it():
    population = founders(2, 3)
    rated = population.rated({"s0": Rating(26, 1), "s1": Rating(28, 8), "s2": Rating(25, 0.5), "t1": Rating(24, 1)})
    assert (rated.best(Role.STUDENT).id, rated.best(Role.TEACHER).id) == ("s2", "t1")
