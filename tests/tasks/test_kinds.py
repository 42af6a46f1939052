"""What every kind promises, on one matrix; the kind of docs/extending.md is one of them."""

import asyncio
import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from redqueen.errors import Fault, InputError
from redqueen.tasks.code import FAMILY, SEEDS, CodeDraft, CodeTask
from redqueen.tasks.code.prompts import EXAMPLES
from redqueen.tasks.code.running import read_literals
from redqueen.tasks.protocol import Attempt, Form, Kind, Prompt, Task
from redqueen.tasks.verdicts import Grade, Reason, Rejection
from redqueen.verifier import Job, Outcome, Result, Status
from tasks.code_e import CodeE
from tasks.proposing import CODE, Recorder, fence, grade, pair, propose

SECRET = "987654321"
"""The output of every task below that has one, and in no program and no input."""
DOUBLE = "def f(n, plus=0):\n    return [n * 2 + plus, 'm']"


@dataclass(frozen=True)
class Case:
    """A proposal of one kind, and answers to its task."""

    kind: Kind[Any, Any]
    proposal: str
    right: str
    wrong: str
    malformed: str
    context: tuple[tuple[str, str], ...] = ()

    def task(self, verifier) -> Task:
        task = propose(self.kind, verifier, self.proposal, dict(self.context))
        assert isinstance(task, Task), task
        return task


