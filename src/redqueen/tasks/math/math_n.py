"""math_n: work out the number that a puzzle asks for.

A puzzle as logic has them ends with a sum of its unknowns that all solutions agree in, or asks how many solutions there
are. A search decides it; the constants are drawn by lot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.math.number_prompts import propose_problem, solve_problem
from redqueen.tasks.math.number_seeds import NUMBER_SEEDS
from redqueen.tasks.math.task import PROBLEMS, MathDraft, ProblemTask
from redqueen.tasks.math.whole import Whole, grade_number
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import Reason, Rejection, Verdict
from redqueen.verifier import Verifier

_WHOLE = Whole(name="math_n", label="problem", checker=PROBLEMS, task_type=ProblemTask, lacking=Reason.NO_PUZZLE)


@dataclass(frozen=True)
class MathN:
    """A puzzle is given; a number is wanted."""

    form: Form = Form.LONG
    name = "math_n"
    title = "work out what a puzzle asks for"
    task_type = ProblemTask

    def propose_prompt(self, references: Sequence[ProblemTask], rng: Random) -> Prompt:
        return propose_problem(self.form, references or NUMBER_SEEDS, rng)

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> MathDraft | Rejection:
        return _WHOLE.parse(text, context)

    async def validate(self, drafts: Sequence[MathDraft], verifier: Verifier) -> list[ProblemTask | Rejection]:
        return await _WHOLE.validate(drafts, verifier)

    def solve_prompt(self, task: ProblemTask) -> Prompt:
        return solve_problem(self.form, task.text)

    async def grade(self, attempts: Sequence[Attempt[ProblemTask]], verifier: Verifier) -> list[Verdict]:
        return await grade_number(attempts, verifier)
