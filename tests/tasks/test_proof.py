"""The proof family: theorems that are computed from references, so that nothing false is ever asked or paid for."""

import asyncio
import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from against_metamath import refused_by_kernel, said_by_metamath, text_of, theorems
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import run as mutants

from redqueen.commands.main import main
from redqueen.errors import ConfigError, InputError
from redqueen.plugins import FAMILIES as REGISTRY
from redqueen.runs.records_file import RECORDS
from redqueen.settings import Config, load
from redqueen.tasks.archive import Archive
from redqueen.tasks.families import Families
from redqueen.tasks.files import read_exam, read_held_out, validated_exam
from redqueen.tasks.guards import Guards
from redqueen.tasks.proof import FAMILY, ProofTask, of_file
from redqueen.tasks.proof.guest.metamath_kernel import database, judging
from redqueen.tasks.proof.guest.metamath_kernel.grammar import Unreadable
from redqueen.tasks.proof.guest.metamath_kernel.judging import LISTED
from redqueen.tasks.proof.guest.metamath_kernel.library import ALIKE, MOST_SYMBOLS
from redqueen.tasks.proof.guest.metamath_kernel.steps import MOST_CHARS, Refused, read, write
from redqueen.tasks.proof.guest.metamath_kernel.stored import BadProof, steps_of, verify
from redqueen.tasks.proof.guest.metamath_kernel.terms import Fuel
from redqueen.tasks.proof.guest.metamath_kernel.theorem import proof_of
from redqueen.tasks.proof.prompts import EXAMPLES
from redqueen.tasks.proof.source import PACKED, Source
from redqueen.tasks.protocol import Attempt, Form
from redqueen.tasks.verdicts import Grade, Reason, Rejection
from redqueen.training.rules import versions

FAMILIES = Families.of(["proof"])
F, O = FAMILIES.kinds["proof_f"], FAMILIES.kinds["proof_o"]  # noqa: E741
LIBRARY = Source().library
CHAIN = "1 given\n2 con3i 1\n3 orim1i 2"
"""It proves ( ph -> ps ) => ( ( -. ps \\/ ch ) -> ( -. ph \\/ ch ) )."""
QUANTIFIERS = Path(__file__).with_name("quantifiers.mm")


def validated(verifier, steps: str, kind=F) -> ProofTask | Rejection:
    draft = kind.parse_proposal(f"Here it is.\n```proof\n{steps}\n```", {})
    if isinstance(draft, Rejection):
        return draft
    [result] = asyncio.run(kind.validate([draft], verifier))
    return result


def of_row(verifier, steps: str, kind=F) -> ProofTask | Rejection:
    [result] = asyncio.run(kind.validate(FAMILY.drafts({"proof": steps}, kind), verifier))
    return result


def sound(verifier, steps: str, kind=F) -> ProofTask:
    task = validated(verifier, steps, kind)
    assert isinstance(task, ProofTask), task
    return task


def grades(verifier, task, *answers: str, kind=None, cut: bool = False) -> list[Grade]:
    kind = kind or FAMILIES.kinds[task.kind]
    label = "proof" if task.kind == "proof_f" else "formula"
    attempts = [Attempt(task, f"```{label}\n{text}\n```", cut) for text in answers]
    return [verdict.grade for verdict in asyncio.run(kind.grade(attempts, verifier))]


# The kernel


def test_every_proof_of_the_packed_database_is_accepted():
    proved = [each for each in LIBRARY.database.assertions if each.kind == "$p"]
    assert len(proved) == 1627
    for statement in proved:
        verify(LIBRARY.database, statement)


def test_every_statement_of_the_packed_database_can_be_referred_to():
    stated = [each for each in LIBRARY.database.assertions if each.symbols[0] == "|-"]
    assert [each.label for each in stated] == list(LIBRARY.lemmas)


def test_no_mutant_is_accepted_that_is_no_proof():
    found = mutants(Source(), 600, seed=7)
    assert (found.stored, found.chains) == (300, 300)
    assert not found.stored_accepted and not found.wrongly


