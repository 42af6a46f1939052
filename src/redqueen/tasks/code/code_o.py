"""code_o: predict what a program returns.

The answer is one literal. It is read inside a guest and compared outside, by type and with a tolerance on floats, so
an expression, an object with an `__eq__` of its own or text that ends the comparison early is malformed, not right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.code.blocks import read_answer
from redqueen.tasks.code.brief import NO_BRIEF, Brief
from redqueen.tasks.code.pairs import parse_pair, validate_pairs
from redqueen.tasks.code.prompts import EXAMPLES, draw, program_and_input, propose_pair
from redqueen.tasks.code.running import read_literals, refuse_unanswerable, same_text
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.shortcut import copies
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft, CodeTask
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import CUT_ATTEMPT, Grade, Reason, Rejection, Verdict, malformed
from redqueen.tasks.wording import ask, fenced, paragraphs, shown_answer
from redqueen.verifier import Limits, Verifier


@dataclass(frozen=True)
class CodeO:
    """Program and input are given; the output is wanted."""

    form: Form = Form.LONG
    limits: Limits = DEFAULT_LIMITS
    unfenced: bool = False
    briefs: bool = True
    name = "code_o"
    title = "predict a program's output"
    task_type = CodeTask

    def propose_prompt(self, references: Sequence[CodeTask], rng: Random) -> Prompt:
        return propose_pair(
            self.form,
            "Write another program and an input. The output will be asked for.",
            "Somebody else will see both and has to say what `f` returns for the input, without running anything.",
            draw(references or SEEDS, self.form, rng),
            Brief.drawn(rng) if self.briefs else NO_BRIEF,
        )

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> CodeDraft | Rejection:
        return parse_pair(self.name, text, Brief.asked(context))

    async def validate(self, drafts: Sequence[CodeDraft], verifier: Verifier) -> list[CodeTask | Rejection]:
        tasks = await validate_pairs(drafts, self.limits, verifier)
        truths = [Attempt(task, fenced("output", task.outputs[0])) for task in tasks if isinstance(task, CodeTask)]
        verdicts = await self.grade(truths, verifier)
        readable = {
            truth.task: verdict.correct if verdict.judged else None
            for truth, verdict in zip(truths, verdicts, strict=True)
        }
        return refuse_unanswerable(tasks, readable)

    def solve_prompt(self, task: CodeTask) -> Prompt:
        if self.form is Form.SHORT:
            return ask(program_and_input(task), "Write the output.")
        question = "What does `f` return when it is called with this input? Work it out by reading; nothing can be run."
        how = "Think first. Then end your answer" if self.form is Form.LONG else "Answer"
        ending = (
            f"{how} with exactly one fenced block, ```output, that holds the returned value as a Python literal, the "
            "way `repr` writes it (strings in quotes; 1, 1.0 and True are different values)."
        )
        earlier = [
            (
                paragraphs(question, program_and_input(example.task), ending),
                shown_answer(self.form, example.thought, fenced("output", example.task.outputs[0])),
            )
            for example in EXAMPLES
        ]
        return ask(question, program_and_input(task), ending, after=earlier)

    async def grade(self, attempts: Sequence[Attempt[CodeTask]], verifier: Verifier) -> list[Verdict]:
        answers = [CUT_ATTEMPT if attempt.cut else read_output(attempt.text, self.unfenced) for attempt in attempts]
        values = await read_literals((answer for answer in answers if isinstance(answer, str)), verifier)
        return [
            answer if isinstance(answer, Verdict) else _judge(attempt.task, values[answer])
            for attempt, answer in zip(attempts, answers, strict=True)
        ]


def read_output(text: str, unfenced: bool = False) -> str | Verdict:
    """The output that a text answers with."""
    answer = read_answer(text)
    if isinstance(answer, Rejection):
        return malformed(answer)
    return answer.value("output", unfenced) or malformed(Rejection(Reason.NO_ANSWER, "no output"))


def _judge(task: CodeTask, value: str | Rejection) -> Verdict:
    if isinstance(value, Rejection):
        return malformed(value)
    right = same_text(value, task.outputs[0])
    return Verdict(grade=Grade.CORRECT if right else Grade.WRONG, shortcut=value in copies(task))