INPUTS = fence("inputs", "493827160.5\n1\n2\n3, plus=5\n4\n5")
CASES = {
    "code_o": Case(
        FAMILY.kinds()["code_o"],
        pair(DOUBLE, "493827160, plus=1"),
        fence("output", f"[{SECRET}, 'm']"),
        fence("output", "[1, 'm']"),
        fence("output", "f(493827160)"),
    ),
    "code_i": Case(
        FAMILY.kinds()["code_i"],
        pair(DOUBLE, "493827160, plus=1"),
        fence("input", "n=493827159, plus=3"),
        fence("input", "493827160"),
        fence("input", "x"),
    ),
    "code_f": Case(
        FAMILY.kinds()["code_f"],
        INPUTS,
        fence("python", "def f(n, plus=0):\n    return [n + n + plus, 'm']"),
        fence("python", "def f(n, plus=0):\n    return [n + plus, 'm']"),
        fence("python", "def g(n):\n    return n"),
        (("program", DOUBLE),),
    ),
    "code_e": Case(
        CodeE(),
        pair("def f(n):\n    return [1][n]", "3"),
        fence("output", "IndexError"),
        fence("output", "KeyError"),
        fence("output", "it raises an IndexError"),
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request) -> Case:
    return request.param


def test_every_kind_of_every_family_is_in_the_matrix():
    assert set(CASES) == {*FAMILY.kinds(), "code_e"}
    assert all(name == kind.name for name, kind in FAMILY.kinds(Form.SHORT).items())


def test_right_wrong_and_malformed_are_told_apart(case, verifier):
    texts = (case.right, case.wrong, case.malformed, "", case.right[:-4])
    verdicts = grade(case.kind, verifier, case.task(verifier), *texts)
    assert [verdict.grade for verdict in verdicts] == [Grade.CORRECT, Grade.WRONG] + 3 * [Grade.MALFORMED]
    assert [verdict.correct for verdict in verdicts] == [True] + 4 * [False]
    assert [verdict.well_formed for verdict in verdicts] == [True, True] + 3 * [False]
    assert all((verdict.reason is None) == verdict.well_formed for verdict in verdicts)


def test_an_answer_that_the_sampler_cut_is_malformed_whatever_it_says(case, verifier):
    [verdict] = asyncio.run(case.kind.grade([Attempt(case.task(verifier), case.right, cut=True)], verifier))
    assert (verdict.grade, verdict.reason) == (Grade.MALFORMED, Reason.CUT)


def test_a_batch_keeps_its_order_and_runs_equal_answers_once(case, recorder):
    task = case.task(recorder)
    recorder.batches.clear()
    verdicts = grade(case.kind, recorder, task, *[case.wrong, case.right, case.malformed] * 20)
    assert [verdict.grade for verdict in verdicts] == [Grade.WRONG, Grade.CORRECT, Grade.MALFORMED] * 20
    assert len(recorder.batches) <= 2
    assert sum(len(job.texts) for job in recorder.jobs if not job.source) <= 3
    assert sum(1 for job in recorder.jobs if job.source) <= 3, "both answers, and the truth"


def test_equal_drafts_are_run_once(case, recorder):
    draft = case.kind.parse_proposal(case.proposal, dict(case.context))
    tasks = asyncio.run(case.kind.validate([draft] * 10, recorder))
    assert len({task.id for task in tasks}) == 1
    assert sum(1 for job in recorder.jobs if job.source) <= 2
    assert len(recorder.batches) <= 4


def test_inputs_that_are_written_otherwise_are_the_same(recorder):
    kind = CASES["code_o"].kind
    program, texts = "def f(n):\n    return n", ("[1, 'a']", '[1,"a"]', "f( ([1, 'a',]) )")
    drafts = [kind.parse_proposal(pair(program, given), {}) for given in texts]
    tasks = asyncio.run(kind.validate(drafts, recorder))
    assert [task.inputs for task in tasks] == [("[1, 'a']",)] * 3
    assert sum(1 for job in recorder.jobs if job.source) == 2  # run, and run once more as a grader would


def test_an_input_of_comments_only_is_none(verifier):
    became = propose(CASES["code_o"].kind, verifier, pair("def f(n=1):\n    return n", "# anything"))
    assert isinstance(became, Rejection)
    assert became.reason == Reason.NO_INPUT


def test_nothing_to_do_is_no_mistake(case, verifier):
    assert asyncio.run(case.kind.validate([], verifier)) == []
    assert asyncio.run(case.kind.grade([], verifier)) == []


def test_a_task_is_restored_from_its_record(case, verifier):
    task = case.task(verifier)
    assert case.kind.task_type.from_record(task.record()) == task
    assert task.id == case.task(verifier).id


@pytest.mark.parametrize("form", Form)
def test_a_prompt_ends_on_a_whole_word_and_is_the_same_for_the_same_numbers(case, form, verifier):
    kind = replace(case.kind, form=form)
    asked = [kind.propose_prompt(SEEDS, Random(seed)) for seed in (1, 1, 2)]
    assert asked[0] == asked[1] != asked[2]
    task = case.task(verifier)
    asked += [kind.propose_prompt([], Random(1)), kind.propose_prompt([task], Random(1)), kind.solve_prompt(task)]
    for prompt in asked:
        roles = [message["role"] for message in prompt.messages]
        assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
        assert roles[-1] == "user"
        assert form is not Form.SHORT or len(roles) == 1
        assert re.search(r"[a-z)][.:]$|^```$", prompt.messages[-1]["content"].rpartition("\n")[2])


def text_of(prompt: Prompt) -> str:
    return "\n".join(message["content"] for message in prompt.messages)


def test_the_short_form_is_much_shorter(case, verifier):
    task = case.task(verifier)
    for ask in (lambda kind: kind.solve_prompt(task), lambda kind: kind.propose_prompt(SEEDS[:1], Random(1))):
        short, long = (text_of(ask(replace(case.kind, form=form))) for form in (Form.SHORT, Form.LONG))
        assert len(short) < len(long) / 2


def test_answers_are_shown_with_thoughts_in_the_long_form_alone(case, verifier):
    task = case.task(verifier)
    if case.kind.name not in ("code_o", "code_i", "code_f"):
        pytest.skip("a kind of its own")
    shown = {
        form: [
            message["content"]
            for message in replace(case.kind, form=form).solve_prompt(task).messages
            if message["role"] == "assistant"
        ]
        for form in (Form.LONG, Form.DIRECT)
    }
    for long, direct in zip(shown[Form.LONG], shown[Form.DIRECT], strict=True):
        assert direct.startswith("```")
        assert long.endswith(direct) and len(long) > len(direct)


@pytest.mark.parametrize("example", EXAMPLES, ids=("words", "numbers"))
def test_a_shown_thought_goes_step_by_step_to_what_is_asked_for(example):
    for text in (example.thought, example.search):
        first, empty, *steps = text.splitlines()
        assert first.startswith("Let's ") and not empty
        assert [step.split(" ")[0] for step in steps] == [f"{number}." for number in range(1, len(steps) + 1)]
        assert example.task.outputs[0] in steps[-1]
    total = 0
    loop = re.findall(r"number = (\d+): .* it is (odd|even), and total = .* = (-?\d+)", example.thought)
    assert len(loop) == (4 if "total" in example.task.program else 0)
    for number, parity, said in loop:
        total = 0 if number == "3" else total
        total += int(number) if int(number) % 2 else -1
        assert (parity, int(said)) == ("odd" if int(number) % 2 else "even", total)
    last = example.search.splitlines()[-1]
    assert last.startswith(f"{len(steps)}. Check: for ")
    given, _, limit = example.task.inputs[0].partition("], ")
    assert given in last and limit in last


def test_nothing_that_a_prompt_shows_gives_the_solution_away(case, verifier):
    task = case.task(verifier)
    assert isinstance(task, CodeTask)
    for form in Form:
        content = text_of(replace(case.kind, form=form).solve_prompt(task))
        hidden = {
            "code_o": task.outputs,
            "code_i": task.inputs,
            "code_f": (
                *(f"f({given})" for given in task.inputs[task.shown :]),
                *task.outputs[task.shown :],
                task.program,
            ),
            "code_e": task.outputs,
        }[task.kind]
        assert hidden
        assert not any(text in content for text in hidden)


def test_no_expected_output_enters_a_guest_when_answers_are_judged(case, recorder):
    task = case.task(recorder)
    recorder.batches.clear()
    grade(case.kind, recorder, task, case.wrong)
    assert isinstance(task, CodeTask)
    assert not any(output in str(job) for job in recorder.jobs for output in task.outputs)


@pytest.mark.parametrize("name", ["code_o", "code_i"])
def test_a_reference_is_shown_in_the_form_that_is_asked_for(name):
    kind = FAMILY.kinds(Form.SHORT)[name]
    draft = kind.parse_proposal(kind.propose_prompt(SEEDS[:1], Random(1)).messages[0]["content"], {})
    assert draft == CodeDraft(name, SEEDS[0].program, SEEDS[0].inputs)


def test_code_f_asks_about_the_program_that_its_context_names():
    kind = FAMILY.kinds()["code_f"]
    prompt = kind.propose_prompt(SEEDS, Random(5))
    assert prompt.context["program"] in prompt.messages[-1]["content"]
    draft = kind.parse_proposal(INPUTS, prompt.context)
    assert isinstance(draft, CodeDraft)
    assert draft.program == prompt.context["program"]
    with pytest.raises(Fault):
        kind.parse_proposal(INPUTS, {})


def test_the_seeds_are_what_they_say(verifier):
    drafts = [CodeDraft("code_o", task.program, task.inputs) for task in SEEDS]
    assert asyncio.run(FAMILY.kinds()["code_o"].validate(drafts, verifier)) == list(SEEDS)


def test_neither_half_of_the_pairs_has_only_one_output(verifier):
    """However the outputs are spread, as long as they can be."""
    kind = FAMILY.kinds()["code_f"]
    for ones in range(1, 8):
        program = f"def f(n):\n    return n < {ones}"
        task = propose(kind, verifier, fence("inputs", "\n".join(map(str, range(8)))), {"program": program})
        assert isinstance(task, CodeTask)
        assert (task.shown, len(task.inputs)) == (4, 8)
        assert len(set(task.outputs[4:])) == 2
        assert len(set(task.outputs[:4])) == 2 or ones in (1, 7)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ("1\n2\n3\n3.0", Reason.TOO_FEW_INPUTS),
        ("1\n2\n3\nn=3", Reason.TOO_FEW_INPUTS),
        ("0\n1\n2\nTrue", Reason.TOO_FEW_INPUTS),
        ("1\n2\n3\n 3 ", Reason.TOO_FEW_INPUTS),
        ("1\n2\n3\n1+3", Reason.NOT_LITERAL),
        ("1\n2\n3\n1e999", Reason.NOT_FINITE),
        ("1\n2\n3\n'x'", Reason.RAISES),
    ],
)
def test_inputs_must_be_different_calls_that_all_work(inputs, reason, verifier):
    """A table with the key 3 also answers 3.0, so the two are one input."""
    became = propose(
        FAMILY.kinds()["code_f"], verifier, fence("inputs", inputs), {"program": "def f(n):\n    return n - 1"}
    )
    assert isinstance(became, Rejection)
    assert became.reason == reason


