"""`redqueen check`: sound families pass, and each check finds the fault that it is there for."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from arithmetic import Sum

from redqueen.keys import numbers
from redqueen.plugins import FAMILIES
from redqueen.tasks.code import FAMILY
from redqueen.tasks.code.prompts import EXAMPLES
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.soundness import OF_SOURCES, ORDER, Soundness, check_family, texts
from redqueen.tasks.soundness.answers import MOST_GUESSED, allowed_guesses
from redqueen.tasks.soundness.findings import Outcome
from redqueen.tasks.soundness.material import ENOUGH, gather
from redqueen.verifier import LocalVerifier

HERE = Path(__file__).parent
ARITHMETIC = f"{HERE.parents[1]}/examples/arithmetic.py:Arithmetic"
TASKS = 40
BROKEN = {
    "CutPays": "told apart", "ProseIsWrong": "told apart", "LargeAreRefused": "right answers", "EchoPays": "worthless",
    "Evaluated": "worthless", "OftenAThousand": "worthless", "Tells": "hidden", "Unordered": "processes",
    "Counts": "odd texts", "ReadsNothing": "odd texts", "Labels": "records", "ByIdentity": "keys", "OneId": "keys",
    "TwoLines": "figures", "Sleeps": "speed",
}  # fmt: skip
"""Families of unsound.py, each with the one check that it fails."""


DRAWN = f"{HERE.parent}/plugins/drawn.py"


def checked(name: str, verifier: LocalVerifier, most: int = TASKS) -> Soundness:
    return asyncio.run(check_family(name, verifier, most))


def broken(name: str, verifier: LocalVerifier) -> Soundness:
    return checked(f"{HERE}/unsound.py:{name}", verifier)


@pytest.mark.parametrize("name", FAMILIES.builtins)
def test_every_family_of_the_package_passes_all_checks(name, verifier):
    found = checked(name, verifier)
    assert [(row.kind, row.check, row.finding.what, row.finding.example) for row in found.failures] == []
    assert {row.finding.outcome for row in found.rows} == {Outcome.OK}
    assert {(row.kind, row.check) for row in found.rows} == {
        (kind, check) for kind in Families.of([name]).kinds for check in ORDER if check not in OF_SOURCES
    }


def test_the_family_of_the_docs_passes_all_checks(verifier):
    found = checked(ARITHMETIC, verifier)
    assert [row.finding for row in found.failures] == []
    assert [row.finding.outcome for row in found.rows] == [Outcome.OK] * (len(ORDER) - len(OF_SOURCES))


@pytest.mark.parametrize(("name", "check"), BROKEN.items(), ids=BROKEN)
def test_a_family_that_is_broken_in_one_place_fails_that_check_alone(name, check, verifier):
    found = broken(name, verifier)
    assert [(row.check, row.finding.what) for row in found.failures] == [(check, found.of(check, "sum").what)]
    [row] = found.failures
    assert row.finding.what and row.finding.example and row.finding.mend


def test_every_check_has_a_family_that_fails_it():
    assert {*BROKEN.values(), "tasks", *OF_SOURCES} == set(ORDER)


def test_a_sound_source_passes_all_checks_and_says_what_does_not_apply(verifier, redqueen):
    found = checked(f"{DRAWN}:Drawn", verifier)
    assert [row.finding for row in found.failures] == []
    assert [row.check for row in found.rows] == list(ORDER)
    status, out, _ = redqueen("check", f"{DRAWN}:Drawn", "--tasks", TASKS)
    assert status == 0 and "nobody proposes its tasks" in out and "draws/s" in out


@pytest.mark.parametrize(("name", "check"), [("RunsAnswers", "runs nothing"), ("EverythingPays", "worthless")])
def test_a_source_that_runs_answers_or_pays_for_nothing_fails(name, check, verifier):
    found = checked(f"{DRAWN}:{name}", verifier)
    assert check in {row.check for row in found.failures}


@pytest.mark.parametrize(
    ("name", "told"),
    [("Unanswered", "there are answers to 0 of 30 tasks"), ("Few", "there are 5 tasks, and rates of fewer than 20")],
)
def test_what_is_missing_is_said_in_a_line_and_not_passed(name, told, verifier):
    found = broken(name, verifier)
    [row] = found.failures
    assert row.check == "tasks" and row.finding.what.startswith(told) and "\n" not in row.finding.what
    assert row.finding.mend
    untried = {row.check for row in found.rows if row.finding.outcome is Outcome.UNTRIED}
    needs_answers = {"told apart", "right answers", "worthless", "hidden"}
    assert untried == (needs_answers if name == "Unanswered" else set())


def test_a_family_that_raises_has_failed_the_check_and_the_others_go_on(verifier):
    found = broken("Raises", verifier)
    assert found.of("told apart", "sum").what == "it raises LookupError: prose"
    assert re.fullmatch(r".*unsound\.py, line \d+", found.of("told apart", "sum").example)
    assert found.of("records", "sum").outcome is Outcome.OK


def test_a_kind_that_calls_whatever_it_does_not_want_malformed_tells_nothing_apart(verifier):
    found = broken("Tight", verifier)
    assert [row.check for row in found.failures] == ["told apart"]
    assert "no answer is wrong; " in found.of("told apart", "sum").example


# What it is tried with


def test_everybody_gets_the_same_tasks_of_all_files_and_none_with_a_shortcut(verifier):
    families = Families.of(["code"])
    few, more = (asyncio.run(gather(families, verifier, most)) for most in (20, 50))
    for one, other in zip(few, more, strict=True):
        assert len(one.tasks) == 20 and len(other.tasks) == 50
        assert one.tasks == other.tasks[:20]
        assert len({task.id for task in other.tasks}) == 50
        assert {task.kind for task in other.tasks} == {one.kind.name}
        assert asyncio.run(families.shortcuts(other.tasks, verifier)) == [None] * 50
        assert one.refused == () and one.drafts and one.proposals


@pytest.mark.parametrize("kind", FAMILY.kinds())
def test_code_has_an_answer_of_each_kind_in_its_own_form(kind, verifier):
    of_kind = replace(EXAMPLES[1].task, kind=kind)
    if kind == "code_f":
        program, pairs = of_kind.program, EXAMPLES[1].returned
        inputs, outputs = (tuple(part) for part in zip(*pairs, strict=True))
        of_kind = replace(of_kind, program=program, inputs=inputs, outputs=outputs, shown=2)
    [answer] = asyncio.run(FAMILY.answers([of_kind], verifier))
    assert answer is not None and texts.is_fenced(answer)
    [verdict] = asyncio.run(FAMILY.kinds()[kind].grade([Attempt(of_kind, answer)], verifier))
    assert verdict.correct


def test_code_has_no_answer_to_what_is_not_its_own(verifier):
    others: list[Task] = [Sum("sum", (1, 2, 3)), replace(EXAMPLES[0].task, kind="code_e")]
    assert asyncio.run(FAMILY.answers(others, verifier)) == [None, None]


def test_another_text_stands_in_the_place_of_the_answer():
    answer = "First.\n\n```python\nx = 1\n```\n\nSo it is:\n\n```output\n[1,\n2]\n```"
    assert texts.inside(answer) == "[1,\n2]" and texts.is_fenced(answer)
    assert texts.in_the_form_of(answer, "nan") == answer.replace("[1,\n2]", "nan")
    assert texts.without_its_end(answer).endswith("```output\n[1,\n2]")
    assert texts.blocks(answer) == ["x = 1", "[1,\n2]"]
    assert texts.inside("42") == "42" and texts.in_the_form_of("42", "nan") == "nan" and not texts.is_fenced("42")


@pytest.mark.parametrize(
    ("answer", "misses"),
    [
        ("42", {"43", "41"}),
        ("```output\n'ab'\n```", set()),
        ("```input\n''\n```", set()),
        ("", set()),
        ("Ann = knight\nBob = knave", {"Ann = knave\nBob = knight", "knight = Ann\nBob = knave"}),
        ("```input\n[3, 0]\n```", {"```input\n[4, 0]\n```", "```input\n[0, 3]\n```", "```input\n[3, 1]\n```"}),
    ],
)
def test_a_near_miss_has_the_form_of_the_answer(answer, misses):
    made = texts.near_misses(answer)
    assert misses <= set(made) and answer not in made
    assert len(made) == len(set(made)) <= 2 * texts.MOST_MISSES


def test_fuzzed_texts_are_the_same_every_time_odd_and_not_endless():
    made = [[texts.fuzzed("```output\n42\n```", numbers("test", n)) for n in range(500)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 400
    assert 10_000 < max(map(len, made[0])) <= 200_000
    assert any("\ud800" in text for text in made[0]) and any("\0" in text for text in made[0])


def test_a_single_lucky_guess_is_forgiven_and_two_per_cent():
    assert [allowed_guesses(tasks) for tasks in (ENOUGH, 49, 50, 99, 100, 200)] == [1, 1, 1, 1, 2, 4]
    assert all(allowed_guesses(tasks) <= max(1, MOST_GUESSED * tasks) for tasks in range(300))


# The command


def test_a_sound_family_is_shown_in_a_table_and_the_status_is_0(redqueen):
    status, out, err = redqueen("check", ARITHMETIC)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    checks = [check for check in ORDER if check not in OF_SOURCES]
    assert [line.split("  ")[0] for line in lines[2 : 2 + len(checks)]] == checks
    assert all("  ok, " in line and len(line) <= 100 for line in lines[2 : 2 + len(checks)])
    assert any(
        re.match(r"sum: [\d,]+ validations/s and [\d,]+ grades/s in batches; alone 99 % take ", x) for x in lines
    )
    assert lines[-1] == f"{ARITHMETIC} passes all checks"


def test_a_broken_family_is_told_with_an_example_and_a_last_line_that_says_where_to_read_on(redqueen):
    family = f"{HERE}/unsound.py:EchoPays"
    status, out, err = redqueen("check", family, "--tasks", 25)
    assert status == 2
    assert re.search(r"^worthless +FAILED, \d+ paid", out, re.MULTILINE)
    assert re.search(r"^sum, worthless: .*\n  for example: task [0-9a-f]{12} .*\n  to mend it: ", out, re.MULTILINE)
    [line] = err.splitlines()
    assert (
        f"1 of {len(ORDER) - len(OF_SOURCES)} checks of the task family {family} failed; " in line
        and "docs/extending.md" in line
    )


def test_json_has_everything(redqueen):
    status, out, err = redqueen("check", f"{HERE}/unsound.py:Unanswered", "--json")
    assert status == 2 and err.count("\n") == 1
    said = json.loads(out)
    assert (said["sound"], said["failed"]) == (False, 1)
    assert {row["check"]: row["outcome"] for row in said["checks"]}["hidden"] == "not tried"
    assert next(row for row in said["checks"] if row["check"] == "speed")["values"]["validations_a_second"] > 0
