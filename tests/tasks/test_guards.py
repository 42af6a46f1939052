"""What is refused though it is sound, what does not count as hard, and what a person looks at."""

import asyncio
import gzip
import json
import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.errors import ConfigError
from redqueen.tasks.archive import Archive, Entry, Trivial
from redqueen.tasks.code import FAMILY, SEEDS, CodeTask
from redqueen.tasks.files import read_held_out
from redqueen.tasks.guards import (
    ENOUGH_ANSWERS,
    ENOUGH_UNSOLVED,
    WINDOW,
    Guards,
    guess_rates,
    mark_trivial,
    read_patterns,
    set_aside,
)
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import LocalVerifier
from tasks.proposing import CODE, Recorder, pair, propose

CLOSE = '''
from typing import List

def has_close(numbers: List[float], threshold: float) -> bool:
    """Whether two of the numbers are closer to each other than the threshold."""
    ordered = sorted(numbers)
    for place in range(len(ordered) - 1):
        if ordered[place + 1] - ordered[place] < threshold:
            return True
    return False
'''
AS_F = """
def f(values, limit):
    in_order = sorted(values)
    for i in range(len(in_order) - 1):  # neighbours
        if in_order[i + 1] - in_order[i] < limit:
            return True
    return False
"""


def screen(guards: Guards, verifier, *tasks: Task | Rejection, archive: Archive | None = None) -> list[str]:
    """The reason of each refusal, "task" for what stays."""
    results = asyncio.run(guards.screen(tasks, archive or Archive(), verifier))
    return [result.reason.value if isinstance(result, Rejection) else "task" for result in results]


@cache
def code(program: str, kind: str = "code_o", given: str = "1", output: str = "2") -> CodeTask:
    return CodeTask(kind, program=program, inputs=(given,), outputs=(output,))


PLAIN = code("def f(n):\n    return n + 1")
LOOP = code("def f(n):\n    while True:\n        return n")


# Held-out programs.


@pytest.fixture
def held_out(tmp_path) -> Guards:
    (tmp_path / "close.py").write_text(CLOSE)
    return Guards(held_out=read_held_out([tmp_path / "close.py"], CODE).keys)


COPIES = {
    "under the name of the entry point": AS_F,
    "beside a helper that nothing calls": AS_F + "\ndef other(n):\n    return n\n\nNAMED = other\n",
    "called by the entry point": CLOSE + "\ndef f(numbers, threshold):\n    return not has_close(numbers, threshold)\n",
    "inside the entry point": "def f(xs, t):\n"
    + indent(AS_F.replace("def f", "def g"), "    ")
    + "    return not g(xs, t)",
}


