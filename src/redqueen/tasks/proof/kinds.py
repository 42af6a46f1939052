"""What the two kinds share: they ask for the same proofs, and differ in what a student is shown of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from redqueen.tasks.blocks import read_answer
from redqueen.tasks.checkers import ask, refused
from redqueen.tasks.proof.guest.metamath_kernel.steps import MOST_CHARS
from redqueen.tasks.proof.prompts import propose_proof
from redqueen.tasks.proof.source import LIMITS, PACKAGE, Source
from redqueen.tasks.proof.task import ProofDraft, ProofTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Verifier

TOGETHER = 8
"""Proposals that are checked in one process: a step's should keep all cores busy."""


@dataclass(frozen=True)
class ProofKind:
    """A teacher writes a chain of references; what it proves is worked out."""

    form: Form = Form.LONG
    source: Source = PACKAGE
    seeds: tuple[ProofTask, ...] = ()
    """What teachers are shown where there are no references."""
    name = ""
    task_type = ProofTask

    def propose_prompt(self, references: Sequence[ProofTask], rng: Random) -> Prompt:
        return propose_proof(self.form, references or self.seeds, self.source.library.short, rng)

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> ProofDraft | Rejection:
        answer = read_answer(text, "proof")
        if isinstance(answer, Rejection):
            return answer
        steps = answer.part("proof")
        if steps is None or not steps.strip():
            return Rejection(Reason.NO_PROOF, "no fenced proof")
        if len(steps) > MOST_CHARS:
            return Rejection(Reason.PROGRAM_TOO_LONG, f"more than {MOST_CHARS} characters")
        return ProofDraft(self.name, steps.strip("\n"), shown=tuple(context.get("shown", "").split()))

    async def validate(self, drafts: Sequence[ProofDraft], verifier: Verifier) -> list[ProofTask | Rejection]:
        found: dict[ProofDraft, ProofTask | Rejection] = {}
        for function, kept in (("validate", False), ("inspect", True)):
            own = [draft for draft in drafts if draft.as_it_stands is kept]
            calls = [(draft.kind, draft.steps) for draft in own]
            said = (
                await ask(self.source.checker, function, calls, verifier, together=TOGETHER, limits=LIMITS)
                if own
                else []
            )
            found |= {draft: _task(draft, one) for draft, one in zip(own, said, strict=True)}
        return [found[draft] for draft in drafts]


def _task(draft: ProofDraft, said: Any) -> ProofTask | Rejection:
    if (rejection := refused(draft, said)) is not None:
        return rejection
    task = ProofTask.found(draft.kind, said)
    if task.near_key in draft.shown:
        return draft.rejected(Reason.DUPLICATE, "a theorem that was shown, but for names")
    return task
