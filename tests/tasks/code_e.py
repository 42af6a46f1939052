"""code_e: name the exception that a program raises.

The answer is one word. It is compared as text, so grading runs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.code import CodeFamily
from redqueen.tasks.code.blocks import read_answer
from redqueen.tasks.code.evidence import VALIDATED, shown
from redqueen.tasks.code.pairs import parse_pair
from redqueen.tasks.code.prompts import draw, program_and_input, propose_pair
from redqueen.tasks.code.running import read_inputs
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft, CodeTask
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import CUT_ATTEMPT, Grade, Reason, Rejection, Verdict, malformed
from redqueen.tasks.wording import ask, fenced
from redqueen.verifier import Job, Limits, Outcome, Status, Verifier


@dataclass(frozen=True)
class CodeE:
    """Program and input are given; the name of the exception is wanted."""

    form: Form = Form.LONG
    limits: Limits = DEFAULT_LIMITS
    name = "code_e"
    title = "name the exception that a program raises"
    task_type = CodeTask

    def propose_prompt(self, references: Sequence[CodeTask], rng: Random) -> Prompt:
        return propose_pair(
            self.form,
            "Write another program and an input that it fails on. The exception will be asked for.",
            "`f` must raise an exception for the input. Somebody else will see both and has to name its class.",
            draw(references or SEEDS, self.form, rng),
        )

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> CodeDraft | Rejection:
        return parse_pair(self.name, text)

    async def validate(self, drafts: Sequence[CodeDraft], verifier: Verifier) -> list[CodeTask | Rejection]:
        inputs = await read_inputs((draft.inputs[0] for draft in drafts), verifier)
        jobs = {
            draft: Job.calls(draft.program, [given], limits=self.limits)
            for draft in drafts
            if isinstance(given := inputs[draft.inputs[0]], str)
        }
        outcomes = dict(zip(jobs, await verifier.run(list(jobs.values())), strict=True))
        return [_make_task(draft, inputs[draft.inputs[0]], outcomes.get(draft)) for draft in drafts]

    def solve_prompt(self, task: CodeTask) -> Prompt:
        if self.form is Form.SHORT:
            return ask(program_and_input(task), "Name the exception.")
        return ask(
            "Which exception does `f` raise when it is called with this input?",
            program_and_input(task),
            "You may think first. Then end your answer with exactly one fenced block that holds the name of its class:",
            fenced("output", "..."),
        )

    async def grade(self, attempts: Sequence[Attempt[CodeTask]], verifier: Verifier) -> list[Verdict]:
        return [CUT_ATTEMPT if attempt.cut else _judge(attempt) for attempt in attempts]


def _make_task(draft: CodeDraft, given: str | Rejection, outcome: Outcome | None) -> CodeTask | Rejection:
    if isinstance(given, Rejection) or outcome is None:
        why = (given.reason, given.detail) if isinstance(given, Rejection) else (Reason.NO_RESULT, "")
        return draft.rejected(*why)
    [result] = outcome.results
    if result.status is Status.FAULT:
        return draft.rejected(Reason.NOT_JUDGED)
    if result.status is not Status.EXCEPTION or result.exception in (None, "badname"):
        return draft.rejected(Reason.NO_RESULT, "raises nothing that has a name", shown(VALIDATED, [given], outcome))
    return CodeTask("code_e", program=draft.program, inputs=(given,), outputs=(result.exception,))


def _judge(attempt: Attempt[CodeTask]) -> Verdict:
    answer = read_answer(attempt.text)
    if isinstance(answer, Rejection):
        return malformed(answer)
    word = answer.value("output")
    if not word.isidentifier():
        return malformed(Rejection(Reason.NO_ANSWER, "not a name"))
    return Verdict(grade=Grade.CORRECT if word == attempt.task.outputs[0] else Grade.WRONG)


class Exceptions(CodeFamily):
    """All that the code family knows of programs, for this kind."""

    seed_kind = "code_e"

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, CodeE]:
        return {"code_e": CodeE(form, self.limits)}