@pytest.mark.parametrize("program", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_held_out_program_is_refused(verifier, held_out, program, kind):
    proposal = propose(FAMILY.kinds()[kind], verifier, pair(program, "[1.0, 2.0, 2.2], 0.5"))
    assert isinstance(proposal, Task), proposal
    assert screen(held_out, verifier, proposal) == ["held_out"]
    assert screen(Guards(), verifier, proposal) == ["task"]


def test_a_program_that_does_something_else_is_not_held_out(verifier, held_out):
    other = AS_F.replace("< limit", "> limit")
    assert screen(held_out, verifier, code(other), *SEEDS) == ["task"] * (1 + len(SEEDS))


def test_a_helper_that_anybody_would_write_is_no_held_out_program(verifier, tmp_path):
    (tmp_path / "square.py").write_text("def square(n):\n    return n * n\n")
    guards = Guards(held_out=read_held_out([tmp_path / "square.py"], CODE).keys)
    helped = "def square(n):\n    return n * n\n\ndef f(n):\n    return square(n) + square(n + 1)"
    assert screen(guards, verifier, code(helped), code("def f(k):\n    return k * k")) == ["task", "held_out"]


BENCH = os.environ.get("REDQUEEN_BENCH")


@pytest.mark.skipif(not BENCH, reason="REDQUEEN_BENCH, a folder with humaneval_plus/test.jsonl.gz, is not set")
def test_every_solution_of_humaneval_is_refused_under_the_name_f(verifier):
    path = Path(BENCH or "") / "humaneval_plus" / "test.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    found = read_held_out([path], CODE)
    assert (len(rows), found.programs, found.unreadable) == (164, 164, 0)
    renamed = [
        re.sub(rf"\b{row['entry_point']}\b", "f", row["prompt"] + row["canonical_solution"] + f"\n# {number}")
        for number, row in enumerate(rows)
    ]
    tasks = [code(program) for program in renamed if len(program) <= 4000]
    assert len(tasks) >= 160
    assert set(screen(Guards(held_out=found.keys), verifier, *tasks)) == {"held_out"}
    assert screen(Guards(held_out=found.keys), verifier, *SEEDS) == ["task"] * len(SEEDS)


# The user's patterns.


@pytest.mark.parametrize(
    "task",
    [
        LOOP,
        CodeTask("code_o", program=PLAIN.program, inputs=("'while True'",), outputs=("2",)),
        CodeTask(
            "code_f",
            program=PLAIN.program,
            inputs=("1", "2", "3", "4"),
            outputs=("2", "3", "4", "5"),
            shown=2,
            message="while True is not in it",
        ),
    ],
    ids=["program", "input", "hint"],
)
def test_a_pattern_is_sought_in_all_that_a_teacher_wrote(verifier, task):
    guards = Guards(deny=read_patterns(["lambda", r"while\s+True"]))
    [result] = asyncio.run(guards.screen([task], Archive(), verifier))
    assert result == task.rejected(Reason.DENIED, r"pattern 2: while\\s+True")
    assert screen(guards, verifier, PLAIN) == ["task"]


def test_texts_are_searched_one_by_one_as_they_are(verifier):
    guards = Guards(deny=read_patterns([r"\A1\Z", r"(?i)GR\u00d6SSE"]))
    assert screen(guards, verifier, PLAIN, code("def f(n):\n    return 'gr\u00f6sse'")) == ["denied", "denied"]
    assert screen(guards, verifier, code(PLAIN.program, given="11")) == ["task"]


def test_a_detail_is_ascii_and_has_nothing_of_the_models_text(verifier):
    guards = Guards(deny=read_patterns(["gr\u00f6sse"]))
    [result] = asyncio.run(guards.screen([code("def f(n):\n    return 'gr\u00f6sse \u202e'")], Archive(), verifier))
    assert isinstance(result, Rejection)
    assert result.detail == r"pattern 1: gr\xf6sse"


def test_a_search_that_does_not_end_costs_its_own_task_only(recorder: Recorder):
    guards = Guards(deny=read_patterns([r"(a|a)+$"]))
    hostile = code("def f(n):\n    return '" + "a" * 60 + "!'")
    assert screen(guards, recorder, PLAIN, hostile, LOOP) == ["task", "denied", "task"]
    assert [len(job.texts) for job in recorder.jobs] == [3, 1, 1, 1]
    assert len({job.limits for job in recorder.jobs}) == 1, "each alone has the time that it had with the others"
    [result] = asyncio.run(guards.screen([hostile], Archive(), recorder))
    assert isinstance(result, Rejection)
    assert result.detail == "the patterns could not be tried on it: timeout"


def test_many_tasks_are_searched_in_few_jobs_and_none_without_patterns(recorder: Recorder):
    tasks = [code(f"def f(n):\n    return n + {number}") for number in range(130)]
    assert screen(Guards(deny=read_patterns(["[+] 77$"])), recorder, *tasks).count("denied") == 1
    assert len(recorder.jobs) == 3
    screen(Guards(), recorder, *tasks)
    assert len(recorder.jobs) == 3


@dataclass(frozen=True)
class Sum(Task):
    """A task of another family, with no text and no program."""

    terms: tuple[int, ...]


def test_tasks_of_other_families_pass_guards_that_are_not_about_them(verifier, held_out):
    guards = replace(held_out, deny=read_patterns(["x"]), caps={"lines": 1, "depth": 1})
    one = Sum("sum", (1, 2))
    assert screen(guards, verifier, one, Sum("sum", (1, 2)), Sum("sum", (2, 1))) == ["task", "duplicate", "task"]
    assert (
        mark_trivial([Entry(task=one, step=0, teacher="t0", solved=0, attempts=8)], Archive(), "near")[0].trivial
        is None
    )


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(?P<1>a)"])
def test_a_pattern_that_is_none_is_the_users_to_mend(pattern):
    with pytest.raises(ConfigError, match=r"guard\.deny: pattern 2, .*, is no regular expression"):
        read_patterns(["fine", pattern])


# Caps and duplicates.


def test_a_program_over_a_cap_is_refused(verifier):
    [result] = asyncio.run(Guards(caps={"lines": 2}).screen([LOOP], Archive(), verifier))
    assert result == LOOP.rejected(Reason.TOO_COMPLEX, "3 lines, more than 2")
    [result] = asyncio.run(Guards(caps={"depth": 4}).screen([LOOP], Archive(), verifier))
    assert result == LOOP.rejected(Reason.TOO_COMPLEX, "a syntax tree of depth 5, more than 4")
    assert screen(Guards(caps={"lines": 3, "depth": 5}), verifier, LOOP) == ["task"]
    assert screen(Guards(caps={}), verifier, LOOP) == ["task"]


RENAMED = code("def f(k):\n    return k + 1", given="7", output="8")


@pytest.mark.parametrize(("mode", "reason"), [("near", "duplicate"), ("same", "duplicate"), ("allow", "task")])
def test_a_program_that_was_there_is_refused_unless_duplicates_are_allowed(verifier, mode, reason):
    archive = Archive(SEEDS).add([Entry(task=PLAIN, step=0, teacher="t0", solved=1, attempts=8)])
    guards = Guards(duplicates=mode)
    assert screen(guards, verifier, RENAMED, SEEDS[3], archive=archive) == [reason, reason]
    other = code("def f(k):\n    return k + 2")
    assert screen(guards, verifier, other, other, archive=archive) == ["task", reason]


def test_the_guess_rate_is_how_often_the_commonest_recent_answer_is_right():
    def returning(*outputs: str) -> list[Task]:
        return [replace(code(f"def f(n):\n    return n + {at}"), outputs=(each,)) for at, each in enumerate(outputs)]

    def archive(step: int, *outputs: str) -> Archive:
        return Archive().add(
            [Entry(task=task, step=step, teacher="t0", solved=1, attempts=8) for task in returning(*outputs)]
        )

    known = archive(1, "7", "7", "8")
    assert guess_rates(returning("7", "8", "9", "7"), known) == {"code_o": 0.5}
    assert guess_rates(returning("9"), known) == {"code_o": 0.0}
    assert guess_rates(returning("7"), Archive()) == {}, "nothing recent to guess from"
    assert guess_rates([], known) == {}


def test_a_refused_proposal_does_not_stand_in_the_way_of_a_later_one(verifier):
    """The first is denied for its input; the second has the same program and is fine."""
    guards = Guards(deny=read_patterns(["secret"]))
    assert screen(guards, verifier, code(PLAIN.program, given="'secret'"), PLAIN, RENAMED) == [
        "denied",
        "task",
        "duplicate",
    ]


def test_rejections_stay_what_they_are_and_in_their_place(verifier):
    cut = Rejection(Reason.CUT, "ends inside a fenced block")
    assert asyncio.run(Guards().screen([cut, PLAIN, cut], Archive(), verifier)) == [cut, PLAIN, cut]


def test_of_several_reasons_the_first_in_a_fixed_order_is_given(verifier, held_out):
    everything = replace(held_out, deny=read_patterns(["sorted"]), caps={"lines": 1})
    archive = Archive().add([Entry(task=code(AS_F), step=0, teacher="t0", solved=1, attempts=8)])
    order = [everything]
    order.append(replace(order[-1], held_out=frozenset()))
    order.append(replace(order[-1], deny=()))
    order.append(replace(order[-1], caps={}))
    order.append(replace(order[-1], duplicates="allow"))
    reasons = [screen(guards, verifier, code(AS_F), archive=archive)[0] for guards in order]
    assert reasons == ["held_out", "denied", "too_complex", "duplicate", "task"]


# Hard in a trivial way.


def answered(chars: int, number: int, kind: str = "code_o") -> CodeTask:
    text = repr("x" * (chars - 2))
    program = f"def f(n):\n    return [{', '.join(['n'] * number)}]"
    return code(program, kind, given=text) if kind == "code_i" else code(program, kind, output=text)


def entry(task: Task, step: int = 0, solved: int = 4, teacher: str = "t0") -> Entry:
    return Entry(task=task, step=step, teacher=teacher, solved=solved, attempts=8)


def archive_of(*entries: Entry) -> Archive:
    return Archive().add(entries)


def marks(archive: Archive, *entries: Entry, duplicates="near") -> list[Trivial | None]:
    return [each.trivial for each in mark_trivial(entries, archive, duplicates)]


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_an_answer_four_times_as_long_as_the_median_does_not_count(kind):
    archive = archive_of(*(entry(answered(20, number, kind)) for number in range(ENOUGH_ANSWERS)))
    long, fair = entry(answered(81, 90, kind), 1), entry(answered(80, 91, kind), 1)
    assert marks(archive, long, fair) == [Trivial.LONG_ANSWER, None]
    other = entry(answered(500, 92, "code_i" if kind == "code_o" else "code_o"), 1)
    assert marks(archive, other) == [None], "each kind has a median of its own"


def test_an_answer_is_long_only_beside_enough_others_and_beyond_a_floor():
    few = archive_of(*(entry(answered(20, number)) for number in range(ENOUGH_ANSWERS - 1)))
    assert marks(few, entry(answered(500, 90), 1)) == [None]
    short = archive_of(*(entry(answered(3, number)) for number in range(ENOUGH_ANSWERS)))
    assert marks(short, entry(answered(40, 90), 1), entry(answered(41, 91), 1)) == [None, Trivial.LONG_ANSWER]


def test_answers_of_long_ago_make_no_median():
    archive = archive_of(
        *(entry(answered(3, number)) for number in range(ENOUGH_ANSWERS)), entry(answered(3, 80), WINDOW)
    )
    assert marks(archive, entry(answered(500, 90), WINDOW + 1)) == [None]


def test_the_answer_of_a_code_f_task_is_its_hidden_outputs():
    task = CodeTask(
        "code_f",
        program=PLAIN.program,
        inputs=("1", "2", "3", "4"),
        outputs=("'" + "x" * 100 + "'", "20", "30", "400"),
        shown=2,
    )
    assert task.answer_chars == len("30") + len("400")


def test_a_teachers_own_program_with_new_constants_does_not_count():
    def plus(number: int, kind: str = "code_o") -> CodeTask:
        return code(f"def f(n):\n    return n + {number}", kind)

    archive = archive_of(entry(plus(1)))
    assert marks(archive, entry(plus(2), 1)) == [Trivial.NEAR_DUPLICATE]
    assert marks(archive, entry(plus(2), 1, teacher="t1")) == [None]
    assert marks(archive, entry(plus(2, "code_i"), 1)) == [None]
    assert marks(archive, entry(plus(2), 1), duplicates="same") == [None]
    assert marks(archive, entry(plus(2), 1), duplicates="allow") == [None]
    aged = archive_of(entry(plus(1)), entry(PLAIN, WINDOW, teacher="t1"))
    assert marks(aged, entry(plus(2), WINDOW + 1)) == [None]


def test_of_near_duplicates_in_one_step_the_first_counts():
    tasks = [code(f"def f(n):\n    return n * {number}") for number in range(3)]
    assert marks(Archive(), *map(entry, tasks)) == [None, Trivial.NEAR_DUPLICATE, Trivial.NEAR_DUPLICATE]


def test_code_f_tasks_on_one_program_count_since_the_program_was_given_to_the_teacher():
    tasks = [
        CodeTask("code_f", program=PLAIN.program, inputs=("1", "2", "3", last), outputs=tuple("2345"), shown=2)
        for last in "56"
    ]
    assert marks(archive_of(entry(tasks[0])), entry(tasks[1], 1)) == [None]


def unsolved(count: int, step: int = 0, solved: int = 0) -> list[Entry]:
    return [entry(code(f"def f(n):\n    return n{' + n' * number} + 1"), step, solved) for number in range(count)]


def test_a_type_of_problem_that_nobody_ever_solves_is_not_hard():
    new = code("def f(n):\n    return n * n - 5")
    hopeless = archive_of(*unsolved(ENOUGH_UNSOLVED))
    assert marks(hopeless, entry(new, 1, solved=0)) == [Trivial.NEVER_SOLVED]
    assert marks(hopeless, entry(new, 1, solved=1)) == [None], "somebody solves it"
    assert marks(hopeless, entry(code(new.program, "code_i"), 1, solved=0)) == [None], "another kind"
    assert marks(hopeless, entry(code("def f(n):\n    return str(n)"), 1, solved=0)) == [None], "another type"
    assert marks(archive_of(*unsolved(ENOUGH_UNSOLVED - 1)), entry(new, 1, solved=0)) == [None], "too few to tell"
    hope = archive_of(*unsolved(ENOUGH_UNSOLVED), entry(RENAMED, solved=1))
    assert marks(hope, entry(new, 1, solved=0)) == [None], "one of its type was solved"
    aged = archive_of(*unsolved(ENOUGH_UNSOLVED), entry(code("def f(n):\n    return str(n)"), WINDOW))
    assert marks(aged, entry(new, WINDOW + 1, solved=0)) == [None], "long ago"


def test_marking_changes_nothing_else_and_not_the_archive():
    archive = archive_of(*unsolved(3))
    before = list(archive)
    entries = [entry(PLAIN, 1), entry(LOOP, 1)]
    assert [replace(each, trivial=None) for each in mark_trivial(entries, archive, "near")] == entries
    assert list(archive) == before


# Oversight.


@settings(max_examples=20)
@given(st.integers(1, 50), st.integers(0, 2**63 - 1))
def test_about_one_in_so_many_tasks_is_set_aside_and_always_the_same_ones(every, seed):
    places = [(step, place) for step in range(20) for place in range(100)]
    chosen = [set_aside(every, seed, *each) for each in places]
    mean, deviation = 2000 / every, (2000 / every * (1 - 1 / every)) ** 0.5
    assert abs(sum(chosen) - mean) <= 6 * deviation
    assert chosen == [set_aside(every, seed, *each) for each in places]


def test_none_is_set_aside_when_nobody_wants_to_look():
    assert not any(set_aside(0, 1, 0, place) for place in range(100))


def test_screening_is_the_same_on_every_run(verifier: LocalVerifier):
    guards = Guards(deny=read_patterns(["while"]))
    tasks = [PLAIN, LOOP, RENAMED, *SEEDS]
    assert screen(guards, verifier, *tasks) == screen(guards, verifier, *tasks)