def test_new_theorems_are_proofs_symbol_by_symbol():
    made = list(theorems(Source(), 30, seed=3))
    text = text_of(PACKED) + "".join(scope for _, scope in made)
    assert not refused_by_kernel(text, [label for label, _ in made])


def test_metamath_accepts_new_theorems():
    if shutil.which("metamath") is None:
        pytest.skip("metamath is not installed (Debian: apt install metamath)")
    for path in (PACKED, QUANTIFIERS):
        text = text_of(path) + "".join(scope for _, scope in theorems(Source(path), 20, seed=4))
        assert not said_by_metamath(text)
        assert said_by_metamath(text.replace(" $= ", " $= wph ", 1))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$c a $. $c a $.", "declared twice"), ("$( never", "does not end"), ("$[ other.mm $]", "include"),
        ("x $a b $.", "does not begin with a constant"), ("$c wff $. ${ x $a wff $.", "ends within"),
        ("$c wff $. x $a wff $. x $a wff $.", "two statements"), ("$c wff $. $v p $. x $a wff p $.", "without its $f"),
        ("$c wff $. $v p $. $d p p $.", "a variable and itself"), ("$}", "without ${"), ("$a wff $.", "no label"),
        ("$c wff $. a b $a wff $.", "where no label can"), ("$c wff", "without its $."), ("\u00e9", "ASCII"),
        ("$c wff set $. $v p $. a $f wff p $. b $f set p $.", "a second time"), ("$c x $. $x", "no keyword"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_database_says_what_is_wrong(text, what):
    with pytest.raises(database.BadDatabase) as found:
        database.read(text)
    assert what in str(found.value) and "\n" not in str(found.value)


@given(st.text(max_size=200) | st.lists(st.sampled_from([
    "$c", "$v", "$f", "$e", "$a", "$p", "$d", "$=", "$.", "${", "$}", "$(", "$)", "wff", "|-", "p", "q", "a", "b", "(",
    ")", "A", "?", "ABC",
]), max_size=60).map(" ".join))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_database_or_refused_and_nothing_else(text):
    try:
        found = database.read(text)
    except database.BadDatabase as error:
        assert str(error)
        return
    for statement in found.assertions:
        if statement.kind == "$p":
            with pytest.raises(BadProof):
                verify(found, statement, [("label", "a"), ("save", None), ("saved", 9)])


@given(st.lists(st.tuples(st.sampled_from(["label", "saved", "save"]), st.sampled_from(list(LIBRARY.lemmas)))))
@settings(max_examples=50, deadline=None)
def test_steps_by_lot_prove_nothing(steps):
    statement = LIBRARY.database.statements["syl"]
    steps = [("saved", 0) if what == "saved" else (what, label) for what, label in steps]
    with pytest.raises(BadProof):
        verify(LIBRARY.database, statement, steps)
    with pytest.raises(BadProof):
        verify(LIBRARY.database, statement, steps_of(statement)[:-1])


@given(st.sampled_from(list(LIBRARY.lemmas.values())))
@settings(max_examples=100, deadline=None)
def test_a_formula_is_read_as_it_was_written_with_and_without_blanks(lemma):
    symbols = LIBRARY.database.statements[lemma.label].symbols[1:]
    tree = LIBRARY.read(" ".join(symbols))
    assert LIBRARY.written(tree) == " ".join(symbols)
    if not {"A.", "E.", "F/"} & set(symbols):
        assert LIBRARY.read(" ".join(symbols).replace(" -> ", "->").replace("( ", "(")) == tree


@given(st.text(max_size=80) | st.lists(st.sampled_from([
    "ph", "ps", "->", "-.", "/\\", "(", ")", "|-", "T.", "A.", "x",
]), max_size=12).map(" ".join))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_formula_or_unreadable_and_nothing_else(text):
    try:
        tree = LIBRARY.read(text)
    except Unreadable as error:
        assert str(error).isascii()
    else:
        assert LIBRARY.read(LIBRARY.written(tree)) == tree


# Distinct variables


def quantified() -> Source:
    return Source(QUANTIFIERS)


def test_a_step_that_would_prove_a_falsehood_without_its_condition_is_refused():
    """ax-5 says ( ph -> A. x ph ) where x is not in ph. `two` has what nobody may prove as its hypothesis: that all
    things are equal to y where one is."""
    said = judging.judged(quantified().library, "proof_f", "1 ax-5\n2 two 1\n3 a1i 2", loosely=True)
    assert said["reason"] == "invalid_step" and "distinct" in said["detail"]


def test_a_theorem_keeps_the_conditions_of_its_steps_and_metamath_agrees():
    said = judging.judged(quantified().library, "proof_f", "1 given\n2 ax-5\n3 syl 1 2\n4 alimi 3", loosely=True)
    assert said["goal"] == "( A. x ph -> A. x A. y ps )" and said["distinct"] == ["ps y"]


def test_a_student_may_not_take_variables_for_distinct_that_are_not():
    library = quantified().library
    goal = library.read("( ph -> A. x ph )")
    assert proof_of(library, read("1 ax-5"), [], goal, {("ph", "x")}, Fuel())
    assert not proof_of(library, read("1 ax-5"), [], goal, set(), Fuel())
    with pytest.raises(Refused, match="distinct"):
        proof_of(library, read("1 ax-5"), [], library.read("( x = y -> A. x x = y )"), {("x", "y")}, Fuel())


def test_a_stored_proof_that_ignores_a_condition_is_refused():
    text = QUANTIFIERS.read_text() + "bad $p |- ( x = y -> A. x x = y ) $= vx vy weq vx ax-5 $.\n"
    found = database.read(text)
    with pytest.raises(BadProof, match="must be distinct"):
        verify(found, found.statements["bad"])


# What comes with the package


@pytest.mark.parametrize("seed", FAMILY.seeds, ids=lambda seed: f"{seed.kind} {seed.goal[:30]}")
def test_a_seed_is_sound_as_it_stands(verifier, seed):
    assert of_row(verifier, seed.steps, FAMILIES.kinds[seed.kind]) == seed
    answer = seed.steps if seed.kind == "proof_f" else seed.goal
    assert grades(verifier, seed, answer) == [Grade.CORRECT]


def test_seeds_cover_the_range():
    for kind in FAMILIES.kinds:
        own = [seed for seed in FAMILY.seeds if seed.kind == kind]
        assert len({seed.near_key for seed in own}) == len(own) >= 20
        assert {seed.complexity.lines for seed in own} >= {2, 3, 4, 5}
        assert {bool(seed.premises) for seed in own} == {True, False}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.task.goal)
def test_the_worked_answers_are_right(verifier, example):
    for kind in (F, O):
        task = of_row(verifier, example.task.steps, kind)
        assert isinstance(task, ProofTask), task
        assert (task.premises, task.goal) == (example.task.premises, example.task.goal)
        lemmas = [f"{lemma.label}: {lemma.text}" for lemma in LIBRARY.lemmas.values()]
        assert set(task.used) <= set(example.task.lemmas) <= set(lemmas)
    assert grades(verifier, replace(example.task, kind="proof_f"), example.task.steps) == [Grade.CORRECT]


def test_the_exam_is_sound_in_bands_by_steps_and_no_theorem_is_there_twice(verifier):
    exam = asyncio.run(validated_exam(read_exam(FAMILIES.exams["proofs"], FAMILIES), FAMILIES, verifier))
    steps = {band: [one.task.complexity.lines for one in exam if one.band == band] for band in "1234"}
    assert [len(own) for own in steps.values()] == [60] * 4
    for easier, harder in zip("123", "234", strict=True):
        assert max(steps[easier]) < min(steps[harder])
    assert len({one.task.near_key for one in exam}) == len(exam)
    texts = asyncio.run(FAMILY.answers([one.task for one in exam], verifier))
    for kind in (F, O):
        own = [(one.task, text) for one, text in zip(exam, texts, strict=True) if one.task.kind == kind.name]
        attempts = [Attempt(task, text) for task, text in own]
        assert len(attempts) == 120
        assert all(verdict.correct for verdict in asyncio.run(kind.grade(attempts, verifier)))


@pytest.mark.parametrize("form", Form)
def test_prompts_show_what_is_needed_and_not_the_answer(verifier, form):
    f, o = FAMILY.kinds(form).values()
    first = sound(verifier, CHAIN)
    asked = f.solve_prompt(first).messages[-1]["content"]
    assert all(text in asked for text in (*first.premises, first.goal, *first.lemmas))
    assert "con3i 1" not in asked
    asked = o.solve_prompt(replace(first, kind="proof_o")).messages[-1]["content"]
    assert "2 con3i 1\n3 orim1i 2" in asked and first.premises[0] in asked and first.goal not in asked
    proposed = f.propose_prompt((), Random(0))
    assert any(seed.steps in message["content"] for seed in FAMILY.seeds for message in proposed.messages)


# Labels and references are the teacher's, theorems are computed


@pytest.mark.parametrize(
    "text",
    [
        "1. given\n2. con3i 1\n3. orim1i 2", "given\ncon3i 1\norim1i 2", "0 given\n1 con3i 0\n2 orim1i 1",
        "10 given\n20 con3i (10)\n30 orim1i [20]", "1 given ( ph -> ps )\n2 con3i 1 |- ( -. ps -> -. ph )\n3 orim1i 2",
        "Step 1: given\nStep 2: con3i from line 1\nStep 3: orim1i from 2.", "1 given\n2 con3i 1 # turns it\n3 orim1i 2",
        "- 1 given\n- 2 con3i 1\n- 3 orim1i 2", CHAIN.replace("con3i 1", "con3i, 1"),
        "Here is a proof.\n" + CHAIN,
    ],
)  # fmt: skip
def test_slips_that_leave_one_way_to_read_a_proof_are_read(verifier, text):
    result = validated(verifier, text)
    assert isinstance(result, ProofTask) and result.steps == CHAIN


def test_references_in_the_one_order_that_fits_are_put_right_for_a_teacher_alone(verifier):
    task = sound(verifier, "1 simpl\n2 orc\n3 syl 2 1\n4 con3i 3")
    assert task.steps == "1 simpl\n2 orc\n3 syl 1 2\n4 con3i 3"
    assert grades(verifier, task, task.steps, task.steps.replace("1 2", "2 1")) == [Grade.CORRECT, Grade.WRONG]


def test_a_lemma_without_references_has_new_premises(verifier):
    assert sound(verifier, "1 con3i\n2 orim1i 1").steps == CHAIN


@pytest.mark.parametrize(
    "padded",
    [
        "1 given\n2 given\n3 con3i 1\n4 id\n5 orim1i 3",  # lines that nothing needs
        "1 given\n2 idi 1\n3 con3i 2\n4 orim1i 3",  # the same line twice
        "1 given\n2 con3i 1\n3 con3i 2\n4 con4i 3\n5 orim1i 4",  # there and back
        "1 given\n2 con3i 1\n3 a1i 2\n4 con34b\n5 ax-mp 4 3\n6 orim1i 5",  # any truth would do for line 4
    ],
)  # fmt: skip
def test_what_is_not_needed_is_left_out_and_measured_as_if_it_were_not_there(verifier, padded):
    task = sound(verifier, padded)
    assert task.steps == CHAIN and task.complexity.lines == 2
    refused = of_row(verifier, padded)
    assert isinstance(refused, Rejection) and refused.reason is Reason.TOO_EASY


@pytest.mark.parametrize(
    ("steps", "reason", "detail"),
    [
        ("", Reason.NO_PROOF, ""),
        ("x" * (MOST_CHARS + 1), Reason.PROGRAM_TOO_LONG, ""),
        ("1 given\n2 nosuchlemma 1", Reason.INVALID_STEP, "no lemma that there is"),
        ("1 given\n2 con3i 7", Reason.INVALID_STEP, "no line before it"),
        ("1 given\n2 con3i 2", Reason.INVALID_STEP, "no line before it"),
        ("1 given\n1 given\n2 syl 1 1", Reason.INVALID_STEP, "more than one line"),
        ("1 given\n2 con3i 1 1", Reason.INVALID_STEP, "2 references of 1"),
        ("1 simpl\n2 notnotri 1", Reason.INVALID_STEP, "do not fit"),
        ("1 given", Reason.TOO_EASY, "0 steps"),
        ("1 id", Reason.TOO_EASY, "id says all"),
        ("1 given\n2 given\n3 syl 1 2", Reason.TOO_EASY, "syl says all"),
        ("1 given\n2 simpl\n3 syl 2 1", Reason.TOO_EASY, "adantr says all"),
        ("1 given\n2 idi 1\n3 idi 2", Reason.TOO_EASY, "0 steps"),
        ("1 given\n2 notnotri 1\n3 notnoti 2", Reason.TOO_EASY, ""),
        ("1 id\n2 simpl\n3 pm3.2i 1 2\n4 orci 3", Reason.JOINED, "step 3"),
        ("1 truan\n2 df-fal\n3 pm3.2i 1 2\n4 orci 3", Reason.JOINED, "step 3"),
        ("1 given\n" + "\n".join(f"{n} con3i {n - 1}" for n in range(2, 20)), Reason.TOO_COMPLEX, ""),
        ("1 given\n" + "\n".join(f"{n} pm3.2i {n - 1} {n - 1}" for n in range(2, 22)), Reason.TOO_COMPLEX, ""),
        ("given\n" * 30, Reason.TOO_COMPLEX, "lines"),
        ("1 given\n2 con3i ph", Reason.SYNTAX, ""),
        ("__import__('os').system('true')", Reason.SYNTAX, ""),
    ],
)  # fmt: skip
def test_what_is_no_task_is_refused_with_a_reason(verifier, steps, reason, detail):
    result = validated(verifier, steps)
    assert isinstance(result, Rejection), result
    assert result.reason is reason and detail in result.detail, result.why
    assert result.detail.isascii() and "\n" not in result.detail


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ("1 given\n2 given\n3 syl 1 2\n4 con3i 3", Reason.TOO_EASY),
        ("1 given\n2 given\n3 syl 1 2\n4 a1d 3", Reason.GUESSABLE),
    ],
)
def test_a_formula_that_is_short_or_stands_in_the_prompt_is_not_asked_for(verifier, steps, reason):
    result = validated(verifier, steps, O)
    assert isinstance(result, Rejection) and result.reason is reason, result


