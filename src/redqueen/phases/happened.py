"""One step, as its phases leave it to the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.phases.diversity import Snapshot
from redqueen.phases.drift import Drift
from redqueen.phases.elsewhere import Elsewhere, Recall
from redqueen.phases.evaluate import Accuracies
from redqueen.phases.evolve import Evolved
from redqueen.phases.items import Item
from redqueen.phases.learn import Learned
from redqueen.phases.measure import Measured
from redqueen.phases.ruler import SolveRates
from redqueen.population.board import Meeting
from redqueen.population.members import Population
from redqueen.rl.rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One step, as its phases leave it."""

    step: int
    population: Population
    """With the ratings after the step."""
    meetings: Sequence[Meeting]
    rollouts: Sequence[Rollout]
    items: Sequence[Item]
    """Of sources, with what became of the attempts at them."""
    spare: Sequence[Rollout]
    """Attempts at what is no task after all: sampled, and nothing else."""
    learned: Learned
    evolved: Evolved
    """Before the step."""
    verifier_runs: Mapping[str, int]
    """By member; those of the race are nobody's: measures."""
    measured: Measured
    drift: Drift | None
    """Measured every so many steps, as what was seen elsewhere and of diversity is."""
    elsewhere: Elsewhere | None
    recalls: Sequence[Recall]
    seen: Snapshot | None
    ruled: SolveRates
    """The bare base's, where it attempted the tasks too."""
    evaluated: Accuracies
