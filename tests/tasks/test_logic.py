"""The logic family: secrets by lot, clues that are made to fit and needed, answers that are evaluated."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.commands.main import main
from redqueen.errors import InputError
from redqueen.runs.records_file import RECORDS
from redqueen.settings import load
from redqueen.tasks.archive import Archive
from redqueen.tasks.families import Families
from redqueen.tasks.files import read_exam, read_held_out, validated_exam
from redqueen.tasks.guards import Guards
from redqueen.tasks.logic import FAMILY, SEEDS, LogicTask
from redqueen.tasks.logic.guest.logic_language import (
    MOST_CHARS,
    MOST_UNKNOWNS,
    Refused,
    figures,
    read,
    read_loosely,
    write,
)
from redqueen.tasks.logic.prompts import EXAMPLES, allowed_values
from redqueen.tasks.logic.task import CHECKER
from redqueen.tasks.protocol import Attempt, Form
from redqueen.tasks.verdicts import Grade, Reason, Rejection

FAMILIES = Families.of(["logic"])
KIND = FAMILIES.kinds["logic_s"]
GUEST = str(Path(CHECKER.file).parent)
FIVE = "Ann, Bob, Cy, Dan, Eve in 1..5, different\n"
SUMS = FIVE + "Ann < Bob\nCy == Dan + 1\nabs(Eve - Ann) == 2\nBob + Cy == 6"


def validated(verifier, puzzle: str) -> LogicTask | Rejection:
    draft = KIND.parse_proposal(f"Here it is.\n```puzzle\n{puzzle}\n```", {})
    if isinstance(draft, Rejection):
        return draft
    [result] = asyncio.run(KIND.validate([draft], verifier))
    return result


def of_file(verifier, puzzle: str) -> LogicTask | Rejection:
    drafts = FAMILY.drafts({"kind": "logic_s", "puzzle": puzzle}, KIND)
    [result] = asyncio.run(KIND.validate(drafts, verifier))
    return result


def sound(verifier, puzzle: str) -> LogicTask:
    task = validated(verifier, puzzle)
    assert isinstance(task, LogicTask), task
    return task


def grades(verifier, task, *texts: str, cut: bool = False) -> list[Grade]:
    attempts = [Attempt(task, text, cut) for text in texts]
    return [verdict.grade for verdict in asyncio.run(KIND.grade(attempts, verifier))]


def solution(verifier, task) -> str:
    [text] = asyncio.run(FAMILY.answers([task], verifier))
    return text


def clues(task: LogicTask) -> list[str]:
    return [line for line in task.puzzle.split("\n") if " in " not in line]


# What comes with the package


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.puzzle.split(",")[0])
def test_a_seed_is_sound_as_it_stands(verifier, seed):
    assert of_file(verifier, seed.puzzle) == seed
    assert grades(verifier, seed, solution(verifier, seed)) == [Grade.CORRECT]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text.split(",")[0])
def test_the_worked_answers_are_right(verifier, example):
    task = of_file(verifier, example.text)
    assert isinstance(task, LogicTask) and task.puzzle == example.text
    assert grades(verifier, task, f"{example.thought}\n\n```answer\n{example.answer}\n```") == [Grade.CORRECT]


def test_the_exam_is_sound_in_bands_by_guesses_and_no_two_of_it_are_alike(verifier):
    exam = asyncio.run(validated_exam(read_exam(FAMILIES.exams["puzzles"], FAMILIES), FAMILIES, verifier))
    guesses = {band: [one.task.guesses for one in exam if one.band == band] for band in "1234"}
    assert [len(own) for own in guesses.values()] == [60] * 4
    for easier, harder in zip("123", "234", strict=True):
        assert max(guesses[easier]) < min(guesses[harder])
    assert len({one.task.near_key for one in exam}) == len(exam)
    texts = asyncio.run(FAMILY.answers([one.task for one in exam], verifier))
    verdicts = asyncio.run(
        KIND.grade([Attempt(one.task, text) for one, text in zip(exam, texts, strict=True)], verifier)
    )
    assert all(verdict.correct for verdict in verdicts)


@pytest.mark.parametrize("form", Form)
def test_prompts_show_the_puzzle_and_say_what_is_wanted(form):
    kind = FAMILY.kinds(form)["logic_s"]
    asked = kind.solve_prompt(SEEDS[0]).messages[-1]["content"]
    assert SEEDS[0].puzzle in asked and "answer" in asked
    proposed = kind.propose_prompt((), Random(0))
    assert "puzzle" in proposed.messages[-1]["content"]
    assert any(seed.puzzle in message["content"] for seed in SEEDS for message in proposed.messages)


def test_students_are_told_which_values_each_unknown_may_have():
    said = allowed_values("Ann, Bob in 1..3, different\nCy in tea, milk\nAnn < Bob")
    assert said == "Each of Ann, Bob is 1, 2 or 3, no two of them the same. Cy is tea or milk."
    for form in (Form.LONG, Form.DIRECT):
        *_, asked = (message["content"] for message in FAMILY.kinds(form)["logic_s"].solve_prompt(SEEDS[0]).messages)
        assert f"\n\n{allowed_values(SEEDS[0].puzzle)}\n\n" in asked
    worked = FAMILY.kinds(Form.LONG)["logic_s"].solve_prompt(SEEDS[0]).messages[1]["content"]
    assert worked.endswith(f"```answer\n{EXAMPLES[0].answer}\n```") and EXAMPLES[0].thought in worked


# Structure is the teacher's, constants are not


def test_the_secret_is_drawn_by_lot_so_that_equal_structures_have_different_answers(verifier):
    puzzles = [FIVE + f"Ann < Bob\nCy == Dan + {n}\nabs(Eve - Ann) == 2\nBob + Cy == 6" for n in range(1, 9)]
    solutions = {solution(verifier, sound(verifier, puzzle)) for puzzle in puzzles}
    assert len(solutions) > 4
    assert sound(verifier, SUMS) == sound(verifier, SUMS)


def test_clues_that_do_not_fit_are_made_to(verifier):
    task = sound(verifier, FIVE + "Ann + Bob == 99\nCy == Dan + 40\nabs(Eve - Ann) == 17\nBob > 5")
    assert grades(verifier, task, solution(verifier, task)) == [Grade.CORRECT]
    assert "99" not in task.puzzle and "40" not in task.puzzle and "17" not in task.puzzle
    assert any(clue.startswith("Ann + Bob == ") for clue in clues(task))


@pytest.mark.parametrize(
    "clue",
    [
        "Ann says Bob == knave", "Ann says Bob == Cy", "Bob says not (Ann == knight and Cy == knave)",
        "Ann says Bob == knave or Cy == knave", "Cy says count(Ann == knave, Bob == knave, Dan == knave) == 3",
        "Ann says Ann == knight",
    ],
)  # fmt: skip
def test_what_knights_and_knaves_say_is_made_to_fit(verifier, clue):
    chain = ("Bob says Cy == Dan", "Cy says Dan == Eve", "Dan says Eve == Fay", "Eve says Fay == Gus",
             "Fay says Gus == Ann", "Gus says Ann == Bob")  # fmt: skip
    task = sound(verifier, "\n".join(["Ann, Bob, Cy, Dan, Eve, Fay, Gus in knight, knave", clue, *chain]))
    assert grades(verifier, task, solution(verifier, task)) == [Grade.CORRECT]


def test_ranges_are_made_wide_enough_and_words_are_shared_where_there_are_too_few(verifier):
    task = sound(verifier, "Ann, Bob, Cy, Dan in 1..2, different\nAnn < Bob\nCy == Dan + 1\nBob + Cy == 6")
    assert task.puzzle.startswith("Ann, Bob, Cy, Dan in 1..6, different")
    words = "a, b, c, d, e, f, g, h in tea, milk, juice, different\n"
    task = sound(verifier, words + "a != b\nb == c\nc == d or a == e\nd != e\nf == a\ng == f\nh != g")
    assert task.puzzle.startswith("a, b, c, d, e, f, g, h in tea, milk, juice\n")


def test_what_follows_from_other_clues_is_left_out(verifier):
    task = sound(verifier, SUMS)
    padded = sound(verifier, SUMS + "\nAnn + 1 > 0\nBob != Cy\nEve * 0 == 0")
    assert not {"Ann + 1 > 0", "Bob != Cy", "Eve * 0 == 0"} & set(clues(padded))
    assert len(clues(padded)) <= len(clues(task)) + 1


def test_parts_that_have_nothing_to_do_with_the_rest_are_left_out(verifier):
    task = sound(verifier, SUMS + "\nx in 1..9\nx > 2\nred, blue in tea, milk")
    assert "x" not in task.puzzle and "red" not in task.puzzle


def test_what_hangs_together_is_a_puzzle_where_a_clue_that_followed_held_more_together(verifier):
    said = "\n".join([
        "Dan says Dan == Bob", "Ann says Eve == knave or Dan == knave", "Eve says Gil == Cy", "Eve says Dan == Ann",
        "Fay says Cy == knight or Dan == knight", "Ann says Fay == knight and Dan == knight",
        "Cy says count(Fay == knight, Gil == knight, Bob == knight) == 0",
    ])  # fmt: skip
    task = sound(verifier, "Ann, Bob, Cy, Dan, Eve, Fay, Gil in knight, knave\n" + said)
    assert of_file(verifier, task.puzzle) == task
    assert task.complexity.variables < 7


def test_a_value_or_two_are_given_away_where_clues_leave_too_much_open(verifier):
    words = "Al, Bo, Cleo, Di, Ed, Flo in tea, milk, juice, cola\n"
    said = "Al == Bo or Cleo == tea\nBo == Cleo\nCleo == Di\nDi == Ed or Flo == milk\nEd == Flo"
    task = sound(verifier, words + said)
    assert clues(task)[-1] == "Flo == tea"


# Idle unknowns

IDLE = [
    "Ann + 0 * Bob == 3", "Ann + Bob - Bob == 3", "Ann == 1 and Bob == Bob", "Ann * Bob % 9 == Ann * Bob % 9",
    "Ann < Bob or Bob == Cy + 9", "not (Ann < 3 and Bob < 99)", "count(Ann == 1, Bob == Bob, Cy < Dan) == 2",
    "Ann == 1 and Bob < 3 or Ann == 1 and Bob >= 3", "Ann == Bob or Cy == 2", "abs(Ann - Ann) * Bob == 0",
    "0 * (Ann + Bob + Cy + Dan) + Eve == 4", "Ann + Bob + Cy + Dan + Eve == 15",
]  # fmt: skip
"""Of unknowns in FIVE, which are different."""


@pytest.mark.parametrize("clue", IDLE)
def test_a_clue_in_which_an_unknown_makes_no_difference_is_left_out_or_refused(verifier, clue):
    kept = sound(verifier, SUMS).puzzle
    written = sound(verifier, f"{SUMS}\n{clue}").puzzle
    assert {line for line in written.split("\n") if "0 *" in line or "Bob == Bob" in line} == set()
    refused = of_file(verifier, f"{kept}\n{clue}")
    assert isinstance(refused, Rejection) and refused.reason in (Reason.TOO_EASY, Reason.UNANSWERABLE)


def test_clues_that_tell_the_solution_line_by_line_are_no_puzzle(verifier):
    names = ["Ann", "Bob", "Cy", "Dan", "Eve"]
    for form in ("{a} + 0 * {b} == 3", "{a} + {b} - {b} == 3", "{a} == 2 or {b} == 99", "{a} * 7 % 7 + {b} == 4"):
        lines = [form.format(a=a, b=b) for a, b in zip(names, names[1:] + names[:1], strict=True)]
        result = validated(verifier, FIVE.replace(", different", "") + "\n".join(lines))
        assert isinstance(result, Rejection), result
    knights = ", ".join(names) + " in knight, knave\n"
    told = [f"{a} says {a} != {b}" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    assert isinstance(validated(verifier, knights + "\n".join(told)), Rejection)


@pytest.mark.parametrize(
    "form", ["10 * {a} + {b} == 47", "{a} - {b} == 8", "{a} * 9 - {b} % 9 == 3", "{a} * {b} == 81"]
)
def test_clues_that_settle_unknowns_by_themselves_count_as_clues_about_one(verifier, form):
    """Each could be worked out without the others."""
    pairs = ["Ann Bob", "Cy Dan", "Eve Fay"]
    lines = [form.format(a=a, b=b) for a, b in map(str.split, pairs)]
    text = "\n".join(["Ann, Bob, Cy, Dan, Eve, Fay in 1..9", *lines, "Bob + Cy > Ann", "Dan + Eve > Bob"])
    inspected = of_file(verifier, text)
    assert isinstance(inspected, Rejection) and inspected.reason is Reason.TOO_EASY, inspected
    assert "clues about one unknown are nearly the answer" in inspected.detail


@pytest.mark.parametrize(
    ("clue", "name"),
    [(clue, None) for clue in ("Ann * Bob * Cy == 6", "Ann + 2 * Bob == Cy", "abs(Ann - Bob) == 2", "Ann != Bob + 1",
                               "count(Ann == 1, Bob == 2, Cy == 3) == 2", "Ann + Bob + 2 * Cy + Dan + Eve == 17")]
    + [("Ann + 0 * Bob == 3", "Bob"), ("Ann == 1 or not Bob < 9", "Bob"), ("Ann == Bob or Cy == 2", "Ann"),
       ("Ann * (Bob - Bob) + Cy == 2", "Ann")],
)  # fmt: skip
def test_whether_an_unknown_makes_a_difference_is_seen_in_values(clue, name, monkeypatch):
    monkeypatch.syspath_prepend(GUEST)
    import logic_bearing

    groups, [read_clue] = read(FIVE + clue)
    secret = {"Ann": 1, "Bob": 2, "Cy": 3, "Dan": 4, "Eve": 5}
    assert logic_bearing.idle_in(groups, read_clue, secret, [8_000]) == name


# Files


@pytest.mark.parametrize(
    ("clues", "reason", "detail"),
    [
        ("Ann < Bob\nBob < Ann\nCy == Dan + 1\nEve < Dan", Reason.UNANSWERABLE, "no assignment keeps all clues"),
        ("Ann == 1\nBob == 2\nCy < Dan\nEve < Dan", Reason.TOO_EASY, "clues about one unknown"),
        ("Ann < Bob\nCy < Dan\nDan < Eve", Reason.GUESSABLE, "assignments are right"),
        ("Ann == Bob + 3\nCy == Dan + 3\nabs(Dan - Eve) == 1\nAnn > Bob", Reason.TOO_EASY, "clue 4 follows"),
    ],
)  # fmt: skip
def test_a_puzzle_of_a_file_is_refused_where_a_teachers_would_be_mended(verifier, clues, reason, detail):
    result = of_file(verifier, FIVE + clues)
    assert isinstance(result, Rejection) and result.reason is reason and detail in result.detail


def test_a_bad_row_of_an_exam_is_named_by_its_line(tmp_path, verifier):
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"kind": "logic_s", "band": "x", "puzzle": FIVE + "Ann < Zoe"}))
    with pytest.raises(
        InputError, match=r"own\.jsonl, line 1: the task is refused: syntax .clue 1: a name that is not"
    ):
        asyncio.run(validated_exam(read_exam(file, FAMILIES), FAMILIES, verifier))
    file.write_text(json.dumps({"kind": "logic_s"}))
    with pytest.raises(InputError, match="line 1: no text under 'puzzle'"):
        read_exam(file, FAMILIES)


def test_held_out_files_of_several_families_go_together():
    both = Families.of(["code", "logic"])
    exams = both.exams
    assert len(read_held_out([exams["functions"], exams["puzzles"]], both).keys) > 700
    with pytest.raises(InputError, match="no text under any of"):
        read_held_out([exams["puzzles"]], Families.of(["code"]))


# What is refused


@pytest.mark.parametrize(
    ("puzzle", "reason"),
    [
        ("Ann < Bob", Reason.NO_PUZZLE),
        ("Ann, Bob in 1..5\nAnn < Carl", Reason.SYNTAX),
        ("Ann, Bob in 5..1\nAnn < Bob", Reason.SYNTAX),
        ("Ann in 1..5\nBob in\nBob < 3\nAnn < Bob\nCy < Ann", Reason.SYNTAX),
        ("Ann, Ann in 1..5\nAnn < 2", Reason.TOO_EASY),
        ("Ann, Bob in red, green\nAnn < Bob", Reason.SYNTAX),
        ("Ann, Bob in red, green\nAnn == 3", Reason.SYNTAX),
        ("Ann, Bob in red, green\nAnn says Bob == red", Reason.SYNTAX),
        (FIVE + "__import__('os').system('true')", Reason.SYNTAX),
        (FIVE + "Ann ** 9 == 1", Reason.SYNTAX),
        (FIVE + "Ann == 99999", Reason.SYNTAX),
        (FIVE + "(Ann < Bob", Reason.SYNTAX),
        (FIVE + "Ann Bob", Reason.SYNTAX),
        (FIVE + "Änn < Bob", Reason.SYNTAX),
        (FIVE + "(" * 200 + "Ann" + ")" * 200 + " == 1", Reason.TOO_DEEP),
        (FIVE + " + ".join(["Ann"] * 50) + " == 1", Reason.TOO_COMPLEX),
        (FIVE + "Ann < Bob\n" * 30, Reason.TOO_COMPLEX),
        (", ".join(f"x{n}" for n in range(MOST_UNKNOWNS + 1)) + " in 0..1\nx1 < x2", Reason.TOO_COMPLEX),
        ("Ann, Bob, Cy, Dan in knight, knave\nAnn says Bob == knave\nCy says Dan == Ann", Reason.TOO_EASY),
        ("Ann, Bob, Cy in tea, milk, juice, different\nAnn != Bob\nBob == milk\nCy != juice", Reason.TOO_EASY),
        (FIVE + "Ann == 1\nBob == 2\nCy == 3", Reason.GUESSABLE),
        (FIVE + "Ann + Bob + Cy + Dan + Eve == 15", Reason.GUESSABLE),
        ("a, b, c, d, e, f in 1..6\na < b or c < d\ne < f or a < d", Reason.GUESSABLE),
        ("x" * (MOST_CHARS + 1), Reason.PROGRAM_TOO_LONG),
        ("", Reason.NO_PUZZLE),
    ],
)  # fmt: skip
def test_what_is_no_puzzle_is_refused_with_a_reason(verifier, puzzle, reason):
    result = validated(verifier, puzzle)
    assert isinstance(result, Rejection), result
    assert result.reason is reason, result.why
    assert result.detail.isascii() and "\n" not in result.detail


@pytest.mark.parametrize(
    ("clue", "why"),
    [
        ("(Ann < Zoe) or Bob == 2", "a name that is not declared"),
        ("(Ann and Bob == 2) or Cy == 1", "a clue compares two things"),
        ("not (Ann == 1 or (Bob == ))", "a sign stands where a name or a number should"),
        ("(Ann < Bob) == 1", "what is compared is a sum"),
        ("(Ann + Bob == 2", "a ) is missing"),
        ("(Ann == tea) or Bob == 1", "a name that is not declared"),
    ],
)
def test_a_clue_that_cannot_be_read_says_why_inside_brackets_too(clue, why):
    with pytest.raises(Refused) as refused:
        read(FIVE + clue)
    assert why in refused.value.detail


@pytest.mark.parametrize(
    "clue",
    ["((Ann + Bob)) * 2 == 4", "((Ann + Bob) * 2 == 4)", "not (Ann == 1 and (Bob < 3 or ((Cy)) > (1 + 2)))",
     "count((Ann < Bob), (Ann + 1) * 2 < Bob) == 1"],
)  # fmt: skip
def test_a_bracket_holds_a_condition_or_a_sum(clue):
    groups, found = read(FIVE + clue)
    assert read(write(groups, found)) == (groups, found)


def test_a_search_without_end_is_refused_by_counting_not_by_the_clock(verifier):
    names = [f"x{n}" for n in range(12)]
    monster = ", ".join(names) + " in 0..11\n" + "\n".join(
        f"{a} * {b} + {c} * {d} == {e} + {a} * 7"
        for a, b, c, d, e in zip(names, names[1:], names[2:], names[3:], names[4:], strict=False)
    )  # fmt: skip
    result = validated(verifier, monster)
    assert isinstance(result, Rejection) and result.reason in (Reason.TOO_COMPLEX, Reason.GUESSABLE)


def test_a_search_that_evaluates_no_clue_ends_by_counting_too(verifier):
    """Eleven unknowns for ten values: every branch dies before a clue is looked at."""
    names = [f"u{n}" for n in range(1, 12)]
    total = " + ".join(f"{n} * {name}" for n, name in enumerate([*names, "last"], 2))
    below = "\n".join(f"{name} < 12" for name in names)
    puzzles = [
        f"{', '.join(names)}, last in 1..12, different\n{below}\nlast == 3 or last == 12\n({total}) % 97 == {rest}"
        for rest in range(12)
    ]
    drafts = [KIND.parse_proposal(f"```puzzle\n{puzzle}\n```", {}) for puzzle in puzzles]
    results = asyncio.run(KIND.validate(drafts, verifier))
    for result in results:
        assert isinstance(result, Rejection)
        assert (result.reason, "looks at clues" in result.detail) == (Reason.TOO_COMPLEX, True), result.why


@given(st.text(max_size=300) | st.lists(st.sampled_from([
    "Ann", "Bob", "in", "1..5", "knight", "knave", "says", "and", "or", "not", "(", ")", "==", "<", "+", "*", "%", "2",
    "-", ",", "different", "abs(", "count(", "\n", "..",
]), max_size=60).map(" ".join))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_puzzle_or_refused_and_nothing_else(text):
    try:
        groups, found = read(text)
    except Refused as refused:
        assert Reason(refused.reason) and refused.detail.isascii()
    else:
        assert read(write(groups, found)) == (groups, found)


# Answers


def test_answers_are_told_apart(verifier):
    task = sound(verifier, SUMS)
    right = solution(verifier, task)
    lines = right.strip("`").removeprefix("answer").strip().split("\n")
    turned = "```answer\n" + "\n".join(reversed(lines)) + "\n\n```"
    swapped = "```answer\n" + "\n".join(
        f"{a.split(' = ')[0]} = {b.split(' = ')[1]}" for a, b in zip(lines, lines[1:] + lines[:1], strict=True)
    ) + "\n```"  # fmt: skip
    assert grades(verifier, task, right, turned, "I think:\n\n" + right) == [Grade.CORRECT] * 3
    assert grades(verifier, task, swapped) == [Grade.WRONG]
    for text in (
        "",
        "no idea",
        "```answer\nAnn = 1\n```",
        right.replace("Ann =", "Zoe ="),
        right.replace(" = ", ": "),
        right.replace("```answer", "```answer\nAnn = 1\nAnn = 2"),
        right.replace("Bob = ", "Bob = 1 + 0 * "),
        right.replace("Bob = ", "Bob = 9"),
    ):
        assert grades(verifier, task, text) == [Grade.MALFORMED], text
    assert grades(verifier, task, right, cut=True) == [Grade.MALFORMED]


@pytest.mark.parametrize("value", ["9", "0", "-1", "knight"])
def test_a_value_that_its_unknown_cannot_have_is_told_apart_from_no_answer(verifier, value):
    task = sound(verifier, SUMS)
    right = solution(verifier, task)
    texts = (re.sub("Bob = [0-9]+", f"Bob = {value}", right), re.sub("Bob = [0-9]+", "Bob is 3", right))
    verdicts = asyncio.run(KIND.grade([Attempt(task, text, False) for text in texts], verifier))
    assert [verdict.reason for verdict in verdicts] == [Reason.OUTSIDE, Reason.NO_ANSWER]


def test_every_assignment_that_keeps_all_clues_counts(verifier):
    task = next(seed for seed in SEEDS if seed.puzzle.startswith("red, green"))
    found = [
        f"red = {a}\ngreen = {b}\nblue = {c}\nblack = {d}"
        for a in range(6) for b in range(6) for c in range(6) for d in range(6)
        if a + b + c + d == 17 and a < b and a - c == -1
    ]  # fmt: skip
    assert len(found) > 1
    assert grades(verifier, task, *(f"```answer\n{text}\n```" for text in found)) == [Grade.CORRECT] * len(found)


def test_nothing_that_an_answer_says_is_run(verifier, tmp_path):
    task = sound(verifier, SUMS)
    aim = tmp_path / "ran"
    attack = f"```answer\nAnn = open({str(aim)!r}, 'w')\nBob = __import__('os')\n```"
    assert grades(verifier, task, attack) == [Grade.MALFORMED]
    assert not aim.exists()


# What is the same


def test_names_layout_the_order_of_clues_and_what_is_drawn_do_not_make_another_puzzle():
    texts = [
        "Ann, Bob, Cy in 1..5, different\nAnn < Bob\nBob == Cy + 1",
        "x, y, z in 1..5, different\ny == z + 1\nx < y",
        "x, y, z in 1..5, different\ny == z + 2\nx > y",
        "Ann, Bob, Cy in 1..5\nAnn < Bob\nBob == Cy + 1",
        "Ann, Bob, Cy in 1..5, different\nAnn < Bob\nBob == Cy + Ann",
    ]
    first, renamed, drawn, alike, summed = (figures(text)["structure"] for text in texts)
    assert first == renamed == drawn
    assert len({first, alike, summed}) == 3


@pytest.mark.parametrize("form", Form)
def test_what_copies_a_puzzle_that_was_shown_is_a_duplicate_under_any_names(verifier, form):
    kind = FAMILY.kinds(form)["logic_s"]
    prompt = kind.propose_prompt((), Random(3))
    shown = [seed for seed in SEEDS if any(seed.puzzle in message["content"] for message in prompt.messages)]
    copies = [f"```puzzle\n{seed.puzzle.replace('Ann', 'Zoe')}\n```" for seed in shown]
    drafts = [kind.parse_proposal(text, prompt.context) for text in copies]
    results = asyncio.run(kind.validate(drafts, verifier))
    assert len(results) >= 2
    for result in results:
        assert isinstance(result, Rejection)
        assert result.reason in (Reason.DUPLICATE, Reason.TOO_EASY, Reason.JOINED, Reason.GUESSABLE)
    assert any(result.reason is Reason.DUPLICATE for result in results)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (SUMS + "\nClues end here.\nAnn is older than Bob\nZoe < Ann\nAnn == tea", SUMS),
        (SUMS.replace("Ann, Bob,", "Ann, Bob, Ann, Bob,"), SUMS),
        (SUMS.replace("different\n", "different\nAnn, Bob in 1..9\n"), SUMS),
        (SUMS.replace("different\n", "different\nBob stands in front of Ann\n"), SUMS),
        (SUMS.replace("1..5", "1..500"), SUMS.replace("1..5", "1..12")),
        (SUMS.replace("1..5", ", ".join(map(str, range(1, 30)))), SUMS.replace("1..5", "1..12")),
        (SUMS.replace("1..5", "1, 2, 2, 3, 4, 5, 5"), SUMS),
        (SUMS.replace("different\n", "different\nAnn, x in tea, tea, milk, Bob\nx == tea\n"),
         SUMS.replace("different\n", "different\nx in tea, milk\nx == tea\n")),
    ],
)  # fmt: skip
def test_what_a_teacher_cannot_mean_is_left_out_and_refused_in_a_file(verifier, written, meant):
    assert read_loosely(written) == read(meant)
    refused = of_file(verifier, written)
    assert isinstance(refused, Rejection) and refused.reason is Reason.SYNTAX


@pytest.mark.parametrize(("clues", "noise", "read"), [(1, 1, False), (2, 4, True), (2, 5, False), (3, 6, True)])
def test_two_clues_and_a_third_of_all_lines_must_be_read(clues, noise, read):
    text = FIVE + "\n".join(["Ann < Bob"] * clues + ["a line of noise"] * noise)
    if read:
        assert len(read_loosely(text)[1]) == clues
    else:
        with pytest.raises(Refused, match=f"clue {clues + 1}: "):
            read_loosely(text)


def test_a_held_out_puzzle_is_refused_under_other_names(verifier, tmp_path):
    task = sound(verifier, SUMS)
    renamed = task.puzzle
    for old, new in (("Ann", "p"), ("Bob", "q"), ("Cy", "r"), ("Dan", "s"), ("Eve", "t")):
        renamed = renamed.replace(old, new)
    (tmp_path / "kept.jsonl").write_text(json.dumps({"kind": "logic_s", "puzzle": renamed}))
    held_out = read_held_out([tmp_path / "kept.jsonl"], FAMILIES)
    guards = Guards(held_out=held_out.keys)
    [refused] = asyncio.run(guards.screen([task], Archive(), verifier))
    assert isinstance(refused, Rejection) and refused.reason is Reason.HELD_OUT
    [kept] = asyncio.run(Guards().screen([task], Archive(), verifier))
    assert kept is task


def test_a_puzzle_comes_back_from_its_record(verifier):
    task = sound(verifier, SUMS)
    again = FAMILIES.restore(json.loads(json.dumps(task.record())))
    assert again == task and again.id == task.id
    assert task.complexity.variables == 5 and task.complexity.lines == len(clues(task))
    assert task.complexity.cyclomatic == task.guesses + 1


# Another solver


def test_a_sat_solver_comes_to_the_same_verdicts():
    pytest.importorskip("pysat")
    import against_sat

    assert list(against_sat.differences(60, 7)) == []


# A race


def test_a_race_asks_for_puzzles_as_well_as_programs(tmp_path):
    """The base that comes with the package knows programs alone: what it says about puzzles is refused and counted."""
    words = {
        "tasks.families": "code,logic", "tasks.kinds": "code_o,logic_s", "tasks.mix": "1,3", "population.teachers": 1,
        "population.students": 1, "evolution.pull": 0, "evolution.pull_rate": 1, "tasks.prompts": 4,
        "tasks.attempts": 2, "tasks.proposal-tokens": 48, "run.steps": 1,
    }  # fmt: skip
    run = tmp_path / "run"
    assert main(["train", "demo", "--quiet", "--run", str(run), *(f"--{name}={words[name]}" for name in words)]) == 0
    with closing(sqlite3.connect(run / RECORDS)) as db:
        found = dict(db.execute("SELECT kind, COUNT(*) FROM rejections GROUP BY kind").fetchall())
        tasks = dict(db.execute("SELECT kind, COUNT(*) FROM tasks GROUP BY kind").fetchall())
        proposals = load(str(run / "config.toml")).tasks.proposals
        cells = dict(db.execute("SELECT kind, value FROM metrics WHERE name = 'coverage'").fetchall())
        [[timeline]] = db.execute("SELECT timeline FROM timelines").fetchall()
    assert found.get("logic_s", 0) + tasks.get("logic_s", 0) == 3 * proposals
    # A race of several families counts cells by kind too.
    assert cells.keys() == {"", "code_o", "logic_s"} and cells[""] == cells["code_o"] + cells["logic_s"] > 0
    texts, _ = json.loads(timeline)["checks"]["code_o"]
    assert texts >= tasks["code_o"]
    assert found.get("code_o", 0) + tasks.get("code_o", 0) == proposals