@given(st.text(max_size=200) | st.lists(st.sampled_from([
    "1", "2", "3", "given", "syl", "con3i", "id", "\n", "\n", "(", ")", ",", ".", "|-", "from", "and", "mp2", "ax-mp",
]), max_size=60).map(" ".join))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_chain_or_refused_and_nothing_else(text):
    said = judging.judged(LIBRARY, "proof_f", text, loosely=True)
    if "reason" in said:
        assert Reason(said["reason"]) and said["detail"].isascii()
    else:
        assert write(read(said["steps"])) == said["steps"]
        assert judging.judged(LIBRARY, "proof_f", said["steps"], loosely=False) == said


def test_costs_are_counted_and_not_timed():
    doubling = "1 given\n" + "\n".join(f"{n} pm3.2i {n - 1} {n - 1}" for n in range(2, 24))
    assert judging.judged(LIBRARY, "proof_f", doubling, loosely=True)["reason"] == "too_complex"


# Answers


def test_proofs_are_told_apart(verifier):
    task = sound(verifier, "1 given\n2 given\n3 syl 1 2\n4 con3i 3\n5 orim1i 4")
    right = (
        task.steps, "3 syl 1 2\n4 con3i 3\n5 orim1i 4", "1. given\n2. given\n3. syl 1, 2\n4. con3i 3\n5. orim1i 4",
        "given\ngiven\nsyl 1 2\ncon3i 3\norim1i 4",
    )  # fmt: skip
    assert grades(verifier, task, *right) == [Grade.CORRECT] * len(right)
    wrong = (
        "1 given\n2 given\n3 syl 1 2\n4 con3i 3", task.steps.replace("syl 1 2", "syl 2 1"),
        task.steps.replace("con3i 3", "con3i 1"), "1 given\n2 given\n3 given\n4 orim1i 3", "1 given",
        task.steps.replace("orim1i", "orim2i"), "1 given\n2 orim1i 2", f"{task.steps}\n6 nosuchlemma 5",
    )  # fmt: skip
    assert grades(verifier, task, *wrong) == [Grade.WRONG] * len(wrong)
    malformed = ("no idea", "syl and then con3i", "1 given\nby syl we have it", "( ph -> ps )", "x" * 3_000)
    assert grades(verifier, task, *malformed) == [Grade.MALFORMED] * len(malformed)
    assert grades(verifier, task, task.steps, cut=True) == [Grade.MALFORMED]


