"""What a race costs, in units that do not depend on the machine: tokens and runs of programs.

Two arms of a comparison are fair to each other when these are equal, by member or in total; seconds are recorded apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.verifier import Job, Outcome, Verifier


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used up; usages add up."""

    sampled_tokens: int = 0
    trained_tokens: int = 0
    """Tokens of completions that a gradient came from."""
    verifier_runs: int = 0
    """Processes that were asked for, one for each hash seed of a job; what the machine failed counts once."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.sampled_tokens + other.sampled_tokens,
            self.trained_tokens + other.trained_tokens,
            self.verifier_runs + other.verifier_runs,
        )


class Counted:
    """A verifier that counts the runs that go through it: one for each member whose runs are to be told apart."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.runs = 0

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        # Before they are made: whoever gives up waiting has used them all the same.
        self.runs += sum(job.seeds for job in jobs)
        return await self._verifier.run(jobs)
