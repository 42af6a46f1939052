"""Proposals of one program with one input, which is what both code_o and code_i are made of."""

from collections.abc import Sequence
from dataclasses import replace

from redqueen.tasks.code.blocks import call_arguments, read_answer
from redqueen.tasks.code.brief import NO_BRIEF, Brief
from redqueen.tasks.code.plain import read_plain, refuse_fence
from redqueen.tasks.code.running import run_drafts
from redqueen.tasks.code.task import CodeDraft, CodeTask
from redqueen.tasks.code.unused import unused
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Limits, Verifier


def parse_pair(kind: str, text: str, brief: Brief = NO_BRIEF) -> CodeDraft | Rejection:
    """The last program that defines `f`, and the last input, where this was asked for."""
    answer = read_answer(text)
    if isinstance(answer, Rejection):
        return answer
    written = answer.program()
    if written is None:
        return Rejection(Reason.NO_PROGRAM, "no fenced program")
    program = read_plain(written)
    if isinstance(program, Rejection):
        return replace(program, program=written)
    if idle := unused(program):
        return Rejection(Reason.UNUSED, idle, program)
    if missing := brief.not_called(program):
        return Rejection(Reason.OFF_BRIEF, missing, program)
    arguments = call_arguments(answer.part("input", "inputs") or "")
    if not arguments:
        return Rejection(Reason.NO_INPUT, "no fenced input", program)
    return CodeDraft(kind, program, (arguments,), brief=brief)


async def validate_pairs(drafts: Sequence[CodeDraft], limits: Limits, verifier: Verifier) -> list[CodeTask | Rejection]:
    """The drafts whose program returns something for the input that can be asked."""
    tasks: list[CodeTask | Rejection] = []
    for ran in await run_drafts(drafts, limits, verifier):
        if isinstance(ran, Rejection):
            tasks.append(ran)
        elif ran.outputs == ("None",):
            # Nearly always a forgotten `return`, and known without reading the program.
            tasks.append(ran.rejected(Reason.NONE_RESULT, "returns None"))
        elif (missed := ran.draft.brief.missed(ran.draft.inputs[0], ran.outputs[0])) is not None:
            tasks.append(ran.rejected(Reason.OFF_BRIEF, missed))
        elif (fence := refuse_fence(*ran.draft.inputs, *ran.outputs)) is not None:
            tasks.append(ran.rejected(fence.reason, fence.detail))
        else:
            tasks.append(
                CodeTask(ran.draft.kind, program=ran.draft.program, inputs=ran.draft.inputs, outputs=ran.outputs)
            )
    return tasks