def test_a_list_has_as_many_lemmas_whatever_the_proof_and_others_like_those_that_it_has(verifier):
    longest = max((lemma for lemma in LIBRARY.lemmas.values() if len(lemma.hyps) == 1), key=lambda each: each.symbols)
    of_four = next(lemma.label for lemma in LIBRARY.lemmas.values() if len(lemma.hyps) == 4)
    texts = (CHAIN, f"1 {of_four}\n2 a1i 1", f"1 {longest.label}\n2 a1i 1", *(seed.steps for seed in FAMILY.seeds))
    for text in texts:
        task = sound(verifier, text)
        listed = [LIBRARY.lemmas[lemma.partition(":")[0]] for lemma in task.lemmas]
        assert len(set(listed)) == LISTED
        used = {label for label, _ in task.chain}
        for lemma in listed:
            assert lemma.label in used or any(lemma in LIBRARY.alike[label] for label in used)
    assert min(lemma.symbols for lemma in LIBRARY.alike[longest.label]) >= MOST_SYMBOLS


def test_lemmas_of_many_hypotheses_and_long_ones_are_like_others_too():
    groups = list({id(group): group for group in LIBRARY.alike.values()}.values())
    assert sum(map(len, groups)) == len(LIBRARY.lemmas) and min(map(len, groups)) >= ALIKE
    for group in groups:
        hyps = {len(lemma.hyps) for lemma in group}
        assert len(hyps) == 1 or min(hyps) > 3


