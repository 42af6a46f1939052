"""Alarms on scripted races: they ring for what was lost, and not for what never was."""

import json
import math

import pytest

from redqueen.analysis.diversity import ENOUGH_TASKS, Diversity, Spread, Variety
from redqueen.analysis.watch import Alarm, Watch, collapsed, restore
from redqueen.population.members import Role

VARIED = Variety(100, math.log2(3), 3.0)


def snapshot(step: int, students: Spread, teachers: Spread | None = None, **varieties: Variety) -> Diversity:
    roles = {Role.STUDENT: students}
    return Diversity(step, roles if teachers is None else {Role.TEACHER: teachers, **roles}, varieties)


def spread(size: float, distance: float = 0.0) -> Spread:
    return Spread(8, size, distance)


def rung(watch: Watch, snapshots: list[Diversity]) -> list[list[Alarm]]:
    found = []
    for each in snapshots:
        watch, alarms = watch.see(each)
        found.append(alarms)
    return found


def sizes(*values: float) -> list[list[Alarm]]:
    return rung(Watch(3), [snapshot(step, spread(value)) for step, value in enumerate(values)])


def rings(*values: float) -> list[bool]:
    return [bool(alarms) for alarms in sizes(*values)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 1, 1, 1), "...."),
        ((1, 2, 4, 6, 8), "....."),
        ((1, 8, 5, 3.6, 2.5, 2), ".....!"),
        ((1, 8, 2, 5, 2, 8), "..!.!."),
        ((1, 2.3, 1), "..."),
        ((1, 2.4, 2.41, 2.39), "...!"),
        ((4, 3, 2.3), "..!"),
    ],
    ids=["all equal for ever", "growing", "a slow fall", "rising again", "never apart", "just apart", "resumed"],
)  # fmt: skip
def test_the_effective_size_rings_below_its_floor_once_it_has_been_above(values, expected):
    assert "".join(".!"[ring] for ring in rings(*values)) == expected


def test_the_floor_goes_with_the_number_of_members():
    watch, alarms = Watch(3).see(snapshot(0, Spread(2, 2.0, 0.5)))
    assert not alarms
    assert not watch.see(snapshot(1, Spread(2, 1.21, 0.5)))[1]
    assert watch.see(snapshot(1, Spread(2, 1.19, 0.5)))[1]


def test_an_alarm_says_who_what_and_how_much():
    [alarm] = sizes(1, 8, 2)[-1]
    assert (alarm.step, alarm.subject, alarm.measure, alarm.value) == (2, "student", "effective_size", 2)
    assert alarm.floor == pytest.approx(2.4)
    assert alarm.says == "the effective size of the students is 2.00, below 2.40, and was 8.00"
    assert json.loads(json.dumps(alarm.as_record())) == alarm.as_record()


def test_a_fall_of_the_mean_distance_rings_but_is_no_collapse():
    alarms = rung(Watch(3), [snapshot(0, spread(1, 0.8)), snapshot(1, spread(1, 0.26)), snapshot(2, spread(1, 0.24))])
    assert [[alarm.measure for alarm in each] for each in alarms] == [[], [], ["weight_distance"]]
    assert collapsed(alarms[2]) == frozenset()


def test_each_role_has_its_own_highest():
    alarms = rung(Watch(3), [snapshot(0, spread(8), spread(2)), snapshot(1, spread(2), spread(2))])
    assert [alarm.subject for alarm in alarms[1]] == ["student"]
    assert collapsed(alarms[1]) == {Role.STUDENT}


def test_both_roles_can_collapse_and_a_teachers_alarm_is_no_collapse():
    narrow = Variety(100, 0.0, 0.0)
    alarms = rung(Watch(3), [snapshot(0, spread(8), spread(8)), snapshot(1, spread(2), spread(2), t0=narrow)])[1]
    assert {alarm.subject for alarm in alarms} == {"student", "teacher", "t0"}
    assert collapsed(alarms) == {Role.STUDENT, Role.TEACHER}


@pytest.mark.parametrize(
    ("variety", "measures"),
    [
        (VARIED, []),
        (Variety(100, 0.5, 3.0), ["kinds_bits"]),
        (Variety(100, 0.6, 0.9), ["descriptors_bits"]),
        (Variety(100, 0.0, 0.0), ["kinds_bits", "descriptors_bits"]),
        (Variety(ENOUGH_TASKS, 0.0, 3.0), ["kinds_bits"]),
        (Variety(ENOUGH_TASKS - 1, 0.0, 0.0), []),
    ],
)
def test_a_teacher_rings_below_a_floor_once_it_has_enough_tasks(variety, measures):
    _, alarms = Watch(3).see(snapshot(5, spread(1), t0=VARIED, t1=variety))
    assert [(alarm.subject, alarm.measure) for alarm in alarms] == [("t1", measure) for measure in measures]


def test_where_one_kind_is_asked_for_its_entropy_does_not_ring():
    _, alarms = Watch(1).see(snapshot(5, spread(1), t0=Variety(100, 0.0, 3.0)))
    assert alarms == []


def test_a_watch_comes_back_from_its_record_and_goes_on():
    before, _ = Watch(2).see(snapshot(0, spread(8, 0.9), spread(3, 0.2)))
    after = restore(json.loads(json.dumps(before.as_record())))
    assert after == before
    fallen = snapshot(1, spread(2, 0.1), spread(3, 0.2))
    assert after.see(fallen) == before.see(fallen)
    assert len(after.see(fallen)[1]) == 2


def test_seeing_does_not_change_the_watch_that_saw():
    watch, _ = Watch(3).see(snapshot(0, spread(2)))
    watch.see(snapshot(1, spread(8)))
    assert watch.highest[Role.STUDENT]["effective_size"] == 2
