"""One record for a text, from the sampler to the trainer: a teacher's proposal or a student's attempt.

Nothing of it is ever changed. Whatever finds out more about a text gives a new record, which `dataclasses.replace`
makes of the old one.
"""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Trajectory
from redqueen.population.members import Role
from redqueen.tasks.archive import Entry
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Rejection, Verdict

NO_MATCH = -1
ResultT = TypeVar("ResultT", bound=Task | Rejection | Verdict, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(Generic[ResultT]):
    """A sampled text with its log-probabilities, what became of it, and what it is worth to whoever wrote it."""

    role: Role
    member: MemberId
    kind: str
    """Of the task that was asked for or attempted."""
    match: int
    """Its number among the step's matches, as all numbers here from 0; `NO_MATCH` outside of them."""
    place: int
    """A proposal's number among the step's proposals; an attempt has that of its task."""
    group: int
    """Shared by the texts of one prompt, which are compared with each other. Numbers need to differ within a role and
    kind only."""
    number: int
    """Among the member's texts to this prompt."""
    request: SampleRequest
    sample: Sample
    became: ResultT
    """A proposal becomes a task or a rejection, an attempt a verdict."""
    replays: str | None = None
    """The task of an earlier step that is attempted once more, by its id. It is in no match, and pays no teacher."""
    entry: Entry | None = None
    """How a proposal's task fared, for the archive; None for a rejection and for an attempt."""
    reward: float = math.nan
    """Not a number until it is judged."""
    advantage: float = 0.0
    """For each of its tokens, scaled; 0 where there is nothing to learn."""
    scale: float = 0.0
    """What its advantage was multiplied by; a KL term is multiplied by the same."""

    @property
    def sound(self) -> bool:
        """A proposal that became a task, an attempt that was well formed."""
        return self.became.well_formed if isinstance(self.became, Verdict) else isinstance(self.became, Task)

    @property
    def counts(self) -> bool:
        """All do but void attempts and proposals that could not be judged: from these nobody learns anything."""
        return self.judged and not (isinstance(self.became, Verdict) and self.became.void)

    @property
    def judged(self) -> bool:
        """Unless the machine failed its judging."""
        return isinstance(self.became, Task) or self.became.judged

    def trajectory(self, adapter: MemberId, advantages: tuple[float, ...] | float, lr_factor: float) -> Trajectory:
        """What the engine is given of it, for the adapter that learns from it."""
        return Trajectory(
            member=adapter,
            prompt=self.request.prompt,
            completion=self.sample.tokens,
            logprobs=self.sample.logprobs,
            advantages=advantages,
            temperature=self.request.temperature,
            lr_factor=lr_factor,
        )


Proposal = Rollout[Task | Rejection]