def test_a_lemma_that_is_not_listed_is_not_paid_for(verifier):
    task = sound(verifier, CHAIN)
    other = "1 given\n2 orim1i 1\n3 con3i 1\n4 orim1i 3"
    assert grades(verifier, task, other) == [Grade.CORRECT]
    fewer = replace(task, lemmas=tuple(lemma for lemma in task.lemmas if not lemma.startswith("con3i:")))
    assert grades(verifier, fewer, CHAIN) == [Grade.WRONG]


def test_formulas_are_equal_up_to_the_names_that_no_premise_has(verifier):
    task = sound(verifier, CHAIN, O)
    assert task.premises == ("( ph -> ps )",) and task.goal == "( ( -. ps \\/ ch ) -> ( -. ph \\/ ch ) )"
    right = (task.goal, f"|- {task.goal}", task.goal.replace("ch", "ka"), task.goal.replace(" ", ""))
    assert grades(verifier, task, *right) == [Grade.CORRECT] * len(right)
    wrong = (
        task.goal.replace("ch", "ph"),  # an instance says less
        task.goal.replace("ch", "( th /\\ ta )"),
        "( ( -. ph \\/ ch ) -> ( -. ps \\/ ch ) )",  # the premise's variables are what they are
        task.goal.replace("ps", "ta"), "( ( ph \\/ ch ) -> ( ps \\/ th ) )", "ph",
    )  # fmt: skip
    assert grades(verifier, task, *wrong) == [Grade.WRONG] * len(wrong)
    malformed = ("no idea", "( ph ->", f"{task.goal} {task.goal}", "-. " * 300 + "ph", "", "f(x) = 2", "(" * 1_900)
    assert grades(verifier, task, *malformed) == [Grade.MALFORMED] * len(malformed)