def test_the_message_is_optional_and_shown(verifier):
    kind = FAMILY.kinds()["code_f"]
    without = propose(kind, verifier, INPUTS, {"program": DOUBLE})
    hinted = propose(kind, verifier, INPUTS + "\n" + fence("message", "Twice."), {"program": DOUBLE})
    assert isinstance(without, CodeTask) and isinstance(hinted, CodeTask)
    assert without.id != hinted.id
    assert "Twice." in kind.solve_prompt(hinted).messages[-1]["content"]
    assert "message" not in kind.solve_prompt(without).messages[-1]["content"]


def test_a_function_must_reproduce_the_shown_pairs_too(verifier):
    kind = FAMILY.kinds()["code_f"]
    task = propose(kind, verifier, fence("inputs", "1\n2\n3\n4"), {"program": "def f(n):\n    return n"})
    assert isinstance(task, CodeTask)
    program = f"def f(n):\n    return n if n in ({', '.join(task.inputs[2:])}) else -n"
    assert grade(kind, verifier, task, fence("python", program))[0].grade == Grade.WRONG


def test_what_only_the_compiler_refuses_is_malformed(verifier):
    case = CASES["code_f"]
    [verdict] = grade(case.kind, verifier, case.task(verifier), fence("python", "def f(n):\n    return n\nreturn 1"))
    assert (verdict.grade, verdict.reason) == (Grade.MALFORMED, Reason.SYNTAX)


