"""proof_f: find a proof of a goal from premises, with a short list of lemmas.

A teacher writes a proof as labels and references; its theorem is the most general one. Any steps that prove the goal
are right, so nothing is compared with the teacher's.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.tasks.checkers import grade
from redqueen.tasks.proof.kinds import ProofKind
from redqueen.tasks.proof.prompts import solve_proof
from redqueen.tasks.proof.source import LIMITS
from redqueen.tasks.proof.task import ProofTask
from redqueen.tasks.protocol import Attempt, Prompt
from redqueen.tasks.verdicts import Verdict
from redqueen.verifier import Verifier


@dataclass(frozen=True)
class ProofF(ProofKind):
    """Premises, goal and lemmas are given; steps are wanted."""

    name = "proof_f"
    title = "find a proof"

    def solve_prompt(self, task: ProofTask) -> Prompt:
        return solve_proof(self.form, task)

    async def grade(self, attempts: Sequence[Attempt[ProofTask]], verifier: Verifier) -> list[Verdict]:
        checker = self.source.checker
        return await grade(checker, "grade_proof", attempts, "proof", _shown, verifier, limits=LIMITS)


def _shown(task: ProofTask) -> str:
    labels = [lemma.partition(":")[0] for lemma in task.lemmas]
    return json.dumps(
        {"premises": task.premises, "goal": task.goal, "distinct": task.distinct, "labels": labels}, sort_keys=True
    )