def test_nothing_that_an_answer_says_is_run(verifier, tmp_path):
    aim = tmp_path / "ran"
    attack = f"open({str(aim)!r}, 'w')"
    for kind in (F, O):
        assert grades(verifier, sound(verifier, CHAIN, kind), attack) == [Grade.MALFORMED]
    assert not aim.exists()


# What is the same


def test_premises_that_a_task_does_not_have_make_an_answer_wrong(verifier):
    task = sound(verifier, "1 pm2.21\n2 imim2i 1\n3 con3i 2")
    assert task.premises == ()
    assert grades(verifier, task, "1 given\n2 con3i 1", "1 given\n2 given\n3 con3i 1") == [Grade.WRONG] * 2


def test_names_and_the_order_of_premises_do_not_make_another_theorem(verifier):
    one = sound(verifier, "1 given\n2 given\n3 syl 1 2\n4 con3i 3\n5 orim1i 4")
    other = sound(verifier, "1 given\n2 given\n3 con3i 1\n4 con3i 2\n5 syl 3 4\n6 orim1i 5")
    renamed = replace(
        one, premises=("( th -> ta )", "( ta -> et )"), goal="( ( -. et \\/ ph ) -> ( -. th \\/ ph ) )",
        variables=("th", "ta", "et", "ph"),
    )  # fmt: skip
    assert one.near_key == other.near_key == renamed.near_key
    assert one.near_key != sound(verifier, CHAIN).near_key
    assert one.shape_key == renamed.shape_key
    assert sound(verifier, CHAIN).near_key == sound(verifier, CHAIN, O).near_key


