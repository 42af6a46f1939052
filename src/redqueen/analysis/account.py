"""What a race costs, in units that do not depend on the machine: tokens, floating-point operations, runs of programs.

Two arms of a comparison are fair to each other when these are equal, by member or in total; seconds are recorded apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from redqueen.verifier import Job, Outcome, Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used up; usages add up."""

    sampled_tokens: int = 0
    prompt_tokens: int = 0
    """Of prompts that were sampled from, each once for all texts of an adapter."""
    trained_tokens: int = 0
    """Tokens of completions that a gradient came from."""
    update_tokens: int = 0
    """Tokens of prompts and completions that went through the base in updates, each prompt once for all texts of an
    adapter; those of an update that was given up too."""
    verifier_runs: int = 0
    """Processes that were asked for, one for each hash seed of a job; what the machine failed counts once."""
    flops: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


class Counted:
    """A verifier that counts the runs that go through it: one for each member whose runs are to be told apart."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.runs = 0

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        # Before they are made: whoever gives up waiting has used them all the same.
        self.runs += sum(job.seeds for job in jobs)
        return await self._verifier.run(jobs)
