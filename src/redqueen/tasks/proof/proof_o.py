"""proof_o: say what the last line of a proof says.

A teacher writes a proof as labels and references. A student sees its premises and the lemmas that it refers to, and
does by thought what the kernel does: unify, line by line. One formula is right, but for the names of variables that no
premise has.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.tasks.checkers import grade
from redqueen.tasks.proof.kinds import ProofKind
from redqueen.tasks.proof.prompts import solve_formula
from redqueen.tasks.proof.source import LIMITS
from redqueen.tasks.proof.task import ProofTask
from redqueen.tasks.protocol import Attempt, Prompt
from redqueen.tasks.verdicts import Verdict
from redqueen.verifier import Verifier


@dataclass(frozen=True)
class ProofO(ProofKind):
    """Premises and steps are given; the formula of the last line is wanted."""

    name = "proof_o"
    title = "say what a proof proves"

    def solve_prompt(self, task: ProofTask) -> Prompt:
        return solve_formula(self.form, task)

    async def grade(self, attempts: Sequence[Attempt[ProofTask]], verifier: Verifier) -> list[Verdict]:
        checker = self.source.checker
        return await grade(checker, "grade_formula", attempts, "formula", _shown, verifier, limits=LIMITS)


def _shown(task: ProofTask) -> str:
    return json.dumps({"premises": task.premises, "goal": task.goal}, sort_keys=True)