@pytest.mark.parametrize("form", Form)
def test_a_copy_of_a_proof_that_was_shown_is_a_duplicate(verifier, form):
    kind = FAMILY.kinds(form)["proof_f"]
    prompt = kind.propose_prompt((), Random(3))
    shown = [seed for seed in FAMILY.seeds if seed.near_key in prompt.context["shown"].split()]
    assert len(shown) >= 2
    drafts = [kind.parse_proposal(f"```proof\n{seed.steps}\n```", prompt.context) for seed in shown]
    for result in asyncio.run(kind.validate(drafts, verifier)):
        assert isinstance(result, Rejection) and result.reason is Reason.DUPLICATE


def test_a_held_out_theorem_is_refused_however_it_is_proved(verifier, tmp_path):
    task = sound(verifier, CHAIN)
    (tmp_path / "kept.jsonl").write_text(json.dumps({"kind": "proof_f", "proof": "given\nidi 1\ncon3i 2\norim1i 3"}))
    held_out = read_held_out([tmp_path / "kept.jsonl"], FAMILIES)
    [refused] = asyncio.run(Guards(held_out=held_out.keys).screen([task], Archive(), verifier))
    assert isinstance(refused, Rejection) and refused.reason is Reason.HELD_OUT
    [kept] = asyncio.run(Guards().screen([task], Archive(), verifier))
    assert kept is task


def test_a_proof_comes_back_from_its_record(verifier):
    task = sound(verifier, CHAIN)
    again = FAMILIES.restore(json.loads(json.dumps(task.record())))
    assert again == task and again.id == task.id
    assert (task.complexity.lines, task.complexity.variables, task.complexity.cyclomatic) == (2, 3, 1)
    assert task.guess_key is None
    assert replace(task, kind="proof_o").guess_key == "( ( -. _0 \\/ _1 ) -> ( -. _2 \\/ _1 ) )"


# Files


def test_a_bad_row_of_an_exam_is_named_by_its_line(tmp_path, verifier):
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"kind": "proof_f", "proof": "1 id"}))
    with pytest.raises(InputError, match=r"own\.jsonl, line 1: the task is refused: too_easy .id says all of it"):
        asyncio.run(validated_exam(read_exam(file, FAMILIES), FAMILIES, verifier))
    file.write_text(json.dumps({"kind": "proof_f"}))
    with pytest.raises(InputError, match="line 1: no text under 'proof'"):
        read_exam(file, FAMILIES)


