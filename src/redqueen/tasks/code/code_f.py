"""code_f: write a function from examples of what it does.

The teacher gets a program of the archive and writes inputs and a hint; the outputs come from running. The student sees
the hint and about half of the pairs and writes `f`, which must reproduce all pairs, shown and hidden. The hidden
outputs are never all the same, so neither a constant nor a table of the shown pairs with a default can pass. The task's
own program runs beside the answers: where it no longer reproduces the pairs, nobody can.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from redqueen.errors import Fault
from redqueen.tasks.code.blocks import Answer, read_answer
from redqueen.tasks.code.evidence import BESIDE_ATTEMPTS, shown
from redqueen.tasks.code.plain import plain_message, refuse_fence
from redqueen.tasks.code.program import read_program
from redqueen.tasks.code.prompts import EXAMPLES, MESSAGE_CONTRACT, PROGRAM_CONTRACT, program_and_input
from redqueen.tasks.code.running import (
    Ran,
    call_job,
    gives,
    refuse_unanswerable,
    refused_by_compiler,
    run_drafts,
    same_text,
)
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.task import DEFAULT_LIMITS, MAX_MESSAGE_CHARS, CodeDraft, CodeTask
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

MIN_INPUTS = 4
MAX_INPUTS = 12
_ASKED_INPUTS = 8


@dataclass(frozen=True)
class CodeF:
    """Some pairs of input and output are given; the function is wanted."""

    form: Form = Form.LONG
    limits: Limits = DEFAULT_LIMITS
    unfenced: bool = False
    name = "code_f"
    title = "write a function from examples"
    task_type = CodeTask

    def propose_prompt(self, references: Sequence[CodeTask], rng: Random) -> Prompt:
        task = rng.choice(references or SEEDS)
        shown = program_and_input(task)
        context = {"program": task.program}
        if self.form is Form.SHORT:
            return ask(shown, f"Write {_ASKED_INPUTS} inputs and a message.", context=context)
        earlier = [
            (
                _ask_inputs(example.task),
                fenced("inputs", "\n".join(f"f({given})" for given in example.calls))
                + "\n"
                + fenced("message", example.hint),
            )
            for example in EXAMPLES
        ]
        return ask(_ask_inputs(task), context=context, after=earlier)

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> CodeDraft | Rejection:
        if "program" not in context:
            raise Fault("code_f: a proposal is read with the context of its own prompt, which has the program")
        answer = read_answer(text)
        draft = answer if isinstance(answer, Rejection) else _draft(self.name, context["program"], answer)
        return replace(draft, program=context["program"])

    async def validate(self, drafts: Sequence[CodeDraft], verifier: Verifier) -> list[CodeTask | Rejection]:
        tasks = [
            ran if isinstance(ran, Rejection) else _make_task(ran)
            for ran in await run_drafts(drafts, self.limits, verifier)
        ]
        return refuse_unanswerable(tasks, {task: _readable(task) for task in tasks if isinstance(task, CodeTask)})

    def solve_prompt(self, task: CodeTask) -> Prompt:
        examples = _examples(zip(task.inputs[: task.shown], task.outputs[: task.shown], strict=True))
        if self.form is Form.SHORT:
            message = fenced("message", task.message) if task.message else ""
            return ask(f"{message}\n{examples}".strip(), "Write the program.")
        earlier = [
            (
                _ask_function(self.form, _examples(example.returned), example.hint, "" if place else PROGRAM_CONTRACT),
                shown_answer(self.form, example.rule, fenced("python", example.task.program)),
            )
            for place, example in enumerate(EXAMPLES)
        ]
        return ask(_ask_function(self.form, examples, task.message), after=earlier)

    async def grade(self, attempts: Sequence[Attempt[CodeTask]], verifier: Verifier) -> list[Verdict]:
        answers = [CUT_ATTEMPT if attempt.cut else _read(attempt.text, self.unfenced) for attempt in attempts]
        jobs: dict[tuple[str, str], Job] = {}
        for attempt, answer in zip(attempts, answers, strict=True):
            if isinstance(answer, str):
                for program in (attempt.task.program, answer):
                    jobs.setdefault((attempt.task.id, program), call_job(program, attempt.task.inputs, self.limits))
        outcomes = dict(zip(jobs, await verifier.run(list(jobs.values())), strict=True))
        return [
            answer if isinstance(answer, Verdict) else _judge(attempt.task, answer, outcomes)
            for attempt, answer in zip(attempts, answers, strict=True)
        ]


def _draft(kind: str, program: str, answer: Answer) -> CodeDraft | Rejection:
    inputs = tuple(dict.fromkeys(answer.inputs()))
    if not inputs:
        return Rejection(Reason.NO_INPUT, "no fenced inputs")
    if len(inputs) < MIN_INPUTS:
        return Rejection(Reason.TOO_FEW_INPUTS, f"fewer than {MIN_INPUTS} different inputs")
    if len(inputs) > MAX_INPUTS:
        return Rejection(Reason.TOO_MANY_INPUTS, f"more than {MAX_INPUTS} inputs")
    message = plain_message(answer.last("message") or "")
    if len(message) > MAX_MESSAGE_CHARS:
        return Rejection(Reason.MESSAGE_TOO_LONG, f"more than {MAX_MESSAGE_CHARS} characters")
    return CodeDraft(kind, program, inputs, message)


def _ask_inputs(task: CodeTask) -> str:
    return paragraphs(
        f"Here is a Python program. Write {_ASKED_INPUTS} different calls of `f` (at least {MIN_INPUTS}, at most "
        f"{MAX_INPUTS}), one on each line, and a message. Somebody else, who does not see the program, will be shown "
        "your message and about half of the calls with what they return, and has to write a function that does the "
        "same on all of them.",
        fenced("python", task.program),
        f"`f({task.inputs[0]})` is one call of it. Arguments are literals only (no expressions, no variables, no "
        "calls), and no call may raise an exception. Together the calls should show every side of what the program "
        "does, and what they return must not be the same for all. The message "
        f"({MESSAGE_CONTRACT}) hints at what the program does without giving it away.",
        "Answer with exactly two fenced blocks, ```inputs and ```message.",
    )


def _ask_function(form: Form, examples: str, message: str, contract: str = "") -> str:
    thinking = "You may think first. Then end your answer" if form is Form.LONG else "Answer"
    return paragraphs(
        "Write a Python function `f` that does what these examples show. It will also be tried on other inputs, so "
        "find the rule behind the examples.",
        f"A hint from the one who chose them: {message}" if message else "",
        examples,
        contract,
        f"{thinking} with exactly one fenced block, ```python, that holds the whole program.",
    )


def _examples(pairs: Iterable[tuple[str, str]]) -> str:
    return fenced("python", "\n".join(f"f({given}) == {output}" for given, output in pairs))


def _make_task(ran: Ran) -> CodeTask | Rejection:
    if len(ran.outputs) < MIN_INPUTS:
        return ran.rejected(Reason.TOO_FEW_INPUTS, f"fewer than {MIN_INPUTS} different inputs")
    fence = refuse_fence(ran.draft.message, *ran.draft.inputs, *ran.outputs)
    if fence is not None:
        return ran.rejected(fence.reason, fence.detail)
    pairs = _arrange(ran)
    shown = len(pairs) // 2
    if not _varied(pairs[shown:]):
        return ran.rejected(Reason.CONSTANT, "the same output for every input")
    inputs, outputs = (tuple(part) for part in zip(*pairs, strict=True))
    return CodeTask(
        ran.draft.kind,
        program=ran.draft.program,
        inputs=inputs,
        outputs=outputs,
        shown=shown,
        message=ran.draft.message,
    )


def _arrange(ran: Ran) -> list[tuple[str, str]]:
    """The pairs in an order that the teacher did not choose, first half shown, second half hidden.

    Of all rotations of that order the first is taken in which neither half has only one output; where none is, the
    hidden half matters more. One always serves it unless all outputs are the same: somewhere on the circle two
    neighbours differ.
    """
    program = ran.draft.program
    pairs = sorted(zip(ran.draft.inputs, ran.outputs, strict=True), key=lambda pair: _digest(program, pair[0]))
    half = len(pairs) // 2
    rotations = [pairs[start:] + pairs[:start] for start in range(len(pairs))]
    return max(rotations, key=lambda order: (_varied(order[half:]), _varied(order[:half])))


def _digest(program: str, given: str) -> bytes:
    return hashlib.sha256(f"{program}\0{given}".encode()).digest()


def _varied(pairs: Sequence[tuple[str, str]]) -> bool:
    return any(not same_text(output, pairs[0][1]) for _, output in pairs)


def _read(text: str, unfenced: bool = False) -> str | Verdict:
    answer = read_answer(text)
    if isinstance(answer, Rejection):
        return malformed(answer)
    program = answer.program(unfenced)
    if program is None:
        return malformed(Rejection(Reason.NO_PROGRAM, "no fenced program"))
    tree = read_program(program)
    return malformed(tree) if isinstance(tree, Rejection) else program


def _readable(task: CodeTask) -> bool:
    """Whether the program itself, as an answer, is read as the program that it is."""
    read = _read(fenced("python", task.program))
    return isinstance(read, str) and replace(task, program=read).ast_key == task.ast_key


def _judge(task: CodeTask, answer: str, outcomes: Mapping[tuple[str, str], Outcome]) -> Verdict:
    truth, outcome = outcomes[task.id, task.program], outcomes[task.id, answer]
    if Status.FAULT in (truth.status, outcome.status):
        return NOT_JUDGED_ATTEMPT
    if not _reproduces(task, truth):
        return replace(VOID_ATTEMPT, runs=shown(BESIDE_ATTEMPTS, task.inputs, truth))
    if _reproduces(task, outcome):
        return Verdict(grade=Grade.CORRECT, status=Status.OK)
    if refused_by_compiler(outcome.results[0]):
        return malformed(Rejection(Reason.SYNTAX, "the compiler refuses it"), outcome.status)
    failed = next((result for result in outcome.results if result.status is not Status.OK), outcome.results[0])
    return Verdict(grade=Grade.WRONG, status=failed.status, detail=failed.exception or "")


def _reproduces(task: CodeTask, outcome: Outcome) -> bool:
    return all(gives(result, expected) for result, expected in zip(outcome.results, task.outputs, strict=True))
