"""`redqueen simulate ...`: races with known skills and no model."""

from dataclasses import dataclass

from redqueen.commands.command import Configured, positive
from redqueen.console import show

_SIMULATED = (
    "population.teachers", "population.students", "match",
    "evolution.every", "evolution.share", "evolution.elites", "evolution.fitness", "evolution.selection",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SimulateRatings(Configured):
    """Whether ratings find out who is good, and evolution drops the right ones: races with known skills, no model.

    Births are raced under our rules and the paper's, whatever match.rule and evolution.rule say.
    """

    uses = _SIMULATED
    teachers: int = 8
    """How many, instead of --population.teachers."""
    students: int = 8
    """How many, instead of --population.students."""
    seeds: int = 200
    """Races of each sort."""
    rounds: int = 30
    """Steps of the races without births."""
    attempts: int = 64
    """Attempts of a match, eight for each task."""
    births: int = 10
    """Events in the races with births, one every --evolution.every steps."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen.training import simulate

        report = simulate.ratings(
            positive("--teachers", self.teachers),
            positive("--students", self.students),
            positive("--seeds", self.seeds),
            positive("--rounds", self.rounds),
            positive("--attempts", self.attempts),
            positive("--births", self.births),
            self.settings,
        )
        show(report, as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class SimulateLineage(Configured):
    """Who descends from whom in a race with known skills and no model, as a tree."""

    uses = (*_SIMULATED, "evolution.rule", "evolution.operators")
    births: int = 5
    """Events, one every --evolution.every steps."""
    seed: int = 0
    """Which race."""
    dot: bool = False
    """Print it for Graphviz instead, with both parents of every child."""

    def run(self) -> None:
        from redqueen.population.lineage import dot, draw
        from redqueen.training import simulate

        population = simulate.lineage(positive("--births", self.births), self.seed, self.settings)
        print(dot(population) if self.dot else f"{draw(population)}\n+ has been replaced")