def test_a_database_of_ones_own_is_named_by_its_path_packed_or_not(verifier, tmp_path):
    packed = tmp_path / "quantifiers.mm.gz"
    packed.write_bytes(gzip.compress(QUANTIFIERS.read_bytes()))
    for path in (QUANTIFIERS, packed):
        families = Families.of([f"proof:{path}"])
        kind = families.kinds["proof_f"]
        tasks = [seed for seed in families.seeds if seed.kind == "proof_f"]
        assert len(tasks) >= 20
        texts = asyncio.run(families.families[0].answers(tasks, verifier))
        attempts = [Attempt(task, text) for task, text in zip(tasks, texts, strict=True)]
        assert all(verdict.correct for verdict in asyncio.run(kind.grade(attempts, verifier)))
        [again] = asyncio.run(kind.validate(families.families[0].drafts({"proof": tasks[0].steps}, kind), verifier))
        assert again == tasks[0]


def test_the_exam_of_a_database_of_ones_own_lies_beside_it_under_its_name(tmp_path):
    own = tmp_path / "own.mm"
    own.write_bytes(QUANTIFIERS.read_bytes())
    assert of_file(own).exams() == {}
    (tmp_path / "own.jsonl").write_text("")
    assert of_file(own).exams() == {"own": tmp_path / "own.jsonl"}


def test_two_databases_do_not_go_together():
    with pytest.raises(ConfigError, match="both have the kind proof_f"):
        Families.of(["proof", f"proof:{QUANTIFIERS}"])


def test_a_bad_database_is_refused_in_one_line_before_anything_starts(redqueen, tmp_path):
    (tmp_path / "bad.mm").write_text("$c wff $. ${")
    small = tmp_path / "small.mm"
    small.write_text("$c wff |- $. $v p $. wp $f wff p $. ax $a |- p $. th $p |- p $= wp ax $.")
    for path, what in (
        (tmp_path / "bad.mm", "ends within a statement or a scope"), (tmp_path / "none.mm", "No such file"),
        (small, "fewer than 20"), (tmp_path, "Is a directory"),
    ):  # fmt: skip
        status, _, err = redqueen("train", "demo", "--run", tmp_path / "run", "--tasks.families", f"proof:{path}")
        assert status and what in err and err.count("\n") == 1, err
        assert not (tmp_path / "run").exists()


def test_a_run_notes_the_hash_of_the_database_that_it_is_of(tmp_path):
    own = tmp_path / "own.mm"
    own.write_bytes(QUANTIFIERS.read_bytes())
    settings = Config.model_validate({"tasks": {"families": [f"proof:{own}"], "kinds": ["proof_f"]}})
    families = Families.of(settings.tasks.families)
    [before] = versions(settings, families).items()
    own.write_text(QUANTIFIERS.read_text() + "$( changed $)")
    [after] = versions(settings, families).items()
    assert before[0] == after[0] == f"tasks.families {own}" and before[1] != after[1]
    assert REGISTRY.file_in("proof") is None and REGISTRY.file_in("mine.py:NAME") == Path("mine.py")


# A race


def test_a_race_asks_for_proofs_as_well_as_programs(tmp_path):
    """The base that comes with the package knows programs alone: what it says about proofs is refused and counted."""
    words = {
        "tasks.families": "code,proof", "tasks.kinds": "code_o,proof_f,proof_o", "tasks.mix": "2,1,1",
        "population.teachers": 1, "population.students": 1, "evolution.pull": 0, "evolution.pull_rate": 1,
        "tasks.prompts": 4, "tasks.attempts": 2, "tasks.proposal-tokens": 48, "run.steps": 1,
    }  # fmt: skip
    run = tmp_path / "run"
    assert main(["train", "demo", "--quiet", "--run", str(run), *(f"--{name}={words[name]}" for name in words)]) == 0
    with closing(sqlite3.connect(run / RECORDS)) as db:
        found = dict(db.execute("SELECT kind, COUNT(*) FROM rejections GROUP BY kind").fetchall())
        tasks = dict(db.execute("SELECT kind, COUNT(*) FROM tasks GROUP BY kind").fetchall())
        proposals = load(str(run / "config.toml")).tasks.proposals
    for kind in ("proof_f", "proof_o"):
        assert found.get(kind, 0) + tasks.get(kind, 0) == proposals
