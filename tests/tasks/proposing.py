"""Short ways to propose and to answer, and verifiers that remember what they were asked to run, or fail it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.verdicts import Rejection, Verdict
from redqueen.verifier import Job, Outcome, Result, Status, Verifier

CODE = Families.of(("code",))


class Recorder:
    """A verifier that remembers its batches."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.batches: list[list[Job]] = []

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        self.batches.append(list(jobs))
        return await self._verifier.run(jobs)

    @property
    def jobs(self) -> list[Job]:
        return [job for batch in self.batches for job in batch]


class Failing:
    """A verifier on a machine that fails some jobs for good."""

    def __init__(self, verifier: Verifier, fails: Callable[[Job], bool]) -> None:
        self._verifier = verifier
        self._fails = fails

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        outcomes = await self._verifier.run(jobs)
        return [
            replace(outcome, results=(Result(Status.FAULT),) * len(outcome.results)) if self._fails(job) else outcome
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]


def grade(kind, verifier: Verifier, task: Task, *texts: str) -> list[Verdict]:
    """The verdicts on answers to one task."""
    return asyncio.run(kind.grade([Attempt(task, text) for text in texts], verifier))


def propose(kind, verifier: Verifier, text: str, context=None) -> Task | Rejection:
    """What becomes of a proposal."""
    draft = kind.parse_proposal(text, context or {})
    return draft if isinstance(draft, Rejection) else asyncio.run(kind.validate([draft], verifier))[0]


def fence(label: str, text: str) -> str:
    return f"```{label}\n{text}\n```"


def pair(program: str, given: str) -> str:
    return fence("python", program) + "\n" + fence("input", given)
