"""What teachers are shown of earlier tasks, and what the archive remembers."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.tasks import archive
from redqueen.tasks.archive import CAPACITY, SMALL, Archive, Entry, Trivial
from redqueen.tasks.code import FAMILY, SEEDS, CodeTask
from redqueen.tasks.protocol import Task
from tasks.code_e import CodeE
from tasks.proposing import CODE

CODE_O, CODE_I, CODE_F = (FAMILY.kinds()[name] for name in ("code_o", "code_i", "code_f"))
BODIES = {
    "int": "return n + {0}",
    "int+loop": "for i in range({0}):\n        n += i\n    return n",
    "str": "return str(n) + '{0}'",
    "list": "return [n, {0}]",
    "branch+int": "if n > {0}:\n        return 1\n    return 2",
    "int+while": "while n < {0}:\n        n += 3\n    return n",
}


def program(number: int, body: str = "int") -> str:
    return f"def f(n):\n    {BODIES[body].format(number)}"


@cache  # so that keys are worked out once
def task(number: int, body: str = "int", kind: str = "code_o") -> CodeTask:
    return CodeTask(kind, program=program(number, body), inputs=("1",), outputs=("2",))


def function(number: int, inputs: tuple[str, ...] = ("1", "2", "3", "4")) -> CodeTask:
    return CodeTask("code_f", program=program(number), inputs=inputs, outputs=inputs, shown=2)


def entry(of: Task, step: int = 0, solved: int = 4, trivial: Trivial | None = None) -> Entry:
    return Entry(task=of, step=step, teacher="t0", solved=solved, attempts=8, trivial=trivial)


def filled(seeds, entries) -> Archive:
    return Archive(seeds).add(entries)


def many(count: int, step: int = 0, first: int = 0, body: str = "int") -> list[Entry]:
    return [entry(task(first + number, body), step) for number in range(count)]


def drawn(of: Archive, count: int = 4, kind=CODE_O, draws: int = 300) -> Counter[str]:
    """How often each program comes up."""
    return Counter(each.program for seed in range(draws) for each in of.references(kind, count, Random(seed)))


def test_the_bodies_are_of_the_types_that_the_tests_say():
    assert {task(1, body).descriptor for body in BODIES} == set(BODIES)


def test_an_empty_archive_shows_the_seeds():
    shown = Archive(SEEDS).references(CODE_O, 4, Random(0))
    assert len(shown) == 4
    assert set(shown) <= set(SEEDS)


def test_with_nothing_at_all_there_is_nothing_to_show():
    assert Archive().references(CODE_O, 4, Random(0)) == []


def test_seeds_are_shown_beside_tasks_while_there_are_few_of_these():
    few, enough = filled(SEEDS, many(SMALL - 1)), filled(SEEDS, many(SMALL))
    seeds = {seed.program for seed in SEEDS}
    assert seeds & set(drawn(few)) and set(drawn(few)) - seeds
    assert not seeds & set(drawn(enough))


def test_tasks_that_nobody_solves_or_that_do_not_count_are_not_shown():
    fit = many(3)
    unsolved = [entry(task(number), solved=0) for number in range(100, 150)]
    trivial = [entry(task(number), trivial=Trivial.LONG_ANSWER) for number in range(200, 250)]
    assert set(drawn(filled((), fit + unsolved + trivial))) == {each.task.program for each in fit}
    # Nor do they stand in where references are fewer than wanted, ...
    assert len(filled((), fit + unsolved).references(CODE_O, 4, Random(0))) == 3
    # ... but they are better than nothing.
    assert len(filled((), unsolved + trivial).references(CODE_O, 4, Random(0))) == 4
    assert set(drawn(filled(SEEDS, unsolved))) == {seed.program for seed in SEEDS}


def test_a_task_at_the_frontier_is_shown_more_often_than_one_that_all_solve():
    counts = drawn(filled((), [entry(task(1), solved=4), entry(task(2), solved=8)]), count=1, draws=1000)
    share = counts[program(1)] / 1000
    assert abs(share - 1 / 1.1) < 0.03


def test_a_task_is_shown_half_as_often_after_its_half_life():
    old, new = entry(task(1), 5), entry(task(2), 5 + archive.HALF_LIFE)
    counts = drawn(filled((), [old, new]), count=1, draws=2000)
    assert abs(counts[program(1)] / 2000 - 1 / 3) < 0.04


def test_a_task_of_any_age_can_still_be_drawn():
    shown = filled((), [entry(task(1), 0), entry(task(2), 10**9)]).references(CODE_O, 4, Random(0))
    assert {each.program for each in shown} == {program(1), program(2)}


def test_types_of_problem_differ_while_there_are_others():
    entries = many(500) + [each for body in list(BODIES)[1:] for each in many(1, body=body)]
    of = filled((), entries)
    for seed in range(50):
        shown = of.references(CODE_O, len(BODIES) + 2, Random(seed))
        types = [each.descriptor for each in shown]
        assert set(types[: len(BODIES)]) == set(BODIES)
        assert types[len(BODIES) :] == ["int", "int"]


def test_both_kinds_of_pairs_serve_every_kind_and_code_f_tasks_serve_none():
    entries = [entry(task(1)), entry(task(2, kind="code_i")), entry(function(3))]
    for kind in (CODE_O, CODE_I, CODE_F, CodeE()):
        assert set(drawn(filled((), entries), kind=kind)) == {program(1), program(2)}


@dataclass(frozen=True)
class Sum(Task):
    """A task of some other family."""

    terms: tuple[int, ...]


class Sums:
    """As much of its kind as the archive needs."""

    task_type = Sum


def test_families_do_not_see_each_others_tasks():
    of = filled((*SEEDS, Sum("sum", (9,))), [*many(2), entry(Sum("sum", (1, 2)))])
    assert set(of.references(Sums(), 9, Random(0))) == {Sum("sum", (1, 2)), Sum("sum", (9,))}  # type: ignore[arg-type]
    assert all(isinstance(each, CodeTask) for each in of.references(CODE_O, 9, Random(0)))


def test_the_prompts_take_what_the_archive_gives():
    of = filled(SEEDS, many(100))
    for kind in (CODE_O, CODE_I, CODE_F):
        prompt = kind.propose_prompt(of.references(kind, 4, Random(3)), Random(3))
        assert any("return n + " in message["content"] for message in prompt.messages)


def test_what_was_there_is_known_again_by_kind_whatever_it_is_called_now():
    of = filled((), many(1))
    renamed = CodeTask("code_o", program="def f(k):\n    # new\n    return k + 0", inputs=("5",), outputs=("5",))
    assert of.seen(renamed)
    assert not of.seen(CodeTask("code_i", program=renamed.program, inputs=("5",), outputs=("5",)))
    assert not of.seen(task(1))


def test_a_copied_seed_is_known_for_every_kind():
    assert all(
        Archive(SEEDS).seen(CodeTask(kind, program=SEEDS[0].program, inputs=("'a'",), outputs=("'a1'",)))
        for kind in FAMILY.kinds()
    )


def test_a_code_f_task_is_known_by_its_inputs_too():
    of = filled((), [entry(task(1)), entry(function(1))])
    assert of.seen(function(1, ("4", "3", "2", "1")))
    assert not of.seen(function(1, ("5", "3", "2", "1")))


def test_a_full_archive_forgets_the_oldest_but_knows_it_again(monkeypatch):
    monkeypatch.setattr(archive, "CAPACITY", 10)
    of = Archive().add(many(25))
    assert [each.task for each in of] == [task(number) for number in range(15, 25)]
    assert all(of.seen(task(number)) for number in range(25))
    assert len(of) == 10 < CAPACITY


def test_what_is_added_makes_another_archive():
    before = filled(SEEDS, many(3))
    after = before.add(many(2, step=1, first=3))
    assert (len(before), len(after), before.newest, after.newest) == (3, 5, 0, 1)
    assert after.seen(task(4))
    assert not before.seen(task(4))


def test_the_same_numbers_draw_the_same_references():
    one, other = filled(SEEDS, many(30)), filled(SEEDS, many(30))
    assert all(one.references(CODE_O, 4, Random(n)) == other.references(CODE_O, 4, Random(n)) for n in range(50))
    assert len({tuple(one.references(CODE_O, 4, Random(n))) for n in range(50)}) > 40


ENTRIES = st.lists(
    st.builds(
        lambda number, body, kind, solved, trivial: Entry(
            task=function(number) if kind == "code_f" else task(number, body, kind),
            step=0,
            teacher="t0",
            solved=solved,
            attempts=8,
            trivial=trivial,
        ),
        st.integers(0, 30),
        st.sampled_from(list(BODIES)),
        st.sampled_from(list(FAMILY.kinds())),
        st.integers(0, 8),
        st.none() | st.sampled_from(Trivial),
    ),
    max_size=12,
)


@pytest.mark.parametrize("capacity", [8, CAPACITY])
@settings(max_examples=60)
@given(steps=st.lists(ENTRIES, min_size=1, max_size=6), killed=st.integers(0, 6), seed=st.integers(0, 2**32))
def test_an_archive_restored_from_records_goes_on_as_if_it_had_never_stopped(capacity, steps, killed, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "CAPACITY", capacity)
        unbroken, records, broken = Archive(SEEDS), [], Archive(SEEDS)
        for step, entries in enumerate(steps):
            if step == killed:
                broken = _restored(records, capacity)
            placed = [
                Entry(
                    task=e.task, step=step, teacher=e.teacher, solved=e.solved, attempts=e.attempts, trivial=e.trivial
                )
                for e in entries
            ]
            for of in (unbroken, broken):
                of.references(CODE_O, 2, Random(step))
            unbroken, broken = unbroken.add(placed), broken.add(placed)
            records += [(json.dumps(e.task.record()), e.task.kind, e.task.near_key, e) for e in placed]
        again = _restored(records, capacity)
        for of in (broken, again):
            assert list(of) == list(unbroken)
            assert of.newest == unbroken.newest
            for kind in (CODE_O, CODE_I, CODE_F):
                assert of.references(kind, 5, Random(seed)) == unbroken.references(kind, 5, Random(seed))
            known = [task(n, body, kind) for n in range(31) for body in BODIES for kind in ("code_o", "code_i")]
            assert [of.seen(each) for each in known] == [unbroken.seen(each) for each in known]


def _restored(records, capacity: int) -> Archive:
    entries = [
        Entry(
            task=CODE.restore(json.loads(text)),
            step=e.step,
            teacher=e.teacher,
            solved=e.solved,
            attempts=e.attempts,
            trivial=e.trivial and Trivial(str(e.trivial)),
        )
        for text, _, _, e in records[-capacity:]
    ]
    return Archive.restored(SEEDS, entries, [(kind, near_key) for _, kind, near_key, _ in records])


@settings(max_examples=60)
@given(entries=ENTRIES, count=st.integers(0, 30), seed=st.integers(0, 2**32), seeds=st.sampled_from([(), SEEDS]))
def test_references_never_repeat_a_program_and_are_as_many_as_there_can_be(entries, count, seed, seeds):
    shown = filled(seeds, entries).references(CODE_O, count, Random(seed))
    fit = {e.task.body_key for e in entries if e.task.original and e.solved and not e.trivial}
    unfit = {e.task.body_key for e in entries if e.task.original} - fit
    possible = fit | {s.body_key for s in seeds} or unfit
    assert len({each.body_key for each in shown}) == len(shown) == min(count, len(possible))
    assert {each.body_key for each in shown} <= possible
