"""code_i: find an input for which a program returns a given output.

Any input that gives the output is right. The answer is read as literal arguments inside a guest, then the task's own
program runs on them, and what it returned is compared outside: no text of the student's is ever part of a program.
The teacher's own input runs beside the answers: a program that fails it now could tell grading from validation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from redqueen.tasks.code.blocks import call_arguments, read_answer
from redqueen.tasks.code.brief import NO_BRIEF, Brief
from redqueen.tasks.code.evidence import BESIDE_ATTEMPTS, shown
from redqueen.tasks.code.pairs import parse_pair, validate_pairs
from redqueen.tasks.code.prompts import EXAMPLES, INPUT_CONTRACT, draw, propose_pair
from redqueen.tasks.code.running import call_job, gives, read_inputs, refuse_unanswerable
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.shortcut import copies
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft, CodeTask
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import (
    CUT_ATTEMPT,
    NOT_JUDGED_ATTEMPT,
    VOID_ATTEMPT,
    Grade,
    Reason,
    Rejection,
    Verdict,
    malformed,
)
from redqueen.tasks.wording import ask, fenced, paragraphs, shown_answer
from redqueen.verifier import Job, Limits, Outcome, Status, Verifier


@dataclass(frozen=True)
class CodeI:
    """Program and output are given; an input is wanted."""

    form: Form = Form.LONG
    limits: Limits = DEFAULT_LIMITS
    unfenced: bool = False
    briefs: bool = True
    name = "code_i"
    title = "find an input that gives an output"
    task_type = CodeTask

    def propose_prompt(self, references: Sequence[CodeTask], rng: Random) -> Prompt:
        return propose_pair(
            self.form,
            "Write another program and an input. An input will be asked for.",
            "Somebody else will see the program and what `f` returns for your input, not the input itself, and has to "
            "find an input that gives that value, without running anything. Any input that does counts.",
            draw(references or SEEDS, self.form, rng),
            Brief.drawn(rng) if self.briefs else NO_BRIEF,
        )

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> CodeDraft | Rejection:
        return parse_pair(self.name, text, Brief.asked(context))

    async def validate(self, drafts: Sequence[CodeDraft], verifier: Verifier) -> list[CodeTask | Rejection]:
        tasks = await validate_pairs(drafts, self.limits, verifier)
        truths = {task: read_input(fenced("input", task.inputs[0])) for task in tasks if isinstance(task, CodeTask)}
        inputs = await read_inputs((truth for truth in truths.values() if isinstance(truth, str)), verifier)
        readable = {
            task: isinstance(truth, str) and _is(inputs[truth], task.inputs[0]) for task, truth in truths.items()
        }
        return refuse_unanswerable(tasks, readable)

    def solve_prompt(self, task: CodeTask) -> Prompt:
        if self.form is Form.SHORT:
            return ask(_shown(task), "Write an input.")
        question = (
            "Find an input for which `f` returns this output. Any that does will count. Work it out by reading; "
            "nothing can be run."
        )
        how = "Think first. Then end your answer" if self.form is Form.LONG else "Answer"
        ending = f"{INPUT_CONTRACT} {how} with exactly one fenced block, ```input, that holds the input."
        earlier = [
            (
                paragraphs(question, _shown(example.task), ending),
                shown_answer(self.form, example.search, fenced("input", example.task.inputs[0])),
            )
            for example in EXAMPLES
        ]
        return ask(question, _shown(task), ending, after=earlier)

    async def grade(self, attempts: Sequence[Attempt[CodeTask]], verifier: Verifier) -> list[Verdict]:
        answers = [CUT_ATTEMPT if attempt.cut else read_input(attempt.text, self.unfenced) for attempt in attempts]
        inputs = await read_inputs((answer for answer in answers if isinstance(answer, str)), verifier)
        jobs: dict[tuple[str, str], Job] = {}
        for attempt, answer in zip(attempts, answers, strict=True):
            given = inputs[answer] if isinstance(answer, str) else None
            if isinstance(given, str):
                # One process per input: a loop in one must not cost the others theirs. The teacher's own is among them.
                for text in (attempt.task.inputs[0], given):
                    jobs.setdefault((attempt.task.program, text), call_job(attempt.task.program, [text], self.limits))
        outcomes = await verifier.run(list(jobs.values()))
        ran = dict(zip(jobs, outcomes, strict=True))
        return [
            answer if isinstance(answer, Verdict) else _judge(attempt.task, inputs[answer], ran)
            for attempt, answer in zip(attempts, answers, strict=True)
        ]


def _shown(task: CodeTask) -> str:
    return fenced("python", task.program) + "\n" + fenced("output", task.outputs[0])


def read_input(text: str, unfenced: bool = False) -> str | Verdict:
    """The input that a text answers with, as between the parentheses of a call."""
    answer = read_answer(text)
    if isinstance(answer, Rejection):
        return malformed(answer)
    return call_arguments(answer.value("input", unfenced)) or malformed(Rejection(Reason.NO_ANSWER, "no input"))


def _is(read: str | Rejection, truth: str) -> bool | None:
    """None where it could not be read for the machine's sake."""
    return None if isinstance(read, Rejection) and not read.judged else read == truth


def _judge(task: CodeTask, given: str | Rejection, ran: Mapping[tuple[str, str], Outcome]) -> Verdict:
    if isinstance(given, Rejection):
        return malformed(given)
    truth = ran[task.program, task.inputs[0]]
    if Status.FAULT in (truth.status, ran[task.program, given].status):
        return NOT_JUDGED_ATTEMPT
    if not gives(truth.results[0], task.outputs[0]):
        return replace(VOID_ATTEMPT, runs=shown(BESIDE_ATTEMPTS, task.inputs, truth))
    result = ran[task.program, given].results[0]
    right = gives(result, task.outputs[0])
    return Verdict(
        grade=Grade.CORRECT if right else Grade.WRONG,
        status=result.status,
        detail=result.exception or "",
        shortcut=given in copies(task),
    )
