"""CRUXEval asked as races ask: the prompts of `code_o` and `code_i`, answers read and graded as everybody's are.

What a race trains is an answer in this form. Asked officially a student also has to keep a form that it never saw, and
a base here one that it was not made for: compare each in the form that suits it best.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from redqueen.evals.cruxeval import CruxEval, InputPrediction, OutputPrediction
from redqueen.evals.protocol import Grade, Item, Prompt, Prompts, Reply, Suite
from redqueen.tasks.code.blocks import read_answer
from redqueen.tasks.code.code_i import read_input
from redqueen.tasks.code.code_o import read_output
from redqueen.tasks.code.task import CodeTask
from redqueen.tasks.protocol import Kind
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import Verifier


class AskedAsInRaces(CruxEval):
    suite: Suite = "race"
    kind: ClassVar[Kind[Any, Any]]

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        row = item.row
        task = CodeTask(kind=self.kind.name, program=row["code"], inputs=(row["input"],), outputs=(row["output"],))
        return Prompt.of(self.kind.solve_prompt(task).messages)

    async def judge(self, replies: Sequence[Reply], prompts: Prompts, verifier: Verifier) -> list[Grade]:
        """A reply that was cut is no answer, as in races."""
        return await super().judge(
            [replace(reply, text="") if reply.cut else reply for reply in replies], prompts, verifier
        )


class AskedOutput(AskedAsInRaces, OutputPrediction):
    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        answer = read_output(text)
        return answer if isinstance(answer, str) else None


class AskedInput(AskedAsInRaces, InputPrediction):
    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        arguments = read_input(text)
        if isinstance(arguments, str):
            return f"f({arguments})"
        # Races have no functions without arguments; CRUXEval has one.
        answer = read_answer(text)
        given = None if isinstance(answer, Rejection) else answer.last("input")
        return "f()" if given is not None and given.strip() in ("", "f()") else None