class Brittle(Recorder):
    """A verifier whose guests die of a certain text, and take the whole job with them."""

    async def run(self, jobs):
        outcomes = await super().run(jobs)
        dead = Outcome(results=(Result(Status.CRASH),), tier="none", cpu_ms=0.0)
        return [
            replace(dead, results=dead.results * len(job.texts)) if "'poison'" in job.texts else outcome
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]


def test_one_text_that_kills_its_guest_costs_the_others_nothing(verifier):
    brittle = Brittle(verifier)
    texts = [str(number) for number in range(100)]
    read = asyncio.run(read_literals([*texts, "'poison'", "x"], brittle))
    assert [read[text] for text in texts] == texts
    assert isinstance(read["'poison'"], Rejection) and isinstance(read["x"], Rejection)
    assert len(brittle.batches) == 2


def test_a_job_is_never_longer_than_the_limits_say(case, recorder):
    grade(case.kind, recorder, case.task(recorder), case.right)
    assert all(len(job.texts) <= 64 and job.limits.cpu_s <= 0.3 for job in recorder.jobs)
    assert all(job.seeds > 1 for job in recorder.jobs if job != Job.literals(job.texts) and job.source)


def test_a_rejection_and_a_malformed_attempt_say_why(verifier):
    kind = FAMILY.kinds()["code_o"]
    became = [propose(kind, verifier, text) for text in ("", pair(DOUBLE, "x"))]
    assert [each.reason for each in became if isinstance(each, Rejection)] == [Reason.NO_PROGRAM, Reason.NOT_LITERAL]
    verdicts = grade(kind, verifier, CASES["code_o"].task(verifier), "", "1", "x")
    assert [verdict.reason for verdict in verdicts] == [Reason.NO_ANSWER, None, Reason.NOT_LITERAL]


def test_an_unknown_kind_cannot_be_restored():
    with pytest.raises(InputError, match="code_o"):
        CODE.restore({"kind": "code_x"})


def test_the_docs_show_the_kind_that_is_tested_here():
    here = Path(__file__).parent
    docs = (here.parents[1] / "docs" / "extending.md").read_text()
    assert f"```python\n{(here / 'code_e.py').read_text()}```" in docs
