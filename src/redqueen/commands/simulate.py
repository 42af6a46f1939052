"""`redqueen simulate ...`: races with known skills and no model."""

from dataclasses import dataclass

from redqueen.commands.command import Configured, Reporting, positive
from redqueen.console import Report

_SIMULATED = (
    "population.teachers", "population.students", "match",
    "evolution.every", "evolution.share", "evolution.elites", "evolution.fitness", "evolution.selection",
    "evolution.trial", "tasks.proposals",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SimulateRatingsCommand(Reporting, Configured):
    """Test whether ratings find the better members and evolution replaces the worst: known skills, no model.

    Races with births are run under our rules and the paper's, whatever match.rule and evolution.rule say.
    """

    uses = _SIMULATED
    teachers: int = 8
    """How many teachers, instead of --population.teachers."""
    students: int = 8
    """How many students, instead of --population.students."""
    seeds: int = 200
    """Races of each sort."""
    rounds: int = 30
    """Steps of the races without births."""
    attempts: int = 64
    """Attempts in a match, eight for each task."""
    births: int = 10
    """Events in the races with births, one every --evolution.every steps."""
    spread: float | None = None
    """The standard deviation of members' true solve rates, such as 0.005; far apart, as new ratings expect, when left
    out."""

    def report(self) -> Report:
        from redqueen.training import simulate

        return simulate.ratings(
            teachers=positive("--teachers", self.teachers),
            students=positive("--students", self.students),
            seeds=positive("--seeds", self.seeds),
            rounds=positive("--rounds", self.rounds),
            attempts=positive("--attempts", self.attempts),
            births=positive("--births", self.births),
            settings=self.settings,
            spread=self.spread,
        )


@dataclass(frozen=True, kw_only=True)
class SimulateLineageCommand(Configured):
    """Print the family tree of a race with known skills and no model."""

    uses = (*_SIMULATED, "evolution.rule", "evolution.operators")
    births: int = 5
    """Events, one every --evolution.every steps."""
    seed: int = 0
    """The seed of the race."""
    dot: bool = False
    """Print it for Graphviz instead, with both parents of every child."""

    def run(self) -> None:
        from redqueen.population.lineage import dot, draw
        from redqueen.training import simulate

        population = simulate.lineage(positive("--births", self.births), self.seed, self.settings)
        print(dot(population) if self.dot else f"{draw(population)}\n+ has been replaced")
